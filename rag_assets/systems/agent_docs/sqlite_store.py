"""Indexes in one SQLite database, which other programs read; sqlite_rows.py has its tables.

Readers neither wait for a writer nor see a part of what it writes: the database keeps a write-ahead
log, which stays below some 32 MiB.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import DamagedIndex
from rag_assets.systems.agent_docs import sqlite_rows
from rag_assets.systems.agent_docs.stores import (
    DocChunk,
    IndexState,
    SearchResult,
    Vectors,
    by_agent,
    file_name,
    foreign,
    locked,
    nearest,
    set_aside,
    unit_rows,
)

T = TypeVar("T")

_LOG_BYTES = 16 * 1024 * 1024
_BUSY_SECONDS = 30.0
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_NOT_OURS = "is a database of another program"
_OURS: Final[set[tuple[int, int]]] = set()
"""Device and inode of databases that were checked."""
_CHECKING: Final = Lock()
_NOTHING = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_ERROR})
"""Of a database that vanishes, or has no table chunks."""


class SqliteStore:
    """Indexes in one SQLite database; see PassageStore.

    Args:
        path: of the database; made at the first write, for its owner alone.
        wait: seconds that a statement waits for a lock of another program.
    """

    def __init__(self, path: Path, *, wait: float = _BUSY_SECONDS) -> None:
        self._path = path.resolve()
        self._wait = wait
        self._suspect = False
        self._read: dict[str, tuple[int, list[str], Vectors]] = {}
        self._states: dict[str, tuple[int, IndexState]] = {}

    def upsert(self, chunks: Sequence[DocChunk], embeddings: npt.ArrayLike) -> None:
        """See PassageStore.upsert."""
        for agent_id, (own, rows) in by_agent(chunks, embeddings).items():
            with self.building(agent_id), self._writing() as connection:
                sqlite_rows.add(connection, agent_id, own, unit_rows(rows))

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """See PassageStore.search."""

        def found(connection: sqlite3.Connection) -> list[SearchResult]:
            ids, rows = self._rows(connection, agent_id)
            best = nearest(rows, query_embedding, ids, top_k)
            chunks = sqlite_rows.chunks_by_id(connection, agent_id, [ids[one.row] for one in best])
            return [SearchResult(chunks[ids[one.row]], one.score) for one in best]

        return self._of_database(found, [])

    def delete_agent(self, agent_id: str) -> None:
        """See PassageStore.delete_agent."""
        if not self._path.exists():
            return
        with self.building(agent_id), self._writing() as connection:
            none = np.empty((0, 0), dtype=np.float32)
            sqlite_rows.replace_all(connection, agent_id, (), none, None)

    def has_index(self, agent_id: str) -> bool:
        """See PassageStore.has_index."""

        def has(connection: sqlite3.Connection) -> bool:
            known = sqlite_rows.state_record(connection, agent_id) is not None
            return known or sqlite_rows.has_rows(connection, agent_id)

        try:
            return self._of_database(has, missing=False)
        except DamagedIndex:
            return False

    def chunks(self, agent_id: str) -> list[DocChunk]:
        """See PassageStore.chunks."""
        return self._of_database(lambda one: sqlite_rows.chunks_of(one, agent_id), [])

    def state(self, agent_id: str) -> IndexState | None:
        """See PassageStore.state."""
        try:
            found = self._of_database(lambda one: self._state(one, agent_id), None)
        except DamagedIndex:
            return None
        return None if self._suspect else found

    def vectors(self, agent_id: str) -> dict[str, Vectors]:
        """See PassageStore.vectors."""

        def found(connection: sqlite3.Connection) -> dict[str, Vectors]:
            if self._state(connection, agent_id) is None:
                return {}
            return dict(zip(*sqlite_rows.vectors_of(connection, agent_id), strict=True))

        return self._of_database(found, {})

    def replace(
        self, agent_id: str, chunks: Sequence[DocChunk], embeddings: Vectors, state: IndexState
    ) -> None:
        """See PassageStore.replace."""
        rows = unit_rows(embeddings) if chunks else np.empty((0, 0), dtype=np.float32)
        with self._writing() as connection:
            sqlite_rows.replace_all(connection, agent_id, chunks, rows, state)

    def touch(self, agent_id: str, state: IndexState) -> None:
        """See PassageStore.touch."""
        with self._writing() as connection:
            sqlite_rows.touch(connection, agent_id, state)

    @contextmanager
    def building(self, agent_id: str) -> Iterator[None]:
        """See PassageStore.building; a database that was found damaged is set aside first."""
        with suppress(DamagedIndex):
            self._require_ours()
        with locked(self._beside(f"{file_name(agent_id)}.lock")):
            if self._suspect:
                with locked(self._beside("lock")):
                    self._set_damaged_aside()
                self._suspect = False
            yield

    def _beside(self, end: str) -> Path:
        return self._path.with_name(f".{self._path.name}.{end}")

    def _rows(self, connection: sqlite3.Connection, agent_id: str) -> tuple[list[str], Vectors]:
        """The ids and vectors of an index, read once for each state of it."""
        record = sqlite_rows.state_record(connection, agent_id)
        if record is None:
            return sqlite_rows.vectors_of(connection, agent_id)
        known = self._read.get(agent_id)
        if known is None or known[0] != hash(record):
            known = (hash(record), *sqlite_rows.vectors_of(connection, agent_id))
            self._read[agent_id] = known
        return known[1], known[2]

    def _state(self, connection: sqlite3.Connection, agent_id: str) -> IndexState | None:
        record = sqlite_rows.state_record(connection, agent_id)
        if record is None:
            return None
        known = self._states.get(agent_id)
        if known is None or known[0] != hash(record):
            try:
                state = IndexState.of(json.loads(record))
            except (ValueError, TypeError, KeyError, AttributeError):
                return None
            known = self._states[agent_id] = (hash(record), state)
        return known[1] if sqlite_rows.is_of(connection, agent_id, known[1]) else None

    def _of_database(self, work: Callable[[sqlite3.Connection], T], missing: T) -> T:
        """What work reads in one transaction; what is missing where there is no database of ours.

        Raises:
            DamagedIndex: it cannot be read.
            ConfigurationError: it is not ours.
        """
        if not self._require_ours():
            return missing
        try:
            with closing(self._connected("rw")) as connection:
                connection.execute("BEGIN")
                return work(connection) if sqlite_rows.has_our_tables(connection) else missing
        except sqlite_rows.NotOurs:
            raise foreign(self._path, _NOT_OURS) from None
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                self._suspect = True
                raise DamagedIndex(str(self._path)) from None
            if error.sqlite_errorcode in _NOTHING and not self._path.exists():
                return missing
            raise

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that writes, while nobody sets the database aside."""
        self._require_ours()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._beside("lock"), shared=True):
            self._path.touch(mode=0o600)
            is_new = not self._remembered().st_size
            try:
                with closing(self._connected("rwc")) as connection:
                    if is_new:
                        # A journal on the disk would have to be played back by whoever comes next.
                        connection.execute("PRAGMA journal_mode = MEMORY")
                    sqlite_rows.has_our_tables(connection)
                    if not sqlite_rows.has_mark(connection):
                        sqlite_rows.make_tables(connection)
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
                    yield connection
            except sqlite_rows.NotOurs:
                raise foreign(self._path, _NOT_OURS) from None
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._suspect = True
                raise DamagedIndex(str(self._path)) from None

    def _require_ours(self) -> bool:
        """Return whether there is a database with our mark, before SQLite opens or changes it.

        One of an earlier version, or an empty file, has no mark yet, and becomes ours when it is
        written. A file is read once a process: closing it would free the locks of connections.

        Raises:
            DamagedIndex: it was ours, and its header is lost.
            ConfigurationError: it is another program's, or of a later version; or a file beside it
                would have SQLite write elsewhere.
        """
        self._require_no_links()
        with _CHECKING:
            try:
                facts = self._path.stat()
            except FileNotFoundError:
                return False
            if (facts.st_dev, facts.st_ino) in _OURS:
                return True
            if not facts.st_size or not self._has_mark():
                return False
            _OURS.add((facts.st_dev, facts.st_ino))
            return True

    def _remembered(self) -> os.stat_result:
        """Return the facts of the file, which is ours from now on."""
        with _CHECKING:
            facts = self._path.stat()
            _OURS.add((facts.st_dev, facts.st_ino))
        return facts

    def _has_mark(self) -> bool:
        with self._path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
            if self._beside("lock").is_file():
                self._suspect = True
                raise DamagedIndex(str(self._path))
            raise foreign(self._path, "is no database of ours")
        version, mark = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if mark == sqlite_rows.APPLICATION_ID:
            if version != sqlite_rows.VERSION:
                raise foreign(self._path, f"is of another version of rag-assets ({version})")
            return True
        if mark or version or not self._is_of_earlier_version():
            raise foreign(self._path, _NOT_OURS)
        return False

    def _require_no_links(self) -> None:
        # Whoever replaces a folder or a file by a link would choose what SQLite opens.
        if os.path.realpath(self._path) != str(self._path):
            raise foreign(self._path, "has become a link")
        for end in ("-wal", "-shm"):
            log = self._path.with_name(self._path.name + end)
            if log.is_symlink():
                raise foreign(log, "is a link")
        journal = self._path.with_name(f"{self._path.name}-journal")
        if os.path.lexists(journal):
            # Ours have none. Played back, it may name any file for SQLite to delete.
            raise foreign(journal, "is a journal of another program")

    def _is_of_earlier_version(self) -> bool:
        """Return whether a database without a mark has our tables; nothing is written for that."""
        address = f"{self._path.as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                return sqlite_rows.has_our_tables(connection)
        except (sqlite3.DatabaseError, sqlite_rows.NotOurs):
            return False

    def _connected(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._wait,
            check_same_thread=False,
        )

    def _set_damaged_aside(self) -> None:
        """Keep a damaged database under another name; SQLite's own check proves the damage."""
        try:
            with closing(self._connected("rw")) as connection:
                if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                return
        self._read.clear()
        self._states.clear()
        aside = set_aside(self._path)
        for end in ("-wal", "-shm"):
            log = self._path.with_name(self._path.name + end)
            if log.exists():
                log.rename(aside.with_name(aside.name + end))


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
