"""Read-only snapshots of an application's database, read in batches.

The URL is read from an environment variable. Errors contain the server's messages about a query,
which the operator wrote, but never the URL or messages about values.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from sqlalchemy import (
    URL,
    Connection,
    CursorResult,
    Engine,
    bindparam,
    create_engine,
    make_url,
    text,
)
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DontWrapMixin,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool

from rag_assets.common.environment import resolve_variable_reference
from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.systems.workspace.pulling import RecordType, SqlConfig
from rag_assets.systems.workspace.pulling.dialects import (
    Dialect,
    QueryColumn,
    Statements,
    find_dialect,
    list_supported_databases,
)

_Rows: TypeAlias = CursorResult[*tuple[Any, ...]]
_FETCHED_ROWS: Final = 20
"""Maximum number of rows in memory; a row may contain a page, and has at most a few MiB."""
_FETCHED_KEYS: Final = 1_000
_OLD_SNAPSHOT_SECONDS: Final = 300.0
"""Seconds after which a snapshot is old; the database keeps all rows deleted since its start."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of a query.

    Attributes:
        values: values of the columns, in their order.
        largest: index of the largest column in an oversized row, for which only the id was read;
            None for other rows.
    """

    values: Sequence[Any]
    largest: int | None = None


class SourceKey(NamedTuple):
    """The columns of a row that are compared with the stored records.

    Attributes:
        page: page of a block; None for other types.
    """

    id: Any
    changed_at: Any
    page: Any = None


class SourceDatabase:
    """Reads the rows of a source's queries within one snapshot of its database."""

    def __init__(self, connection: Connection, dialect: Dialect, config: SqlConfig) -> None:
        self._connection, self._dialect, self._config = connection, dialect, config
        self._zone = ZoneInfo(config.timezone)
        self._opened = time.monotonic()
        self._columns: dict[RecordType, list[QueryColumn]] = {}

    @property
    def is_ordered_by_time(self) -> bool:
        """Return whether rows can be ordered by time; times stored as texts cannot."""
        return self._dialect.is_ordered_by_time

    @property
    def is_old(self) -> bool:
        """Return whether the snapshot should be replaced soon.

        While a snapshot is open, the database cannot discard deleted rows.
        """
        # If a statement's timeout covers reading its rows, it also covers storing them in between.
        most = (
            self._config.timeout_seconds / 2
            if self._dialect.counts_reading
            else _OLD_SNAPSHOT_SECONDS
        )
        return time.monotonic() - self._opened > min(most, _OLD_SNAPSHOT_SECONDS)

    @contextmanager
    def open_rows(
        self,
        source_type: RecordType,
        since: datetime | None = None,
        of_pages: Sequence[str] | None = None,
    ) -> Iterator[tuple[Sequence[str], Iterator[SourceRow]]]:
        """Open the rows of a query, in the order of their changes.

        Args:
            since: only rows that changed since this time; None selects all rows.
            of_pages: only blocks of these pages; None selects the blocks of all pages.

        Yields:
            the names of the columns, and an iterator over the rows.

        Raises:
            ListingFailed: the query failed. The rows before the failure are incomplete.
        """
        columns = self._read_columns(source_type)
        statement = self._build_statements_for_type(source_type).select_rows(
            columns, since=since is not None, of_pages=of_pages is not None
        )
        parameters: dict[str, Any] = {}
        if since is not None:
            parameters["since"] = self._to_comparable_time(since)
        if of_pages is not None:
            parameters["pages"] = [*of_pages]
        with self._explain_errors(source_type):
            result = self._execute(statement, parameters, _FETCHED_ROWS)
        try:
            yield [column.name for column in columns], self._fetch_rows(result, source_type)
        finally:
            with suppress(SQLAlchemyError):
                result.close()

    def read_keys(self, source_type: RecordType, *, with_page: bool = False) -> Iterator[SourceKey]:
        """Yield the key of every row of a query.

        Args:
            with_page: whether to also read `page_uuid`; the query must have this column.
        """
        names = ("id", "updated_at", *(("page_uuid",) if with_page else ()))
        statement = self._build_statements_for_type(source_type).select_keys(
            self._read_columns(source_type), names
        )
        with self._explain_errors(source_type):
            result = self._execute(statement, {}, _FETCHED_KEYS)
            try:
                for row in result:
                    yield SourceKey(*row[:-1])
            finally:
                result.close()

    def read_tree(self) -> tuple[list[str], list[SourceRow]]:
        """Return the column names and all rows of the tree's query."""
        statements = self._build_statements(self._config.tree or "")
        with self._explain_errors("tree"):
            columns = self._describe_columns(statements)
            names = [column.name.lower() for column in columns]
            self._require_columns("tree", names, ("id",))
            result = self._execute(statements.select_all_rows(columns), {}, _FETCHED_KEYS)
            return names, [SourceRow(row, last - 1 if last else None) for *row, last in result]

    def _read_columns(self, source_type: RecordType) -> list[QueryColumn]:
        """Return the columns of a query.

        Raises:
            ListingFailed: the query failed, two columns have the same name, or one is missing.
        """
        if source_type not in self._columns:
            with self._explain_errors(source_type):
                columns = self._describe_columns(self._build_statements_for_type(source_type))
            self._require_columns(
                source_type, [column.name.lower() for column in columns], ("id", "updated_at")
            )
            self._columns[source_type] = columns
        return self._columns[source_type]

    def _describe_columns(self, statements: Statements) -> list[QueryColumn]:
        """Return the name and type code of each column of a query, without reading rows."""
        result = self._connection.execute(text(statements.select_no_rows()))
        described = result.cursor.description if result.cursor else ()
        columns = [QueryColumn(name, type_code) for name, type_code, *_ in described]
        result.close()
        return columns

    def _require_columns(
        self, source_type: str, names: Sequence[str], needed: Sequence[str]
    ) -> None:
        query = f"source {self._config.name!r}: the query of {source_type}"
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ListingFailed(
                f"{query} has two columns {repeated!r}", hint="rename one of these columns with AS"
            )
        missing = next((name for name in needed if name not in names), None)
        if missing is not None:
            raise ListingFailed(
                f"{query} has no column {missing!r}",
                hint="add this column to the query, with exactly this name",
            )

    def _build_statements_for_type(self, source_type: RecordType) -> Statements:
        return self._build_statements(self._config.queries[source_type])

    def _build_statements(self, query: str) -> Statements:
        preparer = self._connection.dialect.identifier_preparer
        return Statements(self._dialect, preparer, query)

    def _execute(self, statement: str, parameters: dict[str, Any], fetched: int) -> _Rows:
        bound = text(statement)
        if "pages" in parameters:
            bound = bound.bindparams(bindparam("pages", expanding=True))
        options = {"stream_results": True, "yield_per": fetched}
        return self._connection.execute(bound, parameters, execution_options=options)

    def _fetch_rows(self, result: _Rows, source_type: RecordType) -> Iterator[SourceRow]:
        with self._explain_errors(source_type):
            for *values, largest in result:
                yield SourceRow(values, largest - 1 if largest else None)

    def _to_comparable_time(self, at: datetime) -> datetime:
        """Return a time in a form that the database can compare with its own times."""
        local = at.astimezone(self._zone)
        return (
            local if self._connection.dialect.name == "postgresql" else local.replace(tzinfo=None)
        )

    @contextmanager
    def _explain_errors(self, source_type: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise ListingFailed(
                f"source {self._config.name!r}: the query of {source_type} failed:"
                f" {describe_error(error)}",
                hint="correct the query in tenants.yaml, or grant the account read access;"
                " nothing was removed",
            ) from None


_CONNECT_SECONDS = 10
_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
_QUERY_ERROR_PREFIXES: Final = ("42", "0A", "22023")
"""Prefixes of Postgres error codes about the text of a query, not about values."""
_MYSQL_NAME_ERROR_PREFIX: Final = "42S"
"""Prefix of MySQL error codes about names in a query."""
_REFUSALS: Final = (
    ("access denied", "it rejects the account or its password"),
    ("password authentication failed", "it rejects the account or its password"),
    ("no pg_hba.conf entry", "it rejects connections from this host"),
    ("unknown database", "the database does not exist"),
    ("does not exist", "the database or the account does not exist"),
    ("unknown mysql server host", "the host name cannot be resolved"),
    ("name or service not known", "the host name cannot be resolved"),
    ("timeout expired", "the server does not respond"),
    ("refused", "no server listens at this address"),
    ("could not translate host name", "the host name cannot be resolved"),
    ("failed to resolve host", "the host name cannot be resolved"),
    ("unable to open database file", "the database file does not exist"),
)


@contextmanager
def open_snapshot(config: SqlConfig) -> Iterator[SourceDatabase]:
    """Open one read-only snapshot of a source's database.

    Raises:
        ConfigurationError: the variable is not set, or not the URL of a supported database.
        ListingFailed: the database cannot be reached.
    """
    engine, dialect = _create_engine(config)
    try:
        with _connect(engine, dialect, config) as connection:
            yield SourceDatabase(connection, dialect, config)
    finally:
        engine.dispose()


def _require_dialect(url: URL, config: SqlConfig) -> Dialect:
    kind = url.get_backend_name()
    dialect = find_dialect(kind)
    if dialect is None:
        raise ConfigurationError(
            f"source {config.name!r}: url: {config.url} names a database of the kind {kind},"
            " from which records cannot be pulled",
            hint=f"use one of {', '.join(list_supported_databases())}; or have the application push"
            " its records",
        )
    return dialect


@contextmanager
def _connect(engine: Engine, dialect: Dialect, config: SqlConfig) -> Iterator[Connection]:
    try:
        connection = engine.connect()
    except (SQLAlchemyError, OSError) as error:
        raise ListingFailed(
            f"source {config.name!r}: the database of {config.url} cannot be reached:"
            f" {_describe_refusal(error)}",
            hint="correct the URL in the variable, or start the database; nothing was removed",
        ) from None
    with connection:
        try:
            dialect.prepare(connection, config)
        except SQLAlchemyError as error:
            raise ListingFailed(
                f"source {config.name!r}: the database of {config.url} cannot open a read-only"
                f" snapshot: {describe_error(error)}",
                hint="allow the account to start a read-only transaction",
            ) from None
        yield connection


def _create_engine(config: SqlConfig) -> tuple[Engine, Dialect]:
    where = f"source {config.name!r}: url"
    reference = resolve_variable_reference(where, config.url)
    try:
        # The errors below must not be chained, because SQLAlchemy's errors quote the URL.
        url = make_url(_SCHEME.sub("postgresql+psycopg://", reference))
        dialect = _require_dialect(url, config)
        is_postgres = url.get_backend_name() == "postgresql"
        options = _build_postgres_arguments(config) if is_postgres else {}
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=options)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{where}: the driver for the database URL in {config.url} is not installed:"
            f" {error.name}",
            hint=f"install {error.name} where rag-assets is installed, or use a different"
            " driver in the URL",
        ) from None
    except NoSuchModuleError:
        raise ConfigurationError(
            f"{where}: SQLAlchemy does not support the kind of database in {config.url}",
            hint="install the SQLAlchemy dialect for it, or use a URL that starts with postgresql://",
        ) from None
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            f"{where}: the variable {config.url.removeprefix('$')} does not contain a valid"
            " database URL",
            hint="set the variable to a URL such as postgresql://NAME:PASSWORD@HOST:PORT/DATABASE",
        ) from None
    return engine, dialect


