"""Upgrades of the catalog's schema; one query if it is already up to date.

The core and each system have a history of migrations and their own version table, so that
adding or removing a system does not affect another history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.exc import ProgrammingError

from rag_assets.common.errors import ConfigurationError, SchemaTooNew
from rag_assets.common.formatting import format_count
from rag_assets.plugins.registry import InstalledSystem, Systems, installed_systems
from rag_assets.plugins.system import Migrations
from rag_assets.storage.catalog import tables
from rag_assets.storage.catalog.accounts import tables as account_tables
from rag_assets.storage.catalog.builds import judgements
from rag_assets.storage.catalog.database import APPLICATION, Database
from rag_assets.storage.catalog.erasure import receipts as erasure_tables
from rag_assets.storage.catalog.erasure import traces
from rag_assets.storage.catalog.installation import clock, identity
from rag_assets.storage.catalog.installation.roles import build_grants_sql
from rag_assets.storage.catalog.tables import SCHEMA
from rag_assets.storage.catalog.uploads import model as upload_tables

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0061"
_FIRST_RELEASED = "0059"
"""The core's revision in the first release; older ones are numbers, too, and have no migrations."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "alembic_version"
_MIGRATION_LOCK = 0x7261675F61737365


@dataclass(frozen=True, slots=True)
class _History:
    """The history of schema migrations of the core, or of one system."""

    version_table: str
    head: str
    owner: InstalledSystem | None = None

    @property
    def version(self) -> sa.TableClause:
        """Return the version table."""
        return sa.table(self.version_table, sa.column("version_num"), schema=SCHEMA)


def migrate(database: Database, systems: Systems | None = None) -> bool:
    """Create or upgrade the tables of the catalog and of the installed systems.

    Safe to call from many processes at once: the first process upgrades, the others wait.

    Args:
        systems: used instead of the installed ones.

    Returns:
        whether a table was upgraded.

    Raises:
        ConfigurationError: a system's migrations are not usable.
        SchemaTooNew: a newer program upgraded the tables.
    """
    systems = systems or installed_systems()
    if not is_behind(database, systems):
        return False
    histories = _iter_histories(systems)
    _require_distinct_tables(systems)
    with database.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        for history in histories:
            _upgrade_schema(connection, history)
        connection.execute(sa.text(build_grants_sql()))
    return True


def run_script(connection: sa.Connection, path: Path) -> None:
    """Run the statements of a SQL file in the transaction of a migration."""
    # Without parameters, psycopg accepts several statements and leaves % and : alone.
    statements = path.read_text("utf-8")
    connection.exec_driver_sql(statements, execution_options={"no_parameters": True})


def is_behind(database: Database, systems: Systems | None = None) -> bool:
    """Return whether the catalog's tables have another revision than this program's schema."""
    histories = list(_iter_histories(systems or installed_systems()))
    return _read_revisions(database, histories) != {
        history.version_table: history.head for history in histories
    }


def is_new(database: Database) -> bool:
    """Return whether the database has no catalog yet."""
    with database.begin() as connection:
        return _find_revision(connection, _History(_VERSION_TABLE, HEAD)) is None


def _iter_histories(systems: Systems) -> Iterable[_History]:
    """Yield the core's history first, because tables of systems refer to its tables."""
    yield _History(_VERSION_TABLE, HEAD)
    for owner in systems:
        if (migrations := owner.system.migrations) is not None:
            yield _History(_name_version_table(owner), migrations.head, owner)


def _read_revisions(database: Database, histories: Iterable[_History]) -> Mapping[str, str] | None:
    """Return the current revision in each version table; None if a version table is missing."""
    found = (
        sa.select(sa.literal(history.version_table), history.version.c.version_num)
        for history in histories
    )
    try:
        with database.begin() as connection:
            rows = connection.execute(sa.union_all(*found)).all()
            return {row[0]: row[1] for row in rows}
    except ProgrammingError:
        return None


def build_alembic_config(
    connection: sa.Connection | None, owner: InstalledSystem | None = None
) -> Config:
    """Return the configuration of Alembic's commands for one history of migrations.

    Args:
        connection: used by the commands; None for commands that only read files.
        owner: the system that has the history; None for the core.

    Raises:
        ConfigurationError: the system's migrations are not usable.
    """
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", _escape_path(_MIGRATIONS))
    config.attributes["connection"] = connection
    if owner is not None and owner.system.migrations is not None:
        config.attributes["version_table"] = _name_version_table(owner)
        config.set_main_option("path_separator", "newline")
        folder = _find_folder(owner, owner.system.migrations)
        config.set_main_option("version_locations", _escape_path(folder))
    return config


def _upgrade_schema(connection: sa.Connection, history: _History) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = build_alembic_config(connection, history.owner)
    owner = history.owner
    heads = ScriptDirectory.from_config(config).get_heads()
    if owner is not None and heads != [history.head]:
        raise ConfigurationError(
            f"system {owner.name!r} of {owner.distribution}: its newest migration is"
            f" {', '.join(heads) or 'missing'}, but it declares {history.head!r}",
            hint=f"correct `head` in its Migrations, or reinstall {owner.distribution}",
        )
    present = _find_revision(connection, history)
    if present is not None:
        _require_upgradable(history, present)
    # Do not use "head": a newer program's files may have replaced these in the meantime.
    command.upgrade(config, history.head)


