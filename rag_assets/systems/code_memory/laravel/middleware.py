"""Middleware: the classes that names stand for, and the middleware that controllers state.

| kind | symbol | values |
|---|---|---|
| uses_middleware | the enclosing definition | name: a class or a name; alias: or group |
| guards | a controller | name, methods: those it guards; an empty list means all methods |
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import ClassLike, Method, PhpSource
from rag_assets.systems.code_memory.languages.php.values import Call, Chain, list_arguments
from rag_assets.systems.code_memory.symbols.model import FileFacts

if TYPE_CHECKING:
    from tree_sitter import Node

_MIDDLEWARE: Final = "Illuminate\\Routing\\Controllers\\Middleware"
_NAMING: Final = frozenset(
    {"aliasmiddleware", "middlewaregroup", "pushmiddlewaretogroup", "prependmiddlewaretogroup"}
)
"""Methods of the router, in lower case, that name middleware."""

_CONFIGURING: Final = frozenset({"group", "appendtogroup", "prependtogroup"})
_GROUPS: Final = frozenset({"web", "api"})
_CONFIGURATION: Final = "$middleware"
"""Variable of Laravel 11 and later in which applications configure their middleware."""

_WITHOUT_KERNEL: Final = 11
_STATING: Final = frozenset({"member_call_expression"})
_RETURNS: Final = frozenset({"return_statement"})
_LISTS: Final = frozenset({"array_element_initializer"})


_Guards: TypeAlias = "tuple[Sequence[str], Sequence[str], Sequence[str], Node]"
"""Middleware, the methods that it is limited to, the methods that it excludes, and the evidence."""


def guard_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the facts of the controllers in a file."""
    if "iddleware" not in source.text:
        return
    for one in source.classes:
        constructor, stating = one.method("__construct"), one.method("middleware")
        found: list[_Guards] = []
        if constructor is not None:
            found += _guards_in_constructor(source, constructor)
        if stating is not None and stating.static and not stating.parameters:
            found += _guards_in_list(source, stating)
        for names, only, without, node in found:
            methods = _guarded_methods(one, only, without)
            for name in names if methods is not None else ():
                alias = name.partition(":")[0].lstrip("\\")
                if alias:
                    span = source.tree.start(node), source.tree.end(node)
                    yield Fact("guards", *span, one.name, {"name": alias, "methods": methods})


def _guarded_methods(
    one: ClassLike, only: Sequence[str], without: Sequence[str]
) -> list[str] | None:
    """Return the methods with a middleware: empty for all methods, None for no method."""
    if not without:
        return [*only]
    own = [m.name for m in one.methods if m.public and not m.static and m.name[:2] != "__"]
    excluded = {name.lower() for name in without}
    return [name for name in only or own if name.lower() not in excluded] or None


def _guards_in_constructor(source: PhpSource, method: Method) -> Iterator[_Guards]:
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
            names = _list_strings(source, chain.calls[0].argument(0, "middleware"))
            only, without = (_option_names(source, chain, name) for name in ("only", "except"))
            yield names, only, without, node


def _option_names(source: PhpSource, chain: Chain, name: str) -> list[str]:
    call = chain.call(name)
    if call is None:
        return []
    return [text for one in call.arguments for text in _list_strings(source, one.value)]


def _guards_in_list(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield middleware in a returned list: names, or `new Middleware('auth', only: ['store'])`."""
    if method.body is None:
        return
    returned = source.tree.nodes(_RETURNS, method.body)
    listed = returned[0].named_children[:1] if len(returned) == 1 else ()
    for array in listed:
        for entry in array.named_children if array.type == "array_creation_expression" else ():
            if entry.type in _LISTS and len(entry.named_children) == 1:
                yield from _guards_in_entry(source, entry.named_children[0])


def _guards_in_entry(source: PhpSource, node: Node) -> Iterator[_Guards]:
    if node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    if node.type != "object_creation_expression":
        yield _list_strings(source, node), (), (), node
        return
    written = source.tree.of(node.named_children[0]) if node.named_children else ""
    if not written or source.class_name(written, node) != _MIDDLEWARE:
        return
    made = Call("", list_arguments(source.tree, node), node)
    names = enumerate(("middleware", "only", "except"))
    first, only, without = (_list_strings(source, made.argument(at, name)) for at, name in names)
    yield first, only, without, node


def _list_strings(source: PhpSource, node: Node | None) -> list[str]:
    """Return the texts in an expression, which may be a list; computed texts are left out."""
    value = source.value(node) if node is not None else None
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, str)]


def read_kernel(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entries of a kernel's property: classes, or names by alias or group."""
    items = value if isinstance(value, dict) else {"": value}
    for key, names in items.items():
        alias = "" if key.isdigit() else key
        for name in names if isinstance(names, list) else [names]:
            if isinstance(name, str) and (alias or "\\" in name):
                yield _name_fact(alias, name)


def read_names(
    source: PhpSource, chain: Chain, call: Call
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names that a call on the router or the configuration assigns to middleware."""
    name, on_configuration = call.name.lower(), chain.root == _CONFIGURATION
    if on_configuration and name == "alias":
        yield from read_kernel(source.value(call.argument(0, "aliases")))
    elif on_configuration and name in _GROUPS:
        added = (call.argument(at, kind) for at, kind in enumerate(("append", "prepend")))
        yield from (_name_fact(name, one) for node in added for one in _list_strings(source, node))
    elif name in _NAMING or (on_configuration and name in _CONFIGURING):
        alias = source.value(call.argument(0))
        if isinstance(alias, str):
            yield from (_name_fact(alias, one) for one in _list_strings(source, call.argument(1)))


def _name_fact(alias: str, name: str) -> tuple[str, Mapping[str, Any]]:
    """Return a fact without the arguments after the name: `throttle:api`."""
    return "uses_middleware", {"name": name.partition(":")[0].lstrip("\\"), "alias": alias}


def resolve_middleware(
    files: Iterable[FileFacts], version: int | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Return the middleware classes that each alias and group of the repository stands for.

    Args:
        version: major version of Laravel; since version 11, Laravel has its own names.
    """
    usual: Mapping[str, list[str]] = {}
    if version is not None and version >= _WITHOUT_KERNEL:
        text = resources.files(__package__).joinpath("middleware.toml").read_text("utf-8")
        usual = tomllib.loads(text)["names"]
    named = {name: list(usual[name]) for name in _GROUPS & usual.keys()}
    for one in files:
        for fact in one.facts:
            if fact.kind == "uses_middleware" and fact.values.get("alias"):
                named.setdefault(str(fact.values["alias"]), []).append(str(fact.values["name"]))
    named = {**usual, **named}
    found = {name: tuple(dict.fromkeys(_list_classes(name, named))) for name in named}
    return {name: classes for name, classes in found.items() if classes}


def _list_classes(name: str, named: Mapping[str, Sequence[str]]) -> Iterator[str]:
    todo, seen = [name], set[str]()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if "\\" in at:
            yield at
        else:
            todo += reversed(named.get(at, ()))
