"""Supported kinds of databases, and the statements that read an operator's query in each.

A supported database has snapshots, a time limit for statements, and sizes of values. Without them,
a pull could mix states, never end, or load a value of any size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import DataError
from psycopg.adapt import Loader
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg.types.string import TextLoader
from sqlalchemy import Connection, text
from sqlalchemy.sql.compiler import IdentifierPreparer

from rag_assets.ingest.sources.records import MAX_RECORD_BYTES
from rag_assets.systems.workspace.pulling import SqlConfig

_SHORT_TYPES: Final = frozenset(
    {16, 20, 21, 23, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, 2950}
)
"""Codes of Postgres types with values of a few bytes: numbers, booleans, times, UUIDs."""
_SIZED_TYPES: Final = frozenset({17, 25, 1042, 1043})
"""Codes of Postgres types for texts and bytes, whose size is known without reading them."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL that one kind of database needs for reading an operator's query.

    Attributes:
        prepare: starts a read-only transaction with one snapshot and a time limit.
        size: returns an SQL expression for a column's size in bytes, from its quoted name and the
            driver's type code; None for types that are always small.
        text: SQL type to which a value is cast for comparison with a text.
        fence: SQL at the end of a derived table, so that the database computes its values only
            once.
        is_ordered_by_time: whether times can be ordered; false if they may be stored as texts.
        counts_reading: whether a statement's time limit includes reading its rows.
    """

    name: str
    prepare: Callable[[Connection, SqlConfig], None]
    size: Callable[[str, Any], str | None]
    text: str
    fence: str = ""
    is_ordered_by_time: bool = True
    counts_reading: bool = False


def find_dialect(name: str) -> Dialect | None:
    """Return the dialect with this SQLAlchemy name; None if such databases are not supported."""
    return _DIALECTS.get(name)


def list_supported_databases() -> Sequence[str]:
    """Return the names of all supported kinds of databases."""
    return [*dict.fromkeys(dialect.name for dialect in _DIALECTS.values())]


def _prepare_postgres(connection: Connection, config: SqlConfig) -> None:
    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    settings = {
        "statement_timeout": f"{config.timeout_seconds}s",
        "lock_timeout": f"{config.timeout_seconds}s",
        "TimeZone": config.timezone,
    }
    for name, value in settings.items():
        parameters = {"name": name, "value": value}
        connection.execute(text("SELECT set_config(:name, :value, true)"), parameters)
    _return_texts_for_unparsable_values(connection.connection.driver_connection)


def _build_postgres_size(column: str, type_code: Any) -> str | None:
    if type_code in _SHORT_TYPES:
        return None
    return (
        f"octet_length({column})" if type_code in _SIZED_TYPES else f"octet_length({column}::text)"
    )


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
    # MySQL knows the names of time zones only if their tables were loaded.
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
        "Postgres", _prepare_postgres, _build_postgres_size, "text", fence=" OFFSET 0"
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


_TYPES_READ_AS_TEXT = ("json", "jsonb", "interval", "time", "timetz")


class _LenientLoader(Loader):
    """Loads a time; a time that Python cannot represent stays a text."""

    def load(self, data: Any) -> Any:
        try:
            return super().load(data)  # type: ignore[safe-super]  # a loader follows in the MRO
        except DataError:
            return bytes(data).decode()


class _Date(_LenientLoader, DateLoader): ...


class _Timestamp(_LenientLoader, TimestampLoader): ...


class _Timestamptz(_LenientLoader, TimestamptzLoader): ...


def _return_texts_for_unparsable_values(connection: Any) -> None:
    """Make a psycopg connection return JSON, and times that Python cannot represent, as texts."""
    for name, loader in (("date", _Date), ("timestamp", _Timestamp), ("timestamptz", _Timestamptz)):
        connection.adapters.register_loader(name, loader)
    for name in _TYPES_READ_AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)


MAX_ROW_BYTES: Final = 4 * MAX_RECORD_BYTES
"""Maximum bytes of a row as the database sends it; JSON may be longer than the stored record."""
MAX_KEY_BYTES: Final = 4_096
"""Maximum bytes of an id, which has at most 512 characters."""
# Matches parameters, and backslashes that SQLAlchemy removes: a query contains neither.
_ESCAPE = re.compile(r"\\(?=:[\w$]*(?![:\w$]))")
_PARAMETER = re.compile(r"(?<![:\w\\]):(?=[\w$]+(?![:\w$]))")
_ID, _CHANGED = "id", "updated_at"
_SIZE, _LARGEST = "rag_assets_size", "rag_assets_largest"


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """A column of a query."""

    name: str
    type_code: Any = None


def escape_parameters(query: str) -> str:
    """Return a query in a form that SQLAlchemy's text() sends as it was written."""
    return _PARAMETER.sub(r"\\:", _ESCAPE.sub(r"\\\\", query))


