"""Facts about objects with classes that other files define; see origins for the texts.

| kind | symbol | values |
|---|---|---|
| goes_through | the enclosing definition | of: origins of a chain of calls |
| gives | a function or method that declares no class | of: origins of its return value |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.bodies import Body, returned
from rag_assets.systems.code_memory.languages.php.calls import CALLS, MEMBER_CALLS
from rag_assets.systems.code_memory.languages.php.classes import ClassLike, Method
from rag_assets.systems.code_memory.languages.php.notes import noted_return
from rag_assets.systems.code_memory.languages.php.origins import CALLED, THEN, Origins
from rag_assets.systems.code_memory.languages.php.source import PhpSource

if TYPE_CHECKING:
    from tree_sitter import Node

_OF_FRAMEWORK: Final = "Illuminate\\"
_TELLS_NOTHING: Final = frozenset({"", "mixed", "object", "iterable", "array"})
_SETS: Final = re.compile(r"\$this->\w+\s*=(?![=>])")
_CHAINS: Final = CALLS - {"object_creation_expression"}
_QUERIES: Final = frozenset(
    {"all", "count", "create", "delete", "exists", "find", "findorfail", "first", "firstorcreate"}
    | {"firstorfail", "firstornew", "get", "insert", "latest", "limit", "orderby", "paginate"}
    | {"pluck", "query", "save", "select", "skip", "sum", "take", "toarray", "update", "value"}
    | {"updateorcreate", "where", "wherehas", "wherein", "wherenotin", "wherenotnull", "wherenull"}
    | {"with", "withcount", "withtrashed", "orwhere", "orderbydesc", "keyby", "map", "filter"}
)
"""Methods, in lower case, whose results are determined by the file of the class alone."""


class Bodies:
    """The bodies of a file's functions and methods, each read once."""

    def __init__(self, source: PhpSource) -> None:
        self._source = source
        self._held: dict[str, Mapping[str, Origins]] = {}
        self._known: dict[str, Body] = {}
        self._methods: dict[str, tuple[Method, ClassLike | None]] = {
            name: (function, None) for name, function in source.functions
        }
        for one in source.classes:
            for method in one.methods:
                self._methods[f"{one.name}::{method.name}"] = method, one

    def __iter__(self) -> Iterator[tuple[str, Method]]:
        """Yield the functions and methods, with their names."""
        return ((name, method) for name, (method, _) in self._methods.items())

    def of(self, symbol: str) -> Body | None:
        """Return the body of a function or method; None for anything else."""
        if symbol not in self._methods:
            return None
        if symbol not in self._known:
            method, around = self._methods[symbol]
            held = self._given(around) if around is not None else {}
            self._known[symbol] = Body(self._source, method, around, held)
        return self._known[symbol]

    def _given(self, around: ClassLike) -> Mapping[str, Origins]:
        """Return the origins assigned to properties of a class, if all its methods agree."""
        if around.name not in self._held:
            found: dict[str, set[Origins]] = {}
            for method in around.methods:
                if _SETS.search(self._source.tree.of(method.body)) is None:
                    continue
                for name, origins in Body(self._source, method, around).assigned().items():
                    if origins != ():
                        found.setdefault(name, set()).add(origins)
            self._held[around.name] = {
                name: next(iter(several)) for name, several in found.items() if len(several) == 1
            }
        return self._held[around.name]


def facts_of(source: PhpSource, bodies: Bodies) -> Iterator[Fact]:
    """Yield the facts of a file, in no particular order."""
    for symbol, method in bodies:
        body = bodies.of(symbol)
        if body is None or method.body is None:
            continue
        if origins := _given(source, method, body):
            yield _fact(source, "gives", method.node, symbol, origins)
        seen: set[tuple[str, ...]] = set()
        for node in _outermost(source, method.body):
            origins = body.of(node)
            told = tuple(one for one in origins or () if _leads_on(one))
            if told and told not in seen:
                seen.add(told)
                yield _fact(source, "goes_through", node, symbol, told)


def _given(source: PhpSource, method: Method, body: Body) -> Origins:
    """Return the origins of a function's return value if its declaration names no class."""
    told = method.returns
    if told not in _TELLS_NOTHING and not told.startswith(_OF_FRAMEWORK):
        return None
    noted = noted_return(source, method) if told in _TELLS_NOTHING else None
    own = [one for one in noted or () if not one.startswith(_OF_FRAMEWORK)]
    return tuple(own) or returned(source, method, body)


def _outermost(source: PhpSource, body: Node) -> Iterator[Node]:
    """Yield the longest chains of calls in a body."""
    inner: set[int] = set()
    for node in source.tree.nodes(_CHAINS, body):
        if node.id in inner:
            continue
        at = node.child_by_field_name("object") if node.type in MEMBER_CALLS else None
        while at is not None:
            inner.add(at.id)
            at = at.child_by_field_name("object")
        yield node


def _leads_on(origin: str) -> bool:
    """Return whether other files may tell more about a chain than its own file does."""
    begun, *steps = origin.split(THEN)
    calls = [one.removesuffix(CALLED).lower() for one in steps]
    if "::" in begun:
        return any(one not in _QUERIES for one in calls)
    if begun.endswith(CALLED):
        return bool(calls)
    return len(calls) > (0 if begun.startswith("@") else 1) or _is_property(steps)


def _is_property(steps: list[str]) -> bool:
    return bool(steps) and not steps[0].endswith(CALLED)


def _fact(source: PhpSource, kind: str, node: Node, symbol: str, origins: tuple[str, ...]) -> Fact:
    values = {"of": list(origins)}
    return Fact(kind, source.tree.start(node), source.tree.end(node), symbol, values)
