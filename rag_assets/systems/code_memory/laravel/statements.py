"""Facts from statements that only Laravel gives a meaning, at any place.

| kind | values |
|---|---|
| dispatches | name: a job or an event |
| listens_to | event, listener |
| policy_of | model, policy |
| observes | model, observer |
| uses_middleware | name, alias: of an entry in a kernel, or of an alias |
| binds | abstract, concrete: class names, the second "" if it is computed |
| authorizes | ability, model: "" if it is not a class name; method: that checks, if elsewhere |
| authorizes_of | ability, or constant: that holds it; of: origins of its subject |
| dispatches_of | of: origins of a job or an event |
| defines_ability | ability, answers: the method that answers, "" for a closure |
| queries_table | table |
| configured_by | key: of the configuration |
| reads_env | key: of the environment |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.origins import Bodies, Body
from rag_assets.systems.code_memory.languages.php.source import (
    ClassLike,
    Method,
    PhpSource,
    Property,
)
from rag_assets.systems.code_memory.languages.php.types import class_of_creation, types_of
from rag_assets.systems.code_memory.languages.php.values import CALLS, CLOSURES, Call, Chain
from rag_assets.systems.code_memory.languages.sql import tables_in_sql
from rag_assets.systems.code_memory.laravel.middleware import read_kernel, read_names
from rag_assets.systems.code_memory.laravel.policies import (
    CHECKS,
    CONSTANT,
    GATE_CHECKS,
    SUBJECT,
    VARIABLE,
    read_checks,
    read_definitions,
    read_resource_checks,
    resolve_checks,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_Values = Mapping[str, Any]

_PAIR: Final = 2
_SQL: Final = frozenset({"select", "insert", "update", "delete", "statement", "unprepared", "raw"})
_RAW: Final = frozenset(
    {"selectraw", "whereraw", "orwhereraw", "havingraw", "orderbyraw", "groupbyraw", "fromraw"}
)
_JOINS: Final = frozenset(
    {"join", "leftjoin", "rightjoin", "crossjoin", "joinwhere", "leftjoinwhere"}
)
_JOINED: Final = re.compile(r"[A-Za-z_][\w.]{0,63}(?=\s|$)")


def database_statements(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the tables that a call on the database facade names."""
    stated = source.value(call.argument(0))
    if not isinstance(stated, str):
        return
    if call.name.lower() == "table":
        yield "queries_table", {"table": stated.split(" ")[0]}
    elif call.name.lower() in _SQL:
        yield from _tables_in_sql(stated)


