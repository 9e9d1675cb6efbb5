"""Exports of a module: by statement, or by assignment to `module.exports` and `exports`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.javascript.imports import source_of, string_of
from rag_assets.systems.code_memory.languages.javascript.parameters import pattern_names
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_CLAUSES: Final = frozenset({"export_clause", "namespace_export"})


@dataclass(frozen=True, slots=True)
class Exported:
    """A name that a module exports.

    Attributes:
        name: the name that importing modules use: `default`, `*` for everything in a module,
            `export=` for the module itself.
        local: its name in the file; "" if it has none.
        module: the module that it is re-exported from; "" for the file's own names.
        original: its name in that module.
    """

    name: str
    local: str = ""
    module: str = ""
    original: str = ""

    def values(self) -> dict[str, str]:
        """Return the attributes in the form of a fact's values."""
        values = {"name": self.name, "local": self.local, "module": self.module}
        values["original"] = self.original
        return {key: value for key, value in values.items() if value}


def exports_of(tree: SyntaxTree) -> dict[int, tuple[Exported, ...]]:
    """Return the names that each top-level statement exports, by the statement's id."""
    found: dict[int, tuple[Exported, ...]] = {}
    for node in tree.root.named_children:
        if node.type == "export_statement":
            found[node.id] = tuple(_statement(tree, node))
        elif node.type == "expression_statement":
            found[node.id] = tuple(_assigned(tree, node.named_child(0)))
    return {key: names for key, names in found.items() if names}


def _statement(tree: SyntaxTree, node: Node) -> Iterator[Exported]:
    declaration = node.child_by_field_name("declaration")
    kinds = {child.type for child in node.children}
    if "default" in kinds:
        yield Exported("default", _default(tree, node, declaration))
    elif declaration is not None:
        for name in declared_names(tree, declaration):
            yield Exported(name, name)
    elif "namespace" in kinds:  # An `export as namespace X` does not export a member of the module.
        return
    elif "=" in kinds:
        yield Exported("export=", tree.of(_value(node)))
    elif kinds & _CLAUSES or "*" in kinds:
        yield from _clause(tree, node)


def _value(node: Node) -> Node | None:
    found = node.child_by_field_name("value")
    if found is None:
        others = [child for child in node.named_children if child.type != "comment"]
        found = others[0] if others else None
    return found if found is not None and found.type == "identifier" else None


def _default(tree: SyntaxTree, node: Node, declaration: Node | None) -> str:
    if declaration is not None:
        return tree.of(declaration.child_by_field_name("name"))
    return tree.of(_value(node))


def _clause(tree: SyntaxTree, node: Node) -> Iterator[Exported]:
    source = source_of(tree, node)
    named = False
    for child in node.named_children:
        if child.type == "namespace_export":
            named = True
            yield Exported(_unquoted(tree, child.named_child(0)), "", source, "*")
        elif child.type == "export_clause":
            named = True
            for one in child.named_children:
                yield from _specifier(tree, one, source)
    if source and not named:
        yield Exported("*", "", source, "*")


def _specifier(tree: SyntaxTree, node: Node, source: str) -> Iterator[Exported]:
    if node.type != "export_specifier":
        return
    name = _unquoted(tree, node.child_by_field_name("name"))
    alias = node.child_by_field_name("alias")
    public = name if alias is None else _unquoted(tree, alias)
    yield Exported(public, "", source, name) if source else Exported(public, name)


def _unquoted(tree: SyntaxTree, node: Node | None) -> str:
    return string_of(tree, node) or tree.of(node)


def declared_names(tree: SyntaxTree, declaration: Node) -> Iterator[str]:
    """Yield the names that a declaration binds."""
    if declaration.type == "ambient_declaration":
        for child in declaration.named_children:
            if child.type != "comment":
                yield from declared_names(tree, child)
                return
    elif declaration.type in {"lexical_declaration", "variable_declaration"}:
        for declarator in declaration.named_children:
            name = declarator.child_by_field_name("name")
            if name is not None:
                yield from pattern_names(tree, name)
    elif declaration.type == "import_alias":
        yield tree.of(declaration.named_child(0))
    else:
        name = declaration.child_by_field_name("name")
        if name is not None:
            yield tree.of(name).split(".", 1)[0].strip()


def _assigned(tree: SyntaxTree, node: Node | None) -> Iterator[Exported]:
    """Yield the exports of `module.exports = …`, `exports.name = …`, and of chained assignments."""
    while node is not None and node.type == "assignment_expression":
        right = node.child_by_field_name("right")
        path = "".join(tree.of(node.child_by_field_name("left")).split())
        name = path.removeprefix("module.").removeprefix("exports")
        if path in {"module.exports", "exports"}:
            if path == "module.exports" and right is not None:
                yield from _module(tree, right)
        elif path.startswith(("module.exports.", "exports.")) and "." not in name[1:]:
            value = right if right is not None and right.type == "identifier" else None
            yield Exported(name[1:], tree.of(value))
        node = right


def _module(tree: SyntaxTree, value: Node) -> Iterator[Exported]:
    if value.type == "identifier":
        yield Exported("export=", tree.of(value))
    elif value.type != "object":
        if value.type != "assignment_expression":
            yield Exported("export=", "")
    else:
        yield from _object(tree, value)


def _object(tree: SyntaxTree, value: Node) -> Iterator[Exported]:
    for entry in value.named_children:
        if entry.type == "shorthand_property_identifier":
            yield Exported(tree.of(entry), tree.of(entry))
        elif entry.type == "pair":
            inner = entry.child_by_field_name("value")
            local = tree.of(inner) if inner is not None and inner.type == "identifier" else ""
            key = entry.child_by_field_name("key")
            if key is not None and key.type != "computed_property_name":
                yield Exported(_unquoted(tree, key), local)
        elif entry.type == "method_definition":
            yield Exported(_unquoted(tree, entry.child_by_field_name("name")))
