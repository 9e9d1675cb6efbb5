"""Prepared statements, each run in its own transaction, in an event loop or a thread.

SQLAlchemy compiles a statement once, and psycopg executes it directly: SQLAlchemy's overhead per
execution is larger than the statement's cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, TypeAlias

import psycopg
import sqlalchemy as sa
from psycopg.rows import namedtuple_row
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    Database,
    build_connect_arguments,
    convert_error,
)

_WAIT_SECONDS = 10.0
_STATEMENT_SECONDS = 10.0

Connection: TypeAlias = psycopg.AsyncConnection[Any]


class Statement:
    """A query with a `bindparam` for each variable value; it is compiled when it first runs."""

    def __init__(self, query: sa.Select[Any] | sa.Update) -> None:
        self._query = query

    @cached_property
    def sql(self) -> bytes:
        """Return the query as psycopg expects it."""
        return str(self._compiled).encode()

    @cached_property
    def constants(self) -> Mapping[str, object]:
        """Return the parameters that are part of the query itself."""
        return dict(self._compiled.params)

    @cached_property
    def _compiled(self) -> sa.Compiled:
        return self._query.compile(dialect=PGDialect_psycopg())  # type: ignore[no-untyped-call]


class BlockingRunner(CatalogQueries):
    """Runs prepared statements in the calling thread."""

    def rows(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        """Run a statement and return its rows as tuples."""
        values = {**statement.constants, **parameters}
        with self._database.driver() as cursor:
            cursor.execute(statement.sql, values, prepare=True)
            return cursor.fetchall()


class StatementRunner:
    """Runs statements in one event loop; connections are kept open.

    Every statement sees the data committed before it started, and leaves no open transaction. It
    raises ServiceUnavailable if Postgres does not answer.
    """

    def __init__(self, database: Database, connections: int) -> None:
        self._url = database.build_driver_url
        self._idle: list[Connection] = []
        self._turns = asyncio.Semaphore(connections)

    async def rows(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        """Run a statement and return its rows as named tuples."""
        values = {**statement.constants, **parameters}
        async with self._take_turn():
            was_pooled = bool(self._idle)
            try:
                return await self._execute(statement, values)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not was_pooled:
                    raise convert_error(error) from None
            # Postgres was restarted: all pooled connections are broken.
            await self.close()
            try:
                return await self._execute(statement, values)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                raise convert_error(error) from None

    async def close(self) -> None:
        """Close the idle connections, in the event loop that opened them."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    @asynccontextmanager
    async def _take_turn(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise ServiceUnavailable(
                "too many requests are waiting for Postgres", hint="try again in a moment"
            ) from None
        try:
            yield
        finally:
            self._turns.release()

    async def _execute(self, statement: Statement, values: Mapping[str, object]) -> list[Any]:
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            # A server that hangs keeps its connections open: only this timeout ends the wait.
            async with asyncio.timeout(_STATEMENT_SECONDS):
                cursor = await connection.execute(statement.sql, values, prepare=True)
                rows = await cursor.fetchall()
        except TimeoutError:
            await connection.close()
            raise ServiceUnavailable(
                "Postgres does not answer in time", hint="check whether it is overloaded or blocked"
            ) from None
        except BaseException:
            # The next caller must not receive a connection with a statement in progress.
            await connection.close()
            raise
        self._idle.append(connection)
        return rows

    async def _connect(self) -> Connection:
        return await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, row_factory=namedtuple_row, **build_connect_arguments()
        )
