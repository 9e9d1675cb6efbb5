"""Parameters and patterns in the grammars of JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_NAMES: Final = frozenset({"identifier", "shorthand_property_identifier_pattern"})
_LONG: Final = 200


def type_of(tree: SyntaxTree, node: Node, name: str = "type") -> str:
    """Return a declared type as written, in one line; "" if absent."""
    text = tree.of(node.child_by_field_name(name)).removeprefix(":")
    return " ".join(text[: 2 * _LONG].split())[:_LONG]


def parameters(tree: SyntaxTree, function: Node) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a function, each with its type or ""."""
    single = function.child_by_field_name("parameter")
    if single is not None:
        return ((tree.of(single), ""),)
    listed = function.child_by_field_name("parameters")
    return () if listed is None else tuple(_parameters(tree, listed))


def _parameters(tree: SyntaxTree, listed: Node) -> Iterator[tuple[str, str]]:
    for node in listed.named_children:
        if node.type == "comment":
            continue
        pattern = node.child_by_field_name("pattern") or node
        if pattern.type == "assignment_pattern":
            pattern = pattern.child_by_field_name("left") or pattern
        name = " ".join(tree.of(pattern)[:_LONG].split()).removeprefix("...")
        yield name, type_of(tree, node)


def pattern_names(tree: SyntaxTree, pattern: Node) -> Iterator[str]:
    """Yield the names that a pattern binds."""
    todo = [pattern]
    while todo:
        node = todo.pop()
        if node.type in _NAMES:
            yield tree.of(node)
        elif node.type == "pair_pattern":
            value = node.child_by_field_name("value")
            todo += [] if value is None else [value]
        elif node.type in {"assignment_pattern", "object_assignment_pattern"}:
            left = node.child_by_field_name("left")
            todo += [] if left is None else [left]
        else:
            todo += reversed(node.named_children)
