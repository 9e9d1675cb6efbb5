"""Checksums of rows, and the reader errors that indicate damage.

Parquet's pages and Delta's log have no checksums here, so altered bytes that can still be decoded
would be taken as text or vectors. Each row therefore has a checksum of its values. Older rows have
none (null) until compaction writes them again.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import orjson
import polars as pl
from deltalake.exceptions import DeltaError

CHECKSUM: Final = "checksum"
_BYTES: Final = 8
_READER_ERRORS: Final = (OSError, ValueError, DeltaError, pl.exceptions.PolarsError)


class AlteredRows(ValueError):
    """The values of a row differ from the values that were written."""


def with_checksums(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows, each with a checksum; an existing checksum is kept."""
    if CHECKSUM in rows.columns and not rows[CHECKSUM].null_count():
        return rows
    computed = _compute(rows)
    if CHECKSUM in rows.columns:
        computed = rows[CHECKSUM].fill_null(computed)
    return rows.with_columns(computed.alias(CHECKSUM))


def require_unaltered(rows: pl.DataFrame) -> pl.DataFrame:
    """Check that the values of whole rows are unaltered; return the rows.

    Raises:
        AlteredRows: the checksum of a row differs.
    """
    sealed = rows.filter(pl.col(CHECKSUM).is_not_null())
    altered = int((sealed[CHECKSUM] != _compute(sealed)).sum())
    if altered:
        raise AlteredRows(f"{altered} rows differ from their checksums")
    return rows


def is_reader_error(error: BaseException) -> bool:
    """Return whether an error means that a reader could not decode or reach files."""
    # Panics of Rust libraries are not Exceptions, and each library has its own panic class.
    return isinstance(error, _READER_ERRORS) or type(error).__name__ == "PanicException"


def _compute(rows: pl.DataFrame) -> pl.Series:
    values = rows.select(sorted(name for name in rows.columns if name != CHECKSUM))
    sums = [_checksum(row) for row in values.iter_rows(named=True)]
    return pl.Series(CHECKSUM, sums, pl.Int64)


def _checksum(row: dict[str, object]) -> int:
    # Nulls are left out, so that adding columns later does not change any checksum.
    present = {name: value for name, value in row.items() if value is not None}
    packed = orjson.dumps(present, default=_hexadecimal)
    return int.from_bytes(blake2b(packed, digest_size=_BYTES).digest(), "big", signed=True)


def _hexadecimal(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no checksum")
