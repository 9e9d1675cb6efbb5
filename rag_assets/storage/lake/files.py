"""Files of tables: damage, salvage, data of erased documents, and compaction.

A table's log lists its files with their sizes. A listed file that is missing, has another size or
cannot be decoded makes every read of the table fail. A file whose altered bytes can still be
decoded is found by the checksums of its rows. Files that no log lists may still contain rows that
were lost with a log.

Compaction merges small files, drops duplicate and dead rows, and deletes unreferenced files. Only
the keys of a table are held in memory all at once; rows are rewritten one range of keys at a time.
Merged files are added before the old files are removed from the table. A crash in between leaves
duplicate rows, which readers ignore and the next compaction drops.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Final

import polars as pl
from deltalake import DeltaTable

from rag_assets.common.hashing import HashRange, sha256_hex
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import Compaction, DamagedFile, DeadKeys, FileFault, LiveKeys
from rag_assets.storage.lake.rows import CHUNKS_TABLE, EMBEDDINGS_TABLE, PARSED_TEXT_TABLE
from rag_assets.storage.lake.table import (
    LOG_FOLDER,
    MAX_KEYS_FOR_SKIPPING,
    AlteredRows,
    DataFile,
    KeyedTable,
    compute_table_size,
    filter_rows,
    is_reader_error,
    read_data_files,
    require_unaltered,
    scan_rows,
)

_LOG = f"{LOG_FOLDER}/"


def iter_damaged_files(
    name: str, table: KeyedTable, decoded: HashRange | None = None
) -> Iterator[DamagedFile]:
    """Yield the damaged files of a table.

    Args:
        decoded: files to read completely: those whose names have a SHA-256 in this range. None
            reads no file completely.

    Raises:
        ServiceUnavailable: the location could not be read.
    """
    try:
        files = _find_listed_files(table)
        if files is None and any(_iter_parquet_files(table)):
            yield DamagedFile(name, _LOG, "missing")
        for file in files or ():
            whole = decoded is not None and sha256_hex(file.path) in decoded
            fault = _find_fault(table, file, reads_whole_file=whole)
            if fault is not None:
                yield DamagedFile(name, file.path, fault, file.bytes)
    except _UnreadableLog:
        yield DamagedFile(name, _LOG, "unreadable")
    except OSError as error:
        raise table.unavailable(error, "read") from error


def drop_damaged(table: KeyedTable, damaged: Iterable[DamagedFile]) -> None:
    """Remove damaged files from a table's log, so that its other files can be read again.

    A log that cannot be read is deleted; `salvage` then finds the rows of its files.
    """
    damaged = list(damaged)
    if any(file.path == _LOG for file in damaged):
        table.guard()
        Location(f"{table.location.url}/{LOG_FOLDER}").remove()
        table.forget()
        return
    if damaged:
        table.remove(damaged)
        table.forget()


def salvage(
    table: KeyedTable, keys: Set[str], *, name: str | None = None, description: str = ""
) -> int:
    """Append rows with these keys from files that no log lists; return the number of rows."""
    missing_keys = set(keys)
    if not missing_keys:
        return 0
    listed = {file.path for file in table.files()}
    saved = 0
    for url in list(_iter_parquet_files(table)):
        if url.rsplit("/", 1)[-1] in listed or not missing_keys:
            continue
        rows = _read_intact_rows(table, url, missing_keys)
        if rows is None or rows.is_empty():
            continue
        table.append(rows, name=name, description=description)
        saved += len(rows)
        missing_keys -= set(rows[table.kind.key])
    return saved


class _UnreadableLog(ValueError):
    """The log of a table is damaged and cannot be decoded."""


def _find_listed_files(table: KeyedTable) -> list[DataFile] | None:
    """Return the files that a table lists; None if it does not exist.

    Raises:
        _UnreadableLog: the table's log cannot be decoded.
        OSError: the location cannot be read.
    """
    try:
        table.forget()
        opened = table.open()
        return None if opened is None else read_data_files(opened, table.kind.key)
    except BaseException as error:
        if isinstance(error, OSError) or not is_reader_error(error):
            raise
        raise _UnreadableLog from error


def _read_intact_rows(table: KeyedTable, url: str, keys: Set[str]) -> pl.DataFrame | None:
    rows = scan_rows(table.kind, [url]).select(list(table.kind.schema))
    rows = filter_rows(rows, table.kind.key, keys)
    try:
        return require_unaltered(rows.collect())
    except BaseException as error:
        if not is_reader_error(error):
            raise
        return None


def _iter_parquet_files(table: KeyedTable) -> Iterator[str]:
    for url in table.location.files():
        if url.endswith(".parquet") and f"/{_LOG}" not in url:
            yield url


def _find_fault(table: KeyedTable, file: DataFile, *, reads_whole_file: bool) -> FileFault | None:
    url = f"{table.location.url}/{file.path}"
    size = table.location.read_file_size(url)
    if size is None:
        return "missing"
    if size != file.bytes:
        return "cut"
    rows = scan_rows(table.kind, [url])
    try:
        if reads_whole_file:
            read_rows = require_unaltered(rows.select(list(table.kind.schema)).collect())
            _require_all_by_key(table, rows, read_rows[table.kind.key])
        else:
            rows.select(pl.len()).collect()
    except AlteredRows:
        return "altered"
    except BaseException as error:
        if isinstance(error, OSError) or not is_reader_error(error):
            raise
        return "unreadable"
    return None


def _require_all_by_key(table: KeyedTable, rows: pl.LazyFrame, keys: pl.Series) -> None:
    """Require that reading by key returns every row of a file.

    It misses rows if the file's statistics, which decide what is read, were altered.
    """
    key = table.kind.key
    for part in keys.sort().to_frame().iter_slices(MAX_KEYS_FOR_SKIPPING):
        by_key = filter_rows(rows, key, part[key].unique().to_list()).select(pl.len()).collect()
        if by_key.item() != len(part):
            raise AlteredRows(f"a read by key finds {by_key.item()} of {len(part)} rows")


_TEXTS = {
    "parsed_text": (PARSED_TEXT_TABLE, pl.col("text")),
    "chunks": (
        CHUNKS_TABLE,
        pl.concat_str(
            pl.col("chunks").list.eval(pl.element().struct.field("text")).list.join("\n"),
            pl.col("contexts").list.join("\n").fill_null(""),
            pl.col("facts").fill_null(""),
            separator="\n",
        ),
    ),
}


def find_phrases_in_kept_texts(
    table: KeyedTable, dead: Set[str], phrases: Sequence[str]
) -> set[str]:
    """Return the phrases that also occur in texts that are not being deleted."""
    opened = table.open()
    if opened is None or not phrases:
        return set()
    others = table.scan(opened).filter(
        ~pl.col("key").is_in(sorted(dead)), pl.col("text").str.contains_any([*phrases])
    )
    texts = others.select("text").collect()["text"]
    return {phrase for phrase in phrases for text in texts if phrase in text}


def find_files_with_erased_data(
    location: Location, dead: DeadKeys, phrases: Sequence[str], needed: LiveKeys
) -> Iterator[str]:
    """Yield the paths, relative to the location, of files that contain data of erased documents.

    In a data file, such data is a row with a dead key, or a row with a phrase whose key is not
    needed. In a table's log, it is a phrase.
    """
    for url in location.files():
        parts = url[len(location.url) :].strip("/").split("/")
        if LOG_FOLDER in parts:
            text = "" if url.endswith(".parquet") else location.read(url)
            holds = any(phrase in text for phrase in phrases)
        else:
            holds = url.endswith(".parquet") and _contains_erased_data(
                location, url, parts[0], dead=dead, phrases=phrases, needed=needed
            )
        if holds:
            yield "/".join(parts)


def _contains_erased_data(
    location: Location,
    url: str,
    table: str,
    *,
    dead: DeadKeys,
    phrases: Sequence[str],
    needed: LiveKeys,
) -> bool:
    kind, text = _TEXTS.get(table, (EMBEDDINGS_TABLE, None))
    key = kind.key
    rows = scan_rows(kind, [url])
    keys: set[str] = set(rows.select(key).collect()[key])
    if keys & dead.of_table(table):
        return True
    live = needed.of_table(table)
    unneeded = set() if live is None else keys - live
    if text is None or not unneeded or not phrases:
        return False
    of_nobody = filter_rows(rows, key, unneeded)
    found = of_nobody.select(text.str.contains_any([*phrases]).any().alias("found"))
    return bool(found.collect()["found"][0])


MAX_SMALL_FILES: Final = 32
MAX_OVERLAP_DEPTH: Final = 8
_FILE: Final = "__file"


def is_due(table: KeyedTable) -> bool:
    """Return whether a table needs compaction: many files are small, or overlap in their keys."""
    small, large = _split_by_size(table.files(), table.kind.file_bytes)
    return len(small) >= MAX_SMALL_FILES or compute_overlap_depth(large) > MAX_OVERLAP_DEPTH


def compact(
    table: KeyedTable, live: Set[str] | None = None, dead: Set[str] = frozenset()
) -> Compaction | None:
    """Merge files, drop duplicate and dead rows, and delete files that the table no longer uses.

    Args:
        dead: keys to drop even if they are in `live`.

    Returns:
        the result; None if the table does not exist.
    """
    with table.translated_errors("compacted"):
        opened = table.open()
        if opened is None:
            return None
        before = table.files()
        rows = _read_keys_and_files(table, opened)
        is_dead = rows[table.kind.key].is_in(list(dead))
        if live is not None:
            is_dead |= ~rows[table.kind.key].is_in(list(live))
        duplicated = rows[table.kind.key].is_duplicated()
        wasteful = set(rows.filter(is_dead | duplicated)[_FILE].unique())
        chosen = select_files_to_merge(before, table.kind.file_bytes, wasteful)
        if chosen:
            kept = rows.filter(~is_dead & rows[_FILE].is_in([f.path for f in chosen]))[
                table.kind.key
            ]
            _rewrite(table, opened, chosen, kept.unique().sort())
        _vacuum(table)
        live_keys = rows.filter(~is_dead)[table.kind.key]
        return Compaction(
            before=compute_table_size(before),
            after=table.size(),
            duplicates=len(live_keys) - live_keys.n_unique(),
            dead=int(is_dead.sum()),
        )


def select_files_to_merge(
    files: Collection[DataFile], file_bytes: int, wasteful: Set[str]
) -> list[DataFile]:
    """Return the files to rewrite: small or wasteful ones, or all if large ones overlap too much.

    Large files are not rewritten until too many of them cover the same keys. A row is therefore
    rewritten only a few times, and not in every compaction.

    Args:
        file_bytes: files below half of this size are small.
    """
    small, large = _split_by_size(files, file_bytes)
    chosen = {f.path: f for f in files if f.path in wasteful}
    if len(small) > 1:
        chosen |= {f.path: f for f in small}
    if compute_overlap_depth(large) > MAX_OVERLAP_DEPTH:
        chosen |= {f.path: f for f in files}
    return list(chosen.values())


def compute_overlap_depth(files: Collection[DataFile]) -> int:
    """Return the largest number of files whose key ranges contain the same key."""
    events = sorted([(f.first, 0) for f in files] + [(f.last, 1) for f in files])
    depth = deepest = 0
    for _, is_end in events:
        depth += -1 if is_end else 1
        deepest = max(deepest, depth)
    return deepest


def _split_by_size(
    files: Collection[DataFile], file_bytes: int
) -> tuple[list[DataFile], list[DataFile]]:
    small = [f for f in files if f.bytes < file_bytes // 2]
    return small, [f for f in files if f.bytes >= file_bytes // 2]


def _read_keys_and_files(table: KeyedTable, opened: DeltaTable) -> pl.DataFrame:
    rows = table.scan(opened, file_column=_FILE).select(table.kind.key, _FILE).collect()
    return rows.with_columns(pl.col(_FILE).str.split("/").list.last())


def _rewrite(
    table: KeyedTable, opened: DeltaTable, chosen: Sequence[DataFile], keys: pl.Series
) -> None:
    """Write the rows with these keys to new files, then remove the chosen files."""
    key = table.kind.key
    source = table.scan(opened, [f.path for f in chosen])
    share = len(keys) / max(1, sum(f.rows for f in chosen))
    ranges = math.ceil(share * sum(f.bytes for f in chosen) / table.kind.file_bytes)
    for part in _iter_key_ranges(keys, ranges):
        within = source.filter(pl.col(key).is_between(pl.lit(part[0]), pl.lit(part[-1])))
        table.append(require_unaltered(filter_rows(within, key, part.to_list()).collect()))
    table.remove(chosen)


def _iter_key_ranges(keys: pl.Series, count: int) -> Iterator[pl.Series]:
    length = math.ceil(len(keys) / max(1, count))
    for offset in range(0, len(keys), max(1, length)):
        yield keys.slice(offset, length)


def _vacuum(table: KeyedTable) -> None:
    """Delete staged files, old log entries, and then files that the table does not refer to.

    Unreferenced files are deleted last. If such a file remains, the next compaction repeats this.
    """
    staged = table.location.staged_files()
    if staged:
        table.guard()
        for file in staged:
            file.unlink(missing_ok=True)
    opened = table.open()
    if opened is None or not opened.vacuum(
        0, dry_run=True, enforce_retention_duration=False, full=True
    ):
        return
    table.guard()
    opened.create_checkpoint()
    opened.cleanup_metadata()
    table.guard()
    opened.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
