"""Supported kinds of databases: how each provides one snapshot, a time limit, and sizes.

Other kinds are refused: without these, a pull could mix states, never end, or load a value of any
size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, text

from rag_assets.systems.workspace.pulling.source import SqlConfig

_SHORT: Final = frozenset({16, 20, 21, 23, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, 2950})
"""Postgres types with values of a few bytes: numbers, booleans, times, UUIDs."""
_WITH_SIZE: Final = frozenset({17, 25, 1042, 1043})
"""Postgres types for texts and bytes: their size is known without reading them."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read a kind of database.

    Attributes:
        name: its common name.
        prepare: makes a transaction read-only, based on one snapshot, with a time limit.
        size: returns an SQL expression for a column's bytes, from its quoted name and the driver's
            code of its type; None for types that are always small.
        text: the type to which a value is cast for comparison with a text.
        fence: ends a derived table, so that its values are not computed again for each use.
        is_ordered_by_time: whether times are never stored as texts, which are ordered
            alphabetically.
        counts_reading: whether the time limit of a statement includes the time to read its rows.
    """

    name: str
    prepare: Callable[[Connection, SqlConfig], None]
    size: Callable[[str, Any], str | None]
    text: str
    fence: str = ""
    is_ordered_by_time: bool = True
    counts_reading: bool = False


def dialect_of(name: str) -> Dialect | None:
    """Return the dialect for SQLAlchemy's name of it; None if such databases are not supported."""
    return _DIALECTS.get(name)


def served_dialects() -> Sequence[str]:
    """Return the names of all supported kinds of databases."""
    return [*dict.fromkeys(one.name for one in _DIALECTS.values())]


def _prepare_postgres(connection: Connection, config: SqlConfig) -> None:
    from rag_assets.systems.workspace.pulling.lenient import read_leniently

    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    settings = {
        "statement_timeout": f"{config.timeout_seconds}s",
        "lock_timeout": f"{config.timeout_seconds}s",
        "TimeZone": config.timezone,
    }
    for name, value in settings.items():
        parameters = {"name": name, "value": value}
        connection.execute(text("SELECT set_config(:name, :value, true)"), parameters)
    read_leniently(connection.connection.driver_connection)


def _size_in_postgres(column: str, type_code: Any) -> str | None:
    if type_code in _SHORT:
        return None
    return f"octet_length({column})" if type_code in _WITH_SIZE else f"octet_length({column}::text)"


def _prepare_sqlite(connection: Connection, _: SqlConfig) -> None:
    connection.exec_driver_sql("PRAGMA query_only = ON")


def _prepare_mysql(connection: Connection, config: SqlConfig) -> None:
    is_mariadb = getattr(connection.dialect, "is_mariadb", False)
    limit = (
        f"max_statement_time = {config.timeout_seconds}"
        if is_mariadb
        else f"max_execution_time = {config.timeout_seconds * 1_000}"
    )
    connection.execution_options(isolation_level="REPEATABLE READ")
    connection.exec_driver_sql(f"SET SESSION {limit}")
    connection.exec_driver_sql(f"SET SESSION lock_wait_timeout = {config.timeout_seconds}")
    # Names of zones are known only if their tables were loaded.
    zone = "+00:00" if config.timezone == "UTC" else config.timezone
    connection.execute(text("SET SESSION time_zone = :zone"), {"zone": zone})
    connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


_MYSQL: Final = Dialect(
    "MySQL and MariaDB",
    _prepare_mysql,
    lambda column, _: f"octet_length({column})",
    "char",
    counts_reading=True,
)
_DIALECTS: Final = {
    "postgresql": Dialect(
        "Postgres", _prepare_postgres, _size_in_postgres, "text", fence=" OFFSET 0"
    ),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite": Dialect(
        "SQLite",
        _prepare_sqlite,
        lambda column, _: f"length(CAST({column} AS blob))",
        "text",
        is_ordered_by_time=False,
    ),
}