def _list_known_revisions(history: _History) -> frozenset[str]:
    """Return the revisions in the program's files; empty if the files lack the newest revision."""
    from alembic.script import ScriptDirectory
    from alembic.script.revision import RevisionError
    from alembic.util import CommandError

    scripts = ScriptDirectory.from_config(build_alembic_config(None, history.owner))
    try:
        revisions = list(scripts.iterate_revisions(history.head, "base"))
    except (CommandError, RevisionError):
        return frozenset()
    return frozenset(script.revision for script in revisions)


def _require_upgradable(history: _History, present: str) -> None:
    """Require that migrations lead from a revision of tables to this program's.

    Revisions have no order, and a system's tables can contain the only copy of texts: only a
    revision of the core that is known to be old leads to the advice to drop the schema.

    Raises:
        ConfigurationError: the core's tables are from before the first release.
        SchemaTooNew: a newer program upgraded the tables.
    """
    if present in _list_known_revisions(history):
        return
    if history.owner is None and present.isdecimal() and int(present) < int(_FIRST_RELEASED):
        raise ConfigurationError(
            f"the catalog has schema revision {present}, from before the first release, and"
            " cannot be upgraded",
            hint=f"drop the schema {SCHEMA} of this database, and sync the tenants again",
        )
    raise _build_too_new_error(history, present)


def _require_known(history: _History, present: str) -> None:
    """Raise SchemaTooNew if tables have a revision that the program's files lack."""
    if present != history.head and present not in _list_known_revisions(history):
        raise _build_too_new_error(history, present)


def watch_schema(database: Database, systems: Systems | None = None) -> None:
    """Make the connections of a running process notice a schema upgrade by a newer program."""
    histories = {
        history.version_table: history
        for history in _iter_histories(systems or installed_systems())
    }
    statement = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {}, version_num FROM {}").format(name, sql.Identifier(SCHEMA, name))
        for name in histories
    )

    def require_schema(connection: psycopg.Connection[Any]) -> None:
        with _begin_own_transaction(connection):
            try:
                rows = connection.execute(statement).fetchall()
            except psycopg.ProgrammingError:
                return  # The statement that follows fails for the same reason.
        for name, present in rows:
            _require_known(histories[name], present)

    database.require_schema = require_schema


@contextmanager
def _begin_own_transaction(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Run a statement in its own transaction."""
    before = connection.autocommit
    connection.autocommit = True
    try:
        yield
    finally:
        if not connection.closed:
            connection.autocommit = before


def require_present_schema(database: Database, systems: Systems | None = None) -> None:
    """Require that no newer program upgraded the schema; changes no data."""
    histories = {
        history.version_table: history
        for history in _iter_histories(systems or installed_systems())
    }
    for name, present in (_read_revisions(database, list(histories.values())) or {}).items():
        _require_known(histories[name], present)


def list_other_programs(database: Database) -> list[str]:
    """Return descriptions of the catalog's connections by programs with another revision."""
    query = sa.text(
        "SELECT application_name, coalesce(host(client_addr), 'this machine'), count(*)"
        " FROM pg_stat_activity"
        " WHERE datname = current_database() AND starts_with(application_name, :name)"
        " AND application_name <> :own GROUP BY 1, 2 ORDER BY 1, 2"
    )
    with database.begin() as connection:
        connections = connection.execute(
            query, {"name": APPLICATION, "own": f"{APPLICATION}{HEAD}"}
        )
        return [
            f"a program with schema revision {name.removeprefix(APPLICATION)} is connected to the"
            f" catalog ({format_count(count, 'connection')} from {place}); this one has {HEAD}"
            for name, place, count in connections
        ]


def _find_revision(connection: sa.Connection, history: _History) -> str | None:
    """Return the revision of a history's tables; None if they do not exist."""
    exists = sa.text("SELECT to_regclass(:name) IS NOT NULL")
    if not connection.scalar(exists, {"name": f"{SCHEMA}.{history.version_table}"}):
        return None
    return connection.scalar(sa.select(history.version.c.version_num))


def _build_too_new_error(history: _History, present: str) -> SchemaTooNew:
    """Return the error for tables with a revision that only a newer program has."""
    owner_text, program = "the catalog has", f"rag-assets {version('rag-assets')}"
    if history.owner is not None:
        owner_text = f"the catalog's tables of system {history.owner.name!r} have"
        program = history.owner.distribution
    return SchemaTooNew(
        f"{owner_text} schema revision {present}, which a newer program created; this program,"
        f" {program}, has {history.head}",
        hint="`rag-assets up` of the newer program replaces the processes of an installation;"
        " otherwise run this with the program that upgraded the catalog, or install its"
        " version here. A schema is never downgraded: to go back, restore a dump from before"
        " the upgrade",
    )


def _name_version_table(owner: InstalledSystem) -> str:
    return f"{_VERSION_TABLE}_{owner.name.replace('-', '_')}"


def _find_folder(owner: InstalledSystem, migrations: Migrations) -> Path:
    try:
        spec = find_spec(migrations.package)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"system {owner.name!r} of {owner.distribution}: its migrations package"
            f" {migrations.package} was not found",
            hint=f"reinstall {owner.distribution}",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _escape_path(path: Path) -> str:
    """Return a path with % escaped, because % starts a variable in Alembic's configuration."""
    return str(path).replace("%", "%%")


def _require_distinct_tables(systems: Systems) -> None:
    """Check that no system's table has the name of a core table."""
    own = {
        var.name
        for module in (
            *(account_tables, clock, erasure_tables, identity),
            *(judgements, tables, traces, upload_tables),
        )
        for var in vars(module).values()
        if isinstance(var, sa.Table)
    }
    systems.parts("tables", reserved=sorted(own))
