"""The columns of the lake's tables, the layout of their files, and the conversion of their rows.

Two choices make reading fast, as measured in benchmarks/lake.py. First, a vector is stored as the
bytes of its little-endian float32 values. Reading 20 of 300,000 is then about ten times faster than
from a Delta array, which has two levels to decode per element. Second, the hashes of a chunk set's
texts are a separate column, so that finding the needed vectors reads no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from rag_assets.common.errors import BadVectors, DocumentRejected
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.chunk_set import parse_facts, serialize_facts
from rag_assets.ingest.chunking.model import Fact, build_chunk_record, parse_chunk
from rag_assets.ingest.parsing.model import Block, Gap, MaskedSpan, ParsedText
from rag_assets.storage.lake.model import (
    ChunkSetHead,
    ChunkSetRow,
    DroppedRow,
    ParsedRow,
    VectorRows,
)

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
PAGE_COLUMNS: Final = pl.Schema({"block_ids": pl.List(_TEXT)})
"""Ids of blocks, in the order of the blocks; null in texts without block ids."""
SOURCE_COLUMNS: Final = pl.Schema(
    {
        "mark_bytes": _INTEGER,
        "gaps": pl.List(pl.Struct({"at": _INTEGER, "bytes": _INTEGER})),
    }
)
"""Columns that parsed texts of earlier versions lack; they are read as null."""

CHECKSUMS: Final = pl.Schema({"checksum": _INTEGER})
"""The checksum of each row; null in rows of earlier versions."""

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
        **PAGE_COLUMNS,
        **SOURCE_COLUMNS,
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
CODE_COLUMNS: Final = pl.Schema(
    {
        "definitions": pl.List(DEFINITION),  # of chunks, in their order; null except in source code
        "facts": _TEXT,  # JSON
    }
)
"""Columns that chunk sets of earlier versions lack; they are read as null."""
BLOCKS: Final = pl.Struct(
    {"block_ids": pl.List(_TEXT), "starts": pl.List(_INTEGER), "of_block": pl.Boolean()}
)
BLOCK_COLUMNS: Final = pl.Schema({"blocks": pl.List(BLOCKS)})
"""The blocks of chunks, in the order of the chunks; null if blocks have no ids."""
CONTEXT_COLUMNS: Final = pl.Schema({"contexts": pl.List(_TEXT)})
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
        **CODE_COLUMNS,
        **BLOCK_COLUMNS,
        **CONTEXT_COLUMNS,
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
        """Return a hash of the original columns, used as the folder name of the table."""
        first = {n: str(kind) for n, kind in self.schema.items() if n not in self.added}
        return compute_key("lake_schema", first)[:12]


PARSED_TEXT_TABLE: Final = TableKind(
    "key",
    PARSED_TEXT,
    32,
    16 << 20,
    "ZSTD",
    frozenset({*PAGE_COLUMNS, *SOURCE_COLUMNS, *CHECKSUMS}),
)
CHUNKS_TABLE: Final = TableKind(
    *("key", CHUNKS, 32, 16 << 20, "ZSTD"),
    frozenset({*CODE_COLUMNS, *BLOCK_COLUMNS, *CONTEXT_COLUMNS, *CHECKSUMS}),
)
EMBEDDINGS_TABLE: Final = TableKind(
    "text_sha256", EMBEDDINGS, 2_000, 64 << 20, "UNCOMPRESSED", frozenset(CHECKSUMS)
)


_BLOCK_FIELDS = tuple(field.name for field in BLOCK.fields)
_PARSED_FIELDS = ("title", "text", "pages", "ocr_pages", "has_lines", "media_type")
_CHUNK_FIELDS = tuple(field.name for field in CHUNK.fields)
CHUNK_SET_HEAD = ("key", "digest", "text_sha256", "dropped", "language")


def build_parsed_frame(rows: Iterable[ParsedRow]) -> pl.DataFrame:
    """Return a data frame with one row for each parsed document.

    Raises:
        DocumentRejected: a text cannot be encoded as UTF-8.
    """
    return _build_frame([_build_parsed_record(row) for row in rows], PARSED_TEXT)


def read_parsed_rows(frame: pl.DataFrame) -> dict[str, ParsedRow]:
    """Return parsed documents by key."""
    return {record["key"]: _parse_parsed_row(record) for record in frame.iter_rows(named=True)}


def build_chunk_sets_frame(rows: Iterable[ChunkSetRow]) -> pl.DataFrame:
    """Return a data frame with one row for each chunk set."""
    return _build_frame([_build_chunk_set_record(row) for row in rows], CHUNKS)


def read_chunk_set_rows(frame: pl.DataFrame) -> dict[str, ChunkSetRow]:
    """Return chunk sets by key."""
    return {record["key"]: _parse_chunk_set_row(record) for record in frame.iter_rows(named=True)}


def chunk_set_heads(frame: pl.DataFrame) -> dict[str, ChunkSetHead]:
    """Return chunk sets without texts, by key, from a frame with the columns CHUNK_SET_HEAD."""
    counted = frame.with_columns(pl.col("dropped").list.len()).select(CHUNK_SET_HEAD)
    return {
        key: ChunkSetHead(digest, tuple(hashes), dropped, language)
        for key, digest, hashes, dropped, language in counted.iter_rows()
    }


def read_facts_by_key(
    frame: pl.DataFrame, wants_kind: Callable[[str], bool] | None = None
) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of each chunk set by its key; the frame has columns key and facts."""
    stated = frame.select("key", "facts").drop_nulls()
    return {key: parse_facts(orjson.loads(facts), wants_kind) for key, facts in stated.iter_rows()}


