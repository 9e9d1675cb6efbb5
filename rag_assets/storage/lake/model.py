"""The rows of the lake and what it reports about itself."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_assets.ingest.chunking.model import Chunk
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
        key: the parse_key.
        digest: hash of the parsed output; the key of the next stage is made of it.
        parsed: the masked text with its blocks.
        created_at: when it was computed; no part of its identity.
    """

    key: str
    digest: str
    parsed: ParsedText
    created_at: datetime = field(default_factory=_now, compare=False)


@dataclass(frozen=True, slots=True)
class ParsedHead:
    """A parsed document without its text."""

    digest: str
    title: str | None
    media_type: str


@dataclass(frozen=True, slots=True)
class DroppedRow:
    """A chunk that was withheld because it touched a credential: place and rules, no text."""

    ordinal: int
    start: int
    end: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChunkSetRow:
    """All chunks of one document, in one row, so that presence means completeness.

    Attributes:
        key: the chunk_set_key.
        digest: hash of the chunks; the index key is made of it.
        chunks: in order.
        dropped: what was withheld, in order.
        language: of the document; None where that is not sure.
        created_at: when it was computed; no part of its identity.
    """

    key: str
    digest: str
    chunks: tuple[Chunk, ...]
    dropped: tuple[DroppedRow, ...] = ()
    language: str | None = None
    created_at: datetime = field(default_factory=_now, compare=False)


@dataclass(frozen=True, slots=True)
class ChunkSetHead:
    """A chunk set without its texts.

    Attributes:
        digest: hash of the chunks; the index key is made of it.
        hashes: text_sha256 of each chunk, in order.
        dropped: how many chunks were withheld.
        language: of the document; None where that is not sure.
    """

    digest: str
    hashes: tuple[str, ...]
    dropped: int
    language: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VectorRows:
    """Vectors with the hashes of the texts they stand for.

    Attributes:
        hashes: text_sha256 of each row, distinct.
        vectors: float32, shape (len(hashes), dimensions); (0, 0) when nothing is known.
    """

    hashes: tuple[str, ...]
    vectors: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> VectorRows:
        """No vectors."""
        import numpy as np

        return cls((), np.empty((0, 0), np.float32))

    def __len__(self) -> int:
        return len(self.hashes)

    def by_hash(self) -> dict[str, npt.NDArray[np.float32]]:
        """Hash → vector of shape (dimensions,), views into `vectors`."""
        return dict(zip(self.hashes, self.vectors, strict=True))


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """What compaction must keep; None keeps everything of that table.

    Attributes:
        parsed: parse_keys.
        chunk_sets: chunk_set_keys.
        texts: text_sha256 of texts whose vectors stay, whichever embedder made them.
        embedders: embedder_ids whose tables stay; all vectors of any other are removed.
    """

    parsed: Set[str] | None = None
    chunk_sets: Set[str] | None = None
    texts: Set[str] | None = None
    embedders: Set[str] | None = None


@dataclass(frozen=True, slots=True)
class TableSize:
    """Rows (a crash may have left some twice), files, and bytes of one table."""

    rows: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LakeSize:
    """The tables of a tenant by name: parsed_text, chunks, embeddings/<slug>."""

    tables: Mapping[str, TableSize]

    @property
    def bytes(self) -> int:
        """Bytes of all tables together."""
        return sum(table.bytes for table in self.tables.values())


@dataclass(frozen=True, slots=True)
class Compaction:
    """What compaction did to one table.

    Attributes:
        before, after: its size.
        duplicates: rows dropped because their key was there twice.
        dead: rows dropped because their key was not live.
    """

    before: TableSize
    after: TableSize
    duplicates: int = 0
    dead: int = 0
