"""Units that cover a whole text: text outside definitions is cut at blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rag_assets.systems.code_memory.symbols.model import Unit

_BLANK_LINES = re.compile(r"\n(?:[ \t\r\f\v]*\n)+")


def covering(text: str, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Return the units in order, and units of the role rest for the text between them.

    Args:
        units: the units, in any order, without overlaps.
    """
    found: list[Unit] = []
    at = 0
    for unit in sorted(units, key=lambda unit: unit.start):
        found += rest(text, at, unit.start)
        found.append(unit)
        at = unit.end
    return (*found, *rest(text, at, len(text)))


def rest(text: str, start: int, end: int, symbol: str = "") -> Iterator[Unit]:
    """Yield the paragraphs between two offsets as units that are joined with their neighbours.

    Args:
        start, end: character offsets.
        symbol: the symbol of the definition around them.
    """
    at = start
    for blank in [*_BLANK_LINES.finditer(text, start, end), None]:
        last = end if blank is None else blank.start()
        piece = text[at:last]
        stripped = piece.strip()
        if stripped:
            first = at + piece.index(stripped[0])
            first = max(text.rfind("\n", at, first) + 1, at)
            yield Unit(first, at + len(piece.rstrip()), "rest", symbol, alone=False)
        at = end if blank is None else blank.end()
