"""Another application's database: one snapshot of it, read in batches, and never written.

Its URL stands in an environment variable alone. No error quotes it, or what a server says about
values; what a server says about a query is about the operator's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, CursorResult, Engine, create_engine, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DontWrapMixin,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool

from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.common.references import resolved
from rag_assets.systems.workspace.pulling.source import RecordType, SqlConfig

_Rows: TypeAlias = CursorResult[*tuple[Any, ...]]
_FETCHED = 100
"""Rows that are in memory at once; a row may hold a page."""
_CONNECT_SECONDS = 10
_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
# As SQLAlchemy finds parameters, and backslashes that it takes away: a query has neither.
_ESCAPE = re.compile(r"\\(?=:[\w$]*(?![:\w$]))")
_PARAMETER = re.compile(r"(?<![:\w\\]):(?=[\w$]+(?![:\w$]))")
_OF_THE_QUERY: Final = ("42", "0A", "22023")
"""States of SQL that are about the words of a query, and not about values."""
_REFUSALS: Final = (
    ("password authentication failed", "it refuses the account or its password"),
    ("no pg_hba.conf entry", "it refuses connections from here"),
    ("does not exist", "there is no such database or account"),
    ("timeout expired", "it does not answer"),
    ("refused", "nothing answers there"),
    ("could not translate host name", "there is no such host"),
    ("failed to resolve host", "there is no such host"),
    ("unable to open database file", "there is no such file"),
)


class ForeignDatabase:
    """One snapshot of a database.

    Args:
        connection: within its transaction.
        config: the source that reads it.
    """

    def __init__(self, connection: Connection, config: SqlConfig) -> None:
        self._connection = connection
        self._config = config
        self._zone = ZoneInfo(config.timezone)

    @contextmanager
    def rows(
        self, source_type: RecordType, since: datetime | None
    ) -> Iterator[tuple[Sequence[str], Iterator[Sequence[Any]]]]:
        """The rows of a query that were changed since a time, in the order of their changes.

        Args:
            source_type: of the query.
            since: None: all of them.

        Yields:
            the names of the columns, and the rows as they come.

        Raises:
            ListingFailed: the query failed; what came before is not all there is.
        """
        condition = "" if since is None else " WHERE updated_at >= :since"
        statement = f"{self._selected('*', source_type)}{condition} ORDER BY updated_at"
        parameters = {} if since is None else {"since": self._comparable(since)}
        with self._explained(source_type):
            result = self._execute(statement, parameters)
        try:
            yield [*result.keys()], self._fetched(result, source_type)
        finally:
            with suppress(SQLAlchemyError):
                result.close()

    def keys(self, source_type: RecordType) -> Iterator[tuple[Any, Any]]:
        """The id of every row of a query, and when it was changed, as they come.

        Raises:
            ListingFailed: see rows().
        """
        with self._explained(source_type):
            result = self._execute(self._selected("id, updated_at", source_type), {})
            try:
                for row in result:
                    yield row[0], row[1]
            finally:
                result.close()

    @property
    def is_ordered_by_time(self) -> bool:
        """Whether texts are no times here: they would be ordered by their letters."""
        return self._connection.dialect.name != "sqlite"

    def _selected(self, columns: str, source_type: RecordType) -> str:
        """A statement that selects from a query; a comment may end that."""
        query = escaped(self._config.queries[source_type])
        return f"SELECT {columns} FROM (\n{query}\n) pulled"  # noqa: S608 - the operator's

    def _execute(self, statement: str, parameters: dict[str, Any]) -> _Rows:
        streamed = self._connection.execution_options(stream_results=True, yield_per=_FETCHED)
        return streamed.execute(text(statement), parameters)

    def _fetched(self, result: _Rows, source_type: RecordType) -> Iterator[Sequence[Any]]:
        with self._explained(source_type):
            yield from result

    def _comparable(self, at: datetime) -> datetime:
        """A time as the database compares it with its own."""
        local = at.astimezone(self._zone)
        return (
            local if self._connection.dialect.name == "postgresql" else local.replace(tzinfo=None)
        )

    @contextmanager
    def _explained(self, source_type: RecordType) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise ListingFailed(
                f"source {self._config.name!r}: the query of {source_type} failed: {_said(error)}",
                hint="correct the query in tenants.yaml, or what the account may read; nothing was"
                " removed",
            ) from None


def escaped(query: str) -> str:
    """A query that SQLAlchemy's text() sends as it is written."""
    return _PARAMETER.sub(r"\\:", _ESCAPE.sub(r"\\\\", query))


