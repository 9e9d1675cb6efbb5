"""Passage stores: data model, protocol, exact search, memory store, and seals of indexes.

An index is stored next to its documentation, often in a repository that others can write to. So its
state is sealed with a key in the user's home folder, and contains a digest of each passage: of its
text, its location and the content of its file. An index without a valid seal is built again. Before
a passage is returned, its digest is checked and its bytes are compared with the file. This check
reads only the passage, not the whole file, and costs some microseconds per passage of an answer.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final, Literal, Protocol, Self, TypeAlias
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import orjson

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import sha256_hex
from rag_assets.privacy.secrets.spans import FILLERS

_SHA256_LENGTH: Final = 64
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DocChunk:
    """A passage of a file.

    Attributes:
        id: `{agent_id}:{source_path}:{byte_offset}`; see build_passage_id_prefix.
        source_path: relative to the base of the globs; absolute for files outside it.
        byte_offset: position of the first byte in the file, counting a byte order mark.
        agent_id: the agent that the passage was indexed for.
    """

    id: str
    content: str
    source_path: str
    byte_offset: int
    agent_id: str

    @classmethod
    def from_location(cls, agent_id: str, source_path: str, byte_offset: int, content: str) -> Self:
        """Create a passage and derive its id from its location."""
        id_ = f"{build_passage_id_prefix(agent_id, source_path)}:{byte_offset}"
        return cls(id_, content, source_path, byte_offset, agent_id)


def build_passage_id_prefix(agent_id: str, source_path: str) -> str:
    """Return the part of a passage's id before its byte offset.

    Colons in the agent's id are percent-encoded. Otherwise agent `a` with file `b:x.md` and agent
    `a:b` with file `x.md` would share ids, and rows of a store.
    """
    return f"{agent_id.replace('%', '%25').replace(':', '%3A')}:{source_path}"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A passage that matches a question, with its cosine similarity."""

    chunk: DocChunk
    score: float


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file at the time it was indexed.

    Attributes:
        mtime_ns: modification time in nanoseconds of Unix time.
        dropped: number of passages left out because they contain only masked characters.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""
    dropped: int = 0
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of an index: its files, its embedder, and hashes of its passages.

    Attributes:
        fingerprint: SHA-256 over path, size and modification time of the files, ordered by path.
        embedder_id: the embedder of the vectors; vectors of different embedders are never mixed.
        recipe: hash of the chunking limits and the versions of parser, chunker and secret rules.
        looked_ns: when the files were listed, in nanoseconds of Unix time.
        text_hashes: hash of the embedded text, by passage id.
        digests: digest of each passage's text, location and file, by passage id.
        seal: keyed digest of this state; an index without a valid seal is not used.
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

    def to_record(self) -> dict[str, Any]:
        """Return the state as JSON values.

        To save space, the digest of a passage is appended to the hash of its text.
        """
        values = {name: getattr(self, name) for name in self.__slots__ if name != "digests"}
        digests = self.digests
        hashes = {id_: sha256 + digests.get(id_, "") for id_, sha256 in self.text_hashes.items()}
        files = [asdict(file) for file in self.files]
        return values | {"files": files, "text_hashes": hashes}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Create a state from the result of to_record."""
        files = tuple(
            FileState(**{**file, "rules": tuple(file.get("rules", ()))}) for file in record["files"]
        )
        joined = record["text_hashes"]
        hashes = {id_: text[:_SHA256_LENGTH] for id_, text in joined.items()}
        digests = {
            id_: text[_SHA256_LENGTH:] for id_, text in joined.items() if text[_SHA256_LENGTH:]
        }
        return cls(**{**record, "files": files, "text_hashes": hashes, "digests": digests})


class PassageStore(Protocol):
    """Stores the passages and vectors of agents, and searches them.

    Readers never wait for a writer: an index is replaced atomically, and until then the previous
    version answers.
    """

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """Return the passages nearest to a vector, best first; ties are ordered by id."""
        ...

    def has_index(self, agent_id: str) -> bool:
        """Return whether an agent has an index; it may be empty."""
        ...

    def chunks(self, agent_id: str) -> list[DocChunk]:
        """Return all passages of an agent, ordered by id."""
        ...

    def state(self, agent_id: str) -> IndexState | None:
        """Return the state of an index; None if it is unknown."""
        ...

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        """Return the vectors of an index by passage id; empty if the index's state is unknown."""
        ...

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """Replace an agent's index atomically."""
        ...

    def touch(self, agent_id: str, state: IndexState) -> None:
        """Replace the state of an index and keep its passages."""
        ...

    def building(self, agent_id: str) -> AbstractContextManager[None]:
        """Hold the exclusive right to replace an index; other builders wait for it."""
        ...


