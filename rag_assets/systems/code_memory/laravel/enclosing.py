"""The definitions around calls, and the classes of the variables there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.php.classes import ClassLike, Method
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.types import types_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Types:
    """The classes of variables, by the method that contains them."""

    def __init__(self, source: PhpSource) -> None:
        self._source = source
        self._known: dict[str, Mapping[str, str]] = {}

    @cached_property
    def _methods(self) -> dict[str, tuple[ClassLike, Method]]:
        return {
            f"{one.name}::{method.name}": (one, method)
            for one in self._source.classes
            for method in one.methods
        }

    def of(self, symbol: str) -> Mapping[str, str]:
        """Return the classes of a method's variables, by variable as written."""
        if symbol not in self._known:
            found = self._methods.get(symbol)
            known = {} if found is None else types_of(self._source, found[1], found[0])
            self._known[symbol] = known
        return self._known[symbol]


class Enclosing:
    """The names of the definitions around nodes; nodes must come in the order of the text."""

    def __init__(self, source: PhpSource) -> None:
        spans = [(one.node.start_byte, one.node.end_byte, one.name) for one in source.classes]
        for one in source.classes:
            spans += [_span(method.node, f"{one.name}::{method.name}") for method in one.methods]
        spans += [_span(function.node, name) for name, function in source.functions]
        self._spans = sorted(spans, key=lambda span: (span[0], -span[1]), reverse=True)
        self._open: list[tuple[int, str]] = []

    def around(self, node: Node) -> str:
        """Return the qualified name of the innermost definition around a node; "" at top level."""
        while self._spans and self._spans[-1][0] <= node.start_byte:
            _, end, name = self._spans.pop()
            self._open.append((end, name))
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        return self._open[-1][1] if self._open else ""


def _span(node: Node, name: str) -> tuple[int, int, str]:
    return node.start_byte, node.end_byte, name
