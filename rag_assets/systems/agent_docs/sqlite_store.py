"""Stores indexes in a SQLite database that other programs can read.

| table | columns |
|---|---|
| chunks | id, content, source_path, byte_offset, agent_id, embedding (JSON), vector (float32) |
| agents | agent_id, state (JSON) |
| arriving | like chunks: rows to be moved into chunks |
| leaving | id, agent_id: rows to be deleted from chunks |
| moving | agent_id: agents whose arriving and leaving rows count as moved for our readers |

The database is in WAL mode, so this module's readers neither wait for a writer nor see a partial
change. Another program, which reads only the table chunks, may see a part of a large change.

A small change is one transaction on chunks. For a large change, a single transaction would make the
log as large as the index. So the rows of a large change are first written to arriving and leaving,
in batches. One short transaction then makes them visible to our readers and stores the new state.
Finally the rows are moved to chunks in batches. If the process is killed between any two steps, our
readers see either the old or the new index.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import orjson

from rag_assets.common.batches import batched
from rag_assets.systems.agent_docs.errors import DamagedIndex
from rag_assets.systems.agent_docs.stores import (
    DocChunk,
    IndexState,
    SearchResult,
    Vectors,
    build_agent_file_name,
    foreign_file_error,
    lock_file,
    normalize_rows,
    rank_rows,
    rename_damaged,
)

T = TypeVar("T")

MAX_ROWS: Final = 1_000
"""Maximum rows per transaction: about 10 MB at 384 dimensions and 2,000 characters per passage."""
MAX_CHARACTERS: Final = 8_000_000
"""Maximum characters of passages and vectors per transaction."""
APPLICATION_ID: Final = 0x52414761
"""Marks our databases in their header: `RAGa`."""
SCHEMA_VERSION: Final = 1
"""Stored in the header; a database with a different version is refused."""

_CHARACTERS_PER_NUMBER: Final = 16
"""Size of a vector's component, which is stored both as text and as bytes."""
_MAX_LOG_BYTES = 16 * 1024 * 1024
_BUSY_SECONDS = 30.0
_FILE_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_FOREIGN_DATABASE = "is a database of another program"
_CHECKED_FILES: Final[set[tuple[int, int]]] = set()
"""Device and inode of databases that were found to be ours."""
_CHECK_LOCK: Final = Lock()
_MISSING_FILE_ERRORS = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_ERROR})
"""Errors of a database that was deleted while it was opened."""

_CHUNK_COLUMNS = "id, content, source_path, byte_offset, agent_id"
_ALL_COLUMNS = f"{_CHUNK_COLUMNS}, embedding, vector"
_COLUMN_TYPES = """(
    id TEXT NOT NULL PRIMARY KEY,
    content TEXT NOT NULL,
    source_path TEXT NOT NULL,
    byte_offset INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    embedding TEXT NOT NULL,
    vector BLOB
)"""
_TABLES = ("chunks", "arriving", "leaving", "moving", "agents")
_SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS chunks {_COLUMN_TYPES}",
    f"CREATE TABLE IF NOT EXISTS arriving {_COLUMN_TYPES}",
    "CREATE TABLE IF NOT EXISTS leaving (id TEXT NOT NULL PRIMARY KEY, agent_id TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS moving (agent_id TEXT NOT NULL PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS agents (agent_id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS chunks_by_agent ON chunks (agent_id)",
    "CREATE INDEX IF NOT EXISTS chunks_of_others ON chunks (agent_id) WHERE vector IS NULL",
    "CREATE INDEX IF NOT EXISTS arriving_by_agent ON arriving (agent_id)",
    "CREATE INDEX IF NOT EXISTS leaving_by_agent ON leaving (agent_id)",
)
_SETTLED_ROWS = "SELECT {columns} FROM chunks WHERE agent_id = :agent"
_MOVING_ROWS = """
SELECT {columns} FROM arriving WHERE agent_id = :agent
UNION ALL SELECT {columns} FROM chunks WHERE agent_id = :agent
    AND id NOT IN (SELECT id FROM arriving WHERE agent_id = :agent)
    AND id NOT IN (SELECT id FROM leaving WHERE agent_id = :agent)
"""
_NEXT_IDS = "SELECT id FROM {table} WHERE agent_id = :agent ORDER BY id LIMIT :batch"
_COPY_ARRIVING = (
    f"INSERT OR REPLACE INTO chunks ({_ALL_COLUMNS}) SELECT {_ALL_COLUMNS} FROM arriving"  # noqa: S608 - ours
    " WHERE agent_id = :agent ORDER BY id LIMIT :batch"
)
_DELETE_LEAVING = f"DELETE FROM chunks WHERE id IN ({_NEXT_IDS.format(table='leaving')})"  # noqa: S608 - ours
_MOVES = (
    (_COPY_ARRIVING, f"DELETE FROM arriving WHERE id IN ({_NEXT_IDS.format(table='arriving')})"),  # noqa: S608 - ours
    (_DELETE_LEAVING, f"DELETE FROM leaving WHERE id IN ({_NEXT_IDS.format(table='leaving')})"),  # noqa: S608 - ours
)
"""Statements that apply a batch of rows to chunks, and that delete the batch afterwards."""


