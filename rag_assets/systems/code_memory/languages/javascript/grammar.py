"""Finds definitions, imports and calls with the grammars of JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions.model import (
    Binding,
    Definition,
    Grammar,
    Scope,
)
from rag_assets.systems.code_memory.languages.javascript.declarations import FUNCTIONS, Declarations
from rag_assets.systems.code_memory.languages.javascript.exports import exports_of
from rag_assets.systems.code_memory.languages.javascript.fetches import Fetches
from rag_assets.systems.code_memory.languages.javascript.imports import imported, required
from rag_assets.systems.code_memory.languages.javascript.parameters import pattern_names, type_of
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node
if TYPE_CHECKING:
    from tree_sitter import Node

_KEY: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_OBJECTS: Final = frozenset({"process.env", "import.meta.env"})
_LONGEST: Final = 20


def variables(tree: SyntaxTree, node: Node, symbol: str) -> Iterator[Fact]:
    """Yield the environment variable that an expression reads, if it reads one."""
    if node.type not in {"member_expression", "subscript_expression"}:
        return
    owner = node.child_by_field_name("object")
    if owner is None or owner.end_byte - owner.start_byte > _LONGEST:
        return
    if tree.of(owner) in _OBJECTS:
        named = node.child_by_field_name("property") or node.child_by_field_name("index")
        key = tree.of(named).strip("\"'")
        if _KEY.fullmatch(key):
            yield Fact("reads_env", tree.start(node), tree.end(node), symbol, {"key": key})


_TYPE = re.compile(r"\s*(?:readonly\s+)?([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)")
_NOTHING: Final = frozenset({"", "null", "undefined"})
_PARAMETERS: Final = frozenset({"required_parameter", "optional_parameter"})
_DECLARATIONS: Final = frozenset({"function_declaration", "class_declaration"})


class Jsx(Grammar):
    """Grammar of JavaScript with JSX."""

    language = "javascript"
    module = "tree_sitter_javascript"
    leading = frozenset({"decorator"})
    lists = frozenset(
        {
            "program",
            "statement_block",
            "class_body",
            "object",
            "array",
            "interface_body",
            "object_type",
            "enum_body",
            "switch_body",
            "switch_case",
            "jsx_element",
            "union_type",
        }
    )
    scopes = FUNCTIONS | {"statement_block", "for_statement", "for_in_statement", "catch_clause"}
    own: ClassVar[frozenset[str]] = frozenset({"this"})
    imports_all = True

    def __init__(self, tree: SyntaxTree) -> None:
        super().__init__(tree)
        self._exports = exports_of(tree)
        local = {name.local for names in self._exports.values() for name in names if name.local}
        self._declarations = Declarations(tree, frozenset(local))
        self._fetches = Fetches(tree)

    def define(self, node: Node, outer: Definition | None) -> Sequence[Definition]:
        """Return the definitions in a statement or member."""
        return self._declarations.of(node, outer)

    def imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Return the imports of an import statement."""
        return imported(self.tree, node)

    def declared(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds, each with its declared type."""
        if node.type == "variable_declarator" and not required(self.tree, node):
            yield from self._bound(node.child_by_field_name("name"), node)
        elif node.type in _PARAMETERS:
            yield from self._bound(node.child_by_field_name("pattern"), node)
        elif node.type == "formal_parameters":
            for child in node.named_children:
                if child.type not in _PARAMETERS:
                    yield from self._bound(child, None)
        elif node.type in {"arrow_function", "catch_clause"}:
            yield from self._bound(node.child_by_field_name("parameter"), None)
        elif node.type == "statement_block":
            yield from self._local(node)

    def _local(self, block: Node) -> Iterator[tuple[str, str]]:
        """Yield functions and classes in a block: they can be called before their definition."""
        for child in block.named_children:
            if child.type in _DECLARATIONS:
                yield self.tree.of(child.child_by_field_name("name")), ""

    def _bound(self, pattern: Node | None, typed: Node | None) -> Iterator[tuple[str, str]]:
        if pattern is None:
            return
        if pattern.type == "identifier":
            yield self.tree.of(pattern), "" if typed is None else type_of(self.tree, typed)
            return
        for name in pattern_names(self.tree, pattern):
            yield name, ""

    def called(self, node: Node) -> tuple[list[str], bool] | None:
        """Return the chain of names in a call."""
        if node.type == "new_expression":
            chain = self._chain(node.child_by_field_name("constructor"))
            return None if chain is None else (chain, True)
        if node.type != "call_expression":
            return None
        chain = self._chain(node.child_by_field_name("function"))
        return None if chain is None else (chain, False)

    def _chain(self, node: Node | None) -> list[str] | None:
        names: list[str] = []
        while node is not None and node.type == "member_expression":
            names.append(self.tree.of(node.child_by_field_name("property")))
            node = node.child_by_field_name("object")
            if node is not None and node.type == "non_null_expression":
                node = node.named_child(0)
        if node is None or node.type not in {"identifier", "this"}:
            return None
        return [self.tree.of(node), *reversed(names)]

    def type_name(self, written: str) -> str:
        """Return the bare name of a type."""
        parts = [part for part in written.split("|") if part.strip() not in _NOTHING]
        found = _TYPE.match(parts[0]) if len(parts) == 1 else None
        if found is None or written.rstrip().endswith("]"):
            return ""
        return found[1]

    def stated(self, node: Node, scope: Scope) -> Iterable[Fact]:
        """Yield the names that a statement exports, and the requests that it sends."""
        yield from self._fetches.of(node, scope.symbol)
        yield from variables(self.tree, node, scope.symbol)
        for name in self._exports.get(node.id, ()):
            start = self.tree.start(node)
            end = min(self.tree.end(node), start + 200)
            yield Fact("exports", start, end, "", name.values())


class TypeScript(Jsx):
    """Grammar of TypeScript."""

    language = "typescript"
    module = "tree_sitter_typescript"
    function = "language_typescript"


class Tsx(TypeScript):
    """Grammar of TypeScript with JSX."""

    function = "language_tsx"
