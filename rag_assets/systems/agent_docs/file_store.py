"""Indexes as JSON files, one for each agent, that other programs read.

`{agent_id}.index.json` is a list of {chunk: {id, content, source_path, byte_offset, agent_id},
embedding}; `{agent_id}.state.json` beside it says what it was made of, by the digest of the index.
It has the state of the former index as well, so that both files need not be replaced at once: a
reader, and whoever comes after a builder that was killed, know the state of either. An index of
another digest is another program's: it is built again from the sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import DamagedIndex
from rag_assets.common.hashing import sha256_hex
from rag_assets.systems.agent_docs.stores import (
    EMPTY,
    DocChunk,
    Index,
    IndexState,
    SearchResult,
    Vectors,
    by_agent,
    file_name,
    foreign,
    locked,
    set_aside,
)

_TRIES: Final = 5
"""Of a reader whose files are replaced between its two reads."""

_MARK: Final = {"format": "rag-assets agent index", "version": 1}
"""Of the file with the state of an index; whoever lacks it is not written to."""

_DIGEST_LENGTH: Final = 64
_FIRST_FIELDS: Final = frozenset(
    {"fingerprint", "embedder_id", "recipe", "looked_ns", "files", "left_out", "text_hashes"}
)
"""Of a state of the first version."""

_Version: TypeAlias = tuple[int, int, int]
"""Of a file: a replaced one has another number, if not another time."""


class FileStore:
    """Indexes as JSON files in a folder; see PassageStore.

    Args:
        folder: made at the first write, for its owner alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._read: dict[str, tuple[_Version, Index | None]] = {}
        self._digests: dict[str, tuple[_Version, str]] = {}
        self._states: dict[str, tuple[_Version, Mapping[str, IndexState]]] = {}

    def path_of(self, agent_id: str) -> Path:
        """The file of an agent's index; ids that are no plain names are percent-encoded."""
        return self._folder / f"{file_name(agent_id)}.index.json"

    def upsert(self, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike) -> None:
        """See PassageStore.upsert."""
        for agent_id, (own, rows) in by_agent(chunks, embeddings).items():
            with self.building(agent_id):
                index = (self._index(agent_id) or EMPTY).with_chunks(own, rows)
                self._set_damaged_aside(agent_id)
                self._replace_index(agent_id, index, None)

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """See PassageStore.search."""
        return self._whole(agent_id).search(query_embedding, top_k)

    def delete_agent(self, agent_id: str) -> None:
        """See PassageStore.delete_agent."""
        with self.building(agent_id):
            self.path_of(agent_id).unlink(missing_ok=True)
            self._state_path(agent_id).unlink(missing_ok=True)

    def has_index(self, agent_id: str) -> bool:
        """See PassageStore.has_index."""
        self._known(agent_id)
        return self.path_of(agent_id).is_file() and self._index(agent_id) is not None

    def chunks(self, agent_id: str) -> list[DocChunk]:
        """See PassageStore.chunks."""
        return list(self._whole(agent_id).chunks)

    def state(self, agent_id: str) -> IndexState | None:
        """See PassageStore.state."""
        for _ in range(_TRIES):
            digest = self._digest(agent_id)
            known = self._known(agent_id)
            # Unless the index was replaced between both reads.
            if digest is None or digest in known or digest == self._digest(agent_id):
                return known.get(digest or "")
        return None

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        """See PassageStore.vectors."""
        if self.state(agent_id) is None:
            return {}
        index = self._whole(agent_id)
        return {chunk.id: row for chunk, row in zip(index.chunks, index.rows, strict=True)}

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """See PassageStore.replace."""
        self._set_damaged_aside(agent_id)
        self._replace_index(agent_id, Index.of(chunks, embeddings), state)

    def touch(self, agent_id: str, state: IndexState) -> None:
        """See PassageStore.touch."""
        self._write_states(agent_id, {self._digest(agent_id) or "": state})

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        """See PassageStore.building."""
        self._known(agent_id)
        with locked(self._folder / f".{file_name(agent_id)}.lock"):
            yield

    def _whole(self, agent_id: str) -> Index:
        """An agent's index, or an empty one.

        Raises:
            DamagedIndex: it cannot be read.
        """
        index = self._index(agent_id)
        if index is None:
            raise DamagedIndex(str(self.path_of(agent_id)))
        return index

    def _index(self, agent_id: str) -> Index | None:
        """An agent's index, or an empty one; None if it is damaged.

        Raises:
            ConfigurationError: it is another program's.
        """
        self._known(agent_id)
        path = self.path_of(agent_id)
        if (version := _version_of(path)) is None:
            return EMPTY
        known = self._read.get(agent_id)
        if known is None or known[0] != version:
            known = self._read[agent_id] = (version, _loaded(path.read_bytes()))
        return known[1]

    def _replace_index(self, agent_id: str, index: Index, state: IndexState | None) -> None:
        import orjson

        rows = [
            {"chunk": asdict(chunk), "embedding": row}
            for chunk, row in zip(index.chunks, index.rows, strict=True)
        ]
        data = orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)
        former = self._digest(agent_id)
        kept = {key: one for key, one in self._known(agent_id).items() if key == former}
        new = {} if state is None else {sha256_hex(data): state}
        self._write_states(agent_id, kept | new)
        _replace(self.path_of(agent_id), data)

    def _write_states(self, agent_id: str, states: Mapping[str, IndexState]) -> None:
        import orjson

        self._known(agent_id)
        records = {digest: state.record() for digest, state in states.items()}
        _replace(self._state_path(agent_id), orjson.dumps({**_MARK, "states": records}))

    def _known(self, agent_id: str) -> Mapping[str, IndexState]:
        """The states that lie beside an index, by its digest: they have the mark that it is ours.

        Raises:
            ConfigurationError: the files are another program's, of another version, or links.
        """
        index, path = self.path_of(agent_id), self._state_path(agent_id)
        for one in (index, path):
            if os.path.realpath(one) != str(one):
                raise foreign(one, "has become a link")
        # A state is written before its index, and deleted after it.
        has_index = _version_of(index) is not None
        if (version := _version_of(path)) is None:
            if has_index and _version_of(index) is not None:
                raise foreign(index, "is an index of another program")
            return {}
        known = self._states.get(agent_id)
        if known is None or known[0] != version:
            states = _states_in(path)
            if states is None:
                raise foreign(path, "is no state of an index of this version")
            known = self._states[agent_id] = (version, states)
        return known[1]

    def _set_damaged_aside(self, agent_id: str) -> None:
        path = self.path_of(agent_id)
        if path.exists() and _loaded(path.read_bytes()) is None:
            set_aside(path)

    def _digest(self, agent_id: str) -> str | None:
        path = self.path_of(agent_id)
        if (version := _version_of(path)) is None:
            return None
        known = self._digests.get(agent_id)
        if known is None or known[0] != version:
            known = self._digests[agent_id] = (version, sha256_hex(path.read_bytes()))
        return known[1]

    def _state_path(self, agent_id: str) -> Path:
        return self._folder / f"{file_name(agent_id)}.state.json"


def _version_of(path: Path) -> _Version | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _states_in(path: Path) -> Mapping[str, IndexState] | None:
    """Return the states in a file, by digest; None if it is not ours.

    A file of the first version has states and no mark.
    """
    import orjson

    try:
        content = orjson.loads(path.read_bytes())
        if not _MARK.items() <= content.items():
            return {} if content and all(map(_is_state, content.items())) else None
        return {key: IndexState.of(record) for key, record in content["states"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_state(item: tuple[str, Mapping[str, object]]) -> bool:
    digest, record = item
    return len(digest) == _DIGEST_LENGTH and set(record) == _FIRST_FIELDS


def _loaded(data: bytes) -> Index | None:
    """The index in a file; None if it is damaged."""
    import orjson

    try:
        rows = orjson.loads(data)
        chunks = [DocChunk(**row["chunk"]) for row in rows]
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        return Index.of(chunks, vectors)
    except (ValueError, TypeError, KeyError):
        return None


def _replace(path: Path, data: bytes) -> None:
    """Replace a file of the store in one step; builders hold the lock, so the draft is theirs."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
