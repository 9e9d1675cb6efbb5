"""The schema of the project's own Dagster instance in the catalog's database.

A team may keep the tables of its own Dagster in the schema `public` of the same database. Earlier
versions of this program created the tables of its Dagster instance there, too. On the embedded
server, these tables are moved automatically. On an operator's server they stay until a command
moves them. They cannot be moved if they contain runs or sensors of other code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_assets.common.disk_space import hint_to_start
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.dagster_tables import DAGSTER_SCHEMA, FORMER_CONTENTS, SIGNATURE, TABLES

if TYPE_CHECKING:
    from psycopg import Connection

IN_SCHEMA: Final = f"-csearch_path={DAGSTER_SCHEMA}"
"""The option that makes a connection to Postgres use only this schema."""
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('rag-assets: storage of Dagster'))"
_PRESENT: Final = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    " WHERE nspname = %s AND relkind IN ('r', 'p') AND relname = ANY(%s)"
    " AND has_table_privilege(c.oid, 'SELECT')"
)
"""Only tables that the role may read are considered: the others belong to other programs."""


@dataclass(frozen=True, slots=True)
class FormerTables:
    """Dagster's tables in the schema `public`, if they contain runs or sensors.

    Attributes:
        is_shared: whether some of the runs or sensors in `public` belong to other code.
    """

    database: str
    runs: int
    present_runs: int
    is_shared: bool


def prepare_run_storage(
    url: str, owner_url: str, *, is_embedded: bool, before_move: Callable[[], None]
) -> FormerTables | None:
    """Create the schema of the project's Dagster instance before its first use.

    Args:
        is_embedded: whether the server is the embedded one. All tables on it belong to this
            project, so the tables of an earlier version are moved.
        before_move: raises an error if a process of an earlier version still uses the tables.

    Returns:
        the tables that were left in `public`; None if there are none, or if the project's instance
        already has its own tables.

    Raises:
        ConfigurationError: the schema is missing, and neither role may create it; or a pooler does
            not pass on the name of the schema.
    """
    with _connect(url) as connection:
        _create_schema(connection, owner_url)
        _require_schema(connection)
        if _list_tables(connection, DAGSTER_SCHEMA):
            return None
        if not is_embedded:
            return _read_former_tables(connection)
        if _has_former_tables(connection):
            before_move()
            _move_tables(connection)
    return None


def find_former_tables(url: str) -> FormerTables | None:
    """Return Dagster's tables in `public`; None if they contain neither runs nor sensors.

    Raises:
        ConfigurationError: a pooler does not pass on the name of the schema.
    """
    with _connect(url) as connection:
        return _read_former_tables(connection)


def replace_run_tables(url: str, owner_url: str) -> FormerTables | None:
    """Move Dagster's tables from `public` to our instance's schema, replacing the tables there.

    Returns:
        the moved tables; None if none exist, or if they contain runs or sensors of other code.

    Raises:
        ConfigurationError: the role lacks the privilege to move the tables.
    """
    from psycopg import sql

    with _connect(url) as connection:
        _create_schema(connection, owner_url)
        _require_schema(connection)
        former_tables = _read_former_tables(connection)
        if former_tables is None or former_tables.is_shared:
            return None
        if present := sorted(_list_tables(connection, DAGSTER_SCHEMA)):
            names = [sql.Identifier(DAGSTER_SCHEMA, table) for table in present]
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.SQL(", ").join(names)))
        _move_tables(connection)
    return former_tables


def move_run_tables(url: str) -> None:
    """Move Dagster's tables from `public` to our schema; do nothing if the schema has tables."""
    with _connect(url) as connection:
        _create_schema(connection, url)
        if not _list_tables(connection, DAGSTER_SCHEMA) and _has_former_tables(connection):
            _move_tables(connection)


@contextmanager
def _connect(url: str) -> Iterator[Connection]:
    """Open a transaction under the lock that lets one process at a time change the tables."""
    import psycopg

    try:
        with psycopg.connect(url, options=IN_SCHEMA) as connection:
            connection.execute(_LOCK)
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"the Postgres accounts lack the privileges to prepare the schema {DAGSTER_SCHEMA}"
            f" of Dagster's tables: {error.diag.message_primary}",
            hint="run the SQL of `rag-assets roles` again; or run, as an administrator, CREATE"
            f" SCHEMA {DAGSTER_SCHEMA} AUTHORIZATION with the account of Dagster's storage,"
            " which must own the tables that are moved",
        ) from None
    except psycopg.OperationalError as error:
        if "startup parameter" in str(error):
            raise _build_unnamed_schema_error() from None
        raise ServiceUnavailable(
            "Postgres does not answer at the address of Dagster's storage",
            hint=hint_to_start("RAG_ASSETS_DAGSTER_DATABASE_URL, or RAG_ASSETS_DATABASE_URL"),
        ) from None


def _create_schema(connection: Connection, owner_url: str) -> None:
    """Create the schema; connect as the owner if the role of Dagster's storage is refused."""
    import psycopg
    from psycopg import sql

    row = connection.execute(
        "SELECT to_regnamespace(%s), current_user", [DAGSTER_SCHEMA]
    ).fetchone()
    if row is None or row[0] is not None:
        return
    schema, user = sql.Identifier(DAGSTER_SCHEMA), sql.Identifier(row[1])
    create = sql.SQL("CREATE SCHEMA {}").format(schema)
    try:
        with connection.transaction():
            connection.execute(create)
    except psycopg.errors.InsufficientPrivilege:
        with psycopg.connect(owner_url) as owner:
            owner.execute(create)
            owner.execute(sql.SQL("GRANT USAGE, CREATE ON SCHEMA {} TO {}").format(schema, user))


def _require_schema(connection: Connection) -> None:
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] != DAGSTER_SCHEMA:
        raise _build_unnamed_schema_error()


def _build_unnamed_schema_error() -> ConfigurationError:
    return ConfigurationError(
        "a pooler in front of Postgres does not pass on the schema that connections of"
        " Dagster's storage select",
        hint="use the port of Postgres itself in RAG_ASSETS_DAGSTER_DATABASE_URL",
    )


def _has_former_tables(connection: Connection) -> bool:
    return _list_tables(connection, "public").issuperset(SIGNATURE)


def _read_former_tables(connection: Connection) -> FormerTables | None:
    if not _has_former_tables(connection):
        return None
    row = connection.execute(FORMER_CONTENTS).fetchone()
    if row is None or not row[3]:
        return None
    present = None
    if "runs" in _list_tables(connection, DAGSTER_SCHEMA):
        # The connection's search path contains only this schema.
        present = connection.execute("SELECT count(*) FROM runs").fetchone()
    return FormerTables(row[0], row[1], present[0] if present else 0, is_shared=row[2])


def _move_tables(connection: Connection) -> None:
    from psycopg import sql

    for table in sorted(_list_tables(connection, "public")):
        connection.execute(
            sql.SQL("ALTER TABLE public.{} SET SCHEMA {}").format(
                sql.Identifier(table), sql.Identifier(DAGSTER_SCHEMA)
            )
        )


def _list_tables(connection: Connection, schema: str) -> set[str]:
    return {name for (name,) in connection.execute(_PRESENT, [schema, [*TABLES]])}