def read_hashes_by_symbol(frame: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Return the text_sha256 of defining chunks, by chunk set key and then by defined symbol.

    If a definition was split into several chunks, the first chunk is used.
    """
    hashes_by_path: dict[str, dict[str, str]] = {}
    columns = ("key", "definitions", "text_sha256")
    for key, definitions, hashes in frame.select(columns).iter_rows():
        of_text = hashes_by_path.setdefault(key, {})
        for definition, text_sha256 in zip(definitions or (), hashes, strict=False):
            if definition["symbol"]:
                of_text.setdefault(definition["symbol"], text_sha256)
    return hashes_by_path


def build_vectors_frame(
    hashes: Sequence[str], vectors: npt.NDArray[np.float32], dimensions: int | None
) -> pl.DataFrame:
    """Return a data frame with one row for each vector.

    Args:
        dimensions: number of dimensions of the vectors already stored; None if there are none.

    Raises:
        BadVectors: wrong shape, not floating point, not finite, or all zero.
    """
    _check_vectors(hashes, vectors, dimensions)
    packed = np.ascontiguousarray(vectors, dtype="<f4")
    return pl.DataFrame(
        {
            "text_sha256": list(hashes),
            "vector": [row.tobytes() for row in packed],
            "created_at": [datetime.now(UTC)] * len(hashes),
            "checksum": [None] * len(hashes),  # computed when it is appended
        },
        schema=EMBEDDINGS,
    )


def read_vector_rows(frame: pl.DataFrame) -> VectorRows:
    """Return the vectors in a data frame, with their hashes.

    Raises:
        BadVectors: the stored vectors differ in dimension.
    """
    if frame.is_empty():
        return VectorRows.none()
    packed = frame["vector"]
    sizes = packed.bin.size().unique()
    if len(sizes) != 1:
        raise BadVectors("the lake's vectors of one embedder differ in dimension")
    array = pl.Array(pl.Float32, int(sizes[0]) // 4)
    vectors = packed.bin.reinterpret(dtype=array, endianness="little").to_numpy()
    return VectorRows(tuple(frame["text_sha256"]), vectors)


def _check_vectors(
    hashes: Sequence[str], vectors: npt.NDArray[np.float32], dimensions: int | None
) -> None:
    if vectors.ndim != 2 or len(vectors) != len(hashes) or not vectors.shape[1]:  # noqa: PLR2004
        raise BadVectors(f"{len(hashes)} texts have vectors of shape {vectors.shape}")
    if vectors.dtype.kind != "f":
        raise BadVectors(f"vectors are {vectors.dtype}, not floating point")
    if dimensions is not None and vectors.shape[1] != dimensions:
        raise BadVectors(
            f"vectors have {vectors.shape[1]} dimensions, but vectors in the lake {dimensions}",
            hint="use a different embedder_id for an embedder with other dimensions",
        )
    if not np.isfinite(vectors).all():
        raise BadVectors(f"{int((~np.isfinite(vectors)).any(axis=1).sum())} vectors are not finite")
    if not vectors.any(axis=1).all():
        raise BadVectors(f"{int((~vectors.any(axis=1)).sum())} vectors are all zero")


def _build_frame(records: list[dict[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    try:
        return pl.DataFrame(records, schema=schema, orient="row")
    except UnicodeEncodeError:
        # The error contains the text, so report only the keys of the rows.
        keys = ", ".join(str(r["key"]) for r in records if not _is_unicode(r)) or "unknown"
    raise DocumentRejected(
        f"a text contains a lone surrogate and cannot be stored as UTF-8: {keys}",
        hint="decode the document with errors replaced",
    )


def _is_unicode(value: Any) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return all(map(_is_unicode, value.values()))
    return all(map(_is_unicode, value)) if isinstance(value, list | tuple) else True


def _build_parsed_record(row: ParsedRow) -> dict[str, Any]:
    parsed = row.parsed
    block_ids = [block.block_id for block in parsed.blocks]
    return {
        "key": row.key,
        "digest": row.digest,
        "created_at": row.created_at,
        **{name: getattr(parsed, name) for name in _PARSED_FIELDS},
        "blocks": [
            {name: getattr(block, name) for name in _BLOCK_FIELDS}
            | {"heading_path": list(block.heading_path)}
            for block in parsed.blocks
        ],
        "masked": [
            {f.name: getattr(span, f.name) for f in MASKED.fields} for span in parsed.masked
        ],
        "notes": list(parsed.notes),
        "block_ids": block_ids if any(block_ids) else None,
        "mark_bytes": parsed.mark_bytes or None,
        "gaps": [asdict(gap) for gap in parsed.gaps] or None,
    }


def _parse_parsed_row(record: dict[str, Any]) -> ParsedRow:
    blocks = record["blocks"]
    block_ids = record["block_ids"] or [None] * len(blocks)
    parsed = ParsedText(
        **{name: record[name] for name in _PARSED_FIELDS},
        blocks=tuple(
            Block(**{**block, "heading_path": tuple(block["heading_path"]), "block_id": id_})
            for block, id_ in zip(blocks, block_ids, strict=True)
        ),
        masked=tuple(MaskedSpan(**span) for span in record["masked"]),
        notes=tuple(record["notes"]),
        mark_bytes=record["mark_bytes"] or 0,
        gaps=tuple(Gap(**gap) for gap in record["gaps"] or ()),
    )
    return ParsedRow(record["key"], record["digest"], parsed, record["created_at"])


def _build_chunk_set_record(row: ChunkSetRow) -> dict[str, Any]:
    contexts = [chunk.context for chunk in row.chunks]
    definitions = [asdict(c.definition) for c in row.chunks if c.definition is not None]
    return {
        "key": row.key,
        "digest": row.digest,
        "chunks": [
            {name: record[name] for name in _CHUNK_FIELDS}
            for record in map(build_chunk_record, row.chunks)
        ],
        "text_sha256": [chunk.text_sha256 for chunk in row.chunks],
        "dropped": [
            {"ordinal": d.ordinal, "start": d.start, "end": d.end, "rules": list(d.rules)}
            for d in row.dropped
        ],
        "language": row.language,
        "created_at": row.created_at,
        "definitions": definitions or None,
        "facts": orjson.dumps(serialize_facts(row.facts)).decode() if row.facts else None,
        "blocks": _list_blocks(row),
        "contexts": contexts if any(contexts) else None,
    }


def _list_blocks(row: ChunkSetRow) -> list[dict[str, Any]] | None:
    """Return the blocks of each chunk; None if no block has an id."""
    if not any(chunk.blocks for chunk in row.chunks):
        return None
    return [
        {
            "block_ids": [block.block_id for block in chunk.blocks],
            "starts": [block.start for block in chunk.blocks],
            "of_block": chunk.of_block,
        }
        for chunk in row.chunks
    ]


def _read_blocks(stored: dict[str, Any] | None) -> dict[str, Any]:
    """Return the `blocks` and `of_block` of a chunk, from what _list_blocks() returned for it."""
    if stored is None:
        return {}
    pairs = zip(stored["block_ids"], stored["starts"], strict=True)
    blocks = [{"block_id": id_, "start": start} for id_, start in pairs]
    return {"blocks": blocks, "of_block": stored["of_block"]}


def _parse_chunk_set_row(record: dict[str, Any]) -> ChunkSetRow:
    absent = [None] * len(record["chunks"])
    return ChunkSetRow(
        key=record["key"],
        digest=record["digest"],
        chunks=tuple(
            parse_chunk(
                {
                    **chunk,
                    "text_sha256": hashed,
                    "definition": definition,
                    "context": context,
                    **_read_blocks(blocks),
                }
            )
            for chunk, hashed, definition, blocks, context in zip(
                record["chunks"],
                record["text_sha256"],
                record["definitions"] or absent,
                record["blocks"] or absent,
                record["contexts"] or absent,
                strict=True,
            )
        ),
        dropped=tuple(
            DroppedRow(**{**dropped, "rules": tuple(dropped["rules"])})
            for dropped in record["dropped"]
        ),
        language=record["language"],
        facts=parse_facts(orjson.loads(record["facts"] or "[]")),
        created_at=record["created_at"],
    )
