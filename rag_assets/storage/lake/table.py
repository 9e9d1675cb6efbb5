"""Reading and writing a Delta table whose rows are identified by a key.

There is one writer, which only appends rows. A crash may leave duplicate rows with equal content,
so readers return each key once. If a reader misses files because compaction has just deleted them,
it opens the table again.

Parquet's pages and Delta's log have no checksums here, so altered bytes that can still be decoded
would be taken as text or vectors. Each row therefore has a checksum of its values. Older rows have
none (null) until compaction writes them again.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeVar

import orjson
import polars as pl
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction

from rag_assets.common.disk_space import build_disk_full_error
from rag_assets.common.errors import LakeDamaged, ServiceUnavailable, TenantLocked
from rag_assets.common.hashing import HashRange
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import DamagedFile, TableSize
from rag_assets.storage.lake.rows import TableKind

CHECKSUM: Final = "checksum"
_BYTES: Final = 8
_READER_ERRORS: Final = (OSError, ValueError, DeltaError, pl.exceptions.PolarsError)


class AlteredRows(ValueError):
    """The values of a row differ from its checksum, so they were altered after writing."""


def add_checksums(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a checksum each; existing checksums are kept."""
    if CHECKSUM in rows.columns and not rows[CHECKSUM].null_count():
        return rows
    computed = _compute_checksums(rows)
    if CHECKSUM in rows.columns:
        computed = rows[CHECKSUM].fill_null(computed)
    return rows.with_columns(computed.alias(CHECKSUM))


def require_unaltered(rows: pl.DataFrame) -> pl.DataFrame:
    """Raise AlteredRows if a row differs from its checksum; return the rows otherwise."""
    sealed = rows.filter(pl.col(CHECKSUM).is_not_null())
    altered = int((sealed[CHECKSUM] != _compute_checksums(sealed)).sum())
    if altered:
        raise AlteredRows(f"{altered} rows differ from their checksums")
    return rows


def is_reader_error(error: BaseException) -> bool:
    """Return whether an error means that a reader could not decode or reach files."""
    # Panics of Rust libraries are not Exceptions, and each library has its own panic class.
    return isinstance(error, _READER_ERRORS) or type(error).__name__ == "PanicException"


def _compute_checksums(rows: pl.DataFrame) -> pl.Series:
    values = rows.select(sorted(name for name in rows.columns if name != CHECKSUM))
    sums = [_compute_row_checksum(row) for row in values.iter_rows(named=True)]
    return pl.Series(CHECKSUM, sums, pl.Int64)


def _compute_row_checksum(row: dict[str, object]) -> int:
    # Nulls are left out, so that adding columns later does not change any checksum.
    present = {name: value for name, value in row.items() if value is not None}
    packed = orjson.dumps(present, default=_to_hexadecimal)
    return int.from_bytes(blake2b(packed, digest_size=_BYTES).digest(), "big", signed=True)