_SCORE_DIGITS = 6
"""Decimal digits kept of a score; further digits differ between libraries that sum float32."""
_UNIT_TOLERANCE = 1e-5
"""Largest deviation from 1 in the length of a normalized float32 vector."""
SCORE_TOLERANCE = 1e-4
"""Largest error of a score computed in float32."""


def normalize_rows(vectors: npt.ArrayLike) -> Vectors:
    """Scale vectors to length one; zero vectors stay as they are."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # Unit vectors keep every bit, so that all stores compute the same scores.
    needs_scaling = (lengths > 0) & (np.abs(lengths - 1) > _UNIT_TOLERANCE)
    units: Vectors = np.divide(rows, lengths, out=rows.copy(), where=needs_scaling)
    return units


def rank_rows(
    rows: Vectors, query: npt.ArrayLike, ids: Sequence[str], top_k: int
) -> list[tuple[int, float]]:
    """Return the number and score of each of the rows nearest to a vector, best first, ties by id.

    Candidates are scored in float32. Those near the top are scored again one by one in float64 and
    rounded, so that the order depends neither on the math library nor on the other rows.

    Args:
        rows: unit vectors; shape (rows, dimensions).
    """
    if not len(rows) or top_k < 1:
        return []
    unit_query = normalize_rows(query)[0]
    scores = rows @ unit_query
    candidates = np.arange(len(rows))
    if len(rows) > top_k:
        threshold = np.partition(scores, len(rows) - top_k)[len(rows) - top_k]
        candidates = np.flatnonzero(scores >= threshold - SCORE_TOLERANCE)
    exact = unit_query.astype(np.float64)
    ranked = [
        (int(row), round(float(np.dot(rows[row].astype(np.float64), exact)), _SCORE_DIGITS))
        for row in candidates
    ]
    ranked.sort(key=lambda scored: (-scored[1], ids[scored[0]]))
    return ranked[:top_k]


@dataclass(frozen=True, slots=True)
class PassageIndex:
    """The immutable index of an agent.

    Attributes:
        chunks: ordered by id.
        rows: unit vectors of the chunks, in the same order.
        state: None if it is unknown.
    """

    chunks: tuple[DocChunk, ...]
    rows: Vectors
    state: IndexState | None = None

    @classmethod
    def from_chunks(
        cls, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike, state: IndexState | None = None
    ) -> PassageIndex:
        """Create an index. The passages may be in any order."""
        if not chunks:
            return cls((), np.empty((0, 0), dtype=np.float32), state)
        rows = normalize_rows(embeddings)
        order = sorted(range(len(chunks)), key=lambda position: chunks[position].id)
        return cls(tuple(chunks[position] for position in order), rows[order], state)

    def search(self, query: npt.ArrayLike, top_k: int) -> list[SearchResult]:
        ranked = rank_rows(self.rows, query, [chunk.id for chunk in self.chunks], top_k)
        return [SearchResult(self.chunks[row], score) for row, score in ranked]

    def get_vectors_by_id(self) -> dict[str, Vectors]:
        """Return the vector of each passage by its id."""
        return {chunk.id: row for chunk, row in zip(self.chunks, self.rows, strict=True)}


EMPTY_INDEX = PassageIndex.from_chunks((), ())


class MemoryStore:
    """Keeps indexes in memory; see PassageStore."""

    def __init__(self) -> None:
        self._indexes: dict[str, PassageIndex] = {}
        self._build_locks: dict[str, RLock] = {}
        self._lock = Lock()

    def _get_index(self, agent_id: str) -> PassageIndex:
        return self._indexes.get(agent_id, EMPTY_INDEX)

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        return self._get_index(agent_id).search(query_embedding, top_k)

    def has_index(self, agent_id: str) -> bool:
        return agent_id in self._indexes

    def chunks(self, agent_id: str) -> list[DocChunk]:
        return list(self._get_index(agent_id).chunks)

    def state(self, agent_id: str) -> IndexState | None:
        return self._get_index(agent_id).state

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        return self._get_index(agent_id).get_vectors_by_id()

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        self._indexes[agent_id] = PassageIndex.from_chunks(chunks, embeddings, state)

    def touch(self, agent_id: str, state: IndexState) -> None:
        self._indexes[agent_id] = replace(self._indexes[agent_id], state=state)

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        with self._lock:
            lock = self._build_locks.setdefault(agent_id, RLock())
        with lock:
            yield


@contextmanager
def lock_file(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for a lock on a file and hold it; the file is created if it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def foreign_file_error(path: Path, reason: str) -> ConfigurationError:
    """Return the error for a file that does not belong to this store."""
    return ConfigurationError(
        f"{path} {reason}; nothing was changed",
        hint="set `rag.path` to another location, or move the file away",
    )


def rename_damaged(path: Path) -> Path:
    """Rename a damaged file to the first unused `NAME.damaged-N`, and return the new path."""
    number = 1
    while (renamed := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return path.rename(renamed)


_MAX_NAME_LENGTH = 150
"""Maximum characters of a file name; a longer one is cut off, with a hash of the agent's id."""


