"""Chains of calls, such as `Route::prefix('a')->group(…)`: their start, and each call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

MEMBER_CALLS = frozenset({"member_call_expression", "nullsafe_member_call_expression"})
CALLS = MEMBER_CALLS | {
    "scoped_call_expression",
    "function_call_expression",
    "object_creation_expression",
}
CLOSURES = frozenset({"anonymous_function", "arrow_function"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call.

    Attributes:
        value: its expression.
        name: the name of a named argument; "" for others.
    """

    value: Node
    name: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a chain.

    Attributes:
        name: the name of the method or function; "" if it is computed.
        arguments: the arguments, in order.
        node: the node from the start of the chain to the end of this call.
    """

    name: str
    arguments: tuple[Argument, ...]
    node: Node

    def argument(self, position: int, name: str = "") -> Node | None:
        """Return an argument by its name, or else by its position."""
        named = next((one.value for one in self.arguments if name and one.name == name), None)
        if named is not None:
            return named
        plain = [one.value for one in self.arguments if not one.name]
        return plain[position] if position < len(plain) else None


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of calls.

    Attributes:
        root: its start: a class as written (`Route`), a variable (`$router`), or a property
            (`$this->router`); "" for a function and anything else.
        static: whether it starts with a static call.
        calls: the calls, in order; if a function starts the chain, its call is the first.
        node: the whole expression.
    """

    root: str
    static: bool
    calls: tuple[Call, ...]
    node: Node

    def call(self, *names: str) -> Call | None:
        """Return the first call with one of these names, ignoring case."""
        wanted = {name.lower() for name in names}
        return next((call for call in self.calls if call.name.lower() in wanted), None)


def chain_of(tree: SyntaxTree, node: Node) -> Chain | None:
    """Return the chain of calls in an expression; None if it is not a chain."""
    calls: list[Call] = []
    at: Node | None = node
    while at is not None and at.type in MEMBER_CALLS:
        calls.append(_call(tree, at, at.child_by_field_name("name")))
        at = at.child_by_field_name("object")
    root, static = "", False
    if at is not None and at.type == "scoped_call_expression":
        calls.append(_call(tree, at, at.child_by_field_name("name")))
        root, static = tree.of(at.child_by_field_name("scope")), True
    elif at is not None and at.type == "function_call_expression":
        calls.append(_call(tree, at, at.child_by_field_name("function")))
    elif at is not None and at.type in {"variable_name", "member_access_expression"}:
        root = tree.of(at)
    if not calls:
        return None
    return Chain(root, static, tuple(reversed(calls)), node)


def arguments_of(tree: SyntaxTree, node: Node) -> tuple[Argument, ...]:
    """Return the arguments of a call or of an object creation."""
    held = node.child_by_field_name("arguments") or next(
        (child for child in node.named_children if child.type == "arguments"), None
    )
    if held is None:
        return ()
    found = []
    for child in held.named_children:
        if child.type != "argument":
            continue
        name = child.child_by_field_name("name")
        parts = [n for n in child.named_children if n != name and n.type != "comment"]
        if parts:
            found.append(Argument(parts[-1], tree.of(name)))
    return tuple(found)


def body_of(closure: Node) -> Node | None:
    """Return the body of a closure: a block, or the expression of an arrow function."""
    return closure.child_by_field_name("body") if closure.type in CLOSURES else None


def _call(tree: SyntaxTree, node: Node, name: Node | None) -> Call:
    static = name is not None and name.type in {"name", "qualified_name", "relative_name"}
    return Call(tree.of(name) if static else "", arguments_of(tree, node), node)
