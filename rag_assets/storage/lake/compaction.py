"""Compaction: merges small files, drops duplicate and dead rows, and deletes unreferenced files.

Only the keys of a table are held in memory all at once; rows are rewritten one range of keys at a
time. Merged files are added before the old files are removed from the table. A crash in between
leaves duplicate rows, which readers ignore and the next compaction drops.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence, Set
from typing import Final

import polars as pl
from deltalake import DeltaTable

from rag_assets.storage.lake.model import Compaction
from rag_assets.storage.lake.table import (
    DataFile,
    KeyedTable,
    compute_table_size,
    filter_rows,
    require_unaltered,
)

MAX_SMALL_FILES: Final = 32
MAX_OVERLAP_DEPTH: Final = 8
_FILE: Final = "__file"


def is_due(table: KeyedTable) -> bool:
    """Return whether a table needs compaction: many files are small, or overlap in their keys."""
    small, large = _by_size(table.files(), table.kind.file_bytes)
    return len(small) >= MAX_SMALL_FILES or overlap_depth(large) > MAX_OVERLAP_DEPTH


def compact(
    table: KeyedTable, live: Set[str] | None = None, dead: Set[str] = frozenset()
) -> Compaction | None:
    """Merge files, drop duplicate and dead rows, and delete files that the table no longer uses.

    Args:
        live: keys to keep; None keeps all.
        dead: keys to drop even if they are in `live`.

    Returns:
        the result; None if the table does not exist.
    """
    with table.translated_errors("compacted"):
        opened = table.open()
        if opened is None:
            return None
        before = table.files()
        rows = _keys_and_files(table, opened)
        is_dead = rows[table.kind.key].is_in(list(dead))
        if live is not None:
            is_dead |= ~rows[table.kind.key].is_in(list(live))
        duplicated = rows[table.kind.key].is_duplicated()
        wasteful = set(rows.filter(is_dead | duplicated)[_FILE].unique())
        chosen = files_to_merge(before, table.kind.file_bytes, wasteful)
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


def files_to_merge(
    files: Collection[DataFile], file_bytes: int, wasteful: Set[str]
) -> list[DataFile]:
    """Return the files to rewrite: small or wasteful files, or all if large files overlap too much.

    Large files are not rewritten until too many of them cover the same keys. A row is therefore
    rewritten only a few times, and not in every compaction.

    Args:
        file_bytes: files below half of this size are small.
        wasteful: paths of files with duplicate or dead rows.
    """
    small, large = _by_size(files, file_bytes)
    chosen = {f.path: f for f in files if f.path in wasteful}
    if len(small) > 1:
        chosen |= {f.path: f for f in small}
    if overlap_depth(large) > MAX_OVERLAP_DEPTH:
        chosen |= {f.path: f for f in files}
    return list(chosen.values())


def overlap_depth(files: Collection[DataFile]) -> int:
    """Return the largest number of files whose key ranges contain the same key."""
    events = sorted([(f.first, 0) for f in files] + [(f.last, 1) for f in files])
    depth = deepest = 0
    for _, is_end in events:
        depth += -1 if is_end else 1
        deepest = max(deepest, depth)
    return deepest


def _by_size(files: Collection[DataFile], file_bytes: int) -> tuple[list[DataFile], list[DataFile]]:
    small = [f for f in files if f.bytes < file_bytes // 2]
    return small, [f for f in files if f.bytes >= file_bytes // 2]


def _keys_and_files(table: KeyedTable, opened: DeltaTable) -> pl.DataFrame:
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
    for part in _iter_parts(keys, ranges):
        within = source.filter(pl.col(key).is_between(pl.lit(part[0]), pl.lit(part[-1])))
        table.append(require_unaltered(filter_rows(within, key, part.to_list()).collect()))
    table.remove(chosen)


def _iter_parts(keys: pl.Series, count: int) -> Iterator[pl.Series]:
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
