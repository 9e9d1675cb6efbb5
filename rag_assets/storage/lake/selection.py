"""Selection of rows by their keys."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

_FEW_KEYS: Final = 2_000
"""Up to so many, groups of rows are skipped by their least and greatest key; beyond it, the list of
keys would be gone through for each group."""


def rows_with(rows: pl.LazyFrame, key: str, wanted: Collection[str]) -> pl.LazyFrame:
    """The rows whose key is among the wanted ones, in no particular order.

    Args:
        rows: of a table, or of a file.
        key: the column of keys.
        wanted: the keys, each once.
    """
    if len(wanted) <= _FEW_KEYS:
        return rows.filter(pl.col(key).is_in(sorted(wanted)))
    keys = pl.LazyFrame({key: list(wanted)}, schema={key: pl.String})
    return rows.join(keys, on=key, how="semi")
