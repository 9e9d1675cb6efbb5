"""Entries: keys and items of a structured text with their places, to a bounded depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

ITEM: Final = "[]"
"""Stands in a path for an item of a list."""

DEEPEST: Final = 16
"""Entries below this depth are a part of what holds them."""

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value, or an item of a list.

    Attributes:
        path: the keys that lead to it, its own last; an item is ITEM.
        start, end: character offsets, half open.
        value: of a scalar, without quotes; None for a table or a list.
    """

    path: Path
    start: int
    end: int
    value: str | None


@dataclass(slots=True)
class _Open:
    level: int
    path: Path | None
    start: int
    value: str | None


class Entries:
    """The entries of a text while it is read; those that are open end with what ends them."""

    def __init__(self) -> None:
        self._closed: list[Entry] = []
        self._open: list[_Open] = []

    def path(self, base: Path = ()) -> Path | None:
        """Of the innermost open entry; None for one that is too deep."""
        return self._open[-1].path if self._open else base

    def innermost(self) -> int:
        """The level of the innermost open entry; -1 without one."""
        return self._open[-1].level if self._open else -1

    def open(self, level: int, name: str, start: int, base: Path = ()) -> None:
        """Begin an entry within the innermost open one."""
        above = self.path(base)
        path = None if above is None or len(above) >= DEEPEST else (*above, name)
        self._open.append(_Open(level, path, start, None))

    def hold(self, value: str) -> None:
        """Give the innermost open entry its scalar."""
        if self._open and self._open[-1].value is None:
            self._open[-1].value = value

    def close(self, level: int, end: int) -> None:
        """End the open entries of this level and deeper."""
        while self._open and self._open[-1].level >= level:
            last = self._open.pop()
            if last.path is not None:
                self._closed.append(Entry(last.path, last.start, max(end, last.start), last.value))

    def add(self, path: Path, start: int, end: int, value: str | None) -> None:
        """Add a whole entry."""
        self._closed.append(Entry(path, start, end, value))

    def extend(self, others: tuple[Entry, ...]) -> None:
        """Add the entries of a part of the text."""
        self._closed.extend(others)

    def all(self) -> tuple[Entry, ...]:
        """Those that are closed, outer ones before what they hold."""
        return tuple(sorted(self._closed, key=lambda one: (one.start, len(one.path))))
