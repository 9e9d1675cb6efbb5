"""Columns of numbers, and lookups in them: rows of a table in a few bytes each."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

NONE = -1
"""The number of no name."""


def numbers(values: Iterable[int] = ()) -> array[int]:
    """A column of numbers of 32 bits."""
    return array("i", values)


class Names:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self.bytes = 0

    def add(self, text: str | None) -> int:
        """The number of a text; NONE for none."""
        if text is None:
            return NONE
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
            self.bytes += sys.getsizeof(text) + _BYTES_OF_NAME
        return number

    def of(self, text: str) -> int | None:
        """The number of a text that there is."""
        return self._numbers.get(text)

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)


_BYTES_OF_NAME = 110
"""Of its number, and of its places in the list and, with what is kept free, the table."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows that have a number in a column."""

    order: array[int]
    begins: array[int]

    @classmethod
    def of(cls, column: array[int], count: int) -> Lookup:
        """A lookup in a column.

        Args:
            column: numbers from 0 to `count`; rows with NONE are not found.
            count: how many numbers there are.
        """
        values = np.frombuffer(column, dtype=np.int32)
        order = np.argsort(values, kind="stable").astype(np.int32)
        held = np.bincount(values + 1, minlength=count + 1)
        return cls(_column(order), _column(np.cumsum(held)))

    def rows(self, number: int) -> array[int]:
        """The rows, in their order."""
        return self.order[self.begins[number] : self.begins[number + 1]]

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.order) * self.order.itemsize + len(self.begins) * self.begins.itemsize


def _column(values: np.ndarray[tuple[int], np.dtype[np.signedinteger]]) -> array[int]:
    column = numbers()
    column.frombytes(values.astype(np.int32).tobytes())
    return column
