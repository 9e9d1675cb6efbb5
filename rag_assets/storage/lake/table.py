"""One Delta table whose rows are found by a key.

Rows are only ever added, by one writer; a crash may leave a key twice, with equal content, so
readers take distinct keys. A reader may meet files that compaction has just removed: it opens
the table again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import polars as pl
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from rag_assets.common.errors import ServiceUnavailable, TenantLocked
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import TableSize
from rag_assets.storage.lake.schemas import TableKind

_T = TypeVar("_T")
_FILE: Final = "__file"
_READ_ATTEMPTS: Final = 3

# Statistics of a column put the beginnings of its values into the log, where they outlive the
# rows: keys only. Compaction removes what is no longer referred to, so nothing is retained.
_PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 0 seconds",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the table, with the least and the greatest key in it."""

    path: str
    bytes: int
    rows: int
    first: str
    last: str


class KeyedTable:
    """A table of one kind at one place.

    Args:
        kind: its columns and layout.
        location: its folder; it need not exist.
        guard: called before every write; raises when this writer may no longer write.
    """

    def __init__(self, kind: TableKind, location: Location, guard: Callable[[], None]) -> None:
        self.kind = kind
        self.location = location
        self.guard = guard

    def missing(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that no row has."""
        wanted = set(keys)
        found = self._reading(lambda table: self._locate(table, wanted))
        return wanted if found is None else wanted.difference(found[self.kind.key])

    def keys(self) -> set[str]:
        """The keys of all rows."""
        found = self._reading(lambda table: self.scan(table).select(self.kind.key).collect())
        return set() if found is None else set(found[self.kind.key])

    def read(self, keys: Collection[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows with these keys, each once, in no particular order.

        Args:
            keys: which rows; unknown keys are passed over.
            columns: which columns, the key among them; all by default.
        """
        names = list(columns or self.kind.schema)
        found = self._reading(lambda table: self._read(table, set(keys), names))
        if found is None:
            return pl.DataFrame(schema={name: self.kind.schema[name] for name in names})
        return found

    def stored(self, keys: Collection[str]) -> pl.DataFrame:
        """Rows with these keys exactly as they lie there, duplicates included: for checks."""
        wanted = set(keys)
        found = self._reading(
            lambda table: self.scan(table).filter(_among(self.kind.key, wanted)).collect()
        )
        return pl.DataFrame(schema=self.kind.schema) if found is None else found

    def append(self, frame: pl.DataFrame, *, name: str | None = None, note: str = "") -> None:
        """Add rows in one commit: all of them or, after a crash, none.

        Args:
            frame: rows with the columns of the kind.
            name, note: kept with the table when this first append makes it.

        Raises:
            TenantGone, TenantLocked: the guard's; nothing was written.
            ServiceUnavailable: the place could not be written.
        """
        key = self.kind.key
        rows = frame.unique(key, keep="first").sort(key)
        self.guard()
        with self.explained("written"):
            write_deltalake(
                self.location.url,
                rows,
                mode="append",
                name=name,
                description=note or None,
                configuration={**_PROPERTIES, "delta.dataSkippingStatsColumns": key},
                storage_options=dict(self.location.storage_options),
                writer_properties=_layout(self.kind),
            )

    def note(self) -> tuple[str, str] | None:
        """Name and note given when the table was made, None when there is no table."""
        metadata = self._reading(lambda table: table.metadata())
        return None if metadata is None else (metadata.name or "", metadata.description or "")

    def size(self) -> TableSize:
        """Rows, files and bytes that the table refers to."""
        return size_of(self.files())

    def files(self) -> list[DataFile]:
        """The files of the table."""
        return self._reading(lambda table: data_files(table, self.kind.key)) or []

    def open(self) -> DeltaTable | None:
        """The table as it is now, None when there is none."""
        try:
            return DeltaTable(
                self.location.url, storage_options=dict(self.location.storage_options)
            )
        except TableNotFoundError:
            return None

    def scan(
        self, table: DeltaTable, paths: Sequence[str] | None = None, file_column: str | None = None
    ) -> pl.LazyFrame:
        """The rows of the table, or of some of its files, duplicates included.

        Args:
            table: as opened.
            paths: which of its files.
            file_column: adds the path of each row's file under this name.
        """
        # Names only: Delta percent-encodes folders (a space, an umlaut), Polars takes them as is.
        names = {uri.rsplit("/", 1)[-1] for uri in table.file_uris()}
        names &= names if paths is None else set(paths)
        uris = [f"{self.location.url}/{name}" for name in sorted(names)]
        if not uris:
            schema = dict(self.kind.schema) | ({file_column: pl.String} if file_column else {})
            return pl.LazyFrame(schema=schema)
        return pl.scan_parquet(
            uris,
            glob=False,
            include_file_paths=file_column,
            storage_options=dict(self.location.storage_options) or None,
        )

    def _locate(self, table: DeltaTable, wanted: set[str]) -> pl.DataFrame:
        """Which of the keys are there, and in which file; reads no other column."""
        key = self.kind.key
        rows = self.scan(table, file_column=_FILE).filter(_among(key, wanted))
        return rows.select(key, _FILE).collect().unique(key)

    def _read(self, table: DeltaTable, wanted: set[str], names: list[str]) -> pl.DataFrame:
        # Two steps: the columns beside the key are then opened only in files that hold a row
        # asked for, which matters while there are many small ones.
        located = self._locate(table, wanted)
        paths = [str(path).rsplit("/", 1)[-1] for path in located[_FILE].unique()]
        rows = self.scan(table, paths).filter(_among(self.kind.key, wanted))
        return rows.select(names).collect().unique(self.kind.key)

    def _reading(self, read: Callable[[DeltaTable], _T]) -> _T | None:
        for attempt in range(_READ_ATTEMPTS):
            with self.explained("read"):
                table = self.open()
                if table is None:
                    return None
                try:
                    return read(table)
                except (OSError, pl.exceptions.ComputeError):
                    if attempt == _READ_ATTEMPTS - 1:
                        raise
        return None

    @contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Failures of the store, in the project's own errors; `what` completes "cannot be …"."""
        place = "/".join(self.location.url.split("/")[-4:])
        try:
            yield
        except CommitFailedError as error:
            raise TenantLocked(f"somebody else writes to the lake at {place}") from error
        except (OSError, DeltaError, pl.exceptions.ComputeError) as error:
            raise ServiceUnavailable(
                f"the lake at {place} cannot be {what}: {str(error).splitlines()[0][:200]}",
                hint="look at RAG_ASSETS_LAKE_URL, its credentials, rights and free space",
            ) from error


def data_files(table: DeltaTable, key: str) -> list[DataFile]:
    """The files of an opened table."""
    actions: Any = table.get_add_actions(flatten=True)
    frame = pl.DataFrame(actions)
    if frame.is_empty():
        return []
    columns = ("path", "size_bytes", "num_records", f"min.{key}", f"max.{key}")
    return [DataFile(*row) for row in frame.select(columns).iter_rows()]


def size_of(files: Collection[DataFile]) -> TableSize:
    """The sum of the files."""
    return TableSize(sum(f.rows for f in files), len(files), sum(f.bytes for f in files))


def _among(key: str, wanted: set[str]) -> pl.Expr:
    # sorted: row groups are skipped by their least and greatest key
    return pl.col(key).is_in(sorted(wanted))


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