class Statements:
    """Statements that read one query."""

    def __init__(self, dialect: Dialect, preparer: IdentifierPreparer, query: str) -> None:
        self._dialect, self._preparer = dialect, preparer
        # The query may end in a comment, so a line break follows.
        self._pulled = f"(\n{escape_parameters(query)}\n) pulled"

    def select_no_rows(self) -> str:
        """Return the statement that selects all columns and no row, to learn the columns."""
        return f"SELECT * FROM {self._pulled} WHERE 1 = 0"  # noqa: S608 - the operator's

    def select_rows(self, columns: Sequence[QueryColumn], *, since: bool, of_pages: bool) -> str:
        """Return the statement that selects rows in the order of their changes.

        The result has an additional last column: the position of the largest column in an oversized
        row, for which only the id is sent; 0 for other rows.

        Args:
            since: whether to select only rows that changed since `:since`.
            of_pages: whether to select only blocks of `:pages`.
        """
        conditions = [f"{_CHANGED} >= :since"] if since else []
        if of_pages:
            conditions.append(f"CAST(page_uuid AS {self._dialect.text}) IN :pages")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        inner = f"SELECT * FROM {self._pulled}{where} ORDER BY {_CHANGED}"  # noqa: S608
        return f"{self._build_limited_select(columns, inner, MAX_ROW_BYTES)} ORDER BY {_CHANGED}"

    def select_keys(self, columns: Sequence[QueryColumn], names: Sequence[str]) -> str:
        """Return the statement that selects these columns of all rows, in any order.

        See select_rows() for the additional last column.
        """
        key_columns = [
            column for name in names for column in columns if column.name.lower() == name
        ]
        inner = f"SELECT {', '.join(map(self._quote_column, key_columns))} FROM {self._pulled}"  # noqa: S608
        return self._build_limited_select(key_columns, inner, MAX_KEY_BYTES)

    def select_all_rows(self, columns: Sequence[QueryColumn]) -> str:
        """Return the statement that selects all rows of a query that has no times.

        See select_rows() for the additional last column.
        """
        return self._build_limited_select(columns, f"SELECT * FROM {self._pulled}", MAX_ROW_BYTES)  # noqa: S608

    def _build_limited_select(self, columns: Sequence[QueryColumn], inner: str, most: int) -> str:
        """Return a statement that selects only the id of rows above the size limit.

        All other values of such a row are null. select_rows() explains the additional last column.
        """
        sizes = {
            column.name: size for column in columns if (size := self._build_size_expression(column))
        }
        if not sizes:
            names = ", ".join(map(self._quote_column, columns))
            return f"SELECT {names}, 0 FROM ({inner}) judged"  # noqa: S608
        fence, total = self._dialect.fence, " + ".join(sizes.values())
        fenced = f"({inner}{fence}) fenced"
        sized = f"(SELECT fenced.*, {total} AS {_SIZE} FROM {fenced}{fence}) judged"  # noqa: S608
        values = ", ".join(
            self._build_value_expression(column, sizes.get(column.name), most) for column in columns
        )
        # The largest of n columns has at least one nth of the bytes.
        places = " ".join(
            f"WHEN {sizes[column.name]} * {len(sizes)} >= {_SIZE} THEN {place}"
            for place, column in enumerate(columns, start=1)
            if column.name in sizes
        )
        largest = f"CASE WHEN {_SIZE} <= {most} THEN 0 {places} END"
        return f"SELECT {values}, {largest} AS {_LARGEST} FROM {sized}"  # noqa: S608

    def _build_value_expression(self, column: QueryColumn, size: str | None, most: int) -> str:
        name = self._quote_column(column)
        if size is None:
            return name
        if column.name.lower() == _ID:
            return f"CASE WHEN {size} <= {MAX_KEY_BYTES} THEN {name} END AS {name}"
        return f"CASE WHEN {_SIZE} <= {most} THEN {name} END AS {name}"

    def _build_size_expression(self, column: QueryColumn) -> str | None:
        size = self._dialect.size(self._quote_column(column), column.type_code)
        return None if size is None else f"coalesce({size}, 0)"

    def _quote_column(self, column: QueryColumn) -> str:
        # The preparer's own method is not used, because it doubles percent signs, and text()
        # doubles them again.
        preparer = self._preparer
        inner = column.name.replace(preparer.escape_quote, preparer.escape_to_quote)
        return escape_parameters(f"{preparer.initial_quote}{inner}{preparer.final_quote}")