def build_agent_file_name(agent_id: str) -> str:
    """Return a safe file name for an agent: not hidden, and never in a different folder."""
    name = quote(agent_id, safe="")
    name = "%2E" + name[1:] if name.startswith(".") else name
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    return f"{name[:_MAX_NAME_LENGTH]}-{sha256_hex(agent_id)}"


Verdict: TypeAlias = Literal["valid", "altered", "stale"]
"""A passage is altered if someone else changed the index, and stale if its file changed."""

_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 16
_GROUP_OR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def compute_passage_digest(passage: DocChunk, file_sha256: str) -> str:
    """Return the digest of a passage's text, its location and the content of its file."""
    location = "\0".join((passage.id, passage.agent_id, passage.source_path, file_sha256))
    text = f"{location}\0{passage.byte_offset}\0{passage.content}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


class Trust:
    """Seals states of indexes, and verifies states and passages.

    Args:
        key: the key of the seals; by default the user's key, which is created at its first use.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self._verified: dict[str, tuple[IndexState, dict[str, FileState]]] = {}

    def seal(self, state: IndexState) -> IndexState:
        """Return the state with its seal."""
        return replace(state, seal=self._compute_seal(state))

    def is_sealed(self, agent_id: str, state: IndexState) -> bool:
        """Return whether a state has a valid seal by this user's key; the answer is cached."""
        verified = self._verified.get(agent_id)
        if verified is None or verified[0] is not state:
            if not hmac.compare_digest(self._compute_seal(state), state.seal):
                return False
            self._verified[agent_id] = (state, {file.path: file for file in state.files})
        return True

    def check_passage(
        self, state: IndexState, passage: DocChunk, locations: Mapping[str, str] | None
    ) -> Verdict:
        """Return "valid" if this user indexed a stored passage and its file still contains it.

        Otherwise return "altered" if the passage was not indexed like this, or "stale" if the file
        no longer contains it.

        Args:
            locations: absolute path of each file by its source_path; None skips the comparison with
                files.
        """
        files = self._verified[passage.agent_id][1] if passage.agent_id in self._verified else {}
        file = files.get(passage.source_path)
        digest = compute_passage_digest(passage, "" if file is None else file.sha256)
        if state.digests.get(passage.id) != digest:
            return "altered"
        if locations is None:
            return "valid"
        location = locations.get(passage.source_path)
        is_valid = location is not None and _matches_file(location, passage, file)
        return "valid" if is_valid else "stale"

    def _compute_seal(self, state: IndexState) -> str:
        if self._key is None:
            self._key = load_user_key() or os.urandom(_KEY_BYTES)
        record = state.to_record() | {"seal": ""}
        text = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
        return hmac.new(self._key, text, "sha256").hexdigest()


def _matches_file(location: str, passage: DocChunk, indexed: FileState | None) -> bool:
    """Return whether a file contains a passage at its offset, apart from masked characters.

    A passage from which comments were left out is not in the file as it is. It matches if the file
    is still the one that was indexed.
    """
    expected = passage.content.encode("utf-8", "surrogatepass")
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        actual = os.pread(descriptor, len(expected), passage.byte_offset)
        if actual == expected or _equals_except_masked(actual, passage.content):
            return True
        if indexed is None or os.fstat(descriptor).st_size != indexed.size:
            return False
        return sha256_hex(os.pread(descriptor, indexed.size, 0)) == indexed.sha256
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _equals_except_masked(data: bytes, text: str) -> bool:
    """Return whether bytes equal a text in UTF-8.

    A mask character in the text matches any bytes of its own length.
    """
    position = 0
    for character in text:
        encoded = character.encode("utf-8", "surrogatepass")
        actual = data[position : position + len(encoded)]
        if len(actual) < len(encoded) or (actual != encoded and character not in FILLERS):
            return False
        position += len(encoded)
    return True


def load_user_key() -> bytes | None:
    """Return the user's key, created if it is missing; None if it cannot be created or read.

    A key that other users may read or write is ignored.
    """
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    with suppress(OSError, RuntimeError):
        folder = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
        path = folder / "rag-assets" / "agent-index.key"
        return _read_key(path) or _create_key(path)
    return None


def _create_key(path: Path) -> bytes | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)  # atomic, and never overwrites a key
    finally:
        Path(draft).unlink()
    return _read_key(path)


def _read_key(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        is_private = status.st_uid == os.getuid() and not status.st_mode & _GROUP_OR_OTHERS
        key = file.read(_KEY_BYTES + 1)
    return key if is_private and len(key) == _KEY_BYTES else None
