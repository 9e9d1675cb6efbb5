"""Units of top-level keys, each with the comments above it; together they cover a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.systems.code_memory.languages.units import covering
from rag_assets.systems.code_memory.settings.entries import Entry
from rag_assets.systems.code_memory.symbols.model import Role, Unit

_COMMENT: Final = re.compile(r"[ \t]*(?:#|//|;|/\*|\*)")
_AFTER: Final = re.compile(r"[ \t]*+,?+[ \t]*+(?:(?:#|//)[^\n]*+)?")
_LONGEST_SYMBOL: Final = 500
_WORD: Final = re.compile(r"\w")


def units_of(
    text: str,
    entries: Sequence[Entry],
    *,
    symbol: Callable[[Entry], str] | None = None,
    role: Role = "key",
) -> list[Unit]:
    """Return a unit for each entry, in order; an entry within another entry has no unit.

    Args:
        entries: the entries, sorted by their start.
        symbol: returns the name of an entry; by default, its last key.
    """
    found: list[Unit] = []
    at = 0
    for entry in entries:
        if entry.start < at or entry.end <= entry.start:
            continue
        start, end = _begin(text, entry.start, at), _finish(text, entry.end)
        name = entry.path[-1] if symbol is None else symbol(entry)
        found.append(Unit(start, end, role, name[:_LONGEST_SYMBOL]))
        at = end
    return found


def covered(text: str, units: Sequence[Unit], ends: Sequence[int]) -> tuple[Unit, ...]:
    """Return units that cover a text; brackets between units belong to the units next to them.

    Args:
        units: the units, in order, without overlaps.
        ends: ascending offsets at which entries end, and at which a unit may be cut.
    """
    made: list[Unit] = []
    opening: Unit | None = None
    for unit in covering(text, units):
        bare = unit.role == "rest" and not _WORD.search(text, unit.start, unit.end)
        if bare and made:
            made[-1] = replace(made[-1], end=unit.end)
            continue
        if bare:
            opening = opening or unit
            continue
        made.append(unit if opening is None else replace(unit, start=opening.start))
        opening = None
    if opening is not None:
        made.append(replace(opening, end=len(text.rstrip())))
    return tuple(replace(unit, cuts=_within(ends, unit)) for unit in made)


def _within(ends: Sequence[int], unit: Unit) -> tuple[int, ...]:
    low = bisect_left(ends, unit.start + 1)
    return tuple(ends[low : bisect_left(ends, unit.end)])


def _begin(text: str, start: int, at: int) -> int:
    """Return the start of the comments above an entry; else of its line, or of the entry."""
    line = max(text.rfind("\n", at, start) + 1, at)
    if text[line:start].strip():
        return start
    while line > at:
        above = max(text.rfind("\n", at, line - 1) + 1, at)
        if not _COMMENT.match(text, above, line):
            break
        line = above
    return line


def _finish(text: str, end: int) -> int:
    after = _AFTER.match(text, end)
    last = end if after is None else after.end()
    if last < len(text) and text[last] not in "\r\n":
        last = end + (text[end:last].find(",") + 1)
    return last if text[last - 1] not in " \t" else end + len(text[end:last].rstrip())