class SqliteStore:
    """Stores indexes in a SQLite database; see PassageStore.

    Args:
        path: the database; created by the first write, accessible only to its owner.
        busy_seconds: how long a statement waits for another program's lock.
    """

    def __init__(self, path: Path, *, busy_seconds: float = _BUSY_SECONDS) -> None:
        self._path = path.resolve()
        self._busy_seconds = busy_seconds
        self._is_damaged = False
        self._vector_cache: dict[str, tuple[int, list[str], Vectors]] = {}
        self._state_cache: dict[str, tuple[int, IndexState]] = {}

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:

        def search(connection: sqlite3.Connection) -> list[SearchResult]:
            rows = _AgentRows(connection, agent_id)
            ids, vectors = self._load_vectors(rows)
            ranked = rank_rows(vectors, query_embedding, ids, top_k)
            chunks = rows.read_chunks_by_id([ids[row] for row, _ in ranked])
            return [SearchResult(chunks[ids[row]], score) for row, score in ranked]

        return self._run_read_transaction(search, [])

    def has_index(self, agent_id: str) -> bool:

        def has_index(connection: sqlite3.Connection) -> bool:
            rows = _AgentRows(connection, agent_id)
            return rows.read_state_json() is not None or rows.has_rows()

        try:
            return self._run_read_transaction(has_index, if_missing=False)
        except DamagedIndex:
            return False

    def chunks(self, agent_id: str) -> list[DocChunk]:
        return self._run_read_transaction(
            lambda connection: _AgentRows(connection, agent_id).read_chunks(), []
        )

    def state(self, agent_id: str) -> IndexState | None:
        try:
            state = self._run_read_transaction(
                lambda connection: self._load_state(_AgentRows(connection, agent_id)), None
            )
        except DamagedIndex:
            return None
        return None if self._is_damaged else state

    def vectors(self, agent_id: str) -> dict[str, Vectors]:

        def read_vectors(connection: sqlite3.Connection) -> dict[str, Vectors]:
            rows = _AgentRows(connection, agent_id)
            if self._load_state(rows) is None:
                return {}
            return dict(zip(*rows.read_vectors(), strict=True))

        return self._run_read_transaction(read_vectors, {})

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        vectors = normalize_rows(embeddings) if chunks else np.empty((0, 0), dtype=np.float32)
        with self._open_for_writing() as connection:
            _AgentRows(connection, agent_id).replace(chunks, vectors, state)

    def touch(self, agent_id: str, state: IndexState) -> None:
        with self._open_for_writing() as connection, connection:
            _AgentRows(connection, agent_id).write_state(state)

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        """See PassageStore.building; a damaged database is renamed first."""
        with suppress(DamagedIndex):
            self._has_marked_database()
        with lock_file(self._get_sibling_path(f"{build_agent_file_name(agent_id)}.lock")):
            if self._is_damaged:
                with lock_file(self._get_sibling_path("lock")):
                    self._rename_if_damaged()
                self._is_damaged = False
            yield

    def _get_sibling_path(self, suffix: str) -> Path:
        return self._path.with_name(f".{self._path.name}.{suffix}")

    def _load_vectors(self, rows: _AgentRows) -> tuple[list[str], Vectors]:
        """Return the ids and vectors of an index; from a cache if its state has not changed."""
        record = rows.read_state_json()
        if record is None:
            return rows.read_vectors()
        cached = self._vector_cache.get(rows.agent_id)
        if cached is None or cached[0] != hash(record):
            cached = (hash(record), *rows.read_vectors())
            self._vector_cache[rows.agent_id] = cached
        return cached[1], cached[2]

    def _load_state(self, rows: _AgentRows) -> IndexState | None:
        record = rows.read_state_json()
        if record is None:
            return None
        cached = self._state_cache.get(rows.agent_id)
        if cached is None or cached[0] != hash(record):
            try:
                state = IndexState.from_record(json.loads(record))
            except (ValueError, TypeError, KeyError, AttributeError):
                return None
            cached = self._state_cache[rows.agent_id] = (hash(record), state)
        return cached[1] if rows.matches_state(cached[1]) else None

    def _run_read_transaction(self, read: Callable[[sqlite3.Connection], T], if_missing: T) -> T:
        """Call a function with a connection, in one transaction, and return its result.

        Args:
            if_missing: returned if the database does not exist yet.

        Raises:
            ConfigurationError: the database belongs to another program.
        """
        if not self._has_marked_database():
            return if_missing
        try:
            with closing(self._connect("rw")) as connection:
                connection.execute("BEGIN")
                return read(connection) if _has_our_tables(connection) else if_missing
        except _ForeignDatabase:
            raise foreign_file_error(self._path, _FOREIGN_DATABASE) from None
        except sqlite3.DatabaseError as error:
            if _indicates_damage(error):
                self._is_damaged = True
                raise DamagedIndex(str(self._path)) from None
            if error.sqlite_errorcode in _MISSING_FILE_ERRORS and not self._path.exists():
                return if_missing
            raise

    @contextmanager
    def _open_for_writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for writing; meanwhile the database cannot be renamed as damaged."""
        self._has_marked_database()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_file(self._get_sibling_path("lock"), shared=True):
            self._path.touch(mode=0o600)
            with _CHECK_LOCK:
                status = self._path.stat()
                _CHECKED_FILES.add((status.st_dev, status.st_ino))
            try:
                with closing(self._connect("rwc")) as connection:
                    if not status.st_size:
                        # If a process is killed, its journal file stays, and the next process would
                        # play it back.
                        connection.execute("PRAGMA journal_mode = MEMORY")
                    _has_our_tables(connection)
                    if not _has_our_mark(connection):
                        _create_tables(connection)
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute(f"PRAGMA journal_size_limit = {_MAX_LOG_BYTES}")
                    yield connection
            except _ForeignDatabase:
                raise foreign_file_error(self._path, _FOREIGN_DATABASE) from None
            except sqlite3.DatabaseError as error:
                if not _indicates_damage(error):
                    raise
                self._is_damaged = True
                raise DamagedIndex(str(self._path)) from None

    def _has_marked_database(self) -> bool:
        """Return whether the database exists and has our mark: our SQLite application id.

        This is checked before SQLite opens or changes the file. An empty file, or a database of an
        earlier version, has no mark; the next write adds it. A marked file is opened here only once
        per process, because closing a second handle would release SQLite's locks.

        Raises:
            DamagedIndex: the database was ours, but the header of the file is lost.
            ConfigurationError: the database belongs to another program or another version, or a
                link or journal next to it would make SQLite write elsewhere.
        """
        self._refuse_links()
        with _CHECK_LOCK:
            try:
                status = self._path.stat()
            except FileNotFoundError:
                return False
            if (status.st_dev, status.st_ino) in _CHECKED_FILES:
                return True
            if not status.st_size or not self._has_mark():
                return False
            _CHECKED_FILES.add((status.st_dev, status.st_ino))
            return True

    def _has_mark(self) -> bool:
        with self._path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        if not header.startswith(_FILE_MAGIC) or len(header) < _HEADER_BYTES:
            if self._get_sibling_path("lock").is_file():
                self._is_damaged = True
                raise DamagedIndex(str(self._path))
            raise foreign_file_error(self._path, "is not a database of rag-assets")
        version, mark = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if mark == APPLICATION_ID:
            if version != SCHEMA_VERSION:
                raise foreign_file_error(
                    self._path, f"was written by another version of rag-assets ({version})"
                )
            return True
        if mark or version or not self._has_unmarked_tables_of_ours():
            raise foreign_file_error(self._path, _FOREIGN_DATABASE)
        return False

    def _refuse_links(self) -> None:
        # Someone who replaces a folder or a file with a link could choose what SQLite opens.
        if os.path.realpath(self._path) != str(self._path):
            raise foreign_file_error(self._path, "is now reached through a symbolic link")
        for suffix in ("-wal", "-shm"):
            log = self._path.with_name(self._path.name + suffix)
            if log.is_symlink():
                raise foreign_file_error(log, "is a link")
        journal = self._path.with_name(f"{self._path.name}-journal")
        if os.path.lexists(journal):
            # Our databases have no journal. Playing one back can delete any file that it names.
            raise foreign_file_error(journal, "is a journal of another program")

    def _has_unmarked_tables_of_ours(self) -> bool:
        """Return whether a database without a mark has our tables, without writing anything."""
        address = f"{self._path.as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                return _has_our_tables(connection)
        except (sqlite3.DatabaseError, _ForeignDatabase):
            return False

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._busy_seconds,
            check_same_thread=False,
        )

    def _rename_if_damaged(self) -> None:
        """Rename the database if SQLite's own check confirms the damage."""
        try:
            with closing(self._connect("rw")) as connection:
                if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return
        except sqlite3.DatabaseError as error:
            if not _indicates_damage(error):
                return
        self._vector_cache.clear()
        self._state_cache.clear()
        renamed = rename_damaged(self._path)
        for suffix in ("-wal", "-shm"):
            log = self._path.with_name(self._path.name + suffix)
            if log.exists():
                log.rename(renamed.with_name(renamed.name + suffix))


