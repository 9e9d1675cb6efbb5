"""The SQLite store: atomic replacement in batches, and files of other programs."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs import sqlite_store
from rag_assets.systems.agent_docs.errors import DamagedIndex
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore
from rag_assets.systems.agent_docs.stores import DocChunk
from tests.unit.systems.agent_docs.indexes import chunks_of, state_of, vectors_of

COLUMNS = "(id, content, source_path, byte_offset, agent_id, embedding)"
FORMER, NEW = chunks_of("a", 40), chunks_of("a", 55)[10:]


class Killed(Exception):
    """Simulates the end of a process between two transactions."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sqlite_store, "MAX_ROWS", 8)
    return tmp_path / "rag.db"


def replaced(store: SqliteStore, *, new: bool) -> None:
    chunks, seed, name = (NEW, 2, "new") if new else (FORMER, 1, "former")
    store.replace("a", chunks, vectors_of(len(chunks), seed), state_of(chunks, name))


def seen(path: Path) -> str | None:
    """Return which index readers see; fail unless it is complete."""
    store = SqliteStore(path)
    if (state := store.state("a")) is None:
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
def test_a_kill_between_any_two_transactions_leaves_a_complete_index(
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


def test_an_index_of_many_rows_is_emptied(path: Path) -> None:
    store = SqliteStore(path)
    replaced(store, new=False)
    other = chunks_of("b", 3)
    store.replace("b", other, vectors_of(3), state_of(other))
    store.replace("a", [], np.empty((0, 8), dtype=np.float32), state_of([]))
    assert store.chunks("a") == []
    assert store.chunks("b") == other


CREATED = f"CREATE TABLE chunks {COLUMNS}"
FOREIGN = {
    "other tables": ["CREATE TABLE moz_places (url TEXT)", "INSERT INTO moz_places VALUES ('x')"],
    "a table of that name": [CREATED],
    "another mark": [CREATED, "PRAGMA application_id = 7"],
    "another version": [CREATED, f"PRAGMA application_id = {sqlite_store.APPLICATION_ID}"],
    "our mark and a trigger": [
        *sqlite_store._SCHEMA,
        f"PRAGMA application_id = {sqlite_store.APPLICATION_ID}",
        f"PRAGMA user_version = {sqlite_store.SCHEMA_VERSION}",
        "CREATE TRIGGER t AFTER INSERT ON agents BEGIN DELETE FROM chunks; END",
    ],
}


def uses_of(path: Path) -> list[Callable[[], object]]:
    store = SqliteStore(path)

    def build() -> None:
        with store.building("a"):
            replaced(store, new=True)

    return [
        lambda: store.state("a"),
        lambda: store.has_index("a"),
        lambda: store.search(np.ones(8), "a", 3),
        lambda: store.touch("a", state_of(FORMER)),
        lambda: replaced(store, new=True),
        build,
    ]


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=list(FOREIGN))
def test_a_foreign_database_is_refused_untouched(statements: list[str], path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    before = path.read_bytes()
    for use in uses_of(path):
        with pytest.raises(ConfigurationError, match="nothing was changed"):
            use()
    assert path.read_bytes() == before
    assert all(one.name.removeprefix(".").startswith("rag.db") for one in path.parent.iterdir())


def test_a_database_that_another_program_has_open_is_refused_untouched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        with other:
            other.execute("CREATE TABLE notes (text)")
        with other:
            other.execute("INSERT INTO notes VALUES ('in the log')")
        before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
        assert before["rag.db-wal"]
        for use in uses_of(path):
            with pytest.raises(ConfigurationError, match="nothing was changed"):
                use()
        assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before


def test_a_file_that_is_no_database_is_refused_untouched(path: Path) -> None:
    path.write_text("My diary.\n" * 100)
    for use in uses_of(path):
        with pytest.raises(ConfigurationError, match="is not a database of rag-assets"):
            use()
    assert [one.name for one in path.parent.iterdir()] == ["rag.db"]


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", ""])
def test_files_beside_a_database_lead_nowhere_else(end: str, path: Path) -> None:
    replaced(SqliteStore(path), new=False)
    store = SqliteStore(path)
    treasure = path.with_name("treasure")
    treasure.write_bytes(b"gold" if end else path.read_bytes())
    before = treasure.read_bytes()
    if not end:
        path.unlink()
    path.with_name(path.name + end).symlink_to(treasure)
    with pytest.raises(ConfigurationError, match="nothing was changed"):
        replaced(store, new=True)
    assert treasure.read_bytes() == before


def test_a_planted_journal_has_no_file_deleted(path: Path) -> None:
    """A journal names another file, which SQLite would delete when it replays the journal."""
    replaced(SqliteStore(path), new=False)
    treasure = path.with_name("treasure")
    treasure.write_text("gold")
    name = str(treasure).encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    pages = path.stat().st_size // 4096
    head = magic + struct.pack(">IIIII", 0, 0, pages, 512, 4096)
    tail = struct.pack(">I", (1 << 30) // 4096 + 1) + name
    tail += struct.pack(">II", len(name), sum(name)) + magic
    path.with_name("rag.db-journal").write_bytes(head.ljust(512, b"\0") + tail)
    with pytest.raises(ConfigurationError, match="journal of another program"):
        replaced(SqliteStore(path), new=True)
    assert treasure.read_text() == "gold"


def test_a_database_of_an_earlier_version_is_built_again(path: Path) -> None:
    replaced(SqliteStore(path), new=False)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA application_id = 0")
        connection.execute("PRAGMA user_version = 0")
    copied = path.with_name("copied.db")
    copied.write_bytes(path.read_bytes())
    store = SqliteStore(copied)
    assert store.state("a") is None
    assert not store.has_index("a")
    replaced(store, new=True)
    assert seen(copied) == "new"


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM chunks WHERE id = (SELECT min(id) FROM chunks)",
        f"INSERT INTO chunks {COLUMNS} VALUES ('a:n:0', 'n', 'n', 0, 'a', '[1]')",  # noqa: S608
        f"REPLACE INTO chunks {COLUMNS}"  # noqa: ISC004, S608
        " SELECT id, 'other', source_path, byte_offset, agent_id, '[1]' FROM chunks LIMIT 1",
    ],
)
def test_a_change_by_another_program_makes_the_state_unknown(change: str, path: Path) -> None:
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
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'chunks'"
        (page,) = connection.execute(query).fetchone()
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
    assert path.with_name("rag.db.damaged-1").exists()


@pytest.mark.slow
def test_the_log_of_a_large_change_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "rag.db"
    log = path.with_name("rag.db-wal")
    largest = 0
    checkpoint = sqlite_store._write_log_to_database

    def watched(connection: sqlite3.Connection) -> None:
        nonlocal largest
        largest = max(largest, log.stat().st_size)
        checkpoint(connection)

    texts = [f"word {n} " * 200 for n in range(8_000)]
    chunks = [DocChunk.from_location("a", f"{n}.md", 0, text) for n, text in enumerate(texts)]
    store = SqliteStore(path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite_store, "_write_log_to_database", watched)
        for seed in (1, 2):
            rows = vectors_of(len(chunks), seed, 384)
            store.replace("a", chunks, rows, state_of(chunks, str(seed)))
    assert 1024 * 1024 < largest < 32 * 1024 * 1024
    assert store.state("a") == state_of(chunks, "2")
