"""Columns of numbers, which store a table's rows in a few bytes each, and lookups in them."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

NONE = -1
"""The number that represents a missing name."""


def numbers(values: Iterable[int] = ()) -> array[int]:
    """Return a column of 32-bit numbers."""
    return array("i", values)


class Names:
    """Distinct texts, each with a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self.bytes = 0

    def add(self, text: str | None) -> int:
        """Return the number of a text, which is added if it is new; NONE for None."""
        if text is None:
            return NONE
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
            self.bytes += sys.getsizeof(text) + _BYTES_OF_NAME
        return number

    def of(self, text: str) -> int | None:
        """Return the number of a text; None if it was not added."""
        return self._numbers.get(text)

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)


_BYTES_OF_NAME = 110
"""Estimated bytes of a name in the list and the table, including its number and spare capacity."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Finds the rows of a column by the number in them."""

    order: array[int]
    begins: array[int]

    @classmethod
    def of(cls, column: array[int], count: int) -> Lookup:
        """Return a lookup for a column.

        Args:
            column: numbers below `count`; rows with NONE are not found.
            count: how many different numbers exist.
        """
        values = np.frombuffer(column, dtype=np.int32)
        order = np.argsort(values, kind="stable").astype(np.int32)
        held = np.bincount(values + 1, minlength=count + 1)
        return cls(_column(order), _column(np.cumsum(held)))

    def rows(self, number: int) -> array[int]:
        """Return the rows with this number, in order."""
        return self.order[self.begins[number] : self.begins[number + 1]]

    @property
    def bytes(self) -> int:
        """Return the size in bytes."""
        return len(self.order) * self.order.itemsize + len(self.begins) * self.begins.itemsize


def _column(values: np.ndarray[tuple[int], np.dtype[np.signedinteger]]) -> array[int]:
    column = numbers()
    column.frombytes(values.astype(np.int32).tobytes())
    return column
