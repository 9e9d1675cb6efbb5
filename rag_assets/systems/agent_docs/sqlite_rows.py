"""The rows of a database of indexes, and how many of them are replaced in one step.

| table | columns |
|---|---|
| chunks | id, content, source_path, byte_offset, agent_id, embedding (JSON); vector (float32) |
| agents | agent_id, state (JSON) |
| arriving | as chunks: rows on their way there |
| leaving | id, agent_id: rows of chunks on their way out |
| moving | agent_id: of agents whose arriving and leaving rows count |

A few changes are one transaction on chunks. Many would make one transaction, and the log of the
database, as large as the index. So they are written beside it in batches, count from one short
transaction on, which also has the new state, and are moved in batches. No step changes what
readers of this module see, wherever a process is killed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Final

import numpy as np

from rag_assets.common.batches import batched
from rag_assets.systems.agent_docs.stores import DocChunk, IndexState, Vectors, unit_rows

MOST_ROWS: Final = 1_000
"""Rows of one transaction: some 10 MB with 384 dimensions and passages of 2,000 characters."""

MOST_CHARACTERS: Final = 8_000_000
"""Of the passages and vectors of one transaction."""

APPLICATION_ID: Final = 0x52414761
"""Of our databases, in their header: `RAGa`."""

VERSION: Final = 1
"""Of the tables, in the header; a database of another version is refused."""

_CHARACTERS_A_NUMBER: Final = 16
"""Of a vector, which is written as text and as bytes."""

_NAMES = "id, content, source_path, byte_offset, agent_id"
_ALL = f"{_NAMES}, embedding, vector"
_COLUMNS = """(
    id TEXT NOT NULL PRIMARY KEY,
    content TEXT NOT NULL,
    source_path TEXT NOT NULL,
    byte_offset INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    embedding TEXT NOT NULL,
    vector BLOB
)"""
_TABLE_NAMES = ("chunks", "arriving", "leaving", "moving", "agents")
_STATEMENTS = (
    f"CREATE TABLE IF NOT EXISTS chunks {_COLUMNS}",
    f"CREATE TABLE IF NOT EXISTS arriving {_COLUMNS}",
    "CREATE TABLE IF NOT EXISTS leaving (id TEXT NOT NULL PRIMARY KEY, agent_id TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS moving (agent_id TEXT NOT NULL PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS agents (agent_id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS chunks_by_agent ON chunks (agent_id)",
    "CREATE INDEX IF NOT EXISTS chunks_of_others ON chunks (agent_id) WHERE vector IS NULL",
    "CREATE INDEX IF NOT EXISTS arriving_by_agent ON arriving (agent_id)",
    "CREATE INDEX IF NOT EXISTS leaving_by_agent ON leaving (agent_id)",
)
_STILL = "SELECT {columns} FROM chunks WHERE agent_id = :agent"
_MOVING = """
SELECT {columns} FROM arriving WHERE agent_id = :agent
UNION ALL SELECT {columns} FROM chunks WHERE agent_id = :agent
    AND id NOT IN (SELECT id FROM arriving WHERE agent_id = :agent)
    AND id NOT IN (SELECT id FROM leaving WHERE agent_id = :agent)
"""
_NEXT = "SELECT id FROM {table} WHERE agent_id = :agent ORDER BY id LIMIT :batch"
_ARRIVE = (
    f"INSERT OR REPLACE INTO chunks ({_ALL}) SELECT {_ALL} FROM arriving"  # noqa: S608 - ours
    " WHERE agent_id = :agent ORDER BY id LIMIT :batch"
)
_LEAVE = f"DELETE FROM chunks WHERE id IN ({_NEXT.format(table='leaving')})"  # noqa: S608 - ours
_STEPS = (
    (_ARRIVE, f"DELETE FROM arriving WHERE id IN ({_NEXT.format(table='arriving')})"),  # noqa: S608 - ours
    (_LEAVE, f"DELETE FROM leaving WHERE id IN ({_NEXT.format(table='leaving')})"),  # noqa: S608 - ours
)


def make_tables(connection: sqlite3.Connection) -> None:
    """Mark a database as ours and make its tables, in one transaction.

    Of a database of an earlier version, which had no mark, the rows are forgotten.
    """
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if has_mark(connection):
            return
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in _STATEMENTS:
            connection.execute(statement)
        for table in _TABLE_NAMES:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
    # The mark of a database that had none is looked for in the file, not in the log.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def has_mark(connection: sqlite3.Connection) -> bool:
    """Return whether a database has our application id and version."""
    names = ("application_id", "user_version")
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    return found == [APPLICATION_ID, VERSION]


def has_our_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a database has our tables; False: it is empty.

    Raises:
        NotOurs: it has other ones, or others besides: a trigger, a view.
    """
    found = _schema_of(connection)
    if found and found != _our_schema():
        raise NotOurs
    return bool(found)


