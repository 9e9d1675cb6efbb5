"""The schema of our own Dagster instance in the catalog's database.

A team may keep the tables of its own Dagster in the schema `public` of the same database. Earlier
versions made ours there: these are moved, unless they hold runs or sensors of other code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, LiteralString

from rag_assets.common.disk_space import hint_to_start
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable

if TYPE_CHECKING:
    from psycopg import Connection

DAGSTER_SCHEMA: Final = "rag_dagster"
TABLES: Final = (
    *("alembic_version", "asset_check_executions", "asset_daemon_asset_evaluations"),
    *("asset_event_tags", "asset_keys", "backfill_tags", "bulk_actions", "concurrency_limits"),
    *("concurrency_slots", "daemon_heartbeats", "dynamic_partitions", "event_logs"),
    *("instance_info", "instigators", "job_ticks", "jobs", "kvs", "pending_steps", "run_tags"),
    *("runs", "secondary_indexes", "snapshots"),
)
"""The tables that Dagster makes."""
IN_SCHEMA: Final = f"-csearch_path={DAGSTER_SCHEMA}"
"""The option with which a connection to Postgres uses the schema, and no other."""
_SIGNATURE: Final = ("runs", "run_tags", "event_logs", "instigators", "secondary_indexes")
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('rag-assets: storage of Dagster'))"
_PRESENT: Final = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    " WHERE nspname = %s AND relkind IN ('r', 'p') AND relname = ANY(%s)"
)
_IS_FOREIGN: Final = """
SELECT EXISTS (
  SELECT FROM public.runs r WHERE strpos(run_body, '"rag_assets.definitions"') = 0 AND (
    strpos(run_body, '_location_origin"') > 0
    OR NOT EXISTS (
      SELECT FROM public.run_tags t
      WHERE t.run_id = r.run_id AND starts_with(t.key, 'rag_assets/')))
) OR EXISTS (
  SELECT FROM public.instigators WHERE strpos(instigator_body, '"rag_assets.definitions"') = 0
)"""
"""Whether a run is neither of our code location nor of our commands, or a sensor is not ours."""
_IS_USED: Final = """
SELECT EXISTS (SELECT FROM public.runs) OR EXISTS (SELECT FROM public.instigators)"""


def prepare_run_storage(
    url: str, owner_url: str, *, is_embedded: bool, before_move: Callable[[], None]
) -> bool:
    """Create the schema of our Dagster instance, and move the tables of an earlier version to it.

    Args:
        url: of the database, as the role of Dagster's storage.
        owner_url: the same, as the role that may create schemas.
        is_embedded: whether the server is the embedded one, in which all tables are ours.
        before_move: raises an error if a process of an earlier version still uses the tables.

    Returns:
        whether the first use found tables in `public` that hold runs or sensors of others, so that
        they stay there.

    Raises:
        ConfigurationError: the schema is missing, and neither role may create it; or a pooler
            does not pass on its name.
        ServiceUnavailable: Postgres does not answer.
    """
    import psycopg

    try:
        with psycopg.connect(url, options=IN_SCHEMA) as connection:
            connection.execute(_LOCK)
            _create_schema(connection, owner_url)
            _require_schema(connection)
            return _move(connection, is_embedded=is_embedded, before_move=before_move)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"the accounts of Postgres may not prepare the schema {DAGSTER_SCHEMA} of Dagster's"
            f" tables: {error.diag.message_primary}",
            hint="run the SQL of `rag-assets roles` again; or, as an administrator, CREATE SCHEMA"
            f" {DAGSTER_SCHEMA} AUTHORIZATION the account of Dagster's storage",
        ) from None
    except psycopg.OperationalError as error:
        if "startup parameter" in str(error):
            raise _unnamed_schema() from None
        raise ServiceUnavailable(
            "Postgres does not answer at the address of Dagster's storage",
            hint=hint_to_start("RAG_ASSETS_DAGSTER_DATABASE_URL, or RAG_ASSETS_DATABASE_URL"),
        ) from None


def move_run_tables(url: str) -> None:
    """Move all of Dagster's tables from `public` to the schema of our instance.

    Args:
        url: of the embedded server's database, as its superuser.
    """
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(_LOCK)
        _create_schema(connection, url)
        _move(connection, is_embedded=True, before_move=lambda: None)


def _create_schema(connection: Connection, owner_url: str) -> None:
    """Create the schema, as the owner where the role of Dagster's storage may not."""
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
        raise _unnamed_schema()


def _unnamed_schema() -> ConfigurationError:
    return ConfigurationError(
        "a pooler in front of Postgres does not pass on the schema that connections of Dagster's"
        " storage name",
        hint="name the port of Postgres itself in RAG_ASSETS_DAGSTER_DATABASE_URL",
    )


def _move(connection: Connection, *, is_embedded: bool, before_move: Callable[[], None]) -> bool:
    """Move our tables out of `public`, once; return whether they stay because others use them."""
    from psycopg import sql

    former = _tables(connection, "public")
    if _tables(connection, DAGSTER_SCHEMA) or not former.issuperset(_SIGNATURE):
        return False
    if not is_embedded:
        if _holds(connection, _IS_FOREIGN):
            return True
        if not _holds(connection, _IS_USED):
            return False
    before_move()
    for table in sorted(former):
        connection.execute(
            sql.SQL("ALTER TABLE public.{} SET SCHEMA {}").format(
                sql.Identifier(table), sql.Identifier(DAGSTER_SCHEMA)
            )
        )
    return False


def _tables(connection: Connection, schema: str) -> set[str]:
    return {name for (name,) in connection.execute(_PRESENT, [schema, [*TABLES]])}


def _holds(connection: Connection, query: LiteralString) -> bool:
    row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])