def _to_hexadecimal(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no checksum")


MAX_KEYS_FOR_SKIPPING: Final = 2_000
"""Up to this number of keys, row groups are skipped by their lowest and highest key. With more
keys, each row group would search the whole list of keys."""


def scan_rows(kind: TableKind, urls: Sequence[str], file_column: str | None = None) -> pl.LazyFrame:
    """Return the rows of a table's files; columns added later are null in older files.

    Args:
        file_column: name of an additional column with the path of each row's file; None adds no
            column.
    """
    return pl.scan_parquet(
        list(urls),
        glob=False,
        schema=kind.schema if kind.added else None,
        missing_columns="insert" if kind.added else "raise",
        include_file_paths=file_column,
    )


def filter_rows(rows: pl.LazyFrame, key: str, wanted: Collection[str]) -> pl.LazyFrame:
    """Return the rows with one of the wanted keys, in no particular order."""
    if len(wanted) <= MAX_KEYS_FOR_SKIPPING:
        return rows.filter(pl.col(key).is_in(sorted(wanted)))
    keys = pl.LazyFrame({key: list(wanted)}, schema={key: pl.String})
    return rows.join(keys, on=key, how="semi")


FILE: Final = "__file"
"""The column with the name of each row's file."""

_MAX_KEYS: Final = 20_000
"""Maximum number of keys held in memory; the keys of other files are read for every request."""

_NOTHING: Final = pl.DataFrame(schema={"key": pl.String, FILE: pl.String})


def read_file_names(table: DeltaTable) -> set[str]:
    """Return the names of an open table's files, which are all in its folder."""
    # Use only the names: Delta percent-encodes folders (a space, an umlaut), Polars does not.
    return {uri.rsplit("/", 1)[-1] for uri in table.file_uris()}


def _read_row_counts(table: DeltaTable) -> dict[str, int]:
    actions: Any = table.get_add_actions(flatten=True)
    frame = pl.DataFrame(actions).select("path", "num_records")
    if frame["num_records"].null_count():
        raise ValueError("the log lacks the number of rows of a file")
    return {str(path).rsplit("/", 1)[-1]: int(rows) for path, rows in frame.iter_rows()}


def _collect_with_file_names(rows: pl.LazyFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col(FILE).str.split("/").list.last()).collect()


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
    """A file of a table: its size, its number of rows, and its lowest and highest key."""

    path: str
    bytes: int
    rows: int
    first: str
    last: str


class KeyedTable:
    """Reads and writes a table of one kind at one location.

    Opening a table reads its log from the last checkpoint on. That takes several times as long as
    reading only the additions since its last use, so the open table is kept. Files never change, so
    their keys are read once. If another process deletes the folder, reading its files fails: then
    call `forget`.

    Args:
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
        self._lock = threading.RLock()
        self._table: DeltaTable | None = None
        self._keys: dict[str, pl.DataFrame] = {}
        self._skipped_files: frozenset[str] = frozenset()

    def open(self) -> DeltaTable | None:
        """Return the newest version of the table; None if it does not exist."""
        with self._lock:
            if self._table is not None:
                try:
                    self._table.update_incremental()
                except (OSError, ValueError, DeltaError):
                    self.forget()
            if self._table is None:
                with suppress(TableNotFoundError):
                    self._table = DeltaTable(self.location.url)
            return self._table

    def forget(self) -> None:
        """Discard the open table and the cached keys; the next use opens it again."""
        with self._lock:
            self._table, self._keys = None, {}

    def scan(
        self,
        table: DeltaTable,
        paths: Collection[str] | None = None,
        file_column: str | None = None,
    ) -> pl.LazyFrame:
        """Return the rows of the table, or of some of its files, including duplicates."""
        names = read_file_names(table) - self._skipped_files
        names &= names if paths is None else set(paths)
        if not names:
            schema = dict(self.kind.schema) | ({file_column: pl.String} if file_column else {})
            return pl.LazyFrame(schema=schema)
        urls = [f"{self.location.url}/{name}" for name in sorted(names)]
        return scan_rows(self.kind, urls, file_column)

    def locate(self, table: DeltaTable, wanted: Set[str]) -> pl.DataFrame:
        """Return the wanted keys that exist, each with the name of a file that contains it."""
        with self._lock:
            other_files = self._keep_keys(table)
            cached_keys = pl.concat([_NOTHING.rename({"key": self.kind.key}), *self._keys.values()])
        parts = [filter_rows(cached_keys.lazy(), self.kind.key, wanted).collect()]
        if other_files:
            scanned = self.scan(table, other_files, FILE)
            rows = filter_rows(scanned, self.kind.key, wanted).select(self.kind.key, FILE)
            parts.append(_collect_with_file_names(rows))
        return pl.concat(parts).unique(self.kind.key)

    def _keep_keys(self, table: DeltaTable) -> set[str]:
        """Cache the keys of new files, the smallest first; return the new files left uncached."""
        names = read_file_names(table) - self._skipped_files
        self._keys = {name: keys for name, keys in self._keys.items() if name in names}
        new = names - self._keys.keys()
        if not new:
            return set()
        room = _MAX_KEYS - sum(map(len, self._keys.values()))
        chosen = []
        for name, rows in sorted(_read_row_counts(table).items(), key=lambda item: item[1]):
            if name in new and rows <= room:
                chosen.append(name)
                room -= rows
        if chosen:
            keys = _collect_with_file_names(
                self.scan(table, chosen, FILE).select(self.kind.key, FILE)
            )
            self._keys |= {
                str(name): rows for (name,), rows in keys.partition_by(FILE, as_dict=True).items()
            }
        return new - self._keys.keys()

    def missing(self, keys: Collection[str]) -> set[str]:
        """Return the given keys that the table does not contain."""
        wanted = set(keys)
        located = self._read_with_retry(lambda table: self.locate(table, wanted))
        return wanted if located is None else wanted.difference(located[self.kind.key])

    def keys(self) -> set[str]:
        """Return the keys of all rows."""
        frame = self._read_with_retry(
            lambda table: self.scan(table).select(self.kind.key).collect()
        )
        return set() if frame is None else set(frame[self.kind.key])

    def read(self, keys: Collection[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the rows with these keys, without duplicates, in no particular order.

        Args:
            columns: the columns to read, including the key. By default all columns are read, and
                then compared with the checksums of their rows.
        """
        names = list(columns or self.kind.schema)
        frame = self._read_with_retry(lambda table: self._read(table, set(keys), names))
        if frame is None:
            return pl.DataFrame(schema={name: self.kind.schema[name] for name in names})
        return frame

    def stored(self, keys: Collection[str]) -> pl.DataFrame:
        """Return the rows with these keys including duplicates, for checks."""
        wanted = set(keys)
        frame = self._read_with_retry(
            lambda table: filter_rows(self.scan(table), self.kind.key, wanted).collect()
        )
        return pl.DataFrame(schema=self.kind.schema) if frame is None else frame

    def append(
        self, frame: pl.DataFrame, *, name: str | None = None, description: str = ""
    ) -> None:
        """Append rows in one commit: after a crash, either all of them are stored or none.

        Raises:
            ServiceUnavailable: the location could not be written.
        """
        key = self.kind.key
        rows = add_checksums(frame.unique(key, keep="first").sort(key))
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
                writer_properties=_build_writer_properties(self.kind),
            )

    def remove(self, files: Iterable[DataFile | DamagedFile]) -> None:
        """Remove files from the table's log; the files stay until they are vacuumed."""
        opened = self.open()
        if opened is None:
            return
        now = int(time.time() * 1000)
        removed = [
            RemoveAction(path=f.path, data_change=True, deletion_timestamp=now, size=f.bytes)
            for f in files
        ]
        self.guard()
        opened.create_write_transaction(list(removed), mode="append", schema=opened.schema())

    def description(self) -> str | None:
        """Return the description with which the table was created; None if it does not exist."""
        metadata = self._read_with_retry(lambda table: table.metadata())
        return None if metadata is None else metadata.description or ""

    def size(self) -> TableSize:
        """Return the number of rows, files and bytes in the newest version of the table."""
        return compute_table_size(self.files())

    def files(self) -> list[DataFile]:
        """Return the files in the newest version of the table; empty if it does not exist."""
        return self._read_with_retry(lambda table: read_data_files(table, self.kind.key)) or []

    def read_range(self, keys: HashRange, columns: Sequence[str]) -> pl.DataFrame:
        """Return the rows with keys in a range, without duplicates."""
        key = pl.col(self.kind.key)
        within = key >= keys.first
        if keys.end is not None:
            within &= key < keys.end
        frame = self._read_with_retry(
            lambda table: require_unaltered(self.scan(table).filter(within).collect())
        )
        if frame is None:
            return pl.DataFrame(schema={name: self.kind.schema[name] for name in columns})
        return frame.select(columns).unique(self.kind.key)

    def _read(self, table: DeltaTable, wanted: set[str], names: list[str]) -> pl.DataFrame:
        # Read in two steps, so that other columns are read only from files with a wanted row. This
        # is faster while there are many small files.
        located = self.locate(table, wanted)
        files = [str(name) for name in located[FILE].unique()]
        rows = filter_rows(self.scan(table, files), self.kind.key, wanted)
        frame = rows.select(names).collect()
        if len(names) == len(self.kind.schema):
            require_unaltered(frame)
        return frame.unique(self.kind.key)

    def _read_with_retry(self, read: Callable[[DeltaTable], _T]) -> _T | None:
        for attempt in range(_READ_ATTEMPTS):
            with self.translated_errors("read"):
                table = self._open_unless_damaged()
                if table is None:
                    return None
                try:
                    return read(table)
                except BaseException as error:
                    self.forget()
                    if attempt == _READ_ATTEMPTS - 1 or not is_reader_error(error):
                        raise
                    if self._skips_damaged:
                        damaged = self._find_damaged_files("read")
                        self._skipped_files = frozenset(file.path for file in damaged)
        return None

    def _open_unless_damaged(self) -> DeltaTable | None:
        """Open the table; return None if it is missing, or if its damaged log is to be skipped."""
        try:
            return self.open()
        except BaseException as error:
            if not (self._skips_damaged and is_reader_error(error)):
                raise
            return None

    def _find_damaged_files(self, participle: str) -> list[DamagedFile]:
        """Return the damaged files of the table, to explain an error."""
        from rag_assets.storage.lake.files import iter_damaged_files

        return list(iter_damaged_files("", self, None if participle == "written" else HashRange()))

    @contextmanager
    def translated_errors(self, participle: str) -> Iterator[None]:
        """Convert errors of Delta Lake, Polars and the file system to the project's errors.

        Args:
            participle: the last word of the message "the lake … cannot be", such as "read".

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
            return build_disk_full_error(self.location.url, f"the lake cannot be {participle}")
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return ServiceUnavailable(
            f"the lake at {self._place} cannot be {participle}: {reason}",
            hint="check RAG_ASSETS_LAKE_URL, its credentials, permissions and free space",
        )

    @property
    def _place(self) -> str:
        return "/".join(self.location.url.split("/")[-4:])


def read_data_files(table: DeltaTable, key: str) -> list[DataFile]:
    """Return the files of an opened table."""
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


def _build_writer_properties(kind: TableKind) -> WriterProperties:
    plain = ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
    keyed = ColumnProperties(dictionary_enabled=False, statistics_enabled="CHUNK")
    return WriterProperties(
        compression=kind.compression,
        compression_level=1 if kind.compression == "ZSTD" else None,
        max_row_group_size=kind.group_rows,
        default_column_properties=plain,
        column_properties={kind.key: keyed},
    )
