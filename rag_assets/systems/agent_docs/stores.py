"""Passages, the state of an agent's index, and the protocol of stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

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
