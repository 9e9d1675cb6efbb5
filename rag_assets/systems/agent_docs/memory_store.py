"""Indexes in memory, which end with their process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock, RLock

import numpy as np
import numpy.typing as npt

from rag_assets.systems.agent_docs.nearest import nearest, unit_rows
from rag_assets.systems.agent_docs.stores import DocChunk, IndexState, SearchResult, Vectors


@dataclass(frozen=True, slots=True)
class Index:
    """One agent's index; replaced, never changed.

    Attributes:
        chunks: ordered by id.
        rows: their vectors, of length one.
        state: what it was made of, where that is known.
    """

    chunks: tuple[DocChunk, ...]
    rows: Vectors
    state: IndexState | None = None

    @classmethod
    def of(
        cls, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike, state: IndexState | None = None
    ) -> Index:
        """An index of passages in any order."""
        if not chunks:
            return cls((), np.empty((0, 0), dtype=np.float32), state)
        rows = unit_rows(embeddings)
        order = sorted(range(len(chunks)), key=lambda at: chunks[at].id)
        return cls(tuple(chunks[at] for at in order), rows[order], state)

    def search(self, query: npt.ArrayLike, top_k: int) -> list[SearchResult]:
        """See PassageStore.search."""
        ids = [chunk.id for chunk in self.chunks]
        found = nearest(self.rows, query, ids, top_k)
        return [SearchResult(self.chunks[one.row], one.score) for one in found]

    def with_chunks(self, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike) -> Index:
        """This index with more passages; those of the same ids are replaced."""
        vectors = {chunk.id: row for chunk, row in zip(self.chunks, self.rows, strict=True)}
        by_id = {chunk.id: chunk for chunk in self.chunks}
        for chunk, row in zip(chunks, unit_rows(embeddings), strict=True):
            by_id[chunk.id], vectors[chunk.id] = chunk, row
        rows = np.array([vectors[id_] for id_ in by_id], dtype=np.float32)
        return Index.of(list(by_id.values()), rows)


EMPTY = Index.of((), ())


class MemoryStore:
    """Indexes in memory; see PassageStore."""

    def __init__(self) -> None:
        self._indexes: dict[str, Index] = {}
        self._building: dict[str, RLock] = {}
        self._lock = Lock()

    def upsert(self, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike) -> None:
        """See PassageStore.upsert."""
        for agent_id, (own, rows) in by_agent(chunks, embeddings).items():
            with self.building(agent_id):
                before = self._indexes.get(agent_id, EMPTY)
                self._indexes[agent_id] = before.with_chunks(own, rows)

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """See PassageStore.search."""
        return self._indexes.get(agent_id, EMPTY).search(query_embedding, top_k)

    def delete_agent(self, agent_id: str) -> None:
        """See PassageStore.delete_agent."""
        self._indexes.pop(agent_id, None)

    def has_index(self, agent_id: str) -> bool:
        """See PassageStore.has_index."""
        return agent_id in self._indexes

    def chunks(self, agent_id: str) -> list[DocChunk]:
        """See PassageStore.chunks."""
        return list(self._indexes.get(agent_id, EMPTY).chunks)

    def state(self, agent_id: str) -> IndexState | None:
        """See PassageStore.state."""
        return self._indexes.get(agent_id, EMPTY).state

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        """See PassageStore.vectors."""
        index = self._indexes.get(agent_id, EMPTY)
        return {chunk.id: row for chunk, row in zip(index.chunks, index.rows, strict=True)}

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """See PassageStore.replace."""
        self._indexes[agent_id] = Index.of(chunks, embeddings, state)

    def touch(self, agent_id: str, state: IndexState) -> None:
        """See PassageStore.touch."""
        self._indexes[agent_id] = replace(self._indexes[agent_id], state=state)

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        """See PassageStore.building."""
        with self._lock:
            own = self._building.setdefault(agent_id, RLock())
        with own:
            yield


def by_agent(
    chunks: Sequence[DocChunk], embeddings: npt.ArrayLike
) -> dict[str, tuple[list[DocChunk], Vectors]]:
    """Passages with their vectors, by agent."""
    rows = np.atleast_2d(np.asarray(embeddings, dtype=np.float32))
    places: dict[str, list[int]] = {}
    for at, chunk in enumerate(chunks):
        places.setdefault(chunk.agent_id, []).append(at)
    return {agent: ([chunks[at] for at in own], rows[own]) for agent, own in places.items()}
