"""Middleware that controllers state themselves: in the constructor, or by HasMiddleware.

Each is a fact `guards` {name, methods} of the controller. `methods` lists the public methods that
the middleware guards; an empty list means all methods, including inherited ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import ClassLike, Method, PhpSource
from rag_assets.systems.code_memory.languages.php.values import Call, Chain, arguments_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MIDDLEWARE: Final = "Illuminate\\Routing\\Controllers\\Middleware"
_STATING: Final = frozenset({"member_call_expression"})
_RETURNS: Final = frozenset({"return_statement"})
_LISTS: Final = frozenset({"array_element_initializer"})


@dataclass(frozen=True, slots=True)
class _Guards:
    """Middleware, the methods that it is limited to, and the methods that it excludes."""

    names: Sequence[str]
    only: Sequence[str]
    without: Sequence[str]
    node: Node


def guard_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the facts of the controllers in a file."""
    if "iddleware" not in source.text:
        return
    for one in source.classes:
        constructor, stating = one.method("__construct"), one.method("middleware")
        found: list[_Guards] = []
        if constructor is not None:
            found += _of_constructor(source, constructor)
        if stating is not None and stating.static and not stating.parameters:
            found += _of_list(source, stating)
        for guards in found:
            yield from _facts(source, one, guards)


def _facts(source: PhpSource, one: ClassLike, guards: _Guards) -> Iterator[Fact]:
    own = [m.name for m in one.methods if m.public and not m.static and m.name[:2] != "__"]
    left_out = {name.lower() for name in guards.without}
    methods = list(guards.only)
    if left_out:
        methods = [name for name in methods or own if name.lower() not in left_out]
        if not methods:
            return
    for name in guards.names:
        alias = name.partition(":")[0].lstrip("\\")
        if alias:
            span = source.tree.start(guards.node), source.tree.end(guards.node)
            yield Fact("guards", *span, one.name, {"name": alias, "methods": methods})


def _of_constructor(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield middleware from calls such as `$this->middleware('auth')->only('store')`."""
    if method.body is None:
        return
    known: set[int] = set()
    for node in source.tree.nodes(_STATING, method.body):
        chain = None if node.id in known else source.chain(node)
        if chain is None:
            continue
        known.update(call.node.id for call in chain.calls)
        if chain.root == "$this" and chain.calls[0].name.lower() == "middleware":
            names = _texts(source, chain.calls[0].argument(0, "middleware"))
            only, without = (_options(source, chain, name) for name in ("only", "except"))
            yield _Guards(names, only, without, node)


def _options(source: PhpSource, chain: Chain, name: str) -> list[str]:
    call = chain.call(name)
    if call is None:
        return []
    return [text for one in call.arguments for text in _texts(source, one.value)]


def _of_list(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield middleware in a returned list: names, or `new Middleware('auth', only: ['store'])`."""
    if method.body is None:
        return
    returned = source.tree.nodes(_RETURNS, method.body)
    listed = returned[0].named_children[:1] if len(returned) == 1 else ()
    for array in listed:
        for entry in array.named_children if array.type == "array_creation_expression" else ():
            if entry.type in _LISTS and len(entry.named_children) == 1:
                yield from _of_entry(source, entry.named_children[0])


def _of_entry(source: PhpSource, node: Node) -> Iterator[_Guards]:
    if node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    if node.type != "object_creation_expression":
        yield _Guards(_texts(source, node), (), (), node)
        return
    written = source.tree.of(node.named_children[0]) if node.named_children else ""
    if not written or source.class_name(written, node) != _MIDDLEWARE:
        return
    made = Call("", arguments_of(source.tree, node), node)
    yield _Guards(
        _texts(source, made.argument(0, "middleware")),
        _texts(source, made.argument(1, "only")),
        _texts(source, made.argument(2, "except")),
        node,
    )


def _texts(source: PhpSource, node: Node | None) -> list[str]:
    """Return the texts in an expression, which may be a list; computed texts are left out."""
    value = source.value(node) if node is not None else None
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, str)]
