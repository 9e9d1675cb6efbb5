"""The tables of one build: names, SQL statements, connections, and conversion of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import orjson
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from rag_assets.common.errors import VectorsUnavailable
from rag_assets.common.hashing import compute_key
from rag_assets.storage.index import fields
from rag_assets.storage.index.model import Entry, Owner

_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
SECONDS = 5.0
"""Timeout for a connection, or for a statement of a search."""
OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 3,
    "autocommit": True,
    "application_name": "rag-assets vectors",
    # The extension accepts these settings from its first use. With strict order, a scan continues
    # until enough rows pass the filters.
    "options": "-c hnsw.iterative_scan=strict_order -c hnsw.ef_search=200",
}
OF_A_BUILD = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)
"""Errors for a build whose tables were lost or have the columns of an earlier version."""
FAILURES = (psycopg.OperationalError, psycopg.InterfaceError, *OF_A_BUILD)
"""Errors after which a build's vectors count as unavailable."""


def driver_url(url: str) -> str:
    """Return the address with the scheme `postgresql://`, which the driver requires."""
    return _SCHEME.sub("postgresql://", url)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert failures of the server to VectorsUnavailable."""
    try:
        yield
    except FAILURES as error:
        raise unavailable(error) from None


def unavailable(error: Exception) -> VectorsUnavailable:
    """Return the error for a server that does not answer, without the server's own message."""
    return VectorsUnavailable(
        f"the server of vectors does not answer: {type(error).__name__}",
        hint="check that Postgres is running, at RAG_ASSETS_PGVECTOR_URL if that is set",
    )


_FULL = 2_000
"""Up to this many dimensions, the extension indexes vectors in full precision."""
_HALF = 4_000
"""Up to this many dimensions, the extension indexes vectors in half precision."""


class Layout:
    """Computes the names of an installation's schemas."""

    def __init__(self, prefix: str) -> None:
        self._prefix = f"{prefix}_vectors_"

    def schema(self, owner: Owner) -> str:
        """Return the name of a build's schema."""
        return f"{self.of_tenant(owner.tenant)}{owner.incarnation}_{owner.generation}"

    def of_tenant(self, tenant: str) -> str:
        """Return the common prefix of the names of a tenant's schemas."""
        return f"{self._prefix}{tenant_part(tenant)}"


def tenant_part(tenant: str) -> str:
    """Return the part of a schema's name that stands for the tenant: a hash of its id."""
    # A tenant's id may be longer than the limit of names in Postgres.
    return f"{compute_key('tenant', tenant)[:16]}_"


def format_comment(installation: UUID | None) -> str:
    """Return the comment that names a schema's owner."""
    return f"rag-assets installation {installation}" if installation else "rag-assets"


def build_comment_statement(schema: str, comment: str) -> sql.Composed:
    """Return the statement that sets the comment of a schema."""
    return sql.SQL("COMMENT ON SCHEMA {} IS {}").format(
        sql.Identifier(schema), sql.Literal(comment)
    )


def build_table_statements(schema: str, dimensions: int, comment: str) -> Iterator[sql.Composed]:
    """Yield the statements that create a build's schema and tables, unless they exist."""
    name = sql.Identifier(schema)
    yield sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name)
    yield build_comment_statement(schema, comment)
    yield sql.SQL(
        "CREATE TABLE IF NOT EXISTS {}.rag_chunks ("
        " rag_chunk_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " entry_id text NOT NULL UNIQUE,"
        " document_id text NOT NULL,"
        " index_key text NOT NULL,"
        " ordinal integer NOT NULL,"
        " within integer[],"
        " access_scope text NOT NULL,"
        " text_key text NOT NULL,"
        " text_sha256 text NOT NULL,"
        " source text NOT NULL,"
        " source_type text NOT NULL,"
        " uri text NOT NULL,"
        " language text,"
        " page_uuid text,"
        " modified_at timestamptz NOT NULL,"
        " tags text[] NOT NULL,"
        " metadata jsonb NOT NULL)"
    ).format(name)
    yield sql.SQL(
        "CREATE TABLE IF NOT EXISTS {}.rag_vectors ("
        " rag_chunk_id bigint PRIMARY KEY REFERENCES {}.rag_chunks ON DELETE CASCADE,"
        " embedding vector({}) NOT NULL)"
    ).format(name, name, sql.Literal(dimensions))
    for column in ("document_id", "access_scope", "page_uuid", "text_sha256"):
        yield sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {}.rag_chunks ({})").format(
            sql.Identifier(f"rag_chunks_{column}"), name, sql.Identifier(column)
        )


def vector_index(schema: str, dimensions: int) -> sql.Composed | None:
    """Return the statement that creates a vector index; None if vectors are too long for one."""
    if dimensions > _HALF:
        return None
    operators = "vector_cosine_ops" if dimensions <= _FULL else "halfvec_cosine_ops"
    return sql.SQL(
        "CREATE INDEX IF NOT EXISTS rag_vectors_embedding ON {}.rag_vectors USING hnsw (({}) {})"
    ).format(
        sql.Identifier(schema),
        _cast_to_indexed(sql.Identifier("embedding"), dimensions),
        sql.SQL(operators),
    )


def distance(dimensions: int) -> sql.Composed:
    """Return the SQL distance to the query vector, as the vector index computes it."""
    asked = sql.SQL("{}::vector").format(sql.Placeholder("asked"))
    return sql.SQL("{} <=> {}").format(
        _cast_to_indexed(sql.Identifier("v", "embedding"), dimensions),
        _cast_to_indexed(asked, dimensions),
    )


def _cast_to_indexed(vector: sql.Composable, dimensions: int) -> sql.Composed:
    """Return the SQL expression that converts a vector to the precision of the vector index."""
    if dimensions <= _FULL or dimensions > _HALF:
        return sql.SQL("{}").format(vector)
    return sql.SQL("({}::halfvec({}))").format(vector, sql.Literal(dimensions))


COLUMNS = (
    "entry_id",
    "document_id",
    "index_key",
    "ordinal",
    "within",
    "access_scope",
    "text_key",
    "text_sha256",
    "source",
    "source_type",
    "uri",
    "language",
    "page_uuid",
    "modified_at",
    "tags",
    "metadata",
)


def build_row(entry: Entry) -> dict[str, Any]:
    """Return the table row of an entry."""
    return build_row_of_stored(entry.id, fields.entry_source(entry), entry.vector)


def build_row_of_stored(
    id_: str, stored: Mapping[str, Any], vector: npt.NDArray[np.float32]
) -> dict[str, Any]:
    """Return the table row of an entry, from its stored fields."""
    row = {name: stored.get(name) for name in COLUMNS}
    row["entry_id"] = id_
    row["metadata"] = Jsonb(dict(_flatten(stored.get("metadata") or {})))
    row["embedding"] = format_vector(vector)
    return row


def format_vector(vector: npt.NDArray[np.float32]) -> str:
    """Return a vector in the text format of the extension: "[0.25,-0.5,…]"."""
    numbers = np.ascontiguousarray(vector, dtype=np.float32)
    return orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _flatten(metadata: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield metadata keys, joined by dots, with their values, flattened as in Elasticsearch."""
    for key, value in metadata.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
            continue
        values = value if isinstance(value, list | tuple) else [value]
        words = [_format_value(one) for one in values if one is not None]
        if words:
            yield name, words


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
