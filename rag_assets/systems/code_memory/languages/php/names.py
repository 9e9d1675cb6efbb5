"""Names of classes and functions, resolved according to PHP's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_NAMES = frozenset({"name", "qualified_name", "namespace_name", "relative_name"})
NO_CLASSES = frozenset(
    {"array", "bool", "callable", "false", "float", "int", "iterable", "mixed", "never", "null"}
    | {"object", "string", "true", "void", "self", "static", "parent"}
)
"""Names of types that are not classes."""


@dataclass(frozen=True, slots=True)
class Import:
    """One name in a `use` statement.

    Attributes:
        alias: its name in the file.
        name: the fully qualified name, without a leading backslash.
        kind: class, function or const.
        node: the node of the clause.
    """

    alias: str
    name: str
    kind: str
    node: Node


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a file that belongs to one namespace.

    Attributes:
        namespace: the name, without a leading backslash; "" for the global namespace.
        start, end: byte offsets, half open.
        imports: the imports of classes, by alias in lower case.
        functions: imports of functions, by alias in lower case.
        used: the names in all `use` statements.
    """

    namespace: str
    start: int
    end: int
    imports: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    used: tuple[Import, ...] = ()

    def class_name(self, written: str) -> str:
        """Return the fully qualified name of a class that is given as written."""
        if written.startswith("\\"):
            return written[1:]
        first, separator, rest = written.partition("\\")
        if first.lower() == "namespace" and separator:
            return self.within(rest)
        found = self.imports.get(first.lower())
        return self.within(written) if found is None else found + separator + rest

    def function_name(self, written: str) -> str:
        """Return the name of a function given as written: imported, qualified, or unchanged."""
        if written.startswith("\\"):
            return written[1:]
        if "\\" in written:
            return self.class_name(written)
        return self.functions.get(written.lower(), written)

    def within(self, name: str) -> str:
        """Return the fully qualified form of a name in this namespace."""
        return f"{self.namespace}\\{name}" if self.namespace else name


def scopes_of(tree: SyntaxTree) -> list[Scope]:
    """Return the scopes of a file in order; together they cover the file."""
    bounds: list[tuple[str, int, int, list[Node]]] = []
    loose: list[Node] = []
    name, start = "", 0
    for child in tree.root.children:
        if child.type != "namespace_definition":
            loose.append(child)
            continue
        named = child.child_by_field_name("name")
        body = child.child_by_field_name("body")
        bounds.append((name, start, child.start_byte, loose))
        if body is not None:
            bounds.append((tree.of(named), child.start_byte, child.end_byte, body.children))
            name, start, loose = "", child.end_byte, []
        else:
            name, start, loose = tree.of(named), child.start_byte, []
    bounds.append((name, start, max(tree.root.end_byte, start) + 1, loose))
    return [_scope(tree, *bound) for bound in bounds]


def _scope(tree: SyntaxTree, namespace: str, start: int, end: int, nodes: list[Node]) -> Scope:
    used = tuple(
        found
        for node in nodes
        if node.type == "namespace_use_declaration"
        for found in _imports(tree, node)
    )
    return Scope(
        namespace=namespace,
        start=start,
        end=end,
        imports={one.alias.lower(): one.name for one in used if one.kind == "class"},
        functions={one.alias.lower(): one.name for one in used if one.kind == "function"},
        used=used,
    )


def _imports(tree: SyntaxTree, node: Node) -> Iterator[Import]:
    kind, prefix = "class", ""
    for child in node.children:
        if child.type in {"function", "const"}:
            kind = child.type
        elif child.type == "namespace_name":
            prefix = tree.of(child) + "\\"
        elif child.type == "namespace_use_clause":
            yield _import(tree, child, kind, prefix)
        elif child.type == "namespace_use_group":
            for clause in child.named_children:
                if clause.type == "namespace_use_clause":
                    yield _import(tree, clause, kind, prefix)


def _import(tree: SyntaxTree, clause: Node, kind: str, prefix: str) -> Import:
    alias = clause.child_by_field_name("alias")
    for child in clause.children:
        if child.type in {"function", "const"}:
            kind = child.type
    named = next((n for n in clause.named_children if n.type in _NAMES and n != alias), None)
    name = (prefix + tree.of(named)).lstrip("\\")
    return Import(tree.of(alias) or name.rpartition("\\")[2], name, kind, clause)
