"""Imports of a module: by import statement, `require` or `import()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions.model import Binding, Name
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node


def imported(tree: SyntaxTree, node: Node) -> Iterator[tuple[Fact, dict[str, Binding]]]:
    """Yield the import in a node, with the names that it binds.

    The fact has two values. `name` is the module as written. `names` are the imported names, as
    pairs of the name in the module (`default`, `*` for everything) and the local name.
    """
    if node.type == "import_statement":
        names = list(_names(tree, node))
        yield from _fact(tree, node, source_of(tree, node), names)
    elif node.type == "export_statement":
        source = source_of(tree, node)
        if source:
            for fact, _ in _fact(tree, node, source, list(_handed_on(tree, node))):
                yield fact, {}  # A re-export does not bind its name in this file.
    elif node.type == "variable_declarator":
        source = required(tree, node)
        if source:
            yield from _fact(tree, node, source, list(_destructured(tree, node)))
    elif node.type == "call_expression":
        yield from _call(tree, node)


def string_of(tree: SyntaxTree, node: Node | None) -> str:
    """Return the text of a string without its quotes; "" for anything else."""
    return tree.of(node)[1:-1] if node is not None and node.type == "string" else ""


def source_of(tree: SyntaxTree, node: Node) -> str:
    """Return the module in an import or export statement."""
    found = string_of(tree, node.child_by_field_name("source"))
    if found:
        return found
    for child in node.named_children:
        if child.type == "import_require_clause":
            return string_of(tree, child.child_by_field_name("source"))
    return ""


def required(tree: SyntaxTree, declarator: Node) -> str:
    """Return the module in `name = require("module")`; "" for any other declarator."""
    value = declarator.child_by_field_name("value")
    if value is not None and value.type == "member_expression":
        value = value.child_by_field_name("object")
    return "" if value is None else _require(tree, value)


def _require(tree: SyntaxTree, call: Node) -> str:
    if call.type != "call_expression":
        return ""
    if tree.of(call.child_by_field_name("function")) != "require":
        return ""
    return _argument(tree, call)


def _argument(tree: SyntaxTree, call: Node) -> str:
    listed = call.child_by_field_name("arguments")
    if listed is None or not listed.named_child_count:
        return ""
    return string_of(tree, listed.named_child(0))


def _call(tree: SyntaxTree, node: Node) -> Iterator[tuple[Fact, dict[str, Binding]]]:
    function = node.child_by_field_name("function")
    if function is not None and function.type == "import":
        source = _argument(tree, node)
        if source:
            yield from _fact(tree, node, source, [])


def _fact(
    tree: SyntaxTree, node: Node, source: str, names: list[tuple[str, str]]
) -> Iterator[tuple[Fact, dict[str, Binding]]]:
    if not source:
        return
    start = tree.start(node)
    end = min(tree.end(node), start + 200)
    values = {"name": source, "names": [list(pair) for pair in names]}
    bound = {local: Binding(Name("" if name == "*" else name, source)) for name, local in names}
    yield Fact("imports", start, end, "", values), bound


def _names(tree: SyntaxTree, statement: Node) -> Iterator[tuple[str, str]]:
    for clause in statement.named_children:
        if clause.type == "import_require_clause":
            yield "*", tree.of(clause.named_child(0))
        elif clause.type == "import_clause":
            for node in clause.named_children:
                yield from _clause(tree, node)


def _clause(tree: SyntaxTree, node: Node) -> Iterator[tuple[str, str]]:
    if node.type == "identifier":
        yield "default", tree.of(node)
    elif node.type == "namespace_import":
        yield "*", tree.of(node.named_child(0))
    elif node.type == "named_imports":
        for one in node.named_children:
            if one.type == "import_specifier":
                name = tree.of(one.child_by_field_name("name"))
                alias = one.child_by_field_name("alias")
                yield name, tree.of(alias) if alias is not None else name


def _handed_on(tree: SyntaxTree, statement: Node) -> Iterator[tuple[str, str]]:
    for clause in statement.named_children:
        for one in clause.named_children if clause.type == "export_clause" else ():
            if one.type == "export_specifier":
                name = tree.of(one.child_by_field_name("name"))
                alias = one.child_by_field_name("alias")
                yield name, tree.of(alias) if alias is not None else name


def _destructured(tree: SyntaxTree, declarator: Node) -> Iterator[tuple[str, str]]:
    name = declarator.child_by_field_name("name")
    value = declarator.child_by_field_name("value")
    if name is None or value is None:
        return
    if name.type == "identifier":
        member = value.child_by_field_name("property")
        yield tree.of(member) if value.type == "member_expression" else "*", tree.of(name)
    elif name.type == "object_pattern" and value.type == "call_expression":
        for node in name.named_children:
            if node.type == "shorthand_property_identifier_pattern":
                yield tree.of(node), tree.of(node)
            elif node.type == "pair_pattern":
                local = node.child_by_field_name("value")
                if local is not None and local.type == "identifier":
                    yield tree.of(node.child_by_field_name("key")), tree.of(local)