def _build_postgres_arguments(config: SqlConfig) -> dict[str, Any]:
    # A server that vanishes silently is noticed about when a statement would time out.
    return {
        "connect_timeout": _CONNECT_SECONDS,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 4,
        "tcp_user_timeout": config.timeout_seconds * 1_000,
        "application_name": "rag-assets",
    }


def describe_error(error: SQLAlchemyError | DontWrapMixin) -> str:
    """Return a description of an error without values and the URL."""
    original = getattr(error, "orig", None)
    if original is None:
        return type(error).__name__
    state = getattr(original, "sqlstate", None)
    number = next((arg for arg in original.args[:1] if isinstance(arg, int)), None)
    code = state or number
    error_name = type(original).__name__ + (f" ({code})" if code else "")
    about = getattr(getattr(original, "diag", None), "message_primary", None)
    if about and state and state.startswith(_QUERY_ERROR_PREFIXES):
        return f"{error_name}: {about}"
    if state and state.startswith(_MYSQL_NAME_ERROR_PREFIX) and number is not None:
        return f"{error_name}: {original.args[-1]}"
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return f"{error_name}: the connection broke"
    return error_name


def _describe_refusal(error: Exception) -> str:
    message = str(getattr(error, "orig", None) or error).lower()
    return next(
        (reason for part, reason in _REFUSALS if part in message), "the server does not respond"
    )
