"""One snapshot of another application's database, read in batches and never written.

Errors contain the server's messages about a query, which the operator wrote, but never messages
about values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, CursorResult, bindparam, text
from sqlalchemy.exc import SQLAlchemyError

from rag_assets.common.errors import ListingFailed
from rag_assets.systems.workspace.pulling.connecting import open_connection, said
from rag_assets.systems.workspace.pulling.dialects import Dialect
from rag_assets.systems.workspace.pulling.source import RecordType, SqlConfig
from rag_assets.systems.workspace.pulling.statements import Column, Statements

_Rows: TypeAlias = CursorResult[*tuple[Any, ...]]
_FETCHED: Final = 20
"""Rows in memory at once; a row may contain a page, and has a few MiB at most."""
_FETCHED_KEYS: Final = 1_000
_SNAPSHOT: Final = 300.0
"""Seconds after which a snapshot is old: its database must keep rows that were deleted since."""


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """A row of a query.

    Attributes:
        values: of its columns, in their order.
        largest: index of the largest column in an oversized row, for which only the id was read;
            None for other rows.
    """

    values: Sequence[Any]
    largest: int | None = None


class ForeignKey(NamedTuple):
    """The fields by which all rows are compared.

    Attributes:
        id, changed_at: of the row.
        page: the page of a block.
    """

    id: Any
    changed_at: Any
    page: Any = None


class ForeignDatabase:
    """One snapshot of a database.

    Args:
        connection: within its transaction.
        dialect: the kind of database.
        config: of the source.
    """

    def __init__(self, connection: Connection, dialect: Dialect, config: SqlConfig) -> None:
        self._connection, self._dialect, self._config = connection, dialect, config
        self._zone = ZoneInfo(config.timezone)
        self._opened = time.monotonic()
        self._columns: dict[RecordType, list[Column]] = {}

    @property
    def is_ordered_by_time(self) -> bool:
        """Return whether rows are ordered by time; text columns are ordered alphabetically."""
        return self._dialect.is_ordered_by_time

    @property
    def is_old(self) -> bool:
        """Return whether to replace the snapshot soon: its database keeps everything it shows."""
        # If reading counts towards the timeout, so does the time to store rows in between.
        most = self._config.timeout_seconds / 2 if self._dialect.counts_reading else _SNAPSHOT
        return time.monotonic() - self._opened > min(most, _SNAPSHOT)

    @contextmanager
    def rows(
        self,
        source_type: RecordType,
        since: datetime | None = None,
        of_pages: Sequence[str] | None = None,
    ) -> Iterator[tuple[Sequence[str], Iterator[ForeignRow]]]:
        """Open the rows of a query that changed since a time, in the order of their changes.

        Args:
            source_type: of the query.
            since: None: all of them.
            of_pages: only blocks of these pages.

        Yields:
            the names of the columns, and an iterator over the rows.

        Raises:
            ListingFailed: the query failed. The rows before the failure are incomplete.
        """
        columns = self._columns_of(source_type)
        statement = self._statements(source_type).rows(
            columns, since=since is not None, of_pages=of_pages is not None
        )
        parameters: dict[str, Any] = {}
        if since is not None:
            parameters["since"] = self._comparable(since)
        if of_pages is not None:
            parameters["pages"] = [*of_pages]
        with self._explained(source_type):
            result = self._execute(statement, parameters, _FETCHED)
        try:
            yield [one.name for one in columns], self._fetched(result, source_type)
        finally:
            with suppress(SQLAlchemyError):
                result.close()

    def keys(self, source_type: RecordType, *, with_page: bool = False) -> Iterator[ForeignKey]:
        """Yield the key of every row of a query.

        Args:
            source_type: of the query.
            with_page: whether to read the page as well; the query must have that column.

        Raises:
            ListingFailed: see rows().
        """
        names = ("id", "updated_at", *(("page_uuid",) if with_page else ()))
        statement = self._statements(source_type).keys(self._columns_of(source_type), names)
        with self._explained(source_type):
            result = self._execute(statement, {}, _FETCHED_KEYS)
            try:
                for row in result:
                    yield ForeignKey(*row[:-1])
            finally:
                result.close()

    def tree(self) -> tuple[list[str], list[ForeignRow]]:
        """Return the names of the columns of the tree's query, and all of its rows.

        Raises:
            ListingFailed: see rows().
        """
        statements = self._statements_of(self._config.tree or "")
        with self._explained("tree"):
            columns = self._described(statements)
            names = [one.name.lower() for one in columns]
            self._require("tree", names, ("id",))
            result = self._execute(statements.all_rows(columns), {}, _FETCHED_KEYS)
            return names, [ForeignRow(row, last - 1 if last else None) for *row, last in result]

    def _columns_of(self, source_type: RecordType) -> list[Column]:
        """Return the columns of a query.

        Raises:
            ListingFailed: the query failed, two columns have the same name, or one is missing.
        """
        if source_type not in self._columns:
            with self._explained(source_type):
                found = self._described(self._statements(source_type))
            self._require(source_type, [one.name.lower() for one in found], ("id", "updated_at"))
            self._columns[source_type] = found
        return self._columns[source_type]

    def _described(self, statements: Statements) -> list[Column]:
        """Return the columns of a query."""
        result = self._connection.execute(text(statements.nothing()))
        described = result.cursor.description if result.cursor else ()
        found = [Column(one[0], one[1]) for one in described]
        result.close()
        return found

    def _require(self, source_type: str, names: Sequence[str], needed: Sequence[str]) -> None:
        what = f"source {self._config.name!r}: the query of {source_type} has"
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ListingFailed(
                f"{what} two columns {twice!r}", hint="give one of them another name, by AS"
            )
        missing = next((name for name in needed if name not in names), None)
        if missing is not None:
            raise ListingFailed(f"{what} no column {missing!r}", hint="select it, under that name")

    def _statements(self, source_type: RecordType) -> Statements:
        return self._statements_of(self._config.queries[source_type])

    def _statements_of(self, query: str) -> Statements:
        preparer = self._connection.dialect.identifier_preparer
        return Statements(self._dialect, preparer, query)

    def _execute(self, statement: str, parameters: dict[str, Any], fetched: int) -> _Rows:
        bound = text(statement)
        if "pages" in parameters:
            bound = bound.bindparams(bindparam("pages", expanding=True))
        options = {"stream_results": True, "yield_per": fetched}
        return self._connection.execute(bound, parameters, execution_options=options)

    def _fetched(self, result: _Rows, source_type: RecordType) -> Iterator[ForeignRow]:
        with self._explained(source_type):
            for *values, largest in result:
                yield ForeignRow(values, largest - 1 if largest else None)

    def _comparable(self, at: datetime) -> datetime:
        """Return a time in a form that the database can compare with its own times."""
        local = at.astimezone(self._zone)
        return (
            local if self._connection.dialect.name == "postgresql" else local.replace(tzinfo=None)
        )

    @contextmanager
    def _explained(self, source_type: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise ListingFailed(
                f"source {self._config.name!r}: the query of {source_type} failed: {said(error)}",
                hint="correct the query in tenants.yaml, or what the account may read; nothing was"
                " removed",
            ) from None


@contextmanager
def open_snapshot(config: SqlConfig) -> Iterator[ForeignDatabase]:
    """Open one read-only snapshot of a source's database.

    Raises:
        ConfigurationError: the variable is not set, or does not name a usable database.
        ListingFailed: the database cannot be reached.
    """
    with open_connection(config) as (connection, dialect):
        yield ForeignDatabase(connection, dialect, config)
