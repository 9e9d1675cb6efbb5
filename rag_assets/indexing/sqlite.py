"""Indexes in one SQLite database, which other programs read.

| table | columns |
|---|---|
| chunks | id, content, source_path, byte_offset, agent_id, embedding (JSON); vector (float32) |
| agents | agent_id, state (JSON) |

An index is replaced in one transaction that writes only what differs. Readers neither wait for it
nor see a part of it: the database keeps a write-ahead log.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_assets.common.batches import batched
from rag_assets.indexing.locks import locked, set_aside
from rag_assets.indexing.memory import by_agent
from rag_assets.indexing.nearest import nearest, unit_rows
from rag_assets.indexing.passages import DocChunk, IndexState, SearchResult, Vectors

_SCHEMA = """
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT NOT NULL PRIMARY KEY,
    content TEXT NOT NULL,
    source_path TEXT NOT NULL,
    byte_offset INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    embedding TEXT NOT NULL,
    vector BLOB
);
CREATE INDEX IF NOT EXISTS chunks_by_agent ON chunks (agent_id);
CREATE TABLE IF NOT EXISTS agents (agent_id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL);
"""
_COLUMNS = "id, content, source_path, byte_offset, agent_id"
_LOG_BYTES = 16 * 1024 * 1024
_BATCH = 1_000
"""Passages of a first index in one transaction: some 10 MB with 384 dimensions."""

_BUSY_SECONDS = 30.0


class SqliteStore:
    """Indexes in one SQLite database; see PassageStore.

    Args:
        path: of the database; made at the first write, for its owner alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[str, tuple[str, list[str], Vectors]] = {}
        self._states: dict[str, tuple[str, IndexState]] = {}

    def upsert(self, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike) -> None:
        """See PassageStore.upsert."""
        for agent_id, (own, rows) in by_agent(chunks, embeddings).items():
            with self.building(agent_id), self._writing() as connection, connection:
                _insert(connection, own, unit_rows(rows))
                # What it was made of is no longer known.
                connection.execute("DELETE FROM agents WHERE agent_id = ?", (agent_id,))

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """See PassageStore.search."""
        with self._reading() as connection:
            if connection is None:
                return []
            connection.execute("BEGIN")
            ids, rows = self._rows(connection, agent_id)
            found = nearest(rows, query_embedding, ids, top_k)
            chunks = _chunks_of(connection, [ids[one.row] for one in found])
        return [SearchResult(chunks[ids[one.row]], one.score) for one in found]

    def delete_agent(self, agent_id: str) -> None:
        """See PassageStore.delete_agent."""
        if not self._path.exists():
            return
        with self.building(agent_id), self._writing() as connection, connection:
            for table in ("chunks", "agents"):
                connection.execute(f"DELETE FROM {table} WHERE agent_id = ?", (agent_id,))  # noqa: S608 - ours

    def has_index(self, agent_id: str) -> bool:
        """See PassageStore.has_index."""
        query = (
            "SELECT EXISTS (SELECT 1 FROM agents WHERE agent_id = ?)"
            " OR EXISTS (SELECT 1 FROM chunks WHERE agent_id = ?)"
        )
        with self._reading() as connection:
            if connection is None:
                return False
            return bool(connection.execute(query, (agent_id, agent_id)).fetchone()[0])

    def chunks(self, agent_id: str) -> list[DocChunk]:
        """See PassageStore.chunks."""
        query = f"SELECT {_COLUMNS} FROM chunks WHERE agent_id = ? ORDER BY id"  # noqa: S608 - ours
        with self._reading() as connection:
            if connection is None:
                return []
            return [DocChunk(*row) for row in connection.execute(query, (agent_id,))]

    def state(self, agent_id: str) -> IndexState | None:
        """See PassageStore.state."""
        with self._reading() as connection:
            record = None if connection is None else _state(connection, agent_id)
        if record is None:
            return None
        known = self._states.get(agent_id)
        if known is None or known[0] != record:
            known = self._states[agent_id] = (record, IndexState.of(json.loads(record)))
        return known[1]

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        """See PassageStore.vectors."""
        with self._reading() as connection:
            if connection is None or _state(connection, agent_id) is None:
                return {}
            ids, rows = _loaded(connection, agent_id)
        return dict(zip(ids, rows, strict=True))

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """See PassageStore.replace."""
        self._set_damaged_aside()
        rows = unit_rows(embeddings) if chunks else np.empty((0, 0), dtype=np.float32)
        with self._writing() as connection:
            if _state(connection, agent_id) is None:
                self._add_first(connection, agent_id, chunks, rows)
            with connection:
                _delete_others(connection, agent_id, chunks)
                changed = _changed(connection, agent_id, chunks, rows)
                _insert(connection, [chunks[at] for at in changed], rows[changed])
                _write_state(connection, agent_id, state)
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def touch(self, agent_id: str, state: IndexState) -> None:
        """See PassageStore.touch."""
        with self._writing() as connection, connection:
            _write_state(connection, agent_id, state)

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        """See PassageStore.building; one builder at a time has the whole database."""
        del agent_id
        with locked(self._path.with_name(f".{self._path.name}.lock")):
            yield

    def _add_first(
        self,
        connection: sqlite3.Connection,
        agent_id: str,
        chunks: Sequence[DocChunk],
        rows: Vectors,
    ) -> None:
        """Write a first index in batches, which nobody reads before it has a state."""
        with connection:
            connection.execute("DELETE FROM chunks WHERE agent_id = ?", (agent_id,))
        for batch in batched(range(len(chunks)), _BATCH):
            with connection:
                _insert(connection, [chunks[at] for at in batch], rows[list(batch)])
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _rows(self, connection: sqlite3.Connection, agent_id: str) -> tuple[list[str], Vectors]:
        """The ids and vectors of an index, read once for each state of it."""
        state = _state(connection, agent_id)
        if state is None:
            return _loaded(connection, agent_id)
        known = self._read.get(agent_id)
        if known is None or known[0] != state:
            known = (state, *_loaded(connection, agent_id))
            self._read[agent_id] = known
        return known[1], known[2]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection to read by; None where there is no database, or a damaged one."""
        if not self._path.exists():
            yield None
            return
        with closing(self._connected()) as connection:
            try:
                connection.execute("SELECT 1 FROM chunks LIMIT 1")
                connection.execute("SELECT 1 FROM agents LIMIT 1")
            except sqlite3.DatabaseError as error:
                if not _is_unusable(error):
                    raise
                yield None
                return
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        with closing(self._connected()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
            connection.executescript(_SCHEMA)
            yield connection

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)

    def _set_damaged_aside(self) -> None:
        """Keep a damaged database under another name; one that is only busy is healthy."""
        if not self._path.exists() or not self._path.stat().st_size:
            return
        try:
            with closing(self._connected()) as connection:
                healthy = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            healthy = False
        if not healthy:
            self._read.clear()
            set_aside(self._path)
            for end in ("-wal", "-shm"):
                self._path.with_name(self._path.name + end).unlink(missing_ok=True)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _is_unusable(error: sqlite3.DatabaseError) -> bool:
    """Whether a database is damaged or has no tables of ours."""
    return _is_damage(error) or error.sqlite_errorcode == sqlite3.SQLITE_ERROR


def _state(connection: sqlite3.Connection, agent_id: str) -> str | None:
    row = connection.execute("SELECT state FROM agents WHERE agent_id = ?", (agent_id,)).fetchone()
    return None if row is None else str(row[0])


def _write_state(connection: sqlite3.Connection, agent_id: str, state: IndexState) -> None:
    record = json.dumps(state.record())
    connection.execute("INSERT OR REPLACE INTO agents VALUES (?, ?)", (agent_id, record))


def _loaded(connection: sqlite3.Connection, agent_id: str) -> tuple[list[str], Vectors]:
    query = "SELECT id, vector, embedding FROM chunks WHERE agent_id = ? ORDER BY id"
    ids: list[str] = []
    vectors: list[Vectors] = []
    for id_, vector, embedding in connection.execute(query, (agent_id,)):
        ids.append(id_)
        # Rows of other programs have the array of JSON alone.
        row = np.frombuffer(vector, "<f4") if vector else np.array(json.loads(embedding), "<f4")
        vectors.append(row)
    if not ids:
        return ids, np.empty((0, 0), dtype=np.float32)
    return ids, unit_rows(np.stack(vectors))


def _chunks_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, DocChunk]:
    found: dict[str, DocChunk] = {}
    for batch in batched(ids, _BATCH):
        marks = ", ".join("?" * len(batch))
        query = f"SELECT {_COLUMNS} FROM chunks WHERE id IN ({marks})"  # noqa: S608 - marks alone
        found |= {row[0]: DocChunk(*row) for row in connection.execute(query, list(batch))}
    return found


def _insert(connection: sqlite3.Connection, chunks: Sequence[DocChunk], rows: Vectors) -> None:
    import orjson

    connection.executemany(
        "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (
                *(chunk.id, chunk.content, chunk.source_path, chunk.byte_offset, chunk.agent_id),
                orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY).decode(),
                row.astype("<f4").tobytes(),
            )
            for chunk, row in zip(chunks, rows, strict=True)
        ),
    )


def _delete_others(
    connection: sqlite3.Connection, agent_id: str, chunks: Sequence[DocChunk]
) -> None:
    kept = {chunk.id for chunk in chunks}
    query = "SELECT id FROM chunks WHERE agent_id = ?"
    gone = [row for row in connection.execute(query, (agent_id,)).fetchall() if row[0] not in kept]
    connection.executemany("DELETE FROM chunks WHERE id = ?", gone)


def _changed(
    connection: sqlite3.Connection, agent_id: str, chunks: Sequence[DocChunk], rows: Vectors
) -> list[int]:
    """Positions of the passages whose rows differ from those to be written."""
    query = "SELECT id, content, vector FROM chunks WHERE agent_id = ?"
    known = {
        id_: (content, vector) for id_, content, vector in connection.execute(query, (agent_id,))
    }
    return [
        at
        for at, chunk in enumerate(chunks)
        if known.get(chunk.id) != (chunk.content, rows[at].astype("<f4").tobytes())
    ]
