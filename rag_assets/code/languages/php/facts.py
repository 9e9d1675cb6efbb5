"""What a file of PHP states by itself.

| kind | symbol | values |
|---|---|---|
| declares | what is declared | role, public, abstract, parameters [{name, type}], returns |
| imports | "" | name, alias, of (class, function, const) |
| extends, implements, uses_trait | the class | name |
| calls | where it stands | name: `Class::method`, or a function's |
| creates_object | where it stands | name: the class |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_assets.code.languages.php.calls import CALLS, CLOSURES, MEMBER_CALLS
from rag_assets.code.languages.php.classes import ClassLike, Method, parameters_of
from rag_assets.code.languages.php.names import NO_CLASSES
from rag_assets.code.languages.php.source import PhpSource
from rag_assets.code.model import Fact

if TYPE_CHECKING:
    from tree_sitter import Node

_ASSIGNING = CLOSURES | {"assignment_expression"}
_NAMED = frozenset({"name", "qualified_name", "relative_name", "relative_scope"})


def facts_of(source: PhpSource) -> Iterator[Fact]:
    """The facts of a file, in no particular order."""
    for scope in source.scopes:
        for one in scope.used:
            values = {"name": one.name, "alias": one.alias, "of": one.kind}
            yield _fact(source, "imports", one.node, "", values)
    for declared in source.classes:
        yield from _of_class(source, declared)
    for name, function in source.functions:
        yield _declared(source, "function", name, function)
        yield from _of_body(source, function, name, None)
    yield from _of_top_level(source)


def _of_class(source: PhpSource, one: ClassLike) -> Iterator[Fact]:
    values = {"role": one.role, "public": True, "abstract": one.abstract}
    yield _fact(source, "declares", one.node, one.name, values)
    for kind, names in (
        ("extends", one.parents),
        ("implements", one.interfaces),
        ("uses_trait", one.traits),
    ):
        for name in names:
            yield _fact(source, kind, one.node, one.name, {"name": name})
    for method in one.methods:
        symbol = f"{one.name}::{method.name}"
        yield _declared(source, "method", symbol, method)
        yield from _of_body(source, method, symbol, one)


def _declared(source: PhpSource, role: str, symbol: str, method: Method) -> Fact:
    values = {
        "role": role,
        "public": method.public,
        "abstract": method.abstract,
        "parameters": [{"name": p.name, "type": p.type} for p in method.parameters],
        "returns": method.returns,
    }
    return _fact(source, "declares", method.node, symbol, values)


def _of_body(
    source: PhpSource, method: Method, symbol: str, around: ClassLike | None
) -> Iterator[Fact]:
    if method.body is not None:
        types = _types(source, method, around)
        yield from _calls(source, _Body(method.body, symbol, types))


def _of_top_level(source: PhpSource) -> Iterator[Fact]:
    declarations = {"class_declaration", "interface_declaration", "trait_declaration"}
    declarations |= {"enum_declaration", "function_definition", "anonymous_class"}
    into = frozenset(declarations)
    for statement in source.statements():
        if statement.type not in into:
            yield from _calls(source, _Body(statement, "", {}), into)


@dataclass(frozen=True, slots=True)
class _Body:
    """A body, the name of what it belongs to, and the classes of the expressions in it."""

    node: Node
    symbol: str
    types: Mapping[str, str]


def _types(source: PhpSource, method: Method, around: ClassLike | None) -> dict[str, str]:
    """The classes of variables and properties, by how they are written."""
    types = {f"${p.name}": p.type for p in method.parameters}
    if around is not None:
        types |= {f"$this->{p.name}": p.type for p in around.properties}
        types["$this"] = around.name
    if method.body is None:
        return types
    assigned: dict[str, set[str]] = {}
    for node in source.tree.nodes(_ASSIGNING, method.body):
        if node.type in CLOSURES:
            for parameter in parameters_of(source.tree, node, source.scope_at(node)):
                assigned.setdefault(f"${parameter.name}", set()).add(parameter.type)
        else:
            name = source.tree.of(node.child_by_field_name("left"))
            assigned.setdefault(name, set()).add(_created(source, node))
    # A name that stands for several things stands for none that is known.
    for name, found in assigned.items():
        known = found | ({types[name]} if name in types else set())
        types[name] = known.pop() if len(known) == 1 else ""
    return {name: kind for name, kind in types.items() if kind and kind not in NO_CLASSES}


def _created(source: PhpSource, assignment: Node) -> str:
    value = assignment.child_by_field_name("right")
    if value is None or value.type != "object_creation_expression":
        return ""
    return _class_of_creation(source, value)


def _class_of_creation(source: PhpSource, node: Node) -> str:
    named = next((n for n in node.named_children if n.type in _NAMED), None)
    written = source.tree.of(named)
    return source.class_name(written, node) if written else ""


def _calls(
    source: PhpSource, body: _Body, into: frozenset[str] = frozenset({"anonymous_class"})
) -> Iterator[Fact]:
    seen: set[tuple[str, str]] = set()
    inner_end = -1
    for node in source.tree.nodes(CALLS | into, body.node):
        if node.start_byte < inner_end:
            continue
        if node.type in into:
            inner_end = node.end_byte
        stated = _called(source, node, body.types)
        if stated is not None and stated not in seen:
            seen.add(stated)
            kind, name = stated
            yield _fact(source, kind, node, body.symbol, {"name": name})


def _called(source: PhpSource, node: Node, types: Mapping[str, str]) -> tuple[str, str] | None:
    tree = source.tree
    if node.type == "object_creation_expression":
        created = _class_of_creation(source, node)
        return ("creates_object", created) if created else None
    if node.type == "function_call_expression":
        function = node.child_by_field_name("function")
        if function is None or function.type not in _NAMED:
            return None
        return "calls", source.scope_at(node).function_name(tree.of(function))
    name = node.child_by_field_name("name")
    if name is None or name.type != "name":
        return None
    owner = ""
    if node.type == "scoped_call_expression":
        scope = node.child_by_field_name("scope")
        if scope is not None and scope.type in _NAMED:
            owner = source.class_name(tree.of(scope), node)
    elif node.type in MEMBER_CALLS:
        owner = types.get(tree.of(node.child_by_field_name("object")), "")
    return ("calls", f"{owner}::{tree.of(name)}") if owner else None


def _fact(source: PhpSource, kind: str, node: Node, symbol: str, values: Mapping[str, Any]) -> Fact:
    return Fact(kind, source.tree.start(node), source.tree.end(node), symbol, values)
