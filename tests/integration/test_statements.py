"""Statements from an event loop, over connections that may hang, end, or be cut."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import Text, bindparam, func, select

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.catalog import statements
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.statements import Statement, StatementRunner

SLEEP = Statement(select(func.pg_sleep(bindparam("seconds")), func.pg_backend_pid().label("pid")))
ECHO = Statement(
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


def test_after_all_kept_connections_were_cut_statements_find_their_rows(
    database: Database,
) -> None:
    async def run() -> list[str]:
        runner = StatementRunner(database, 3)
        sleeps = await asyncio.gather(*(runner.rows(SLEEP, {"seconds": 0.5}) for _ in range(3)))
        pids = {rows[0].pid for rows in sleeps}
        assert len(pids) == 3
        with database.begin() as connection:
            for pid in pids:
                connection.execute(select(func.pg_terminate_backend(pid)))
        found = await asyncio.gather(*(runner.rows(ECHO, {"said": str(n)}) for n in range(3)))
        await runner.close()
        assert pids.isdisjoint(rows[0].pid for rows in found)
        return [rows[0].said for rows in found]

    assert asyncio.run(run()) == ["0", "1", "2"]


def test_a_refused_connection_fails_at_once() -> None:
    async def run(database: Database) -> float:
        runner = StatementRunner(database, 1)
        begin = time.perf_counter()
        # There are more statements than connections: those waiting for their turn fail as early.
        results = await asyncio.gather(
            *(runner.rows(ECHO, {"said": "a"}) for _ in range(3)), return_exceptions=True
        )
        seconds = time.perf_counter() - begin
        await runner.close()
        assert [type(result) for result in results] == [ServiceUnavailable] * 3
        assert all("refused" in str(result) for result in results)
        return seconds

    # A bound port without a listener refuses connections, and no other process can take it.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        database = Database(f"postgresql://nobody@127.0.0.1:{bound.getsockname()[1]}/none")
        assert asyncio.run(run(database)) < 5
    database.close()
