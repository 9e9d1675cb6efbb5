"""A database of indexes: many rows replaced in one step, in batches, beside other programs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rag_assets.common.errors import DamagedIndex
from rag_assets.indexing import sqlite_rows
from rag_assets.indexing.passages import DocChunk
from rag_assets.indexing.sqlite import SqliteStore
from tests.unit.indexing.indexes import chunks_of, state_of, vectors_of

COLUMNS = "(id, content, source_path, byte_offset, agent_id, embedding)"
FORMER, NEW = chunks_of("a", 40), chunks_of("a", 55)[10:]


class Killed(Exception):
    """Stands for the end of a process between two transactions."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sqlite_rows, "MOST_ROWS", 8)
    return tmp_path / "rag.db"


def replaced(store: SqliteStore, *, new: bool) -> None:
    chunks, seed, name = (NEW, 2, "new") if new else (FORMER, 1, "former")
    store.replace("a", chunks, vectors_of(len(chunks), seed), state_of(chunks, name))


def seen(path: Path) -> str | None:
    """Which index readers have; it must be a whole one."""
    store = SqliteStore(path)
    state = store.state("a")
    if state is None:
        assert not store.has_index("a")
        assert store.chunks("a") == []
        return None
    chunks, seed = (NEW, 2) if state.fingerprint == "new" else (FORMER, 1)
    wanted = dict(zip((c.id for c in chunks), vectors_of(len(chunks), seed), strict=True))
    assert store.chunks("a") == sorted(chunks, key=lambda one: one.id)
    found = store.vectors("a")
    assert set(found) == set(wanted)
    assert all(np.array_equal(found[id_], row) for id_, row in wanted.items())
    assert store.search(wanted[chunks[3].id], "a", 1)[0].chunk == chunks[3]
    return state.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_a_kill_between_any_two_transactions(
    first: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = 0
    states = []
    real = sqlite3.Connection.__exit__

    class Connection(sqlite3.Connection):
        left = 0

        def __exit__(self, *error: object) -> object:
            done = real(self, *error)  # type: ignore[arg-type]
            Connection.left -= 1
            if Connection.left == 0:
                raise Killed
            return done

    connect = sqlite3.connect
    for moment in range(1, 80):
        for file in path.parent.glob("rag.db*"):
            file.unlink()
        if not first:
            replaced(SqliteStore(path), new=False)
        Connection.left = moment
        monkeypatch.setattr(
            sqlite3, "connect", lambda *a, **k: connect(*a, factory=Connection, **k)
        )
        try:
            replaced(SqliteStore(path), new=True)
        except Killed:
            commits += 1
        monkeypatch.setattr(sqlite3, "connect", connect)
        states.append(seen(path))
        replaced(SqliteStore(path), new=True)
        assert seen(path) == "new"
        with closing(connect(path)) as connection:
            rows = [row[0] for row in connection.execute("SELECT id FROM chunks ORDER BY id")]
            assert rows == sorted(one.id for one in NEW)
            for table in ("arriving", "leaving", "moving"):
                assert not connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
        if Connection.left > 0:
            break
    assert commits > 10
    before = None if first else "former"
    turn = states.index("new")
    assert states[:turn] == [before] * turn
    assert set(states[turn:]) == {"new"}


def test_an_index_of_many_rows_is_deleted(path: Path) -> None:
    store = SqliteStore(path)
    replaced(store, new=False)
    other = chunks_of("b", 3)
    store.replace("b", other, vectors_of(3), state_of(other))
    store.delete_agent("a")
    assert not store.has_index("a")
    assert store.chunks("b") == other


def test_a_database_of_another_program_is_taken_over(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE chunks (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, content TEXT,"
            " source_path TEXT, byte_offset INTEGER, embedding TEXT)"
        )
        connection.execute("INSERT INTO chunks VALUES ('a:x:0', 'a', 'x', 'x', 0, '[1.0]')")
        connection.execute("INSERT INTO chunks VALUES ('b:x:0', 'b', 'x', 'x', 0, '[1.0]')")
    store = SqliteStore(path)
    assert store.state("a") is None
    replaced(store, new=True)
    assert seen(path) == "new"
    with closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute("SELECT embedding FROM chunks WHERE agent_id = 'a'").fetchone()
        assert len(json.loads(row[0])) == 8
        assert connection.execute("SELECT id FROM chunks WHERE agent_id = 'b'").fetchall()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)",
        f"INSERT INTO chunks {COLUMNS} VALUES ('a:n:0', 'n', 'n', 0, 'a', '[1]')",  # noqa: S608
        f"REPLACE INTO chunks {COLUMNS}"  # noqa: ISC004, S608
        " SELECT id, 'other', source_path, byte_offset, agent_id, '[1]' FROM chunks LIMIT 1",
    ],
)
def test_what_another_program_changes_makes_the_state_unknown(change: str, path: Path) -> None:
    store = SqliteStore(path)
    replaced(store, new=False)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    assert store.state("a") is None
    replaced(store, new=True)
    assert seen(path) == "new"


def test_damage_within_a_database_is_noticed_and_set_aside(path: Path) -> None:
    store = SqliteStore(path)
    replaced(store, new=False)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'chunks'"
        ).fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    store = SqliteStore(path)
    with pytest.raises(DamagedIndex):
        store.chunks("a")
    assert store.state("a") is None
    with store.building("a"):
        replaced(store, new=True)
    assert seen(path) == "new"
    assert len(list(path.parent.glob("rag.db.damaged-1"))) == 1


@pytest.mark.slow
def test_the_log_of_a_large_change_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "rag.db"
    log = path.with_name("rag.db-wal")
    largest = 0
    checkpoint = sqlite_rows._checkpoint

    def watched(connection: sqlite3.Connection) -> None:
        nonlocal largest
        largest = max(largest, log.stat().st_size)
        checkpoint(connection)

    chunks = [chunk_of(n) for n in range(8_000)]
    store = SqliteStore(path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite_rows, "_checkpoint", watched)
        for seed in (1, 2):
            rows = vectors_of(len(chunks), seed, 384)
            store.replace("a", chunks, rows, state_of(chunks, str(seed)))
    assert 1024 * 1024 < largest < 32 * 1024 * 1024
    state = store.state("a")
    assert state is not None
    assert state.fingerprint == "2"


def chunk_of(number: int) -> DocChunk:
    return DocChunk.at("a", f"{number}.md", 0, f"word {number} " * 200)
