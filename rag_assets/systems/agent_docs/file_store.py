"""Stores each agent's index as a JSON file that other programs can read.

`{agent_id}.index.json` is a list of {chunk: {id, content, source_path, byte_offset, agent_id},
embedding}. `{agent_id}.state.json` maps the digest of an index file to the state of that index. It
also keeps the state of the previous index, because the two files cannot be replaced at once: a
reader, or a builder after a killed builder, finds the state of either. An index file with an
unknown digest was written by another program, and is built again from the sources.
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
import orjson

from rag_assets.common.hashing import sha256_hex
from rag_assets.systems.agent_docs.errors import DamagedIndex
from rag_assets.systems.agent_docs.stores import (
    EMPTY_INDEX,
    DocChunk,
    IndexState,
    PassageIndex,
    SearchResult,
    Vectors,
    build_agent_file_name,
    foreign_file_error,
    lock_file,
    rename_damaged,
)

_MAX_TRIES: Final = 5
"""Maximum attempts of a reader if files are replaced between its reads; then it gets no state."""

_MARK: Final = {"format": "rag-assets agent index", "version": 1}
"""Identifies our state files; files without it are never written to."""

_DIGEST_LENGTH: Final = 64
_UNMARKED_FIELDS: Final = frozenset(
    {"fingerprint", "embedder_id", "recipe", "looked_ns", "files", "left_out", "text_hashes"}
)
"""Fields of a state in the first format, which had no mark."""

_FileVersion: TypeAlias = tuple[int, int, int]
"""Inode, modification time and size: at least one changes when a file is replaced."""


class FileStore:
    """Stores indexes as JSON files in a folder; see PassageStore.

    Args:
        folder: the folder of the files; the first write creates it, accessible only to its owner.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._index_cache: dict[str, tuple[_FileVersion, PassageIndex | None]] = {}
        self._digest_cache: dict[str, tuple[_FileVersion, str]] = {}
        self._state_cache: dict[str, tuple[_FileVersion, Mapping[str, IndexState]]] = {}

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        return self._read_index(agent_id).search(query_embedding, top_k)

    def has_index(self, agent_id: str) -> bool:
        self._read_states(agent_id)
        return self._get_index_path(agent_id).is_file() and self._load_index(agent_id) is not None

    def chunks(self, agent_id: str) -> list[DocChunk]:
        return list(self._read_index(agent_id).chunks)

    def state(self, agent_id: str) -> IndexState | None:
        for _ in range(_MAX_TRIES):
            digest = self._compute_digest(agent_id)
            states = self._read_states(agent_id)
            # Read again if the index was replaced between the two reads.
            if digest is None or digest in states or digest == self._compute_digest(agent_id):
                return states.get(digest or "")
        return None

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        return (
            {} if self.state(agent_id) is None else self._read_index(agent_id).get_vectors_by_id()
        )

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """Write the new state to the state file, then replace the index file."""
        path = self._get_index_path(agent_id)
        if path.exists() and _parse_index(path.read_bytes()) is None:
            rename_damaged(path)
        index = PassageIndex.from_chunks(chunks, embeddings)
        rows = [
            {"chunk": asdict(chunk), "embedding": row}
            for chunk, row in zip(index.chunks, index.rows, strict=True)
        ]
        data = orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)
        previous = self._compute_digest(agent_id)
        former = {
            digest: recorded_state
            for digest, recorded_state in self._read_states(agent_id).items()
            if digest == previous
        }
        self._write_states(agent_id, {**former, sha256_hex(data): state})
        _replace_file(path, data)

    def touch(self, agent_id: str, state: IndexState) -> None:
        self._write_states(agent_id, {self._compute_digest(agent_id) or "": state})

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        self._read_states(agent_id)
        with lock_file(self._folder / f".{build_agent_file_name(agent_id)}.lock"):
            yield

    def _get_index_path(self, agent_id: str) -> Path:
        return self._folder / f"{build_agent_file_name(agent_id)}.index.json"

    def _get_state_path(self, agent_id: str) -> Path:
        return self._folder / f"{build_agent_file_name(agent_id)}.state.json"

    def _read_index(self, agent_id: str) -> PassageIndex:
        """Return an agent's index; an empty index if the file is missing.

        Raises:
            DamagedIndex: the file is damaged.
        """
        index = self._load_index(agent_id)
        if index is None:
            raise DamagedIndex(str(self._get_index_path(agent_id)))
        return index

    def _load_index(self, agent_id: str) -> PassageIndex | None:
        """Return an agent's index: empty if the file is missing, None if the file is damaged."""
        self._read_states(agent_id)
        path = self._get_index_path(agent_id)
        if (version := _read_file_version(path)) is None:
            return EMPTY_INDEX
        cached = self._index_cache.get(agent_id)
        if cached is None or cached[0] != version:
            cached = self._index_cache[agent_id] = (version, _parse_index(path.read_bytes()))
        return cached[1]

    def _write_states(self, agent_id: str, states: Mapping[str, IndexState]) -> None:
        self._read_states(agent_id)
        records = {digest: state.to_record() for digest, state in states.items()}
        _replace_file(self._get_state_path(agent_id), orjson.dumps({**_MARK, "states": records}))

    def _read_states(self, agent_id: str) -> Mapping[str, IndexState]:
        """Return the states in an agent's state file, by the digest of their index.

        Raises:
            ConfigurationError: a file or a folder above it is a link, or the state file is damaged,
                of another version, or missing although an index exists.
        """
        index_path, path = self._get_index_path(agent_id), self._get_state_path(agent_id)
        for checked in (index_path, path):
            if os.path.realpath(checked) != str(checked):
                raise foreign_file_error(checked, "is now reached through a symbolic link")
        # The state file is written before its index, and deleted after it.
        has_index = _read_file_version(index_path) is not None
        if (version := _read_file_version(path)) is None:
            if has_index and _read_file_version(index_path) is not None:
                raise foreign_file_error(
                    index_path, "has no state file, so it may belong to another program"
                )
            return {}
        cached = self._state_cache.get(agent_id)
        if cached is None or cached[0] != version:
            states = _parse_states(path)
            if states is None:
                raise foreign_file_error(
                    path, "is damaged, or was not written by this version of rag-assets"
                )
            cached = self._state_cache[agent_id] = (version, states)
        return cached[1]

    def _compute_digest(self, agent_id: str) -> str | None:
        path = self._get_index_path(agent_id)
        if (version := _read_file_version(path)) is None:
            return None
        cached = self._digest_cache.get(agent_id)
        if cached is None or cached[0] != version:
            cached = self._digest_cache[agent_id] = (version, sha256_hex(path.read_bytes()))
        return cached[1]


def _read_file_version(path: Path) -> _FileVersion | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _parse_states(path: Path) -> Mapping[str, IndexState] | None:
    """Return the states in a file, by digest; None if another program wrote the file.

    States in the first format of this file are dropped, so that the indexes are built again.
    """
    try:
        content = orjson.loads(path.read_bytes())
        if not _MARK.items() <= content.items():
            return {} if content and all(map(_is_first_format_state, content.items())) else None
        return {key: IndexState.from_record(record) for key, record in content["states"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_first_format_state(item: tuple[str, Mapping[str, object]]) -> bool:
    digest, record = item
    return len(digest) == _DIGEST_LENGTH and set(record) == _UNMARKED_FIELDS


def _parse_index(data: bytes) -> PassageIndex | None:
    """Parse an index file; None if it is damaged."""
    try:
        rows = orjson.loads(data)
        chunks = [DocChunk(**row["chunk"]) for row in rows]
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        return PassageIndex.from_chunks(chunks, vectors)
    except (ValueError, TypeError, KeyError):
        return None


def _replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically. The caller must hold the build lock, which protects the draft."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
