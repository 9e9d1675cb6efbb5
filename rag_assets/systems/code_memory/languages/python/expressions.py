"""Static expressions: the values of expressions that are known from their text, as JSON.

| expression | value |
|---|---|
| string, number, True, False, None | itself |
| list, tuple, set | {of: list, tuple or set, items, at} |
| dictionary | {of: dict, items: [[key, value] …], at} |
| name, dotted name | {of: name, name: reference, at} |
| call | {of: call, call: expression, arguments, named, at} |
| attribute of an expression that is not a name | {of: attribute, object, name, at} |
| a + b, string with names in it (f"…{a}…") | {of: sum, items, at} |
| *a, **a | {of: spread, value, at} |
| a if b else c | {of: choice, items, at} |
| any other expression | {of: computed, why, at} |

`at` has the character offsets of the expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    is_comment,
    list_code_children,
)

Expression: TypeAlias = Any
"""A JSON value in the form that this module describes."""

References: TypeAlias = Callable[[str], str]
"""Returns the reference that a name stands for; for an unknown name, the name itself."""

_MAX_DEPTH = 40
_MAX_DIGITS = 40
_MAX_TEXT_CHARACTERS = 2_000
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


def build_expression(tree: SyntaxTree, node: Node | None, references: References) -> Expression:
    """Return an expression's value; values nested more than 40 deep count as computed."""
    return _ExpressionReader(tree, references).read(node)


def get_dotted_name(tree: SyntaxTree, node: Node | None) -> str:
    """Return a name, or several names joined by dots; "" for any other expression."""
    parts: list[str] = []
    at = node
    while at is not None and at.type == "attribute":
        parts.append(tree.get_field_text(at, "attribute"))
        at = at.child_by_field_name("object")
    if at is None or at.type != "identifier":
        return ""
    parts.append(tree.get_node_text(at))
    return ".".join(reversed(parts))


def get_text(tree: SyntaxTree, node: Node) -> str | None:
    """Return the value of a string literal without insertions; None for any other node."""
    parts = node.named_children if node.type == "concatenated_string" else [node]
    texts = []
    for part in parts:
        if is_comment(part):
            continue
        if part.type != "string" or any(n.type == "interpolation" for n in part.named_children):
            return None
        try:
            value = ast.literal_eval(tree.get_node_text(part).lstrip("fF"))
        except (ValueError, SyntaxError):
            return None
        if not isinstance(value, str):
            return None
        texts.append(value)
    return "".join(texts)


def parse_f_string(tree: SyntaxTree, node: Node) -> list[tuple[bool, str]] | None:
    """Return the parts of an f-string, in order, if its inserted expressions are only names.

    Returns:
        for each part, whether it is a name, and the name or the text; None if the string inserts
            any other expression.
    """
    try:
        parsed = ast.parse(tree.get_node_text(node), mode="eval").body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    parts: list[tuple[bool, str]] = []
    for value in parsed.values if isinstance(parsed, ast.JoinedStr) else ():
        if isinstance(value, ast.Constant):
            parts.append((False, str(value.value)))
            continue
        if not isinstance(value, ast.FormattedValue) or value.conversion >= 0 or value.format_spec:
            return None
        name = ast.unparse(value.value)
        if not _DOTTED.fullmatch(name):
            return None
        parts.append((True, name))
    return parts or None


