"""Rows of tables: recognition of the header, and formatting of a row on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_LEAST_COLUMNS = 2
_LONGEST_REPEATED = 300


def on_a_line(cells: Sequence[str]) -> str:
    """Return `a | b |  | d`: empty cells keep columns aligned, trailing empty cells are cut off."""
    return " | ".join(cells).rstrip(" |")


def repeated(cell: str) -> str:
    """Return the text to repeat in the rows below for a cell that spans several rows.

    A long text is not repeated, because a small file could otherwise produce a text of any length.
    """
    return cell if len(cell) <= _LONGEST_REPEATED else ""


def names_columns(record: Sequence[str], columns: int) -> bool:
    """Return whether a table's first record names its columns.

    It does if its cells are words or years (numbers, dates and amounts are data), if all of them
    are different, and if at most one in three columns is empty. If all records of a table of two or
    more columns are like that, the first is also assumed to be a header, since most such tables
    have one.

    Args:
        record: the first record, as texts.
        columns: the number of columns.
    """
    filled = [cell for cell in record if cell]
    return (
        len(filled) >= max(_LEAST_COLUMNS, columns - columns // 3)
        and len(set(filled)) == len(filled)
        and all(_is_name(cell) for cell in filled)
        and any(not _YEAR.fullmatch(cell) for cell in filled)
    )


def _is_name(cell: str) -> bool:
    letters = sum(map(str.isalpha, cell))
    return cell[0].isalpha() or 2 * letters > len(cell) or _YEAR.fullmatch(cell) is not None
