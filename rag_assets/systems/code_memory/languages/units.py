"""Units that cover a whole text: text outside definitions is cut at blank lines.

Also: the comments that belong to the unit of a node.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.tree import SyntaxTree, is_comment
from rag_assets.systems.code_memory.symbols.model import Unit

if TYPE_CHECKING:
    from tree_sitter import Node

_CLOSING = re.compile(r"[\s)\]};,]*")
_BLANK_LINES = re.compile(r"\n(?:[ \t\r\f\v]*\n)+")


def add_rest_units(text: str, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Return the units in order, with units of the role `rest` for the text between them.

    Args:
        units: the units, in any order, without overlaps.
    """
    found: list[Unit] = []
    at = 0
    for unit in sorted(units, key=lambda unit: unit.start):
        found += split_paragraphs(text, at, unit.start)
        found.append(unit)
        at = unit.end
    return (*found, *split_paragraphs(text, at, len(text)))


def split_paragraphs(text: str, start: int, end: int, symbol: str = "") -> Iterator[Unit]:
    """Yield the paragraphs between two offsets as units that may be joined with neighbours.

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


def cover_text(text: str, made: Sequence[Unit], cuts: Sequence[int]) -> tuple[Unit, ...]:
    """Return units that cover a whole text, each with the ends of the statements in it.

    Args:
        made: units of definitions.
        cuts: offsets after which a statement ends, ascending.
    """
    whole = add_rest_units(text, _extend_to_closing_brackets(text, made))
    return tuple(replace(unit, cuts=cuts_within(cuts, unit)) for unit in whole)


def _extend_to_closing_brackets(text: str, made: Sequence[Unit]) -> Iterator[Unit]:
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


def cuts_within(cuts: Sequence[int], unit: Unit) -> tuple[int, ...]:
    """Return the offsets inside a unit, among ascending offsets."""
    return tuple(cuts[bisect_right(cuts, unit.start) : bisect_left(cuts, unit.end)])


def first_comment(node: Node) -> Node:
    """Return the first of the comments directly above a node, or else the node."""
    first = node
    before = node.prev_sibling
    while before is not None and is_comment(before):
        above = before.prev_sibling
        if before.end_point.row + 1 < first.start_point.row:
            break
        # A comment at the end of a line belongs to that line.
        if above is not None and above.end_point.row == before.start_point.row:
            break
        first, before = before, above
    return first


def end_with_comment(tree: SyntaxTree, node: Node) -> int:
    """Return the end of a node, including a comma and comments that follow on the same line."""
    last, following = node, node.next_sibling
    if following is not None and following.type == ",":
        last, following = following, following.next_sibling
    while following is not None and is_comment(following):
        if following.start_point.row != last.end_point.row:
            break
        last, following = following, following.next_sibling
    return tree.end(last)