class _ExpressionReader:
    """A reader of expressions; `depth` is the nesting depth within the outermost expression."""

    def __init__(self, tree: SyntaxTree, references: References) -> None:
        self._tree = tree
        self._references = references
        self._readers: dict[str, Callable[[Node, int], Expression]] = {
            "identifier": self._read_name,
            "attribute": self._read_name,
            "call": self._read_call,
            "dictionary": self._read_dictionary,
            "binary_operator": self._read_sum,
        }

    def read(self, node: Node | None, depth: int = 0) -> Expression:
        if node is None:
            return None
        if depth > _MAX_DEPTH:
            return self._mark_computed(node, "nesting")
        kind = node.type
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in {"string", "concatenated_string"}:
            text = get_text(self._tree, node)
            return self._read_formatted_string(node) if text is None else text
        if kind in {"integer", "float", "unary_operator"}:
            return self._read_number(node)
        read = self._readers.get(kind, self._read_compound)
        return read(node, depth + 1)

    def _read_compound(self, node: Node, depth: int) -> Expression:
        kind = node.type
        inside = list_code_children(node)
        if kind in _ITEMS:
            items = [self.read(child, depth) for child in inside]
            return {"of": _ITEMS[kind], "items": items, "at": self._get_offsets(node)}
        if kind == "parenthesized_expression" and len(inside) == 1:
            return self.read(inside[0], depth)
        if kind in {"list_splat", "dictionary_splat"}:
            value = self.read(inside[0], depth)
            return {"of": "spread", "value": value, "at": self._get_offsets(node)}
        if kind == "conditional_expression":
            items = [self.read(inside[0], depth), self.read(inside[-1], depth)]
            return {"of": "choice", "items": items, "at": self._get_offsets(node)}
        return self._mark_computed(node)

    def _read_formatted_string(self, node: Node) -> Expression:
        parts = (
            parse_f_string(self._tree, node)
            if len(self._tree.get_node_text(node)) < _MAX_TEXT_CHARACTERS
            else None
        )
        if parts is None:
            return self._mark_computed(node, "text")
        at = self._get_offsets(node)
        items = [
            {"of": "name", "name": self._references(text), "at": at} if is_name else text
            for is_name, text in parts
        ]
        return {"of": "sum", "items": items, "at": at}

    def _read_number(self, node: Node) -> Expression:
        text = self._tree.get_node_text(node)
        try:
            value = ast.literal_eval(text) if len(text) < _MAX_DIGITS else None
        except (ValueError, SyntaxError):
            value = None
        return value if isinstance(value, int | float) else self._mark_computed(node)

    def _read_name(self, node: Node, depth: int) -> Expression:
        name = get_dotted_name(self._tree, node)
        if name:
            return {"of": "name", "name": self._references(name), "at": self._get_offsets(node)}
        return {
            "of": "attribute",
            "object": self.read(node.child_by_field_name("object"), depth),
            "name": self._tree.get_field_text(node, "attribute"),
            "at": self._get_offsets(node),
        }

    def _read_call(self, node: Node, depth: int) -> Expression:
        arguments, keyword_arguments = [], {}
        arguments_node = node.child_by_field_name("arguments")
        if arguments_node is not None and arguments_node.type == "argument_list":
            for child in list_code_children(arguments_node):
                if child.type == "keyword_argument":
                    name = self._tree.get_field_text(child, "name")
                    keyword_arguments[name] = self.read(child.child_by_field_name("value"), depth)
                else:
                    arguments.append(self.read(child, depth))
        elif arguments_node is not None:
            arguments.append(self.read(arguments_node, depth))
        return {
            "of": "call",
            "call": self.read(node.child_by_field_name("function"), depth),
            "arguments": arguments,
            "named": keyword_arguments,
            "at": self._get_offsets(node),
        }

    def _read_dictionary(self, node: Node, depth: int) -> Expression:
        pairs = (
            (child.child_by_field_name("key"), child.child_by_field_name("value"))
            if child.type == "pair"
            else (None, child)
            for child in list_code_children(node)
        )
        items = [[self.read(key, depth), self.read(value, depth)] for key, value in pairs]
        return {"of": "dict", "items": items, "at": self._get_offsets(node)}

    def _read_sum(self, node: Node, depth: int) -> Expression:
        """Return the value of a sum `a + b + c`, which the grammar nests as `(a + b) + c`."""
        operands: list[Node] = []
        at: Node | None = node
        while at is not None and at.type == "binary_operator":
            if self._tree.get_field_text(at, "operator") != "+":
                break
            operands.extend(n for n in [at.child_by_field_name("right")] if n is not None)
            at = at.child_by_field_name("left")
        if not operands or at is None:
            return self._mark_computed(node)
        items = [self.read(operand, depth) for operand in [at, *reversed(operands)]]
        if all(isinstance(item, str) for item in items):
            return "".join(items)
        return {"of": "sum", "items": items, "at": self._get_offsets(node)}

    def _mark_computed(self, node: Node, why: str = "") -> Expression:
        why = why or _WHY.get(node.type, "expression")
        return {"of": "computed", "why": why, "at": self._get_offsets(node)}

    def _get_offsets(self, node: Node) -> list[int]:
        return [self._tree.start(node), self._tree.end(node)]
