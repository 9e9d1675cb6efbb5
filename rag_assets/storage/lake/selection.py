"""Rows of a table's files, and their selection by keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import polars as pl

from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.schemas import TableKind

FEW_KEYS: Final = 2_000
"""Up to this number of keys, row groups are skipped by their lowest and highest key. With more
keys, each row group would search the whole list of keys."""


def scan_rows(
    kind: TableKind, location: Location, urls: Sequence[str], file_column: str | None = None
) -> pl.LazyFrame:
    """Return the rows of a table's files; columns added later are null in older files.

    Args:
        kind: the table's columns.
        location: the table's location.
        urls: addresses of the files; at least one.
        file_column: name of an added column with the path of each row's file.
    """
    return pl.scan_parquet(
        list(urls),
        glob=False,
        schema=kind.schema if kind.added else None,
        missing_columns="insert" if kind.added else "raise",
        include_file_paths=file_column,
        storage_options=dict(location.storage_options) or None,
    )


def filter_rows(rows: pl.LazyFrame, key: str, wanted: Collection[str]) -> pl.LazyFrame:
    """Return the rows with one of the wanted keys, in no particular order.

    Args:
        rows: rows of a table, or of a file.
        key: name of the column of keys.
        wanted: the distinct keys.
    """
    if len(wanted) <= FEW_KEYS:
        return rows.filter(pl.col(key).is_in(sorted(wanted)))
    keys = pl.LazyFrame({key: list(wanted)}, schema={key: pl.String})
    return rows.join(keys, on=key, how="semi")
