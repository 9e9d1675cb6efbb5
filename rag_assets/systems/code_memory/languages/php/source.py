"""One PHP file in the form that its readers use: its scopes, classes, functions and statements."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.php.calls import Chain, chain_of
from rag_assets.systems.code_memory.languages.php.classes import (
    CLASS_ROLES,
    ClassLike,
    Method,
    class_of,
    method_of,
)
from rag_assets.systems.code_memory.languages.php.names import Scope, scopes_of
from rag_assets.systems.code_memory.languages.php.values import COMPUTED, Constants, Value, value_of
from rag_assets.systems.code_memory.languages.tree import syntax_tree

if TYPE_CHECKING:
    from tree_sitter import Node

_CLASSES = frozenset(CLASS_ROLES)
_FUNCTIONS = frozenset({"function_definition"})
_RELATIVE = frozenset({"self", "static"})


class PhpSource:
    """A PHP file.

    Attributes:
        tree: its syntax tree.
        scopes: its namespaces, in order.
    """

    def __init__(self, text: str) -> None:
        self.tree = syntax_tree(text, "tree_sitter_php", "language_php")
        self.scopes = scopes_of(self.tree)
        self._starts = [scope.start for scope in self.scopes]

    @property
    def text(self) -> str:
        """Return the text of the file."""
        return self.tree.text

    def scope_at(self, node: Node) -> Scope:
        """Return the scope around a node."""
        return self.scopes[max(0, bisect_right(self._starts, node.start_byte) - 1)]

    @cached_property
    def classes(self) -> tuple[ClassLike, ...]:
        """Return all classes, interfaces, traits and enums, in order."""
        return tuple(
            class_of(self.tree, node, self.scope_at(node)) for node in self.tree.nodes(_CLASSES)
        )

    @cached_property
    def _class_starts(self) -> list[int]:
        return [one.node.start_byte for one in self.classes]

    @cached_property
    def functions(self) -> tuple[tuple[str, Method], ...]:
        """Return all functions outside classes, with their fully qualified names."""
        return tuple(
            (self.scope_at(node).within(found.name), found)
            for node in self.tree.nodes(_FUNCTIONS)
            for found in (method_of(self.tree, node, self.scope_at(node)),)
        )

    def statements(self) -> Iterator[Node]:
        """Yield the statements outside classes and functions in order, also those in namespaces."""
        for child in self.tree.root.named_children:
            body = child.child_by_field_name("body")
            if child.type == "namespace_definition" and body is not None:
                yield from body.named_children
            else:
                yield child

    def class_at(self, node: Node) -> ClassLike | None:
        """Return the innermost class around a node."""
        before = bisect_right(self._class_starts, node.start_byte)
        around = (one for one in reversed(self.classes[:before]) if _contains(one.node, node))
        return next(around, None)

    def class_name(self, written: str, near: Node) -> str:
        """Return the fully qualified name of a class that is written near a node.

        `self` and `static` mean the class around the node, `parent` its parent class.
        """
        word = written.lower()
        if word in _RELATIVE or word == "parent":
            around = self.class_at(near)
            if around is None:
                return written
            return (around.parents or (written,))[0] if word == "parent" else around.name
        return self.scope_at(near).class_name(written)

    def value(self, node: Node | None) -> Value:
        """Return the static value of an expression; COMPUTED if it has none."""
        if node is None:
            return None
        return value_of(self.tree, node, self._constants(node))

    def chain(self, node: Node) -> Chain | None:
        """Return the chain of calls in an expression; None if it is not a chain."""
        return chain_of(self.tree, node)

    def _constants(self, near: Node) -> Constants:
        def constant(owner: str, name: str) -> Value:
            found = next((one for one in self.classes if one.name == owner), None)
            held = (
                None
                if found is None
                else next((one for one in found.constants if one.name == name), None)
            )
            if held is None or held.value is None:
                return COMPUTED
            # Only one reference is followed, since constants may refer to each other in a circle.
            plain = Constants(lambda written: self.class_name(written, near))
            return value_of(self.tree, held.value, plain)

        return Constants(lambda written: self.class_name(written, near), constant)


def _contains(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte < outer.end_byte
