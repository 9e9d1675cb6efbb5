"""A Delta table kept open: it is updated for each use instead of being opened again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Set
from typing import Any, Final

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.schemas import TableKind
from rag_assets.storage.lake.selection import filter_rows, scan_rows

FILE: Final = "__file"
"""The column with the name of each row's file."""

_MOST_KEYS: Final = 20_000
"""Maximum number of keys held in memory; the keys of other files are read for every request."""

_NOTHING: Final = pl.DataFrame(schema={"key": pl.String, FILE: pl.String})


class OpenTable:
    """The newest version of a table, and the keys of its files.

    Opening a table reads its log from the last checkpoint on. That takes several times as long as
    reading only the additions since its last use. Files never change, so their keys are read once.
    If another process deletes the folder, reading its files fails: then call `forget`.

    Args:
        location: the table's folder; it need not exist.
        kind: the table's columns; columns that a file lacks are read as null.
    """

    def __init__(self, location: Location, kind: TableKind) -> None:
        self._location = location
        self._kind = kind
        self._key = kind.key
        self._lock = threading.Lock()
        self._table: DeltaTable | None = None
        self._keys: dict[str, pl.DataFrame] = {}
        self._left_out: frozenset[str] = frozenset()

    def newest(self) -> DeltaTable | None:
        """Return the newest version of the table; None if it does not exist."""
        with self._lock:
            if self._table is not None:
                try:
                    self._table.update_incremental()
                except (OSError, ValueError, DeltaError):
                    self._forget()
            if self._table is None:
                self._table = self._open()
            return self._table

    def forget(self) -> None:
        """Open the table again at its next use."""
        with self._lock:
            self._forget()

    def leave_out(self, names: Collection[str]) -> None:
        """Stop reading these files."""
        self._left_out = frozenset(names)

    def scan(
        self,
        table: DeltaTable,
        paths: Collection[str] | None = None,
        file_column: str | None = None,
    ) -> pl.LazyFrame | None:
        """Return the rows of the table, or of the named files; None without files.

        Args:
            table: the version to read.
            paths: names of the files to read; all by default.
            file_column: name of an added column with the path of each row's file.
        """
        names = file_names(table) - self._left_out
        names &= names if paths is None else set(paths)
        if not names:
            return None
        urls = [f"{self._location.url}/{name}" for name in sorted(names)]
        return scan_rows(self._kind, self._location, urls, file_column)

    def locate(self, table: DeltaTable, wanted: Set[str]) -> pl.DataFrame:
        """Return the keys that the table contains, each with the name of one of its files."""
        with self._lock:
            rest = self._keep_keys(table)
            kept = pl.concat([_NOTHING.rename({"key": self._key}), *self._keys.values()])
        found = [filter_rows(kept.lazy(), self._key, wanted).collect()]
        if rest and (scanned := self.scan(table, rest, FILE)) is not None:
            rows = filter_rows(scanned, self._key, wanted).select(self._key, FILE)
            found.append(_with_file_names(rows))
        return pl.concat(found).unique(self._key)

    def _keep_keys(self, table: DeltaTable) -> set[str]:
        """Read the keys of new small files; return the files whose keys are not held in memory."""
        names = file_names(table) - self._left_out
        self._keys = {name: keys for name, keys in self._keys.items() if name in names}
        new = names - self._keys.keys()
        if not new:
            return set()
        room = _MOST_KEYS - sum(map(len, self._keys.values()))
        chosen = []
        for name, rows in sorted(_row_counts(table).items(), key=lambda item: item[1]):
            if name in new and rows <= room:
                chosen.append(name)
                room -= rows
        if chosen and (scanned := self.scan(table, chosen, FILE)) is not None:
            keys = _with_file_names(scanned.select(self._key, FILE))
            self._keys |= {
                str(name): rows for (name,), rows in keys.partition_by(FILE, as_dict=True).items()
            }
        return new - self._keys.keys()

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(
                self._location.url, storage_options=dict(self._location.storage_options)
            )
        except TableNotFoundError:
            return None

    def _forget(self) -> None:
        self._table, self._keys = None, {}


def file_names(table: DeltaTable) -> set[str]:
    """Return the names of an open table's files, which are all in its folder."""
    # Use only the names: Delta percent-encodes folders (a space, an umlaut), Polars does not.
    return {uri.rsplit("/", 1)[-1] for uri in table.file_uris()}


def _row_counts(table: DeltaTable) -> dict[str, int]:
    actions: Any = table.get_add_actions(flatten=True)
    frame = pl.DataFrame(actions).select("path", "num_records")
    if frame["num_records"].null_count():
        raise ValueError("the log lacks the number of rows of a file")
    return {str(path).rsplit("/", 1)[-1]: int(rows) for path, rows in frame.iter_rows()}


def _with_file_names(rows: pl.LazyFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col(FILE).str.split("/").list.last()).collect()
