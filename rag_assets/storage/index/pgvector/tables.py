"""The tables of builds in Postgres: names, SQL statements, writing, counting and deleting."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString
from uuid import UUID

import numpy as np
import numpy.typing as npt
import orjson
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from rag_assets.common.batches import batched
from rag_assets.common.errors import ForeignInstallation, NoVectorBackend, VectorsUnavailable
from rag_assets.common.hashing import compute_key
from rag_assets.storage.index import fields
from rag_assets.storage.index.model import Entry, Owner, VersionCount

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
BUILD_ERRORS = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)
"""Errors for a build whose tables were lost or have the columns of an earlier version."""
FAILURES = (psycopg.OperationalError, psycopg.InterfaceError, *BUILD_ERRORS)
"""Errors after which a build's vectors count as unavailable."""


def build_driver_url(url: str) -> str:
    """Return the address with the scheme `postgresql://`, which the driver requires."""
    return _SCHEME.sub("postgresql://", url)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert failures of the server to VectorsUnavailable."""
    try:
        yield
    except FAILURES as error:
        raise build_unavailable_error(error) from None


def build_unavailable_error(error: Exception) -> VectorsUnavailable:
    """Return the error for a server that does not answer, without the server's own message."""
    return VectorsUnavailable(
        f"the vector server does not answer: {type(error).__name__}",
        hint="check that Postgres is running, at RAG_ASSETS_PGVECTOR_URL if that is set",
    )


_MAX_FULL_DIMENSIONS = 2_000
"""Up to this many dimensions, the extension indexes vectors in full precision."""
_MAX_HALF_DIMENSIONS = 4_000
"""Up to this many dimensions, the extension indexes vectors in half precision."""


class SchemaNames:
    """Computes the names of an installation's schemas."""

    def __init__(self, prefix: str) -> None:
        self._prefix = f"{prefix}_vectors_"

    def schema(self, owner: Owner) -> str:
        """Return the name of a build's schema."""
        return f"{self.of_tenant(owner.tenant)}{owner.incarnation}_{owner.generation}"

    def of_tenant(self, tenant: str) -> str:
        """Return the common prefix of the names of a tenant's schemas."""
        return f"{self._prefix}{hash_tenant(tenant)}"


def hash_tenant(tenant: str) -> str:
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


def build_vector_index_statement(schema: str, dimensions: int) -> sql.Composed | None:
    """Return the statement that creates a vector index; None if vectors are too long for one."""
    if dimensions > _MAX_HALF_DIMENSIONS:
        return None
    operators = "vector_cosine_ops" if dimensions <= _MAX_FULL_DIMENSIONS else "halfvec_cosine_ops"
    return sql.SQL(
        "CREATE INDEX IF NOT EXISTS rag_vectors_embedding ON {}.rag_vectors USING hnsw (({}) {})"
    ).format(
        sql.Identifier(schema),
        _cast_to_indexed(sql.Identifier("embedding"), dimensions),
        sql.SQL(operators),
    )


def distance(dimensions: int) -> sql.Composed:
    """Return the SQL distance to the query vector, as the vector index computes it."""
    vector = sql.SQL("{}::vector").format(sql.Placeholder("asked"))
    return sql.SQL("{} <=> {}").format(
        _cast_to_indexed(sql.Identifier("v", "embedding"), dimensions),
        _cast_to_indexed(vector, dimensions),
    )


def _cast_to_indexed(vector: sql.Composable, dimensions: int) -> sql.Composed:
    """Return the SQL expression that converts a vector to the precision of the vector index."""
    if dimensions <= _MAX_FULL_DIMENSIONS or dimensions > _MAX_HALF_DIMENSIONS:
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
    return build_row_of_stored(entry.id, fields.build_entry_source(entry), entry.vector)


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
        words = [_format_value(item) for item in values if item is not None]
        if words:
            yield name, words


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_BATCH = 500
_MAX_CONNECTIONS = 4
_DOCUMENTS = 1_000
_MEMORY = "SET LOCAL maintenance_work_mem = '256MB'"
_AVAILABLE = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
_MAY_CREATE = "SELECT 1 WHERE has_database_privilege(current_database(), 'CREATE')"
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
_COLUMNS = (
    "SELECT attname FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)
_CHECKSUM = sql.SQL(
    "('x' || left(encode(sha256(convert_to(c.entry_id, 'UTF8')), 'hex'), 15))::bit(60)::bigint"
    "::numeric * (c.ordinal + 1)"
)
"""The SQL form of compute_checksum()."""
_DROP = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE")
_COMMENT = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
_OWN_SCHEMAS = (
    "SELECT nspname FROM pg_namespace WHERE position('_vectors_' || %s IN nspname) > 0"
    " AND obj_description(oid, 'pg_namespace') = %s ORDER BY 1"
)
_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) ORDER BY 1"


