"""A Delta table whose rows are found by a key.

There is one writer, which only appends rows. A crash may leave duplicate rows with equal content,
so readers return each key once. If a reader misses files because compaction has just deleted them,
it opens the table again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import polars as pl
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError

from rag_assets.common.disk_space import disk_full
from rag_assets.common.errors import LakeDamaged, ServiceUnavailable, TenantLocked
from rag_assets.common.hashing import HashRange
from rag_assets.storage.lake.checksums import is_reader_error, require_unaltered, with_checksums
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import DamagedFile, TableSize
from rag_assets.storage.lake.open_table import FILE, OpenTable
from rag_assets.storage.lake.schemas import TableKind
from rag_assets.storage.lake.selection import filter_rows

_T = TypeVar("_T")
_READ_ATTEMPTS: Final = 3
LOG_FOLDER: Final = "_delta_log"
_NO_SPACE: Final = re.compile(r"No space left|Disk quota exceeded|File too large")

# Column statistics copy the first bytes of values into the log, where they remain after the rows
# are deleted. So only keys have statistics. Compaction deletes unreferenced files itself, so no
# retention is set.
_PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 0 seconds",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the table, with its lowest and highest key."""

    path: str
    bytes: int
    rows: int
    first: str
    last: str


class KeyedTable:
    """A table of one kind at one location.

    Args:
        kind: the table's columns and layout.
        location: the table's folder; it need not exist.
        guard: called before every write; raises when this writer may no longer write.
        skips_damaged: whether to read the remaining rows if files are lost or damaged.
    """

    def __init__(
        self,
        kind: TableKind,
        location: Location,
        guard: Callable[[], None],
        *,
        skips_damaged: bool = False,
    ) -> None:
        self.kind = kind
        self.location = location
        self.guard = guard
        self._skips_damaged = skips_damaged
        self._opened = OpenTable(location, kind)

    def missing(self, keys: Collection[str]) -> set[str]:
        """Return the keys that the table lacks."""
        wanted = set(keys)
        found = self._with_retry(lambda table: self._opened.locate(table, wanted))
        return wanted if found is None else wanted.difference(found[self.kind.key])

    def keys(self) -> set[str]:
        """Return the keys of all rows."""
        found = self._with_retry(lambda table: self.scan(table).select(self.kind.key).collect())
        return set() if found is None else set(found[self.kind.key])

    def read(self, keys: Collection[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the rows with these keys, without duplicates, in no particular order.

        Args:
            keys: keys of the rows; unknown keys are ignored.
            columns: the columns to read, including the key. By default all columns are read, and
                then compared with the checksums of their rows.
        """
        names = list(columns or self.kind.schema)
        found = self._with_retry(lambda table: self._read(table, set(keys), names))
        if found is None:
            return pl.DataFrame(schema={name: self.kind.schema[name] for name in names})
        return found

    def stored(self, keys: Collection[str]) -> pl.DataFrame:
        """Return the rows with these keys including duplicates, for checks."""
        wanted = set(keys)
        found = self._with_retry(
            lambda table: filter_rows(self.scan(table), self.kind.key, wanted).collect()
        )
        return pl.DataFrame(schema=self.kind.schema) if found is None else found

    def append(
        self, frame: pl.DataFrame, *, name: str | None = None, description: str = ""
    ) -> None:
        """Append rows in one commit: either all of them or, after a crash, no row.

        Args:
            frame: rows with the columns of the kind.
            name, description: those of the table, if this first append creates it.

        Raises:
            TenantGone, TenantLocked: raised by the guard; no row was written.
            ServiceUnavailable: the location could not be written.
        """
        key = self.kind.key
        rows = with_checksums(frame.unique(key, keep="first").sort(key))
        self.guard()
        with self.translated_errors("written"):
            write_deltalake(
                # Pass the address, not the open table: if the table's folder was deleted in the
                # meantime, an append to the open table would write a version to an empty log, which
                # no reader could read.
                self.location.url,
                rows,
                mode="append",
                schema_mode="merge" if self.kind.added else None,
                name=name,
                description=description or None,
                configuration={**_PROPERTIES, "delta.dataSkippingStatsColumns": key},
                storage_options=dict(self.location.storage_options),
                writer_properties=_layout(self.kind),
            )

    def description(self) -> str | None:
        """Return the description with which the table was created; None if it does not exist."""
        metadata = self._with_retry(lambda table: table.metadata())
        return None if metadata is None else metadata.description or ""

    def size(self) -> TableSize:
        """Return the rows, files and bytes that the table refers to."""
        return compute_table_size(self.files())

    def files(self) -> list[DataFile]:
        """Return the files of the table."""
        return self._with_retry(lambda table: data_files(table, self.kind.key)) or []

    def read_range(self, keys: HashRange, columns: Sequence[str]) -> pl.DataFrame:
        """Return columns of the rows with keys in a range, without duplicates."""
        key = pl.col(self.kind.key)
        within = key >= keys.first
        if keys.end is not None:
            within &= key < keys.end
        found = self._with_retry(
            lambda table: require_unaltered(self.scan(table).filter(within).collect())
        )
        if found is None:
            return pl.DataFrame(schema={name: self.kind.schema[name] for name in columns})
        return found.select(columns).unique(self.kind.key)

    def forget(self) -> None:
        """Make the next use open the table again."""
        self._opened.forget()

    def open(self) -> DeltaTable | None:
        """Open the newest version of the table; None if it does not exist."""
        return self._opened.newest()

    def scan(
        self, table: DeltaTable, paths: Sequence[str] | None = None, file_column: str | None = None
    ) -> pl.LazyFrame:
        """Return the rows of the table, or of some of its files, including duplicates.

        Args:
            table: the opened table.
            paths: paths of the files to read; all files by default.
            file_column: name of an added column with the path of each row's file.
        """
        rows = self._opened.scan(table, paths, file_column)
        if rows is not None:
            return rows
        schema = dict(self.kind.schema) | ({file_column: pl.String} if file_column else {})
        return pl.LazyFrame(schema=schema)

    def _read(self, table: DeltaTable, wanted: set[str], names: list[str]) -> pl.DataFrame:
        # Read in two steps, so that other columns are read only from files with a wanted row. This
        # is faster while there are many small files.
        located = self._opened.locate(table, wanted)
        files = [str(name) for name in located[FILE].unique()]
        rows = filter_rows(self.scan(table, files), self.kind.key, wanted)
        found = rows.select(names).collect()
        if len(names) == len(self.kind.schema):
            require_unaltered(found)
        return found.unique(self.kind.key)

    def _with_retry(self, read: Callable[[DeltaTable], _T]) -> _T | None:
        for attempt in range(_READ_ATTEMPTS):
            with self.translated_errors("read"):
                table = self._open_unless_damaged()
                if table is None:
                    return None
                try:
                    return read(table)
                except BaseException as error:
                    self._opened.forget()
                    if attempt == _READ_ATTEMPTS - 1 or not is_reader_error(error):
                        raise
                    if self._skips_damaged:
                        self._opened.leave_out(
                            {file.path for file in self._find_damaged_files("read")}
                        )
        return None

    def _open_unless_damaged(self) -> DeltaTable | None:
        """Open the table; None if it is missing, or if its log is damaged and damage is skipped."""
        try:
            return self.open()
        except BaseException as error:
            if not (self._skips_damaged and is_reader_error(error)):
                raise
            return None

    def _find_damaged_files(self, participle: str) -> list[DamagedFile]:
        """Return the damaged files.

        After a failed read, all files are read completely to find them.
        """
        from rag_assets.storage.lake.damage import damaged_files

        return list(damaged_files("", self, None if participle == "written" else HashRange()))

    @contextmanager
    def translated_errors(self, participle: str) -> Iterator[None]:
        """Convert errors of Delta Lake, Polars and the file system to the project's errors.

        Args:
            participle: completes "the lake … cannot be".

        Raises:
            TenantLocked: another process wrote at the same time.
            LakeDamaged: files of the table are lost or damaged.
            ServiceUnavailable: the location could not be read or written.
        """
        try:
            yield
        except CommitFailedError as error:
            raise TenantLocked(
                f"another process is writing to the lake at {self._place}",
                hint="wait for it to end, then run the command again",
            ) from error
        except BaseException as error:
            if not is_reader_error(error):
                raise
            if damaged := self._find_damaged_files(participle):
                files = [f"{file.path} ({file.fault})" for file in damaged]
                raise LakeDamaged(self._place, files, participle) from error
            raise self.unavailable(error, participle) from error

    def unavailable(self, error: BaseException, participle: str) -> ServiceUnavailable:
        """Return the error for a location that could not be read or written."""
        if _NO_SPACE.search(str(error)):
            return disk_full(self.location.url, f"the lake cannot be {participle}")
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return ServiceUnavailable(
            f"the lake at {self._place} cannot be {participle}: {reason}",
            hint="check RAG_ASSETS_LAKE_URL, its credentials, permissions and free space",
        )

    @property
    def _place(self) -> str:
        return "/".join(self.location.url.split("/")[-4:])


def data_files(table: DeltaTable, key: str) -> list[DataFile]:
    """Return the files of an opened table.

    Raises:
        ValueError: the table's log lacks the statistics of a file.
    """
    actions: Any = table.get_add_actions(flatten=True)
    frame = pl.DataFrame(actions)
    if frame.is_empty():
        return []
    columns = ("path", "size_bytes", "num_records", f"min.{key}", f"max.{key}")
    files = frame.select(columns)
    if sum(files.null_count().row(0)):
        raise ValueError("the log lacks statistics of a file")
    return [DataFile(*row) for row in files.iter_rows()]


def compute_table_size(files: Collection[DataFile]) -> TableSize:
    """Return the total size of the files."""
    return TableSize(sum(f.rows for f in files), len(files), sum(f.bytes for f in files))


def _layout(kind: TableKind) -> WriterProperties:
    plain = ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
    keyed = ColumnProperties(dictionary_enabled=False, statistics_enabled="CHUNK")
    return WriterProperties(
        compression=kind.compression,
        compression_level=1 if kind.compression == "ZSTD" else None,
        max_row_group_size=kind.group_rows,
        default_column_properties=plain,
        column_properties={kind.key: keyed},
    )
