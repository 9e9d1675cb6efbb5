"""Turns a file's definitions into units: small types stay whole, large types are split up."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.systems.code_memory.languages.definitions.model import Placed
from rag_assets.systems.code_memory.languages.tree import SyntaxTree
from rag_assets.systems.code_memory.languages.units import covering
from rag_assets.systems.code_memory.symbols.model import Unit

LARGE: Final = 6_000
"""Number of characters above which a type is split into its head and its members."""

_SIGNATURE: Final = 300
_SPACE = re.compile(r"\s+")
_CLOSING = re.compile(r"[\s)\]};,]*")


def units(tree: SyntaxTree, found: Sequence[Placed]) -> list[Unit]:
    """Return the units of definitions, in order and without overlaps; other text has no unit.

    Args:
        found: definitions of the file, outer definitions first.
    """
    split = _split(found)
    made: list[Unit] = []
    at = 0
    for index, placed in enumerate(found):
        inner = placed.parent >= 0 and placed.parent not in split
        if not placed.first or inner or placed.start < at or placed.end <= placed.start:
            split.discard(index)
            continue
        end = split.get(index, placed.end)
        made.append(_unit(tree, placed, found, index, end))
        at = end
    return made


def covered(text: str, made: Sequence[Unit], cuts: Sequence[int]) -> tuple[Unit, ...]:
    """Return units that cover a whole text, each with the ends of the statements in it.

    Args:
        made: units of definitions.
        cuts: offsets after which a statement ends, ascending.
    """
    whole = covering(text, _closed(text, made))
    return tuple(replace(unit, cuts=_within(cuts, unit)) for unit in whole)


class _Split(dict[int, int]):
    """The ends of the heads of large types, by the type's index among the definitions."""

    def discard(self, index: int) -> None:
        """Drop a type that has no unit; its members get no units either."""
        self.pop(index, None)


def _split(found: Sequence[Placed]) -> _Split:
    split = _Split()
    for placed in found:
        outer = placed.parent
        if outer >= 0 and outer not in split and found[outer].end - found[outer].start > LARGE:
            split[outer] = placed.start
    return split


def _unit(tree: SyntaxTree, placed: Placed, found: Sequence[Placed], index: int, end: int) -> Unit:
    text, definition = tree.text, placed.definition
    symbol = definition.symbol
    if not symbol:  # A group is named after its first definition.
        inner = found[index + 1] if index + 1 < len(found) else None
        symbol = inner.definition.symbol if inner is not None and inner.parent == index else ""
    while end > placed.start and text[end - 1].isspace():
        end -= 1
    return Unit(
        placed.start, end, definition.role, symbol, signature(tree, placed), definition.alone
    )


def signature(tree: SyntaxTree, placed: Placed) -> str:
    """Return the declaration without its body, in one line."""
    node, body = placed.definition.node, placed.definition.body
    start, last = tree.start(node), tree.end(node)
    if body is not None and tree.start(body) > start:
        last = tree.start(body)
    line = _SPACE.sub(" ", tree.text[start : min(last, start + 4 * _SIGNATURE)]).strip()
    line = line[:_SIGNATURE].rstrip()
    for mark in (";", "{", "(", "=>", "="):
        line = line.removesuffix(mark).rstrip()
    return line


def _closed(text: str, made: Sequence[Unit]) -> Iterator[Unit]:
    """Yield units with the closing brackets after them, so that no chunk is only a bracket."""
    for index, unit in enumerate(made):
        last = made[index + 1].start if index + 1 < len(made) else len(text)
        closing = _CLOSING.match(text, unit.end, last)
        if closing is None:
            yield unit
            continue
        end = closing.end()
        if end < last and "\n" in text[unit.end : end]:
            end = text.rindex("\n", unit.end, end)
        elif end < last:
            end = unit.end
        yield replace(unit, end=unit.end + len(text[unit.end : end].rstrip()))


def _within(cuts: Sequence[int], unit: Unit) -> tuple[int, ...]:
    return tuple(cuts[bisect_right(cuts, unit.start) : bisect_left(cuts, unit.end)])
