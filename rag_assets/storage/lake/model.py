"""The rows of the lake, and reports on its size and compaction."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from rag_assets.ingest.chunking.model import Chunk, Fact
from rag_assets.ingest.parsing.model import ParsedText

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ParsedRow:
    """One parsed document.

    Attributes:
        digest: hash of the parsed output; an input of the chunk_set_key.
    """

    key: str
    digest: str
    parsed: ParsedText
    created_at: datetime = field(default_factory=_now, compare=False)


@dataclass(frozen=True, slots=True)
class ParsedHead:
    """The title, media type and digest of a parsed document, without its text."""

    digest: str
    title: str | None
    media_type: str


@dataclass(frozen=True, slots=True)
class DroppedRow:
    """A chunk that was dropped because it overlapped a credential; its text is not kept.

    Attributes:
        rules: the rules that found the credential.
    """

    ordinal: int
    start: int
    end: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChunkSetRow:
    """All chunks of one document in one row, so that a row that exists is complete.

    Attributes:
        digest: hash of the chunks; an input of the indexed_key.
    """

    key: str
    digest: str
    chunks: tuple[Chunk, ...]
    dropped: tuple[DroppedRow, ...] = ()
    language: str | None = None
    facts: tuple[Fact, ...] = ()
    created_at: datetime = field(default_factory=_now, compare=False)


@dataclass(frozen=True, slots=True)
class ChunkSetHead:
    """A chunk set without its texts."""

    digest: str
    hashes: tuple[str, ...]
    dropped: int
    language: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VectorRows:
    """Vectors with the hashes of their texts.

    Attributes:
        vectors: float32, shape (len(hashes), dimensions); (0, 0) without vectors.
    """

    hashes: tuple[str, ...]
    vectors: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> VectorRows:
        """Return an empty VectorRows."""
        import numpy as np

        return cls((), np.empty((0, 0), np.float32))

    def __len__(self) -> int:
        return len(self.hashes)

    def by_hash(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the vectors by hash, each of shape (dimensions,) and a view of `vectors`."""
        return dict(zip(self.hashes, self.vectors, strict=True))


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """The keys that compaction keeps in each table; None keeps all rows of that table.

    Attributes:
        texts: text_sha256 of texts whose vectors are kept, for every embedder.
        embedders: embedder_ids; the tables of other embedders are deleted.
    """

    parsed: Set[str] | None = None
    chunk_sets: Set[str] | None = None
    texts: Set[str] | None = None
    embedders: Set[str] | None = None

    def of_table(self, name: str) -> Set[str] | None:
        """Return the keys that a table must keep; None for all."""
        return {"parsed_text": self.parsed, "chunks": self.chunk_sets}.get(name, self.texts)


@dataclass(frozen=True, slots=True)
class DeadKeys:
    """The keys that compaction drops from each table in any case.

    Attributes:
        texts: text_sha256 of texts whose vectors are dropped, for every embedder.
    """

    parsed: Set[str] = frozenset()
    chunk_sets: Set[str] = frozenset()
    texts: Set[str] = frozenset()

    def of_table(self, name: str) -> Set[str]:
        """Return the keys that a table must drop."""
        return {"parsed_text": self.parsed, "chunks": self.chunk_sets}.get(name, self.texts)


@dataclass(frozen=True, slots=True)
class TableSize:
    """Number of rows (including duplicates after a crash), files and bytes of one table."""

    rows: int = 0
    files: int = 0
    bytes: int = 0


FileFault = Literal["missing", "cut", "unreadable", "altered"]


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """An unreadable file that a table lists, or the table's log.

    Attributes:
        table: name of the table: parsed_text, chunks or embeddings/<slug>.
        fault: `altered` means that its rows can be read but differ from their checksums.
    """

    table: str
    path: str
    fault: FileFault
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Compaction:
    """The result of compacting one table."""

    before: TableSize
    after: TableSize
    duplicates: int = 0
    dead: int = 0
