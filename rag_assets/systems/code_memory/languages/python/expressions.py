"""Static expressions: the value of an expression's text, as JSON.

| expression | value |
|---|---|
| text, number, True, False, None | itself |
| list, tuple, set | {of: list, tuple or set, items, at} |
| dictionary | {of: dict, items: [[key, value] …], at} |
| name, dotted name | {of: name, name: reference, at} |
| call | {of: call, call: expression, arguments, named, at} |
| attribute of anything but a name | {of: attribute, object, name, at} |
| a + b, text with names in it (f"…{a}…") | {of: sum, items, at} |
| *a, **a | {of: spread, value, at} |
| a if b else c, a or b | {of: choice, items, at} |
| anything else | {of: computed, why, at} |

`at` has the character offsets of the expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_assets.systems.code_memory.languages.tree import SyntaxTree, is_comment

if TYPE_CHECKING:
    from tree_sitter import Node

Expression: TypeAlias = Any
"""A JSON value in the form that this module describes."""

References: TypeAlias = Callable[[str], str]
"""Returns the reference that a name stands for; for an unknown name, the name itself."""

_DEEPEST = 40
_DIGITS = 40
_TEXT = 2_000
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_ITEMS = {"list": "list", "tuple": "tuple", "set": "set", "expression_list": "tuple"}
_CONSTANTS = {"true": True, "false": False, "none": None}
_WHY = {
    "list_comprehension": "comprehension",
    "dictionary_comprehension": "comprehension",
    "set_comprehension": "comprehension",
    "generator_expression": "comprehension",
    "subscript": "subscript",
    "lambda": "lambda",
    "await": "await",
}


def build_expression(
    tree: SyntaxTree, node: Node | None, references: References, depth: int = 0
) -> Expression:
    """Return the value of an expression.

    Args:
        tree: the tree that contains it.
        references: returns the references of names.
        depth: nesting depth within the outermost expression; beyond a depth of 40, values are not
            read.
    """
    if node is None:
        return None
    if depth > _DEEPEST:
        return computed_expression(tree, node, "nesting")
    return _ExpressionReader(tree, references, depth).read(node)


def computed_expression(tree: SyntaxTree, node: Node, why: str) -> Expression:
    """Return the value of an expression that is computed at run time."""
    return {"of": "computed", "why": why, "at": _get_offsets(tree, node)}


def _get_offsets(tree: SyntaxTree, node: Node) -> list[int]:
    return [tree.start(node), tree.end(node)]


def dotted_name(tree: SyntaxTree, node: Node | None) -> str:
    """Return a name, or several names joined by dots; "" for anything else."""
    parts: list[str] = []
    at = node
    while at is not None and at.type == "attribute":
        parts.append(tree.field(at, "attribute"))
        at = at.child_by_field_name("object")
    if at is None or at.type != "identifier":
        return ""
    parts.append(tree.of(at))
    return ".".join(reversed(parts))


def get_text(tree: SyntaxTree, node: Node) -> str | None:
    """Return the value of a string without computed parts; None for anything else."""
    parts = node.named_children if node.type == "concatenated_string" else [node]
    found = []
    for part in parts:
        if is_comment(part):
            continue
        if part.type != "string" or any(n.type == "interpolation" for n in part.named_children):
            return None
        try:
            value = ast.literal_eval(tree.of(part).lstrip("fF"))
        except (ValueError, SyntaxError):
            return None
        if not isinstance(value, str):
            return None
        found.append(value)
    return "".join(found)


def parse_f_string(tree: SyntaxTree, node: Node) -> list[tuple[bool, str]] | None:
    """Return the parts of an f-string, in order, if its inserted expressions are only names.

    Returns:
        for each part, whether it is a name, and the name or the text; None if the string contains
            anything else.
    """
    try:
        held = ast.parse(tree.of(node), mode="eval").body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    found: list[tuple[bool, str]] = []
    for value in held.values if isinstance(held, ast.JoinedStr) else ():
        if isinstance(value, ast.Constant):
            found.append((False, str(value.value)))
            continue
        if not isinstance(value, ast.FormattedValue) or value.conversion >= 0 or value.format_spec:
            return None
        name = ast.unparse(value.value)
        if not _DOTTED.fullmatch(name):
            return None
        found.append((True, name))
    return found or None


class _ExpressionReader:
    def __init__(self, tree: SyntaxTree, references: References, depth: int) -> None:
        self._tree = tree
        self._references = references
        self._depth = depth
        self._special: dict[str, Callable[[Node], Expression]] = {
            "identifier": self._read_name,
            "attribute": self._read_name,
            "call": self._read_call,
            "dictionary": self._read_dictionary,
            "binary_operator": self._read_sum,
        }

    def read(self, node: Node) -> Expression:
        kind = node.type
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in {"string", "concatenated_string"}:
            text = get_text(self._tree, node)
            return self._read_formatted_string(node) if text is None else text
        if kind in {"integer", "float", "unary_operator"}:
            return self._read_number(node)
        return self._read_compound(node)

    def _read_compound(self, node: Node) -> Expression:
        kind = node.type
        special = self._special.get(kind)
        if special is not None:
            return special(node)
        if kind in _ITEMS:
            items = [self._read_inner(child) for child in _list_operands_of_sum(node)]
            return {"of": _ITEMS[kind], "items": items, "at": self._list_offsets(node)}
        if kind == "parenthesized_expression":
            inside = _list_operands_of_sum(node)
            return self._read_inner(inside[0]) if len(inside) == 1 else self._mark_computed(node)
        if kind in {"list_splat", "dictionary_splat"}:
            value = self._read_inner(_list_operands_of_sum(node)[0])
            return {"of": "spread", "value": value, "at": self._list_offsets(node)}
        if kind == "conditional_expression":
            inside = _list_operands_of_sum(node)
            items = [self._read_inner(inside[0]), self._read_inner(inside[-1])]
            return {"of": "choice", "items": items, "at": self._list_offsets(node)}
        return self._mark_computed(node)

    def _read_formatted_string(self, node: Node) -> Expression:
        """Return the value of a string with inserted expressions."""
        parts = parse_f_string(self._tree, node) if len(self._tree.of(node)) < _TEXT else None
        if parts is None:
            return computed_expression(self._tree, node, "text")
        at = self._list_offsets(node)
        items = [
            {"of": "name", "name": self._references(text), "at": at} if named else text
            for named, text in parts
        ]
        return {"of": "sum", "items": items, "at": at}

    def _read_number(self, node: Node) -> Expression:
        text = self._tree.of(node)
        try:
            value = ast.literal_eval(text) if len(text) < _DIGITS else None
        except (ValueError, SyntaxError):
            value = None
        return value if isinstance(value, int | float) else self._mark_computed(node)

    def _read_name(self, node: Node) -> Expression:
        name = dotted_name(self._tree, node)
        if name:
            return {"of": "name", "name": self._references(name), "at": self._list_offsets(node)}
        return {
            "of": "attribute",
            "object": self._read_inner(node.child_by_field_name("object")),
            "name": self._tree.field(node, "attribute"),
            "at": self._list_offsets(node),
        }

    def _read_call(self, node: Node) -> Expression:
        arguments, named = [], {}
        held = node.child_by_field_name("arguments")
        if held is not None and held.type == "argument_list":
            for child in _list_operands_of_sum(held):
                if child.type == "keyword_argument":
                    name = self._tree.field(child, "name")
                    named[name] = self._read_inner(child.child_by_field_name("value"))
                else:
                    arguments.append(self._read_inner(child))
        elif held is not None:
            arguments.append(self._read_inner(held))
        called = self._read_inner(node.child_by_field_name("function"))
        return {
            "of": "call",
            "call": called,
            "arguments": arguments,
            "named": named,
            "at": self._list_offsets(node),
        }

    def _read_dictionary(self, node: Node) -> Expression:
        items = []
        for child in _list_operands_of_sum(node):
            if child.type == "pair":
                key = self._read_inner(child.child_by_field_name("key"))
                items.append([key, self._read_inner(child.child_by_field_name("value"))])
            else:
                items.append([None, self._read_inner(child)])
        return {"of": "dict", "items": items, "at": self._list_offsets(node)}

    def _read_sum(self, node: Node) -> Expression:
        """Return the value of a sum; the grammar nests `a + b + c` to the left."""
        found: list[Node] = []
        at: Node | None = node
        while at is not None and at.type == "binary_operator" and self._is_addition(at):
            found.extend(n for n in [at.child_by_field_name("right")] if n is not None)
            at = at.child_by_field_name("left")
        if not found or at is None:
            return self._mark_computed(node)
        items = [self._read_inner(part) for part in [at, *reversed(found)]]
        if all(isinstance(item, str) for item in items):
            return "".join(items)
        return {"of": "sum", "items": items, "at": self._list_offsets(node)}

    def _is_addition(self, node: Node) -> bool:
        return self._tree.field(node, "operator") == "+"

    def _read_inner(self, node: Node | None) -> Expression:
        return build_expression(self._tree, node, self._references, self._depth + 1)

    def _mark_computed(self, node: Node) -> Expression:
        return computed_expression(self._tree, node, _WHY.get(node.type, "expression"))

    def _list_offsets(self, node: Node) -> list[int]:
        return _get_offsets(self._tree, node)


def _list_operands_of_sum(node: Node) -> list[Node]:
    return [child for child in node.named_children if not is_comment(child)]
