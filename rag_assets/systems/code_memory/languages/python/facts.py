"""The facts that a Python file states without reference to other files.

| kind | symbol | values |
|---|---|---|
| declares | the definition | role, public, decorators [expression], parameters [{name, type}] |
| imports | the enclosing definition | name, alias, level, member |
| extends | the class | name: reference |
| calls | the enclosing definition | name: reference; calls of builtins are left out |
| exports | "" | names: in `__all__`, if it is written out |

References are described in `names`, expressions in `expressions`; further facts for frameworks are
in `statements`. The method in `self.method()` may be inherited: then a call to each base's method
is stated, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.expressions import dotted_name, expression_of
from rag_assets.systems.code_memory.languages.python.names import Import
from rag_assets.systems.code_memory.languages.python.scopes import Scopes, inside
from rag_assets.systems.code_memory.languages.python.source import (
    DEFINITIONS,
    Definition,
    PythonSource,
)

if TYPE_CHECKING:
    from tree_sitter import Node


_OWN = frozenset({"self", "cls"})


def facts_of(source: PythonSource, scopes: Scopes) -> Iterator[Fact]:
    """Yield the facts of a file, in no particular order."""
    yield from (_imported(source, one, "") for one in source.imports)
    symbols = frozenset(one.symbol for one in source.definitions)
    yield from _calls(source, scopes, None, top_level(source), symbols)
    for one in source.definitions:
        values = _declared(source, scopes, one)
        yield Fact("declares", *_lines_of(source, one), one.symbol, values)
        yield from (_imported(source, each, one.symbol) for each in one.imports)
        if one.sort == "class":
            for parent in scopes.parents(one):
                yield Fact("extends", *_lines_of(source, one), one.symbol, {"name": parent})
        yield from _calls(source, scopes, one, inside(one), symbols)


def fact(
    source: PythonSource, kind: str, node: Node, symbol: str, values: Mapping[str, Any]
) -> Fact:
    """Return a fact whose evidence is a node."""
    return Fact(kind, source.tree.start(node), source.tree.end(node), symbol, values)


def _lines_of(source: PythonSource, one: Definition) -> tuple[int, int]:
    return source.tree.start(one.node), source.tree.end(one.last)


def _imported(source: PythonSource, one: Import, symbol: str) -> Fact:
    values = {"name": one.name, "alias": one.alias, "level": one.level, "member": one.member}
    return fact(source, "imports", one.node, symbol, values)


def _declared(source: PythonSource, scopes: Scopes, one: Definition) -> Mapping[str, Any]:
    decorators = [
        expression_of(
            source.tree,
            node.named_children[0] if node.named_children else None,
            lambda name: scopes.reference(name, one.within),
        )
        for node in one.decorators
    ]
    values: dict[str, Any] = {"role": one.sort, "public": one.public, "decorators": decorators}
    if one.sort != "class":
        values["parameters"] = list(_parameters(source, one))
    return values


def _parameters(source: PythonSource, one: Definition) -> Iterator[Mapping[str, str]]:
    held = one.node.child_by_field_name("parameters")
    for node in [] if held is None else held.named_children:
        name = node if node.type == "identifier" else node.child_by_field_name("name")
        if name is None and node.type == "typed_parameter":
            name = node.named_children[0]
        if name is not None:
            kind = " ".join(source.tree.of(node.child_by_field_name("type")).split())
            yield {"name": source.tree.of(name), "type": kind}


def _calls(
    source: PythonSource,
    scopes: Scopes,
    one: Definition | None,
    nodes: Iterator[Node],
    symbols: Collection[str],
) -> Iterator[Fact]:
    seen: set[str] = set()
    for node in nodes:
        called = scopes.called(node, one) if node.type == "call" else ""
        above = _inherited(source, scopes, one, node, symbols) if called else ()
        for name in (called, *above):
            if name and name not in seen:
                seen.add(name)
                symbol = "" if one is None else one.symbol
                yield fact(source, "calls", node, symbol, {"name": name})


def _inherited(
    source: PythonSource,
    scopes: Scopes,
    one: Definition | None,
    call: Node,
    symbols: Collection[str],
) -> Iterator[str]:
    """Yield the methods of bases that `self.method()` may call if the class lacks the method."""
    written = dotted_name(source.tree, call.child_by_field_name("function"))
    root, _, method = written.partition(".")
    around = one
    while around is not None and around.sort != "class":
        around = around.within
    if around is None or root not in _OWN or not method or "." in method:
        return
    if f"{around.symbol}.{method}" not in symbols:
        yield from (f"{parent}.{method}" for parent in scopes.parents(around))


def top_level(source: PythonSource) -> Iterator[Node]:
    """Yield the nodes outside definitions."""
    todo = [source.tree.root]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(c for c in reversed(node.named_children) if c.type not in DEFINITIONS)
