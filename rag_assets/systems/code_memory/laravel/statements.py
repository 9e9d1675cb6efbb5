"""Facts from statements that have a meaning only in Laravel, wherever they occur.

| kind | values |
|---|---|
| dispatches | name: a job or an event |
| listens_to | event, listener |
| policy_of | model, policy |
| observes | model, observer |
| uses_middleware | name, alias: of an entry in a kernel, or of an alias |
| binds | abstract, concrete: class names, the second "" if it is computed |
| authorizes | ability, model: "" if it is not a class name; method: that checks, if elsewhere |
| authorizes_of | ability, or constant: with its name; of: origins of its subject |
| dispatches_of | of: origins of a job or an event |
| defines_ability | ability, answers: the method that decides, "" for a closure |
| queries_table | table |
| configured_by | key: of the configuration |
| reads_env | key: of the environment |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.origins import OriginFinder, OriginFinders
from rag_assets.systems.code_memory.languages.php.source import (
    PhpSource,
    Property,
)
from rag_assets.systems.code_memory.languages.php.types import (
    find_variable_types,
    get_class_of_creation,
)
from rag_assets.systems.code_memory.languages.php.values import CALLS, CLOSURES, Call, Chain
from rag_assets.systems.code_memory.languages.sql import list_tables_in_sql
from rag_assets.systems.code_memory.languages.tree import Node
from rag_assets.systems.code_memory.laravel.policies import (
    CHECKS,
    CONSTANT,
    GATE_CHECKS,
    SUBJECT,
    VARIABLE,
    list_strings,
    read_checks,
    read_definitions,
    read_kernel,
    read_names,
    read_resource_checks,
    resolve_checks,
)

_Values: TypeAlias = Mapping[str, Any]
_Statement: TypeAlias = tuple[str, _Values]
_Reader: TypeAlias = Callable[[PhpSource, Call], Iterator[_Statement]]

_PAIR: Final = 2
_SQL: Final = frozenset({"select", "insert", "update", "delete", "statement", "unprepared", "raw"})
_RAW: Final = frozenset(
    {"selectraw", "whereraw", "orwhereraw", "havingraw", "orderbyraw", "groupbyraw", "fromraw"}
)
_JOINS: Final = frozenset(
    {"join", "leftjoin", "rightjoin", "crossjoin", "joinwhere", "leftjoinwhere"}
)
_JOINED: Final = re.compile(r"[A-Za-z_][\w.]{0,63}(?=\s|$)")


def _iter_query_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    name = call.name.lower()
    if name in _RAW:
        yield from _iter_sql_statements(source, call)
    table = source.read_value(call.get_argument(0)) if name in _JOINS else None
    if not isinstance(table, str):
        return
    condition = call.get_argument(1)
    # A `join` with one or two arguments may be one that joins strings.
    is_closure = condition is not None and condition.type in CLOSURES
    is_query = name != "join" or len(call.arguments) > _PAIR or is_closure
    if is_query and (match := _JOINED.match(table)):
        yield "queries_table", {"table": match.group()}


class _Enclosing:
    """A finder of the definitions around nodes; nodes must be queried in the order of the text."""

    def __init__(self, source: PhpSource) -> None:
        named_nodes = [(class_.node, class_.name) for class_ in source.classes]
        for class_ in source.classes:
            named_nodes += [
                (method.node, f"{class_.name}::{method.name}") for method in class_.methods
            ]
        named_nodes += [(function.node, name) for name, function in source.functions]
        spans = [(node.start_byte, node.end_byte, name) for node, name in named_nodes]
        self._spans = sorted(spans, key=lambda span: (span[0], -span[1]), reverse=True)
        self._open: list[tuple[int, str]] = []

    def find_definition(self, node: Node) -> str:
        """Return the qualified name of the innermost definition around a node; "" at top level."""
        while self._spans and self._spans[-1][0] <= node.start_byte:
            _, end, name = self._spans.pop()
            self._open.append((end, name))
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        return self._open[-1][1] if self._open else ""


_FACADES: Final = "Illuminate\\Support\\Facades\\"
_DISPATCHES: Final = frozenset({"dispatch", "dispatchsync", "dispatchnow", "dispatchafterresponse"})
_CLASS_DISPATCHES: Final = _DISPATCHES | {"dispatchif", "dispatchunless"}
_BINDS: Final = frozenset({"bind", "bindif", "singleton", "singletonif", "scoped", "instance"})
_KERNEL: Final = frozenset(
    {"middleware", "middlewareGroups", "routeMiddleware", "middlewareAliases"}
    | {"middlewarePriority"}
)
_BINDINGS: Final = frozenset({"bindings", "singletons"})
_CALLS: Final = CALLS - {"object_creation_expression"}
_DEFERRED: Final = frozenset({"authorizes_of", "dispatches_of"})
_OBJECTS: Final = _CALLS | {"variable_name"}


def iter_facts(source: PhpSource, bodies: OriginFinders) -> Iterator[Fact]:
    """Yield the Laravel facts of a file, in no particular order."""
    for class_ in source.classes:
        for property_ in class_.properties:
            for kind, values in _iter_statements_of_property(source, property_):
                yield source.tree.build_fact(kind, property_.node, class_.name, values)
    names = _Enclosing(source)
    methods = {
        f"{class_.name}::{m.name}": (m, class_) for class_ in source.classes for m in class_.methods
    }

    @cache
    def get_types(symbol: str) -> Mapping[str, str]:
        """Return the class of each variable in a method; the keys are variables as written."""
        return find_variable_types(source, *methods[symbol]) if symbol in methods else {}

    for chain in _find_chains(source):
        symbol = names.find_definition(chain.node)
        for position, call in enumerate(chain.calls):
            for kind, values in _iter_statements_of_call(
                source, chain, call, is_first=position == 0
            ):
                statements = [(kind, values)]
                if SUBJECT in values:
                    types = get_types(symbol)
                    statements = [*_resolve_object(kind, values, types, bodies.find(symbol))]
                for resolved_kind, resolved_values in statements:
                    yield source.tree.build_fact(resolved_kind, call.node, symbol, resolved_values)


def _resolve_object(
    kind: str, values: _Values, types: Mapping[str, str], body: OriginFinder | None
) -> Iterator[_Statement]:
    """Yield a statement about an object with its class; if it is unknown, with its origins."""
    if VARIABLE in values:
        yield from ((kind, resolve_check) for resolve_check in resolve_checks(values, types))
    if values.get(VARIABLE) not in types:
        model = values.get("model")
        origins = [model] if model else body.find(values[SUBJECT]) if body is not None else None
        known_values = {key: values[key] for key in ("ability", CONSTANT) if key in values}
        if origins or CONSTANT in values:
            deferred = kind if kind in _DEFERRED else "authorizes_of"
            yield deferred, {**known_values, "of": list(origins or ())}


def _find_chains(source: PhpSource) -> Iterator[Chain]:
    """Yield the chains of calls in a file in order; each chain only as a whole."""
    read_nodes: set[int] = set()
    for node in source.tree.find_nodes(_CALLS):
        chain = None if node.id in read_nodes else source.parse_chain(node)
        if chain is not None:
            read_nodes.update(call.node.id for call in chain.calls)
            yield chain


def _iter_statements_of_property(source: PhpSource, property_: Property) -> Iterator[_Statement]:
    if property_.name not in {"listen", "policies", *_KERNEL, *_BINDINGS}:
        return
    value = source.read_value(property_.value)
    if property_.name in _KERNEL:
        yield from read_kernel(value)
        return
    for key, entry in value.items() if isinstance(value, dict) else ():
        for name in entry if isinstance(entry, list) else [entry]:
            if not isinstance(name, str):
                continue
            if property_.name == "listen":
                yield "listens_to", {"event": key, "listener": _strip_class(name)}
            elif property_.name == "policies":
                yield "policy_of", {"model": key, "policy": name}
            else:
                yield "binds", {"abstract": key, "concrete": name}


def _iter_statements_of_call(
    source: PhpSource, chain: Chain, call: Call, *, is_first: bool
) -> Iterator[_Statement]:
    yield from _iter_query_statements(source, call)
    yield from read_names(source, chain, call)
    name = call.name.lower()
    if chain.static:
        owner = source.resolve_class_name(chain.root, call.node)
        facade = owner.removeprefix(_FACADES)
        readers = _FACADE_READERS if is_first else _FACADE_RESULT_READERS
        if facade in readers:
            yield from readers[facade].get(name, _read_nothing)(source, call)
        elif is_first and name in _CLASS_DISPATCHES:
            yield "dispatches", {"name": owner}
        elif is_first and name == "observe":
            for observer in list_strings(source, call.get_argument(0)):
                yield "observes", {"model": owner, "observer": observer}
    elif not chain.root and is_first:
        yield from _FUNCTION_READERS.get(name.rpartition("\\")[2], _read_nothing)(source, call)
    else:
        yield from _find_member_reader(name, chain.root)(source, call)


def _find_member_reader(name: str, root: str) -> _Reader:
    if name in _DISPATCHES:
        return _iter_dispatch_statements
    if name in _BINDS and root in {"$this->app", "$app"}:
        return _iter_binding_statements
    if name in CHECKS:
        return read_checks
    if name == "authorizeresource" and root == "$this":
        return read_resource_checks
    return read_definitions if root == "$gate" else _read_nothing


def _read_nothing(_source: PhpSource, _call: Call) -> Iterator[_Statement]:
    return iter(())


def _iter_listener_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    for event in list_strings(source, call.get_argument(0)):
        for listener in list_strings(source, call.get_argument(1))[:1]:
            yield "listens_to", {"event": event, "listener": _strip_class(listener)}


def _iter_policy_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    model, policy = source.read_value(call.get_argument(0)), source.read_value(call.get_argument(1))
    if isinstance(model, str) and isinstance(policy, str):
        yield "policy_of", {"model": model, "policy": policy}


def _iter_dispatch_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    pending = [argument.value for argument in call.arguments[:1]]
    if pending and pending[0].type in _OBJECTS:
        yield "dispatches_of", {SUBJECT: pending[0]}
    while pending:
        node = pending.pop()
        if node.type != "object_creation_expression":
            pending += reversed(node.named_children)
        # Arguments of a dispatched object's constructor are not dispatched themselves.
        elif name := get_class_of_creation(source, node):
            yield "dispatches", {"name": name}


def _iter_binding_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    name_node = call.get_argument(0)
    abstract = source.read_value(name_node)
    # A plain word that is not a class is an alias of a framework service.
    if name_node is None or name_node.type == "string" or not isinstance(abstract, str):
        return
    concrete = abstract if call.get_argument(1) is None else source.read_value(call.get_argument(1))
    name = concrete if isinstance(concrete, str) else ""
    yield "binds", {"abstract": abstract, "concrete": name}


def _iter_table_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    table = source.read_value(call.get_argument(0))
    if isinstance(table, str):
        yield "queries_table", {"table": table.split(" ")[0]}


def _iter_sql_statements(source: PhpSource, call: Call) -> Iterator[_Statement]:
    sql = source.read_value(call.get_argument(0))
    for table in list_tables_in_sql(sql) if isinstance(sql, str) else ():
        yield "queries_table", {"table": table}


def _iter_key_statements(kind: str, source: PhpSource, call: Call) -> Iterator[_Statement]:
    key = source.read_value(call.get_argument(0))
    if isinstance(key, str) and key:
        yield kind, {"key": key}


_config_statements: Final = partial(_iter_key_statements, "configured_by")
_FACADE_READERS: Final[Mapping[str, Mapping[str, _Reader]]] = {
    "Event": {"listen": _iter_listener_statements, "dispatch": _iter_dispatch_statements},
    "Bus": dict.fromkeys((*_DISPATCHES, "chain", "batch"), _iter_dispatch_statements),
    "Queue": dict.fromkeys((*_DISPATCHES, "chain", "batch"), _iter_dispatch_statements),
    "Gate": {
        "policy": _iter_policy_statements,
        **dict.fromkeys(GATE_CHECKS, read_checks),
        **dict.fromkeys(("define", "resource"), read_definitions),
    },
    "DB": {"table": _iter_table_statements, **dict.fromkeys(_SQL, _iter_sql_statements)},
    "App": dict.fromkeys(_BINDS, _iter_binding_statements),
    "Config": dict.fromkeys(
        ("get", "has", "string", "integer", "boolean", "array", "float"), _config_statements
    ),
}
"""Functions that read a call on a facade, by its name in lower case."""
_FACADE_RESULT_READERS: Final[Mapping[str, Mapping[str, _Reader]]] = {
    "Gate": dict.fromkeys(GATE_CHECKS, read_checks),
    "Auth": dict.fromkeys(CHECKS, read_checks),
    "Request": dict.fromkeys(CHECKS, read_checks),
}
"""Functions that read later calls of such a chain: `Auth::user()->can()`,
`Gate::forUser()->allows()`."""
_FUNCTION_READERS: Final[Mapping[str, _Reader]] = {
    **dict.fromkeys(("event", "broadcast", *_DISPATCHES), _iter_dispatch_statements),
    "config": _config_statements,
    "env": partial(_iter_key_statements, "reads_env"),
}


def _strip_class(name: str) -> str:
    """Return the class in `Listener@handle` or `Throttle:60`, without method or arguments."""
    return re.split(r"[@:]", name, maxsplit=1)[0]