@contextmanager
def open_snapshot(config: SqlConfig) -> Iterator[ForeignDatabase]:
    """Open one snapshot of a source's database, which cannot be written.

    Raises:
        ConfigurationError: the variable is not set, or names no database that can be used.
        ListingFailed: the database cannot be reached.
    """
    engine = _engine(config)
    try:
        with _connected(engine, config) as connection:
            yield ForeignDatabase(connection, config)
    finally:
        engine.dispose()


@contextmanager
def _connected(engine: Engine, config: SqlConfig) -> Iterator[Connection]:
    try:
        connection = engine.connect()
    except (SQLAlchemyError, OSError) as error:
        raise ListingFailed(
            f"source {config.name!r}: the database of {config.url} cannot be reached:"
            f" {_refusal(error)}",
            hint="correct the variable, or start the database; nothing was removed",
        ) from None
    with connection:
        try:
            _prepare(connection, config)
        except SQLAlchemyError as error:
            raise ListingFailed(
                f"source {config.name!r}: the database of {config.url} gives no snapshot to read:"
                f" {_said(error)}",
                hint="its account needs to begin a transaction that reads alone",
            ) from None
        yield connection


def _engine(config: SqlConfig) -> Engine:
    where = f"source {config.name!r}: url"
    given = resolved(where, config.url)
    try:
        # No error below may be chained to this: SQLAlchemy's quote the URL.
        url = make_url(_SCHEME.sub("postgresql+psycopg://", given))
        is_postgres = url.get_backend_name() == "postgresql"
        options = _postgres_arguments(config) if is_postgres else {}
        return create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=options)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{where}: the driver of the database that {config.url} names is not installed:"
            f" {error.name}",
            hint=f"install {error.name} where rag-assets is installed, or name another driver",
        ) from None
    except NoSuchModuleError:
        raise ConfigurationError(
            f"{where}: SQLAlchemy knows no such kind of database as {config.url} names",
            hint="install its dialect, or begin the URL with one such as postgresql://",
        ) from None
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            f"{where}: the variable {config.url.removeprefix('$')} holds no URL of a database",
            hint="write it as postgresql://NAME:PASSWORD@HOST:PORT/DATABASE",
        ) from None


def _postgres_arguments(config: SqlConfig) -> dict[str, Any]:
    # A server that is gone without a word is noticed about when a statement would time out.
    return {
        "connect_timeout": _CONNECT_SECONDS,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 4,
        "tcp_user_timeout": config.timeout_seconds * 1_000,
        "application_name": "rag-assets",
    }


def _prepare(connection: Connection, config: SqlConfig) -> None:
    """Have the transaction read alone, see one state, and end what takes too long."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
        return
    if connection.dialect.name != "postgresql":
        return
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


def _said(error: SQLAlchemyError | DontWrapMixin) -> str:
    """What is wrong, without a value and without the URL."""
    original = getattr(error, "orig", None)
    state = getattr(original, "sqlstate", None)
    if original is None:
        return type(error).__name__
    named = type(original).__name__ + (f" ({state})" if state else "")
    about = getattr(getattr(original, "diag", None), "message_primary", None)
    if about and state and state.startswith(_OF_THE_QUERY):
        return f"{named}: {about}"
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return f"{named}: the connection broke"
    return named


def _refusal(error: Exception) -> str:
    said = str(getattr(error, "orig", None) or error).lower()
    return next((told for part, told in _REFUSALS if part in said), "it does not answer")
