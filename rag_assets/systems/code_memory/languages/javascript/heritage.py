"""Base classes, interfaces and fields of a class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.javascript.parameters import type_of
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_NAMED: Final = frozenset(
    {"identifier", "type_identifier", "member_expression", "nested_type_identifier"}
)


def heritage(tree: SyntaxTree, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that a class or interface extends, and the names that it implements."""
    extends: list[str] = []
    implements: list[str] = []
    for clause in node.named_children:
        if clause.type == "extends_type_clause":
            extends += _names(tree, clause)
        elif clause.type == "class_heritage":
            for inner in clause.named_children:
                if inner.type == "implements_clause":
                    implements += _names(tree, inner)
                elif inner.type == "extends_clause":
                    extends += _names(tree, inner)
                elif inner.type in _NAMED:
                    extends.append(tree.of(inner))
    return tuple(extends), tuple(implements)


def _names(tree: SyntaxTree, clause: Node) -> Iterator[str]:
    for node in clause.named_children:
        inner: Node | None = node
        if node.type == "generic_type":
            inner = node.child_by_field_name("name")
        if inner is not None and inner.type in _NAMED:
            yield tree.of(inner)


def fields_of(tree: SyntaxTree, node: Node) -> tuple[tuple[str, str], ...]:
    """Return a class's fields with their declared types, including constructor parameters."""
    body = node.child_by_field_name("body")
    return () if body is None else tuple(_fields(tree, body))


def _fields(tree: SyntaxTree, body: Node) -> Iterator[tuple[str, str]]:
    for member in body.named_children:
        if member.type == "public_field_definition":
            type_ = type_of(tree, member)
            if type_:
                yield tree.of(member.child_by_field_name("name")), type_
        elif member.type == "method_definition":
            listed = member.child_by_field_name("parameters")
            if listed is None or tree.of(member.child_by_field_name("name")) != "constructor":
                continue
            for node in listed.named_children:
                kinds = {child.type for child in node.children}
                if kinds & {"accessibility_modifier", "readonly"}:
                    yield tree.of(node.child_by_field_name("pattern")), type_of(tree, node)
