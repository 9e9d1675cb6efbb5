"""Units of a PHP file: heads of classes, methods, functions, groups of routes and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.php.source import (
    CLASS_ROLES,
    ClassLike,
    Method,
    PhpSource,
)
from rag_assets.systems.code_memory.languages.php.values import MEMBER_CALLS, Chain, elements
from rag_assets.systems.code_memory.languages.units import (
    add_rest_units,
    end_with_comment,
    first_comment,
)
from rag_assets.systems.code_memory.symbols.model import Role, Unit

if TYPE_CHECKING:
    from tree_sitter import Node

_ROUTERS = frozenset({"$router", "$this->router", "$app->router", "$r"})
_HEAD = frozenset(
    {"php_tag", "namespace_definition", "namespace_use_declaration", "declare_statement", "comment"}
)
_STATEMENTS = frozenset(
    {"expression_statement", "return_statement", "if_statement", "foreach_statement"}
    | {"for_statement", "while_statement", "do_statement", "switch_statement", "try_statement"}
    | {"echo_statement", "unset_statement", "throw_expression", "case_statement"}
)
_RELATIONS = frozenset(
    {"hasone", "hasmany", "belongsto", "belongstomany", "hasonethrough", "hasmanythrough"}
    | {"morphto", "morphone", "morphmany", "morphtomany", "morphedbymany"}
)


def list_units(source: PhpSource) -> tuple[Unit, ...]:
    """Return the units of a file; together they cover the file."""
    found = [
        *_units_of_classes(source),
        *_units_of_functions(source),
        *_units_of_statements(source),
    ]
    return add_rest_units(source.text, _extend_first_head(source, _drop_nested_units(found)))


def _units_of_classes(source: PhpSource) -> Iterator[Unit]:
    for one in source.classes:
        around = source.find_class(one.node.parent or one.node)
        if one.body is None or (around is not None and around is not one):
            continue
        yield from _units_of_class(source, one)


def _units_of_class(source: PhpSource, one: ClassLike) -> Iterator[Unit]:
    tree = source.tree
    start = tree.start(first_comment(_enclosing_statement(one.node)))
    end = tree.end(_enclosing_statement(one.node))
    members = list(_units_of_members(source, one))
    head = members[0].start if members else end
    head = len(source.text[:head].rstrip())
    yield Unit(
        start,
        head,
        "class",
        one.name,
        _read_signature(source, one.node),
        cuts=_statement_ends(source, one.node),
    )
    yield from members[:-1]
    for last in members[-1:]:
        closes = not source.text[last.end : end].strip(" \t\r\n};")
        yield replace(last, end=end) if closes else last


def _units_of_members(source: PhpSource, one: ClassLike) -> Iterator[Unit]:
    for method in one.methods:
        symbol = f"{one.name}::{method.name}"
        plugged = list(_statements_of_schema(source, one, method))
        if plugged:
            yield from plugged
            continue
        yield _build_unit(
            source,
            method.node,
            "relation" if _is_relation(source, method) else "method",
            symbol,
            alone=method.public and not _is_down_method(one, method),
        )


def _statements_of_schema(source: PhpSource, one: ClassLike, method: Method) -> Iterator[Unit]:
    """Yield the statements in `up` of a migration that create, alter or drop a table."""
    if not _is_migration(one) or method.name.lower() != "up" or method.body is None:
        return
    for statement in method.body.named_children:
        chain = _chain_in_statement(source, statement)
        if chain is not None and chain.static and chain.root.rpartition("\\")[2] == "Schema":
            table = source.value(chain.calls[-1].argument(0))
            name = table if isinstance(table, str) else ""
            yield _build_unit(source, statement, "schema", name, alone=True)


def _units_of_functions(source: PhpSource) -> Iterator[Unit]:
    for name, function in source.functions:
        if source.find_class(function.node) is None:
            yield _build_unit(source, function.node, "function", name, alone=True)


def _units_of_statements(source: PhpSource) -> Iterator[Unit]:
    for statement in source.statements():
        if statement.type == "return_statement":
            yield from _units_of_keys(source, statement)
            continue
        chain = _chain_in_statement(source, statement)
        if chain is not None and _is_route(source, chain):
            role: Role = "group" if chain.call("group") else "route"
            yield _build_unit(source, statement, role, "", alone=role == "group")


def _units_of_keys(source: PhpSource, statement: Node) -> Iterator[Unit]:
    """Yield the top-level keys of an array that a file returns."""
    value = next(iter(statement.named_children), None)
    if value is None or value.type != "array_creation_expression":
        return
    for key, element in elements(value):
        name = source.value(key)
        if isinstance(name, str):
            yield _build_unit(source, element.parent or element, "key", name, alone=True)


def _is_route(source: PhpSource, chain: Chain) -> bool:
    if not chain.static:
        return chain.root in _ROUTERS
    name = source.class_name(chain.root, chain.node)
    return name in {"Illuminate\\Support\\Facades\\Route", "Route"}


def _chain_in_statement(source: PhpSource, statement: Node) -> Chain | None:
    if statement.type != "expression_statement" or not statement.named_children:
        return None
    return source.chain(statement.named_children[0])


def _is_relation(source: PhpSource, method: Method) -> bool:
    """Return whether a method contains a relation call on `$this`."""
    if method.body is None or method.static or method.parameters:
        return False
    for node in source.tree.nodes(MEMBER_CALLS, method.body):
        if source.tree.field(node, "object") == "$this":
            called = source.tree.field(node, "name").lower()
            if called in _RELATIONS:
                return True
    return False


def _is_migration(one: ClassLike) -> bool:
    return any(parent.rpartition("\\")[2] == "Migration" for parent in one.parents)


def _is_down_method(one: ClassLike, method: Method) -> bool:
    return _is_migration(one) and method.name.lower() == "down"


def _build_unit(source: PhpSource, node: Node, role: Role, symbol: str, *, alone: bool) -> Unit:
    tree = source.tree
    signed = role in {"method", "relation", "function"}
    return Unit(
        tree.start(first_comment(node)),
        end_with_comment(source.tree, node),
        role,
        symbol,
        _read_signature(source, node) if signed else "",
        alone=alone,
        cuts=_statement_ends(source, node),
    )


def _enclosing_statement(node: Node) -> Node:
    """Return the statement that returns an anonymous class; for any other class, the class."""
    at = node
    while at.type not in CLASS_ROLES or at.type == "anonymous_class":
        above = at.parent
        if above is None or at.type in _STATEMENTS:
            break
        at = above
    return at


def _read_signature(source: PhpSource, node: Node) -> str:
    """Return the declaration without its body and attributes, in one line."""
    body = node.child_by_field_name("body")
    attributes = node.child_by_field_name("attributes")
    start = source.tree.start(node) if attributes is None else source.tree.end(attributes)
    end = source.tree.end(node) if body is None else source.tree.start(body)
    return " ".join(source.text[start:end].split()).rstrip(";")


def _statement_ends(source: PhpSource, node: Node) -> tuple[int, ...]:
    return tuple(sorted({source.tree.end(n) for n in source.tree.nodes(_STATEMENTS, node)}))


def _drop_nested_units(units: Iterable[Unit]) -> list[Unit]:
    """Return units, except units that start within another unit."""
    found: list[Unit] = []
    for unit in sorted(units, key=lambda unit: (unit.start, -unit.end)):
        if not found or unit.start >= found[-1].end:
            found.append(unit)
    return found


def _extend_first_head(source: PhpSource, units: list[Unit]) -> list[Unit]:
    """Return units; the first class's head is extended by the namespace and imports before it."""
    if not units or units[0].role != "class":
        return units
    first = units[0]
    above = source.tree.root.children
    if any(n.type not in _HEAD for n in above if source.tree.end(n) <= first.start):
        return units
    start = len(source.text) - len(source.text.lstrip())
    return [replace(first, start=start), *units[1:]]
