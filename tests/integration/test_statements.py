"""Statements from an event loop: over connections that may hang, end, or be cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import Text, bindparam, func, select

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.catalog import statements
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.statements import Statement, StatementRunner

SLEEP = Statement.of(select(func.pg_sleep(bindparam("seconds"))))
ECHO = Statement.of(
    select(bindparam("said", type_=Text).label("said"), func.pg_backend_pid().label("pid"))
)


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    database = Database(postgres_url)
    yield database
    database.close()


def test_a_server_that_hangs_is_waited_for_so_long_and_the_next_statement_works(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_STATEMENT_SECONDS", 0.2)

    async def run() -> str:
        runner = StatementRunner(database, 1)
        with pytest.raises(ServiceUnavailable, match="in time"):
            await runner.rows(SLEEP, {"seconds": 30})
        [row] = await runner.rows(ECHO, {"said": "here"})
        await runner.close()
        return str(row.said)

    assert asyncio.run(run()) == "here"


def test_a_connection_that_was_cut_is_replaced(database: Database) -> None:
    async def run() -> tuple[int, int]:
        runner = StatementRunner(database, 1)
        [before] = await runner.rows(ECHO, {"said": "a"})
        with database.begin() as connection:
            connection.execute(select(func.pg_terminate_backend(before.pid)))
        [after] = await runner.rows(ECHO, {"said": "b"})
        await runner.close()
        return before.pid, after.pid

    before, after = asyncio.run(run())
    assert before != after