class PgVectors:
    """Writes vectors of builds to Postgres, and counts them for comparison with the index.

    Every method but close() raises VectorsUnavailable when the server does not answer.

    Args:
        installation: the owner of schemas; None: every user of the store owns all of them.
    """

    def __init__(self, url: str, prefix: str, installation: UUID | None = None) -> None:
        self._url = build_driver_url(url)
        self._layout = SchemaNames(prefix)
        self._comment = format_comment(installation)
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None

    def require(self) -> None:
        """Require that the server has the extension, and that this role may create schemas there.

        Raises:
            NoVectorBackend: the extension or the permission is missing.
        """
        refused = NoVectorBackend(
            "the vector server lacks the extension `vector`",
            hint="ask the operator to install pgvector there, or to set RAG_ASSETS_PGVECTOR_URL",
        )
        with self._connect() as connection:
            if connection.execute(_AVAILABLE).fetchone() is None:
                raise refused
            try:
                connection.execute(_EXTENSION)
            except psycopg.errors.InsufficientPrivilege:
                raise refused from None
            if connection.execute(_MAY_CREATE).fetchone() is None:
                raise NoVectorBackend(
                    "the role on the vector server is not allowed to create schemas there",
                    hint="ask the operator to grant the role CREATE on that database",
                )

    def create(self, owner: Owner, dimensions: int) -> None:
        """Create a build's tables, unless they exist with the columns of the current version.

        Raises:
            ForeignInstallation: the schema belongs to another installation.
        """
        self.require()
        schema = self._layout.schema(owner)
        self._require_own(schema)
        is_former = self._has_former_columns(owner)
        with self._connect() as connection, connection.transaction():
            if is_former:
                connection.execute(_DROP.format(sql.Identifier(schema)))
            for statement in build_table_statements(schema, dimensions, self._comment):
                connection.execute(statement)

    def index(self, owner: Owner, dimensions: int) -> None:
        """Create a build's vector index if it is missing, and analyze its tables."""
        schema = self._layout.schema(owner)
        statement = build_vector_index_statement(schema, dimensions)
        with self._connect() as connection:
            if statement is not None:
                with connection.transaction():
                    connection.execute(_MEMORY)
                    connection.execute(statement)
            for table in ("rag_chunks", "rag_vectors"):
                connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(schema, table)))

    def write(self, entries: Iterable[Entry]) -> int:
        """Write entries to the tables of their builds, which must exist; return their number."""
        of_owners: dict[Owner, list[Entry]] = {}
        for entry in entries:
            of_owners.setdefault(entry.owner, []).append(entry)
        return sum(
            self.write_rows(owner, map(build_row, owner_entries))
            for owner, owner_entries in of_owners.items()
        )

    def write_rows(self, owner: Owner, rows: Iterable[Mapping[str, Any]]) -> int:
        """Write rows of one build (see build_row); return their number."""
        statements = self._build_upserts(owner)
        written = 0
        for batch in batched(rows, _BATCH):
            with (
                self._connect() as connection,
                connection.transaction(),
                connection.cursor() as cursor,
            ):
                for statement in statements:
                    cursor.executemany(statement, batch)
            written += len(batch)
        return written

    def delete(self, tenant: str, ids: Collection[str]) -> None:
        """Delete entries by id from all builds of a tenant."""
        for schema in self._list_schemas(self._layout.of_tenant(tenant)):
            statement = sql.SQL("DELETE FROM {} WHERE entry_id = ANY(%s)").format(
                sql.Identifier(schema, "rag_chunks")
            )
            self._execute(statement, [list(ids)])

    def delete_other_versions(self, owner: Owner, kept: Mapping[str, str | None]) -> int:
        """Delete the entries of these documents that have another version; return their number.

        Args:
            kept: by document_id, the version (index_key) whose entries stay; None deletes all.
        """
        statement = sql.SQL(
            "DELETE FROM {} AS c USING unnest(%s::text[], %s::text[]) AS kept (document_id, key)"
            " WHERE c.document_id = kept.document_id AND c.index_key IS DISTINCT FROM kept.key"
        ).format(self._chunks(owner))
        deleted = 0
        for batch in batched(kept, _DOCUMENTS):
            keys = [kept[document_id] for document_id in batch]
            deleted += self._execute(statement, [list(batch), keys]).rowcount
        return deleted

    def keep_only(self, owner: Owner, documents: Collection[str], ids: Collection[str]) -> None:
        """Delete the entries of these documents whose ids are not among `ids`."""
        statement = sql.SQL(
            "DELETE FROM {} WHERE document_id = ANY(%s) AND entry_id <> ALL(%s)"
        ).format(self._chunks(owner))
        self._execute(statement, [list(documents), list(ids)])

    def set_scopes(self, owner: Owner, scopes: Mapping[str, str]) -> None:
        """Set the access scope of the entries of documents."""
        statement = sql.SQL(
            "UPDATE {} AS c SET access_scope = given.scope"
            " FROM unnest(%s::text[], %s::text[]) AS given (document_id, scope)"
            " WHERE c.document_id = given.document_id AND c.access_scope <> given.scope"
        ).format(self._chunks(owner))
        for batch in batched(scopes, _DOCUMENTS):
            self._execute(statement, [list(batch), [scopes[document_id] for document_id in batch]])

    def iter_version_counts(self, owner: Owner) -> Iterator[VersionCount]:
        """Yield the number and checksum of a build's vectors for each version of each document.

        Yield no counts if the tables are missing or have the columns of an earlier version, because
        `create` then makes new tables.
        """
        query = sql.SQL(
            "SELECT c.document_id, c.index_key, c.access_scope, count(*), sum({})::text"
            " FROM {} AS c JOIN {} AS v USING (rag_chunk_id) GROUP BY 1, 2, 3"
        ).format(_CHECKSUM, self._chunks(owner), self._vectors(owner))
        if not self._list_schemas(self._layout.schema(owner)) or self._has_former_columns(owner):
            return
        for document_id, key, scope, count, ids in self._execute(query):
            yield VersionCount(document_id, key, scope, count, int(ids))

    def count_unsound(self, owner: Owner) -> int:
        """Return the number of a build's vectors whose length is not 1; 0 without tables."""
        if not self._list_schemas(self._layout.schema(owner)):
            return 0
        query = sql.SQL(
            "SELECT count(*) FROM {} WHERE abs(vector_norm(embedding) - 1) > 0.001"
        ).format(self._vectors(owner))
        row = self._execute(query).fetchone()
        return int(row[0]) if row else 0

    def delete_unsound(self, owner: Owner) -> None:
        """Delete a build's vectors whose length is not 1, so that they are copied again."""
        statement = sql.SQL("DELETE FROM {} WHERE abs(vector_norm(embedding) - 1) > 0.001").format(
            self._vectors(owner)
        )
        if self._list_schemas(self._layout.schema(owner)):
            self._execute(statement)

    def matching(self, tenant: str, column: str, values: Collection[str]) -> list[str]:
        """Return ids of a tenant's entries, in any build, whose column has one of these values."""
        matching: list[str] = []
        for schema in self._list_schemas(self._layout.of_tenant(tenant)):
            query = sql.SQL("SELECT entry_id FROM {} WHERE {} = ANY(%s)").format(
                sql.Identifier(schema, "rag_chunks"), sql.Identifier(column)
            )
            matching += [str(row[0]) for row in self._execute(query, [list(values)])]
        return matching

    def vacuum(self, tenant: str) -> None:
        """Free the disk space of deleted rows in a tenant's builds."""
        for schema in self._list_schemas(self._layout.of_tenant(tenant)):
            for table in ("rag_vectors", "rag_chunks"):
                self._execute(sql.SQL("VACUUM {}").format(sql.Identifier(schema, table)))

    def drop(self, owner: Owner) -> None:
        """Delete a build's tables, if they exist."""
        self.drop_schema(self._layout.schema(owner))

    def drop_tenant(self, tenant: str) -> None:
        """Delete all tables of a tenant."""
        for schema in self.schemas(tenant):
            self.drop_schema(schema)

    def schema(self, owner: Owner) -> str:
        """Return the name of the schema with a build's tables."""
        return self._layout.schema(owner)

    def schemas(self, tenant: str | None = None) -> list[str]:
        """Return the sorted names of the schemas of a tenant's builds, or of all builds."""
        ending = "" if tenant is None else hash_tenant(tenant)
        return [str(row[0]) for row in self._execute(_OWN_SCHEMAS, [ending, self._comment])]

    def adopt(self, owners: Iterable[Owner]) -> None:
        """Claim schemas of these builds that an earlier version created without an owner."""
        for schema in map(self._layout.schema, owners):
            if self._list_schemas(schema) and self._find_owner_comment(schema) is None:
                self._set_comment(schema)

    def take_over(self, former: UUID) -> None:
        """Claim the schemas of the installation from which this server was copied."""
        for row in self._execute(_OWN_SCHEMAS, ["", format_comment(former)]):
            self._set_comment(str(row[0]))

    def drop_schema(self, schema: str) -> None:
        """Delete a schema with its tables, if it exists.

        Raises:
            ForeignInstallation: the schema belongs to another installation.
        """
        self._require_own(schema)
        self._execute(_DROP.format(sql.Identifier(schema)))

    def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _require_own(self, schema: str) -> None:
        if (
            not self._list_schemas(schema)
            or (owner := self._find_owner_comment(schema)) == self._comment
        ):
            return
        raise ForeignInstallation(
            f"schema {schema!r} on the vector server belongs to"
            f" {owner or 'an unknown installation'}, not to {self._comment}",
            hint="set RAG_ASSETS_INDEX_PREFIX to a prefix that no other installation on that server"
            " uses",
        )

    def _find_owner_comment(self, schema: str) -> str | None:
        row = self._execute(_COMMENT, [schema]).fetchone()
        return None if row is None else row[0]

    def _set_comment(self, schema: str) -> None:
        self._execute(build_comment_statement(schema, self._comment))

    def _chunks(self, owner: Owner) -> sql.Identifier:
        return sql.Identifier(self._layout.schema(owner), "rag_chunks")

    def _vectors(self, owner: Owner) -> sql.Identifier:
        return sql.Identifier(self._layout.schema(owner), "rag_vectors")

    def _has_former_columns(self, owner: Owner) -> bool:
        """Return whether a build's tables lack columns, because an earlier version created them."""
        table = self._chunks(owner).as_string()
        columns = {str(row[0]) for row in self._execute(_COLUMNS, [table])}
        return bool(columns) and not columns.issuperset(COLUMNS)

    def _list_schemas(self, prefix: str) -> list[str]:
        return [str(row[0]) for row in self._execute(_SCHEMAS, [prefix])]

    def _build_upserts(self, owner: Owner) -> tuple[sql.Composed, sql.Composed]:
        chunks = self._chunks(owner)
        vectors = self._vectors(owner)
        columns = sql.SQL(", ").join(map(sql.Identifier, COLUMNS))
        values = sql.SQL(", ").join(map(sql.Placeholder, COLUMNS))
        changed = sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in COLUMNS[1:]
        )
        return (
            sql.SQL(
                "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (entry_id) DO UPDATE SET {}"
            ).format(chunks, columns, values, changed),
            sql.SQL(
                "INSERT INTO {} (rag_chunk_id, embedding)"
                " SELECT rag_chunk_id, %(embedding)s::vector FROM {} WHERE entry_id = %(entry_id)s"
                " ON CONFLICT (rag_chunk_id) DO UPDATE SET embedding = excluded.embedding"
            ).format(vectors, chunks),
        )

    def _execute(
        self, statement: sql.Composed | LiteralString, values: Sequence[Any] | None = None
    ) -> psycopg.Cursor[Any]:
        """Execute a statement in its own transaction; return a cursor with all fetched rows."""
        with self._connect() as connection:
            return connection.execute(statement, values)

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[Any]]:
        with translate_errors():
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._url, min_size=0, max_size=_MAX_CONNECTIONS, kwargs=OPTIONS, open=True
                )
            with self._pool.connection(timeout=SECONDS) as connection:
                yield connection