class _AgentRows:
    """Reads and writes the rows of one agent over a connection."""

    def __init__(self, connection: sqlite3.Connection, agent_id: str) -> None:
        self.agent_id = agent_id
        self._connection = connection

    def has_rows(self) -> bool:
        query = f"SELECT EXISTS ({self._build_query('id')})"
        return bool(self._connection.execute(query, {"agent": self.agent_id}).fetchone()[0])

    def matches_state(self, state: IndexState) -> bool:
        """Return whether the rows are those that a state describes.

        They are not if their number differs, or if another program wrote a row, which then has no
        value in `vector`.
        """
        if self._is_moving():
            return True
        total, foreign = (
            self._read_integer(f"SELECT count(*) FROM chunks WHERE agent_id = ? {condition}")  # noqa: S608 - ours
            for condition in ("", "AND vector IS NULL")
        )
        return total == len(state.text_hashes) and not foreign

    def read_state_json(self) -> str | None:
        query = "SELECT state FROM agents WHERE agent_id = ?"
        row = self._connection.execute(query, (self.agent_id,)).fetchone()
        return None if row is None else str(row[0])

    def read_chunks(self) -> list[DocChunk]:
        query = f"{self._build_query(_CHUNK_COLUMNS)} ORDER BY id"
        return [DocChunk(*row) for row in self._connection.execute(query, {"agent": self.agent_id})]

    def read_chunks_by_id(self, ids: Sequence[str]) -> dict[str, DocChunk]:
        chunks: dict[str, DocChunk] = {}
        rows = self._build_query(_CHUNK_COLUMNS)
        for batch in batched(ids, MAX_ROWS):
            names = {f"id{number}": id_ for number, id_ in enumerate(batch)}
            marks = ", ".join(f":{name}" for name in names)
            query = f"SELECT * FROM ({rows}) WHERE id IN ({marks})"  # noqa: S608 - marks alone
            for row in self._connection.execute(query, {"agent": self.agent_id, **names}):
                chunks[row[0]] = DocChunk(*row)
        return chunks

    def read_vectors(self) -> tuple[list[str], Vectors]:
        """Return ids and vectors, ordered by id."""
        query = f"{self._build_query('id, vector, embedding')} ORDER BY id"
        ids: list[str] = []
        vectors: list[Vectors] = []
        for id_, vector, embedding in self._connection.execute(query, {"agent": self.agent_id}):
            ids.append(id_)
            # Rows written by another program have only the JSON array.
            row = np.frombuffer(vector, "<f4") if vector else np.array(json.loads(embedding), "<f4")
            vectors.append(row)
        if not ids:
            return ids, np.empty((0, 0), dtype=np.float32)
        return ids, normalize_rows(np.stack(vectors))

    def write_state(self, state: IndexState) -> None:
        """Replace the state; the caller holds the transaction."""
        row = self.agent_id, json.dumps(state.to_record())
        self._connection.execute("INSERT OR REPLACE INTO agents VALUES (?, ?)", row)

    def replace(self, chunks: Sequence[DocChunk], vectors: Vectors, state: IndexState) -> None:
        """Replace all rows and the state at once."""
        connection = self._connection
        self.finish_move()
        removed, changed = self._find_changes(chunks, vectors)
        batches = list(_split_batches(chunks, vectors, changed))
        if len(batches) <= 1 and len(removed) + len(changed) <= MAX_ROWS:
            with connection:
                connection.executemany(
                    "DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in removed]
                )
                self._insert_passages("chunks", chunks, vectors, changed)
                self.write_state(state)
            return
        for batch in batches:
            with connection:
                self._insert_passages("arriving", chunks, vectors, batch)
            _write_log_to_database(connection)
        for ids in batched(removed, MAX_ROWS):
            with connection:
                rows = [(id_, self.agent_id) for id_ in ids]
                connection.executemany("INSERT INTO leaving VALUES (?, ?)", rows)
        with connection:
            connection.execute("INSERT INTO moving VALUES (?)", (self.agent_id,))
            self.write_state(state)
        self.finish_move()

    def finish_move(self) -> None:
        """Finish moving arriving and leaving rows if readers see the move already; else undo it."""
        is_visible = self._is_moving()
        query = "SELECT max(length(content) + length(embedding)) FROM arriving WHERE agent_id = ?"
        longest = self._read_integer(query) or 1
        batch = max(1, min(MAX_ROWS, MAX_CHARACTERS // longest))
        parameters = {"agent": self.agent_id, "batch": batch}
        for apply, delete in _MOVES:
            while True:
                with self._connection:
                    if is_visible:
                        self._connection.execute(apply, parameters)
                    deleted = self._connection.execute(delete, parameters).rowcount
                if not deleted:
                    break
                _write_log_to_database(self._connection)
        if is_visible:
            with self._connection:
                self._connection.execute("DELETE FROM moving WHERE agent_id = ?", (self.agent_id,))

    def _read_integer(self, query: str) -> int:
        return int(self._connection.execute(query, (self.agent_id,)).fetchone()[0] or 0)

    def _is_moving(self) -> bool:
        return bool(self._read_integer("SELECT EXISTS (SELECT 1 FROM moving WHERE agent_id = ?)"))

    def _build_query(self, columns: str) -> str:
        """Return the query for the rows that readers see; valid only in the current transaction."""
        return (_MOVING_ROWS if self._is_moving() else _SETTLED_ROWS).format(columns=columns)

    def _find_changes(
        self, chunks: Sequence[DocChunk], vectors: Vectors
    ) -> tuple[list[str], list[int]]:
        """Return the ids of rows to delete, and the positions of new or changed passages."""
        positions = {chunk.id: position for position, chunk in enumerate(chunks)}
        removed, unchanged_positions = [], set()
        query = f"SELECT {_CHUNK_COLUMNS}, vector FROM chunks WHERE agent_id = ?"  # noqa: S608 - ours
        for *row, vector in self._connection.execute(query, (self.agent_id,)):
            position = positions.get(row[0])
            if position is None:
                removed.append(row[0])
            elif DocChunk(*row) == chunks[position] and vector == _pack_vector(vectors[position]):
                unchanged_positions.add(position)
        return removed, [
            position for position in range(len(chunks)) if position not in unchanged_positions
        ]

    def _insert_passages(
        self, table: str, chunks: Sequence[DocChunk], vectors: Vectors, positions: Iterable[int]
    ) -> None:
        self._connection.executemany(
            f"INSERT OR REPLACE INTO {table} ({_ALL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
            (
                (
                    *(chunk.id, chunk.content, chunk.source_path, chunk.byte_offset),
                    chunk.agent_id,
                    orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode(),
                    _pack_vector(vector),
                )
                for chunk, vector in ((chunks[at], vectors[at]) for at in positions)
            ),
        )


def _split_batches(
    chunks: Sequence[DocChunk], vectors: Vectors, positions: Iterable[int]
) -> Iterator[list[int]]:
    vector_characters = vectors.shape[1] * _CHARACTERS_PER_NUMBER
    return batched(
        positions,
        MAX_ROWS,
        weight=lambda position: len(chunks[position].content) + vector_characters,
        max_weight=MAX_CHARACTERS,
    )


def _pack_vector(vector: Vectors) -> bytes:
    return vector.astype("<f4").tobytes()


def _write_log_to_database(connection: sqlite3.Connection) -> None:
    """Copy the log into the database without waiting, except the part that readers still need."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _create_tables(connection: sqlite3.Connection) -> None:
    """Mark a database as ours and create its tables, in one transaction.

    Rows of an earlier version, which had no mark, are deleted.
    """
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if _has_our_mark(connection):
            return
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        for statement in _SCHEMA:
            connection.execute(statement)
        for table in _TABLES:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
    # The mark is later read from the file, so it must not stay in the log.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _has_our_mark(connection: sqlite3.Connection) -> bool:
    names = ("application_id", "user_version")
    values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    return values == [APPLICATION_ID, SCHEMA_VERSION]


class _ForeignDatabase(Exception):
    """The database belongs to a different program."""


def _has_our_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a database has exactly our tables; False if it is empty.

    Raises:
        _ForeignDatabase: the database has other tables, or further objects such as a trigger or a
            view.
    """
    schema = _read_schema(connection)
    if schema and schema != _build_expected_schema():
        raise _ForeignDatabase
    return bool(schema)


@lru_cache(maxsize=1)
def _build_expected_schema() -> frozenset[tuple[str | None, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _SCHEMA:
            connection.execute(statement)
        return _read_schema(connection)


def _read_schema(connection: sqlite3.Connection) -> frozenset[tuple[str | None, ...]]:
    # Another program's ANALYZE may have added SQLite's own statistics tables.
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master "
    query += " WHERE NOT (type = 'table' AND name GLOB 'sqlite_stat*')"
    return frozenset(connection.execute(query))


def _indicates_damage(error: sqlite3.DatabaseError) -> bool:
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