class NotOurs(Exception):
    """A database of another program."""


@lru_cache(maxsize=1)
def _our_schema() -> frozenset[tuple[str | None, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _STATEMENTS:
            connection.execute(statement)
        return _schema_of(connection)


def _schema_of(connection: sqlite3.Connection) -> frozenset[tuple[str | None, ...]]:
    # ANALYZE of another program leaves tables whose names SQLite keeps for itself.
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master "
    query += " WHERE NOT (type = 'table' AND name GLOB 'sqlite_stat*')"
    return frozenset(connection.execute(query))


def state_record(connection: sqlite3.Connection, agent_id: str) -> str | None:
    """The state of an index as it is written; None without one."""
    row = connection.execute("SELECT state FROM agents WHERE agent_id = ?", (agent_id,)).fetchone()
    return None if row is None else str(row[0])


def is_of(connection: sqlite3.Connection, agent_id: str, state: IndexState) -> bool:
    """Whether an index still has the rows that its state speaks of.

    Rows that other programs write have no vector of ours.
    """
    if _is_moving(connection, agent_id):
        return True
    count, others = (
        connection.execute(
            f"SELECT count(*) FROM chunks WHERE agent_id = ? {condition}",  # noqa: S608 - ours
            (agent_id,),
        ).fetchone()[0]
        for condition in ("", "AND vector IS NULL")
    )
    return bool(count == len(state.text_hashes) and not others)


def has_rows(connection: sqlite3.Connection, agent_id: str) -> bool:
    """Whether an agent has any passage."""
    query = f"SELECT EXISTS ({_rows_of(connection, agent_id, 'id')})"
    return bool(connection.execute(query, {"agent": agent_id}).fetchone()[0])


def chunks_of(connection: sqlite3.Connection, agent_id: str) -> list[DocChunk]:
    """All passages of an agent, ordered by id."""
    query = f"{_rows_of(connection, agent_id, _NAMES)} ORDER BY id"
    return [DocChunk(*row) for row in connection.execute(query, {"agent": agent_id})]


def chunks_by_id(
    connection: sqlite3.Connection, agent_id: str, ids: Sequence[str]
) -> dict[str, DocChunk]:
    """The passages of an agent that have these ids."""
    found: dict[str, DocChunk] = {}
    rows = _rows_of(connection, agent_id, _NAMES)
    for batch in batched(ids, MOST_ROWS):
        names = {f"id{at}": id_ for at, id_ in enumerate(batch)}
        marks = ", ".join(f":{name}" for name in names)
        query = f"SELECT * FROM ({rows}) WHERE id IN ({marks})"  # noqa: S608 - marks alone
        for row in connection.execute(query, {"agent": agent_id, **names}):
            found[row[0]] = DocChunk(*row)
    return found


def vectors_of(connection: sqlite3.Connection, agent_id: str) -> tuple[list[str], Vectors]:
    """The ids and vectors of an agent, ordered by id."""
    query = f"{_rows_of(connection, agent_id, 'id, vector, embedding')} ORDER BY id"
    ids: list[str] = []
    vectors: list[Vectors] = []
    for id_, vector, embedding in connection.execute(query, {"agent": agent_id}):
        ids.append(id_)
        # Rows of other programs have the array of JSON alone.
        row = np.frombuffer(vector, "<f4") if vector else np.array(json.loads(embedding), "<f4")
        vectors.append(row)
    if not ids:
        return ids, np.empty((0, 0), dtype=np.float32)
    return ids, unit_rows(np.stack(vectors))


def replace_all(
    connection: sqlite3.Connection,
    agent_id: str,
    chunks: Sequence[DocChunk],
    rows: Vectors,
    state: IndexState | None,
) -> None:
    """Replace the passages and the state of an agent in one step; without a state it has none."""
    finish(connection, agent_id)
    gone, changed = _differing(connection, agent_id, chunks, rows)
    batches = list(_batches(chunks, rows, changed))
    if len(batches) <= 1 and len(gone) + len(changed) <= MOST_ROWS:
        with connection:
            connection.executemany("DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in gone])
            _insert(connection, "chunks", chunks, rows, changed)
            _write_state(connection, agent_id, state)
        return
    for batch in batches:
        with connection:
            _insert(connection, "arriving", chunks, rows, batch)
        _checkpoint(connection)
    for ids in batched(gone, MOST_ROWS):
        with connection:
            connection.executemany(
                "INSERT INTO leaving VALUES (?, ?)", [(id_, agent_id) for id_ in ids]
            )
    with connection:
        connection.execute("INSERT INTO moving VALUES (?)", (agent_id,))
        _write_state(connection, agent_id, state)
    finish(connection, agent_id)


def add(
    connection: sqlite3.Connection, agent_id: str, chunks: Sequence[DocChunk], rows: Vectors
) -> None:
    """Add passages, or replace those of the same ids; what the index was made of is forgotten."""
    finish(connection, agent_id)
    touch(connection, agent_id, None)
    for batch in _batches(chunks, rows, range(len(chunks))):
        with connection:
            _insert(connection, "chunks", chunks, rows, batch)
        _checkpoint(connection)


def touch(connection: sqlite3.Connection, agent_id: str, state: IndexState | None) -> None:
    """Replace the state of an index, or forget it."""
    with connection:
        _write_state(connection, agent_id, state)


def finish(connection: sqlite3.Connection, agent_id: str) -> None:
    """Finish a move that counts; take back one that was interrupted before it did."""
    counts = _is_moving(connection, agent_id)
    given = {"agent": agent_id, "batch": _rows_at_once(connection, agent_id)}
    for move, forget in _STEPS:
        while True:
            with connection:
                if counts:
                    connection.execute(move, given)
                done = connection.execute(forget, given).rowcount
            if not done:
                break
            _checkpoint(connection)
    if counts:
        with connection:
            connection.execute("DELETE FROM moving WHERE agent_id = ?", (agent_id,))


def _batches(
    chunks: Sequence[DocChunk], rows: Vectors, positions: Iterable[int]
) -> Iterator[list[int]]:
    numbers = rows.shape[1] * _CHARACTERS_A_NUMBER
    return batched(
        positions,
        MOST_ROWS,
        weight=lambda at: len(chunks[at].content) + numbers,
        most=MOST_CHARACTERS,
    )


def _rows_at_once(connection: sqlite3.Connection, agent_id: str) -> int:
    query = "SELECT max(length(content) + length(embedding)) FROM arriving WHERE agent_id = ?"
    longest = connection.execute(query, (agent_id,)).fetchone()[0] or 1
    return max(1, min(MOST_ROWS, MOST_CHARACTERS // longest))


def _is_moving(connection: sqlite3.Connection, agent_id: str) -> bool:
    query = "SELECT EXISTS (SELECT 1 FROM moving WHERE agent_id = ?)"
    return bool(connection.execute(query, (agent_id,)).fetchone()[0])


def _rows_of(connection: sqlite3.Connection, agent_id: str, columns: str) -> str:
    """The query of an agent's rows; within a transaction, if more than one statement uses it."""
    return (_MOVING if _is_moving(connection, agent_id) else _STILL).format(columns=columns)


def _differing(
    connection: sqlite3.Connection, agent_id: str, chunks: Sequence[DocChunk], rows: Vectors
) -> tuple[list[str], list[int]]:
    """Ids that an index has no longer, and positions of passages whose rows are to be written."""
    places = {chunk.id: at for at, chunk in enumerate(chunks)}
    gone, same = [], set()
    query = f"SELECT {_NAMES}, vector FROM chunks WHERE agent_id = ?"  # noqa: S608 - ours
    for *row, vector in connection.execute(query, (agent_id,)):
        at = places.get(row[0])
        if at is None:
            gone.append(row[0])
        elif DocChunk(*row) == chunks[at] and vector == _packed(rows[at]):
            same.add(at)
    return gone, [at for at in range(len(chunks)) if at not in same]


def _insert(
    connection: sqlite3.Connection,
    table: str,
    chunks: Sequence[DocChunk],
    rows: Vectors,
    positions: Iterable[int],
) -> None:
    import orjson

    connection.executemany(
        f"INSERT OR REPLACE INTO {table} ({_ALL}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
        (
            (
                *(chunk.id, chunk.content, chunk.source_path, chunk.byte_offset, chunk.agent_id),
                orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY).decode(),
                _packed(row),
            )
            for chunk, row in ((chunks[at], rows[at]) for at in positions)
        ),
    )


def _packed(row: Vectors) -> bytes:
    return row.astype("<f4").tobytes()


def _write_state(connection: sqlite3.Connection, agent_id: str, state: IndexState | None) -> None:
    if state is None:
        connection.execute("DELETE FROM agents WHERE agent_id = ?", (agent_id,))
        return
    record = json.dumps(state.record())
    connection.execute("INSERT OR REPLACE INTO agents VALUES (?, ?)", (agent_id, record))


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Write the log into the database, as far as no reader needs it; waits for nobody."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
