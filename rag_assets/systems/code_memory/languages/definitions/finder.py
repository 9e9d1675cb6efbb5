"""Finds the definitions of a file and their offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.definitions.model import Definition, Grammar, Placed

if TYPE_CHECKING:
    from tree_sitter import Node

_INDENT: Final = 400
"""Maximum characters of indentation that count as part of the definition after it."""


def definitions(grammar: Grammar) -> list[Placed]:
    """Return all definitions in the order of the text, outer definitions first."""
    found: list[Placed] = []
    todo: list[tuple[Node, int]] = [(grammar.tree.root, -1)]
    while todo:
        level, parent = todo.pop()
        for placed in _level(grammar, level, parent, found):
            if placed.first and placed.definition.holds and placed.definition.body is not None:
                todo.append((placed.definition.body, len(found)))
            found.append(placed)
    return _ordered(found)


def _level(grammar: Grammar, level: Node, parent: int, found: list[Placed]) -> Iterator[Placed]:
    outer = found[parent].definition if parent >= 0 else None
    before: Node | None = None
    lead: Node | None = None
    last: list[Placed] = []
    for node in _statements(grammar, level):
        row = node.start_point.row
        apart = before is None or row > _last_row(grammar, before) + 1
        if grammar.belongs(node):
            if before is not None and last and row == _last_row(grammar, before):
                last = [_until(grammar, placed, node) for placed in last]
                continue
            lead = node if lead is None or apart else lead
            before = node
            continue
        yield from last
        start = lead if lead is not None and not apart else node
        last = list(_placed(grammar, start, node, parent, outer))
        lead, before = None, node
    yield from last


def _statements(grammar: Grammar, level: Node) -> Iterator[Node]:
    todo = [iter(level.named_children)]
    while todo:
        node = next(todo[-1], None)
        if node is None:
            todo.pop()
        elif (within := grammar.inside(node)) is not None:
            todo.append(iter(within.named_children))
        else:
            yield node


def _placed(
    grammar: Grammar, first: Node, node: Node, parent: int, outer: Definition | None
) -> Iterator[Placed]:
    start = _line_start(grammar.tree.text, grammar.tree.start(first))
    end = grammar.tree.end(node)
    text = grammar.tree.text
    while end > start and text[end - 1].isspace():  # Some grammars end a comment after its line.
        end -= 1
    for index, definition in enumerate(grammar.define(node, outer)):
        yield Placed(definition, start, end, parent, first=index == 0)


def _until(grammar: Grammar, placed: Placed, comment: Node) -> Placed:
    text, end = grammar.tree.text, grammar.tree.end(comment)
    while text[end - 1].isspace():
        end -= 1
    return Placed(placed.definition, placed.start, end, placed.parent, placed.first)


def _last_row(grammar: Grammar, node: Node) -> int:
    """Return the row of a node's last character; some grammars end comments on the next row."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _line_start(text: str, at: int) -> int:
    """Return the start of the line if only white space precedes the offset, else the offset."""
    low = max(0, at - _INDENT)
    first = text.rfind("\n", low, at) + 1
    if first == 0 and low > 0:
        return at
    return at if text[first:at].strip() else first


def _ordered(found: list[Placed]) -> list[Placed]:
    """Return definitions in the order of the text, with parents updated to their new indexes."""
    order = sorted(range(len(found)), key=lambda index: (found[index].start, -found[index].end))
    new = {old: index for index, old in enumerate(order)}
    return [
        Placed(
            found[old].definition,
            found[old].start,
            found[old].end,
            new.get(found[old].parent, -1),
            found[old].first,
        )
        for old in order
    ]
