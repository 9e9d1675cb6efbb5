"""The columns of the lake's tables, and the layout of their files.

Two choices make reading fast, as measured in benchmarks/lake.py. First, a vector is stored as the
bytes of its little-endian float32 values. Reading 20 of 300,000 is then about ten times faster than
from a Delta array, which has two levels to decode per element. Second, the hashes of a chunk set's
texts are a separate column, so that finding the needed vectors reads no text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from rag_assets.common.hashing import compute_key

_TEXT: Final = pl.String()
_INTEGER: Final = pl.Int64()
_TIMESTAMP: Final = pl.Datetime("us", "UTC")

BLOCK: Final = pl.Struct(
    {
        "kind": _TEXT,
        "start": _INTEGER,
        "end": _INTEGER,
        "heading_path": pl.List(_TEXT),
        "level": _INTEGER,
        "page": _INTEGER,
        "slide": _INTEGER,
        "sheet": _TEXT,
        "row": _INTEGER,
    }
)
MASKED: Final = pl.Struct({"start": _INTEGER, "end": _INTEGER, "rule": _TEXT})
OF_PAGES: Final = pl.Schema({"block_ids": pl.List(_TEXT)})
"""Ids of blocks, in the order of the blocks; null in texts without block ids."""
OF_MARKS: Final = pl.Schema({"mark_bytes": _INTEGER})
"""Columns that parsed texts of earlier versions lack; they are read as null."""

CHECKSUMS: Final = pl.Schema({"checksum": _INTEGER})
"""The checksum of each row (see checksums); null in rows of earlier versions."""

PARSED_TEXT: Final = pl.Schema(
    {
        "key": _TEXT,
        "digest": _TEXT,
        "title": _TEXT,
        "text": _TEXT,
        "pages": _INTEGER,
        "blocks": pl.List(BLOCK),
        "masked": pl.List(MASKED),
        "ocr_pages": _INTEGER,
        "has_lines": pl.Boolean(),
        "media_type": _TEXT,
        "notes": pl.List(_TEXT),
        "created_at": _TIMESTAMP,
        **OF_PAGES,
        **OF_MARKS,
        **CHECKSUMS,
    }
)

CHUNK: Final = pl.Struct(
    {
        "ordinal": _INTEGER,
        "text": _TEXT,
        "start": _INTEGER,
        "end": _INTEGER,
        "byte_start": _INTEGER,
        "line_start": _INTEGER,
        "line_end": _INTEGER,
        "page": _INTEGER,
        "slide": _INTEGER,
        "sheet": _TEXT,
        "row_start": _INTEGER,
        "row_end": _INTEGER,
        "heading_path": pl.List(_TEXT),
        "token_count": _INTEGER,
    }
)
DROPPED: Final = pl.Struct(
    {"ordinal": _INTEGER, "start": _INTEGER, "end": _INTEGER, "rules": pl.List(_TEXT)}
)
DEFINITION: Final = pl.Struct({"role": _TEXT, "symbol": _TEXT, "signature": _TEXT})
OF_CODE: Final = pl.Schema(
    {
        "definitions": pl.List(DEFINITION),  # of chunks, in their order; null except in source code
        "facts": _TEXT,  # JSON
    }
)
"""Columns that chunk sets of earlier versions lack; they are read as null."""
BLOCKS: Final = pl.Struct(
    {"block_ids": pl.List(_TEXT), "starts": pl.List(_INTEGER), "of_block": pl.Boolean()}
)
WITH_BLOCKS: Final = pl.Schema({"blocks": pl.List(BLOCKS)})
"""The blocks of chunks, in the order of the chunks; null if blocks have no ids."""
WITH_CONTEXTS: Final = pl.Schema({"contexts": pl.List(_TEXT)})
"""The contexts of chunks, in the order of the chunks; null if no chunk has a context."""

CHUNKS: Final = pl.Schema(
    {
        "key": _TEXT,
        "digest": _TEXT,
        "chunks": pl.List(CHUNK),
        "text_sha256": pl.List(_TEXT),  # of chunks, in their order
        "dropped": pl.List(DROPPED),
        "language": _TEXT,
        "created_at": _TIMESTAMP,
        **OF_CODE,
        **WITH_BLOCKS,
        **WITH_CONTEXTS,
        **CHECKSUMS,
    }
)

EMBEDDINGS: Final = pl.Schema(
    {"text_sha256": _TEXT, "vector": pl.Binary(), "created_at": _TIMESTAMP, **CHECKSUMS}
)


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of table.

    Attributes:
        key: the column that identifies a row; the only column with statistics.
        schema: the columns of the table.
        group_rows: rows in a row group, the smallest unit that a read by key decodes.
        file_bytes: size of a file that needs no merging; also bounds the memory of compaction.
        compression: compression of the files. Compressed vectors would be 9 % smaller, but reading
            them would take two to five times as long.
        added: columns of the schema that came later; they are null in files without them.
    """

    key: str
    schema: pl.Schema
    group_rows: int
    file_bytes: int
    compression: Literal["ZSTD", "UNCOMPRESSED"]
    added: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        """Return a hash of the original columns; a table with other columns has another folder."""
        first = {n: str(kind) for n, kind in self.schema.items() if n not in self.added}
        return compute_key("lake_schema", first)[:12]


PARSED_TEXT_TABLE: Final = TableKind(
    "key", PARSED_TEXT, 32, 16 << 20, "ZSTD", frozenset({*OF_PAGES, *OF_MARKS, *CHECKSUMS})
)
CHUNKS_TABLE: Final = TableKind(
    *("key", CHUNKS, 32, 16 << 20, "ZSTD"),
    frozenset({*OF_CODE, *WITH_BLOCKS, *WITH_CONTEXTS, *CHECKSUMS}),
)
EMBEDDINGS_TABLE: Final = TableKind(
    "text_sha256", EMBEDDINGS, 2_000, 64 << 20, "UNCOMPRESSED", frozenset(CHECKSUMS)
)
