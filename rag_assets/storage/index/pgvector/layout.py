"""The schema of one build: names, tables, and the index of its vectors."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from psycopg import sql

from rag_assets.common.hashing import compute_key
from rag_assets.storage.index.model import Owner

_FULL = 2_000
"""Up to this many dimensions, the extension indexes vectors in full precision."""
_HALF = 4_000
"""Up to this many dimensions, the extension indexes vectors in half precision."""


class Layout:
    """Names of an installation's schemas.

    Args:
        prefix: distinguishes installations that share a server.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = f"{prefix}_vectors_"

    def schema(self, owner: Owner) -> str:
        """Return the name of a build's schema."""
        return f"{self.of_tenant(owner.tenant)}{owner.incarnation}_{owner.generation}"

    def of_tenant(self, tenant: str) -> str:
        """Return the common prefix of the names of a tenant's schemas."""
        return f"{self._prefix}{tenant_part(tenant)}"


def tenant_part(tenant: str) -> str:
    """Return the part of a schema's name that identifies the tenant."""
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


def tables(schema: str, dimensions: int, comment: str) -> Iterator[sql.Composed]:
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
    """Return the statement that creates the vector index if missing; None for too long vectors."""
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
    """Return the distance between `v.embedding` and the query vector that the index orders by."""
    asked = sql.SQL("{}::vector").format(sql.Placeholder("asked"))
    return sql.SQL("{} <=> {}").format(
        _cast_to_indexed(sql.Identifier("v", "embedding"), dimensions),
        _cast_to_indexed(asked, dimensions),
    )


def _cast_to_indexed(vector: sql.Composable, dimensions: int) -> sql.Composed:
    """Return a vector in the precision in which it is indexed."""
    if dimensions <= _FULL or dimensions > _HALF:
        return sql.SQL("{}").format(vector)
    return sql.SQL("({}::halfvec({}))").format(vector, sql.Literal(dimensions))