def query_statements(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the tables that a query joins, and the tables in its raw SQL parts."""
    name = call.name.lower()
    if name not in _RAW | _JOINS:
        return
    stated = source.value(call.argument(0))
    if not isinstance(stated, str):
        return
    if name in _RAW:
        yield from _tables_in_sql(stated)
        return
    on = call.argument(1)
    # A `join` with one or two arguments may be one that joins strings.
    is_query = name != "join" or len(call.arguments) > _PAIR or (on and on.type in CLOSURES)
    if is_query and (found := _JOINED.match(stated)):
        yield "queries_table", {"table": found.group()}


def _tables_in_sql(stated: str) -> Iterator[tuple[str, _Values]]:
    for table in tables_in_sql(stated):
        yield "queries_table", {"table": table}


class Types:
    """The classes of variables, by the method that contains the variables."""

    def __init__(self, source: PhpSource) -> None:
        self._source = source
        self._known: dict[str, Mapping[str, str]] = {}

    @cached_property
    def _methods(self) -> dict[str, tuple[ClassLike, Method]]:
        return {
            f"{one.name}::{method.name}": (one, method)
            for one in self._source.classes
            for method in one.methods
        }

    def of(self, symbol: str) -> Mapping[str, str]:
        """Return the classes of a method's variables; the keys are variables as written."""
        if symbol not in self._known:
            found = self._methods.get(symbol)
            known = {} if found is None else types_of(self._source, found[1], found[0])
            self._known[symbol] = known
        return self._known[symbol]


class Enclosing:
    """The names of the definitions around nodes; nodes must come in the order of the text."""

    def __init__(self, source: PhpSource) -> None:
        spans = [(one.node.start_byte, one.node.end_byte, one.name) for one in source.classes]
        for one in source.classes:
            spans += [
                _name_span(method.node, f"{one.name}::{method.name}") for method in one.methods
            ]
        spans += [_name_span(function.node, name) for name, function in source.functions]
        self._spans = sorted(spans, key=lambda span: (span[0], -span[1]), reverse=True)
        self._open: list[tuple[int, str]] = []

    def around(self, node: Node) -> str:
        """Return the qualified name of the innermost definition around a node; "" at top level."""
        while self._spans and self._spans[-1][0] <= node.start_byte:
            _, end, name = self._spans.pop()
            self._open.append((end, name))
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        return self._open[-1][1] if self._open else ""


def _name_span(node: Node, name: str) -> tuple[int, int, str]:
    return node.start_byte, node.end_byte, name


_FACADES = "Illuminate\\Support\\Facades\\"
_DISPATCHES = frozenset({"dispatch", "dispatchsync", "dispatchnow", "dispatchafterresponse"})
_OF_CLASS = _DISPATCHES | {"dispatchif", "dispatchunless"}
_BINDS = frozenset({"bind", "bindif", "singleton", "singletonif", "scoped", "instance"})
_KERNEL = {
    "middleware", "middlewareGroups", "routeMiddleware", "middlewareAliases", "middlewarePriority",
}  # fmt: skip
_BINDINGS = frozenset({"bindings", "singletons"})
_CALLS = CALLS - {"object_creation_expression"}
_DEFERRED = frozenset({"authorizes_of", "dispatches_of"})
_OBJECTS = _CALLS | {"variable_name"}


def facts_of(source: PhpSource, bodies: Bodies) -> Iterator[Fact]:
    """Yield the facts of a file, in no particular order."""
    for one in source.classes:
        for held in one.properties:
            for kind, values in _statements_of_property(source, held):
                yield _build_fact(source, kind, held.node, one.name, values)
    names, types = Enclosing(source), Types(source)
    for chain in _find_chains(source):
        symbol = names.around(chain.node)
        for position, call in enumerate(chain.calls):
            for kind, values in _statements_of_call(source, chain, call, first=position == 0):
                told = [(kind, values)]
                if SUBJECT in values:
                    told = [*_resolve_object(kind, values, types.of(symbol), bodies.of(symbol))]
                for said, what in told:
                    yield _build_fact(source, said, call.node, symbol, what)


def _resolve_object(
    kind: str, values: _Values, types: Mapping[str, str], body: Body | None
) -> Iterator[tuple[str, _Values]]:
    """Yield statements about an object with its known class, or else with its origins."""
    if VARIABLE in values:
        yield from ((kind, told) for told in resolve_checks(values, types))
    if values.get(VARIABLE) not in types:
        deferred = kind if kind in _DEFERRED else "authorizes_of"
        yield from ((deferred, told) for told in _insert_origins(values, body))


def _insert_origins(values: _Values, body: Body | None) -> Iterator[_Values]:
    """Yield statements about an object, with its origins in place of the expression."""
    model = values.get("model")
    origins = [model] if model else body.of(values[SUBJECT]) if body is not None else None
    told = {key: values[key] for key in ("ability", CONSTANT) if key in values}
    if origins or CONSTANT in values:
        yield {**told, "of": list(origins or ())}


def _find_chains(source: PhpSource) -> Iterator[Chain]:
    """Yield the chains of calls in order, each once although the nodes of its calls are nested."""
    known: set[int] = set()
    for node in source.tree.nodes(_CALLS):
        chain = None if node.id in known else source.chain(node)
        if chain is not None:
            known.update(call.node.id for call in chain.calls)
            yield chain


def _statements_of_property(source: PhpSource, held: Property) -> Iterator[tuple[str, _Values]]:
    if held.name not in {"listen", "policies", *_KERNEL, *_BINDINGS}:
        return
    value = source.value(held.value)
    if held.name in _KERNEL:
        yield from read_kernel(value)
        return
    for key, found in value.items() if isinstance(value, dict) else ():
        for name in found if isinstance(found, list) else [found]:
            if not isinstance(name, str):
                continue
            if held.name == "listen":
                yield "listens_to", {"event": key, "listener": _strip_class(name)}
            elif held.name == "policies":
                yield "policy_of", {"model": key, "policy": name}
            else:
                yield "binds", {"abstract": key, "concrete": name}


def _statements_of_call(
    source: PhpSource, chain: Chain, call: Call, *, first: bool
) -> Iterator[tuple[str, _Values]]:
    yield from query_statements(source, call)
    yield from read_names(source, chain, call)
    if chain.static and first:
        yield from _statements_of_static_call(source, chain, call)
    elif chain.static:
        yield from _statements_of_facade(source, chain, call)
    elif not chain.root and first:
        yield from _statements_of_function(source, call)
    else:
        yield from _statements_of_member(source, chain, call)


def _statements_of_static_call(
    source: PhpSource, chain: Chain, call: Call
) -> Iterator[tuple[str, _Values]]:
    owner, name = source.class_name(chain.root, call.node), call.name.lower()
    facade = owner.removeprefix(_FACADES) if owner.startswith(_FACADES) else owner
    read = _BY_FACADE.get(facade)
    if read is not None:
        yield from read(source, call)
    elif name in _OF_CLASS:
        yield "dispatches", {"name": owner}
    elif name == "observe":
        for observer in _class_names(source, call.argument(0)):
            yield "observes", {"model": owner, "observer": observer}


def _statements_of_facade(
    source: PhpSource, chain: Chain, call: Call
) -> Iterator[tuple[str, _Values]]:
    """Yield checks on a facade's result: `Auth::user()->can()`, `Gate::forUser()->allows()`."""
    owner = source.class_name(chain.root, call.node).removeprefix(_FACADES)
    asks = {"Gate": GATE_CHECKS, "Auth": CHECKS, "Request": CHECKS}.get(owner, frozenset())
    if call.name.lower() in asks:
        yield from read_checks(source, call)


def _statements_of_function(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    name = call.name.lower().rpartition("\\")[2]
    if name in {"event", "broadcast"} or name in _DISPATCHES:
        yield from _dispatch_statements(source, call)
    elif name == "config":
        yield from _configuration_statements(source, call)
    elif name == "env":
        key = source.value(call.argument(0))
        if isinstance(key, str) and key:
            yield "reads_env", {"key": key}


def _statements_of_member(
    source: PhpSource, chain: Chain, call: Call
) -> Iterator[tuple[str, _Values]]:
    name = call.name.lower()
    if name in _DISPATCHES:
        yield from _dispatch_statements(source, call)
    elif name in _BINDS and chain.root in {"$this->app", "$app"}:
        yield from _binding_statements(source, call)
    elif name in CHECKS:
        yield from read_checks(source, call)
    elif name == "authorizeresource" and chain.root == "$this":
        yield from read_resource_checks(source, call)
    elif chain.root == "$gate":
        yield from read_definitions(source, call)


def _statements_of_event(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    if call.name.lower() == "listen":
        events = _class_names(source, call.argument(0))
        for event in events:
            for listener in _class_names(source, call.argument(1))[:1]:
                yield "listens_to", {"event": event, "listener": _strip_class(listener)}
    elif call.name.lower() == "dispatch":
        yield from _dispatch_statements(source, call)


def _statements_of_bus(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    if call.name.lower() in _DISPATCHES | {"chain", "batch"}:
        yield from _dispatch_statements(source, call)


def _statements_of_gate(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    if call.name.lower() == "policy":
        model, policy = source.value(call.argument(0)), source.value(call.argument(1))
        if isinstance(model, str) and isinstance(policy, str):
            yield "policy_of", {"model": model, "policy": policy}
    elif call.name.lower() in GATE_CHECKS:
        yield from read_checks(source, call)
    else:
        yield from read_definitions(source, call)


def _statements_of_application(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    if call.name.lower() in _BINDS:
        yield from _binding_statements(source, call)


def _statements_of_config(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    if call.name.lower() in {"get", "has", "string", "integer", "boolean", "array", "float"}:
        yield from _configuration_statements(source, call)


_BY_FACADE: Mapping[str, Callable[[PhpSource, Call], Iterator[tuple[str, _Values]]]] = {
    "Event": _statements_of_event,
    "Bus": _statements_of_bus,
    "Queue": _statements_of_bus,
    "Gate": _statements_of_gate,
    "DB": database_statements,
    "App": _statements_of_application,
    "Config": _statements_of_config,
}


def _dispatch_statements(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    todo = [argument.value for argument in call.arguments[:1]]
    if todo and todo[0].type in _OBJECTS:
        yield "dispatches_of", {SUBJECT: todo[0]}
    while todo:
        node = todo.pop()
        if node.type != "object_creation_expression":
            todo += reversed(node.named_children)
        # Arguments of a dispatched object's constructor are not dispatched themselves.
        elif name := class_of_creation(source, node):
            yield "dispatches", {"name": name}


def _binding_statements(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    named = call.argument(0)
    abstract = source.value(named)
    # A plain word that is not a class is an alias of a framework service.
    if named is None or named.type == "string" or not isinstance(abstract, str):
        return
    concrete = source.value(call.argument(1))
    alone = call.argument(1) is None
    stated = abstract if alone else concrete if isinstance(concrete, str) else ""
    yield "binds", {"abstract": abstract, "concrete": stated}


def _configuration_statements(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    key = source.value(call.argument(0))
    if isinstance(key, str) and key:
        yield "configured_by", {"key": key}


def _class_names(source: PhpSource, node: Node | None) -> list[str]:
    """Return the class names in an argument, which may be a list."""
    value = source.value(node) if node is not None else None
    return [name for name in _as_list(value) if isinstance(name, str)]


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _strip_class(name: str) -> str:
    """Return a class without its method or parameters: `Listener@handle`, `Throttle:60`."""
    return re.split(r"[@:]", name, maxsplit=1)[0]


def _build_fact(source: PhpSource, kind: str, node: Node, symbol: str, values: _Values) -> Fact:
    return Fact(kind, source.tree.start(node), source.tree.end(node), symbol, values)
