"""Stores of agents' passages: the protocol, exact search, the store in memory, and file locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final, Protocol, Self
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import sha256_hex

_HASH_LENGTH: Final = 64
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DocChunk:
    """A passage of a file.

    Attributes:
        id: `{agent_id}:{source_path}:{byte_offset}`; see passage_source.
        content: the bytes of the file at that offset, decoded.
        source_path: below the base of relative globs; absolute for files elsewhere.
        byte_offset: of its first byte in the file, a byte order mark counted.
        agent_id: of the agent that it was indexed for.
    """

    id: str
    content: str
    source_path: str
    byte_offset: int
    agent_id: str

    @classmethod
    def at(cls, agent_id: str, source_path: str, byte_offset: int, content: str) -> Self:
        """The passage at a place, with its id."""
        id_ = f"{passage_source(agent_id, source_path)}:{byte_offset}"
        return cls(id_, content, source_path, byte_offset, agent_id)


def passage_source(agent_id: str, source_path: str) -> str:
    """What the ids of a file's passages begin with.

    Colons of an agent's id are percent-encoded: `a` with a file `b:x.md` would else share ids, and
    rows of a store, with `a:b` and its `x.md`.
    """
    return f"{agent_id.replace('%', '%25').replace(':', '%3A')}:{source_path}"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A passage that was found, and its cosine similarity to the question."""

    chunk: DocChunk
    score: float


@dataclass(frozen=True, slots=True)
class FileState:
    """What is known of a file when it is indexed.

    Attributes:
        path: as source_path.
        size: in bytes.
        mtime_ns: when it was modified, in nanoseconds of Unix time.
        sha256: of its bytes.
        dropped: its passages that were left out, since nothing but a masked credential was in them.
        rules: that found the credentials masked in it.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""
    dropped: int = 0
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexState:
    """What an agent's index was made of.

    Attributes:
        fingerprint: SHA-256 of path, size and modification time of its files, in order.
        embedder_id: of its vectors; those of another are never mixed with them.
        recipe: of its passages: limits, and versions of parser, chunker and rules.
        looked_ns: when the files were looked at, in nanoseconds of Unix time.
        files: with the hash of their contents.
        left_out: files that were not indexed, and why.
        text_hashes: of what was embedded, by id of passage.
        digests: of each passage's text, place and file, by its id; see agents.trust.
        seal: keyed digest of all of this: a state without it is not that of an index of ours.
    """

    fingerprint: str
    embedder_id: str
    recipe: str
    looked_ns: int
    files: tuple[FileState, ...]
    left_out: Mapping[str, str]
    text_hashes: Mapping[str, str]
    digests: Mapping[str, str] = field(default_factory=dict)
    seal: str = ""

    def record(self) -> dict[str, Any]:
        """The state as JSON can hold it; digests follow the hashes, since it is read often."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "digests"}
        digests = self.digests
        hashes = {id_: one + digests.get(id_, "") for id_, one in self.text_hashes.items()}
        files = [asdict(one) for one in self.files]
        return values | {"files": files, "text_hashes": hashes}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of record()."""
        files = tuple(
            FileState(**{**one, "rules": tuple(one.get("rules", ()))}) for one in record["files"]
        )
        both = record["text_hashes"]
        hashes = {id_: one[:_HASH_LENGTH] for id_, one in both.items()}
        digests = {id_: one[_HASH_LENGTH:] for id_, one in both.items() if one[_HASH_LENGTH:]}
        return cls(**{**record, "files": files, "text_hashes": hashes, "digests": digests})


class PassageSearcher(Protocol):
    """Searches the passages of agents."""

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """The passages nearest to a vector, best first, ties by id."""
        ...

    def has_index(self, agent_id: str) -> bool:
        """Whether an agent has an index, be it an empty one."""
        ...


class PassageStore(PassageSearcher, Protocol):
    """Stores passages with their vectors, per agent, and searches them.

    Readers never wait for a writer. An index is replaced in one step: until then the former one
    answers.
    """

    def upsert(self, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike) -> None:
        """Add passages, or replace those of the same ids.

        Args:
            chunks: of any agents.
            embeddings: one for each; shape (chunks, dimensions).
        """
        ...

    def delete_agent(self, agent_id: str) -> None:
        """Delete an agent's index."""
        ...

    def chunks(self, agent_id: str) -> list[DocChunk]:
        """All passages of an agent, ordered by id."""
        ...

    def state(self, agent_id: str) -> IndexState | None:
        """What the index was made of; None where that is not known."""
        ...

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        """The vectors of an index by id of passage; none where its state is not known."""
        ...

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """Replace an agent's index in one step.

        Args:
            agent_id: of all the passages.
            chunks: all that the index has afterwards.
            embeddings: of shape (chunks, dimensions).
            state: what it was made of.
        """
        ...

    def touch(self, agent_id: str, state: IndexState) -> None:
        """Replace the state of an index whose passages stay as they are."""
        ...

    def building(self, agent_id: str) -> AbstractContextManager[None]:
        """Hold the right to replace an index; another builder waits until it is given back."""
        ...


_DIGITS = 6
"""Of a score: beyond them, sums of float32 differ between libraries."""
_UNIT_ERROR = 1e-5
"""By which the length of a float32 vector that was brought to length one may differ."""
MARGIN = 1e-4
"""By which a first score in float32 may be wrong."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A row that was found, and its score."""

    row: int
    score: float


def unit_rows(vectors: npt.ArrayLike) -> Vectors:
    """Vectors of length one; those of length zero stay as they are.

    Args:
        vectors: of shape (rows, dimensions).
    """
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # A vector of length one stays bit for bit as it is, so that all stores score it alike.
    other = (lengths > 0) & (np.abs(lengths - 1) > _UNIT_ERROR)
    units: Vectors = np.divide(rows, lengths, out=rows.copy(), where=other)
    return units


def nearest(rows: Vectors, query: npt.ArrayLike, ids: Sequence[str], top_k: int) -> list[Nearest]:
    """The rows nearest to a vector, best first, ties by id.

    What float32 brings near the top is scored again, row by row in float64, and rounded: so the
    order depends neither on the library that multiplies nor on the other rows.

    Args:
        rows: of length one; shape (rows, dimensions).
        query: of any length.
        ids: of the rows.
        top_k: how many are wanted.
    """
    if not len(rows) or top_k < 1:
        return []
    wanted = unit_rows(query)[0]
    scores = rows @ wanted
    candidates = np.arange(len(rows))
    if len(rows) > top_k:
        least = np.partition(scores, len(rows) - top_k)[len(rows) - top_k]
        candidates = np.flatnonzero(scores >= least - MARGIN)
    exact = wanted.astype(np.float64)
    found = [
        Nearest(int(row), round(float(np.dot(rows[row].astype(np.float64), exact)), _DIGITS))
        for row in candidates
    ]
    found.sort(key=lambda one: (-one.score, ids[one.row]))
    return found[:top_k]


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


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, which is made where there is none; waits for it.

    Args:
        path: of the file.
        shared: whether others may hold a shared one as well.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def foreign(path: Path, why: str) -> ConfigurationError:
    """Return the error of a file that is not ours to read or to write."""
    return ConfigurationError(
        f"{path} {why}; nothing was changed",
        hint="name another place in `rag.path`, or move the file away",
    )


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that nothing of it is lost; returns its new name."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return path.rename(aside)


_LONGEST = 150


def file_name(agent_id: str) -> str:
    """A name of a file for an agent, which leads to no other folder and hides no file."""
    name = quote(agent_id, safe="")
    name = "%2E" + name[1:] if name.startswith(".") else name
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{sha256_hex(agent_id)}"
