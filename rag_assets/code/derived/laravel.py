"""Routes and tables of Laravel, as derived documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rag_assets.code.derived.model import ROUTE, Derivation, DerivedDocument, Statement, in_groups
from rag_assets.code.derived.tables import TableLike, table_lines
from rag_assets.code.derived.unresolved import ROUTES, TABLES, Unresolved
from rag_assets.code.frameworks.laravel.inheritance import Inheritance
from rag_assets.code.frameworks.laravel.models import Model, models_of
from rag_assets.code.frameworks.laravel.policies import Asked, asked_elsewhere
from rag_assets.code.frameworks.laravel.route_policies import RoutePolicies
from rag_assets.code.frameworks.laravel.routes.middleware import middleware_of
from rag_assets.code.frameworks.laravel.routes.model import Evidence, Route
from rag_assets.code.frameworks.laravel.routes.resolver import routes_of
from rag_assets.code.frameworks.laravel.tables import Evidence as TableEvidence
from rag_assets.code.frameworks.laravel.tables import Table, Tables, tables_of
from rag_assets.code.frameworks.laravel.version import framework_version
from rag_assets.code.model import Fact, FileFacts
from rag_assets.code.names import route_keys, table_keys
from rag_assets.code.nodes import (
    ENDPOINT,
    FILE,
    MIDDLEWARE,
    TABLE,
    endpoint_of,
)
from rag_assets.code.relations import How

Derive: TypeAlias = Callable[[Sequence[FileFacts]], Derivation]

_ALL_METHODS = 7
_CHANGES_WHOLE = 11
"""The first version whose `change()` drops what it does not mention."""
_INVOKED = "__invoke"
_COMPONENT = "Livewire\\Component"
_OF_COMPONENTS = ("mount", "render")
"""Methods of a component of Livewire that a route to it runs."""


def derive(files: Sequence[FileFacts]) -> Derivation:
    """The routes and tables of a repository of Laravel."""
    php = [one for one in files if one.language in {"php", "sql"}]
    # The manifest tells the version, by which its router differs.
    version = framework_version(files)
    routes = routes_of(files)
    tables = tables_of(php, change_keeps=version is None or version < _CHANGES_WHOLE)
    models, guards = models_of(php), middleware_of(files)
    inheritance = Inheritance(php)
    asked, policies = asked_elsewhere(php), RoutePolicies(php, guards, inheritance)
    by_table: dict[str, list[Model]] = {}
    for model in models.values():
        if model.table and not model.abstract:
            by_table.setdefault(model.table, []).append(model)
    documents = [
        *(_route(one, guards, policies, inheritance) for one in routes.routes),
        *(_table(one, by_table.get(name, ()), asked) for name, one in tables.tables.items()),
        *_unmade_tables(tables, by_table, asked),
    ]
    unresolved = [
        *(_unresolved(one.reason, one.evidence, ROUTES) for one in routes.unresolved),
        *(_of_a_route(one) for one in routes.routes if one.missing and one.evidence),
        *(_unresolved("the table is computed", one, TABLES) for one in tables.unresolved),
        *(_of_a_table(one) for one in tables.tables.values() if one.reasons and one.evidence),
    ]
    return Derivation(tuple(documents), tuple(unresolved))


def _of_a_route(route: Route) -> Unresolved:
    return _unresolved("; ".join(route.missing), route.evidence[-1], ROUTE + _name_of(route))


def _of_a_table(table: Table) -> Unresolved:
    return _unresolved("; ".join(table.reasons), table.evidence[-1], TABLE + table.name)


def _unresolved(reason: str, held: Evidence | TableEvidence, about: str) -> Unresolved:
    return Unresolved(held.path, held.fact.line_start, " ".join(reason.split()), about)


def _name_of(route: Route) -> str:
    methods = tuple(one for one in route.methods if one != "HEAD") or route.methods
    shown = "ANY" if len(route.methods) >= _ALL_METHODS else "|".join(methods)
    return f"{shown} {route.domain}/{route.uri.lstrip('/')}"


def _route(
    route: Route,
    guards: Mapping[str, Sequence[str]],
    policies: RoutePolicies,
    inheritance: Inheritance,
) -> DerivedDocument:
    path = "/" + route.uri.lstrip("/")
    name = _name_of(route)
    lines = (
        f"route {name}",
        f"methods: {', '.join(route.methods)}",
        *_line("name", route.name),
        *_line("action", _action(route)),
        *_line("middleware", ", ".join(route.middleware)),
        *_line("without middleware", ", ".join(route.without_middleware)),
        *_line("parameters", ", ".join(_parameters(route))),
        *_line("fallback", "yes" if route.fallback else ""),
        *_line("conditional", "yes" if route.conditional else ""),
        *_line("incomplete", "; ".join(route.missing)),
    )
    called = route_keys(route.methods, path, route.name)
    actions = [*_of_action(route, inheritance)]
    stated = (*_of_route(route, path, guards, actions), *_of_policies(route, policies))
    return DerivedDocument("route", ROUTE + name, called, lines, stated)


def _action(route: Route) -> str:
    if route.kind == "controller":
        return route.action
    return route.kind if route.action.lower() == route.kind else f"{route.kind} {route.action}"


def _line(label: str, value: str) -> tuple[str, ...]:
    shown = " ".join(value.split())
    return (f"{label}: {shown}",) if shown else ()


def _parameters(route: Route) -> Iterator[str]:
    for one in route.parameters:
        more = [
            *(["optional"] if one.optional else []),
            *([f"by {one.field}"] if one.field else []),
            *([f"matching {one.pattern}"] if one.pattern else []),
        ]
        yield f"{one.name} ({', '.join(more)})" if more else one.name


def _of_action(route: Route, inheritance: Inheritance) -> Iterator[Statement]:
    """The method that the route runs; of what the controller inherits, the controller, too."""
    if route.kind != "controller" or not route.action or not route.evidence:
        return
    (owner, _, method), last = route.action.partition("@"), route.evidence[-1]
    called = [method or _INVOKED]
    if called == [_INVOKED] and _COMPONENT in inheritance.ancestors(owner):
        called += _OF_COMPONENTS
    found = [inheritance.method(owner, one) for one in called]
    run = [one.symbol for one in found if one is not None]
    for target in run or [f"{owner}::{called[0]}"]:
        yield _stated("routes_to", target, last)
    if inheritance.is_declared(owner) and not any(one.startswith(f"{owner}::") for one in run):
        yield _stated("routes_to", owner, last)


def _of_route(
    route: Route, path: str, guards: Mapping[str, Sequence[str]], actions: Sequence[Statement]
) -> Iterator[Statement]:
    if not route.evidence:
        return
    *groups, last = route.evidence
    yield from in_groups(_stated("in_group", "", group) for group in groups)
    yield from actions
    for one in dict.fromkeys(route.middleware):
        guard = one.partition(":")[0]
        held = next((e for e in (last, *reversed(groups)) if _names(e, guard)), last)
        yield _stated("guarded_by", guard if "\\" in guard else MIDDLEWARE + guard, held)
        for name in guards.get(guard, ()):
            # A group names classes and other names, with what they are given after a colon.
            bare = name.partition(":")[0]
            target = bare if "\\" in bare else MIDDLEWARE + bare
            # The route says a name, and another file what the name stands for.
            yield _stated("guarded_by", target, held, how="inferred")
    for method in route.methods:
        if method != "HEAD" and not route.fallback:
            yield _stated("serves", ENDPOINT + endpoint_of(method, path), last)


def _of_policies(route: Route, policies: RoutePolicies) -> Iterator[Statement]:
    """The policies that the route's middleware asks, each by its class and the method it has."""
    for one in dict.fromkeys(route.middleware) if route.evidence else ():
        asked = policies.asked(route, one)
        if asked is not None:
            last = route.evidence[-1]
            held = next((e for e in reversed(route.evidence) if _names(e, one)), last)
            how: How = "stated" if asked.mapped else "convention"
            if asked.policy:
                yield _stated("guarded_by", asked.policy, held, how)
            yield _stated("authorizes", asked.method, held, how)


def _names(held: Evidence, guard: str) -> bool:
    """Whether a statement speaks of a middleware: as a string, or as a class."""
    said = guard.rpartition("\\")[2]
    marks = (f"'{guard}", f'"{guard}', f"{said}::")
    return any(mark in held.fact.evidence for mark in marks)


def _stated(kind: str, target: str, held: Evidence, how: How = "stated") -> Statement:
    return statement(kind, target, held.path, held.fact, how=how)


def statement(
    kind: str, target: str, path: str, fact: Fact, *, source: str = "", how: How = "stated"
) -> Statement:
    """What a fact of a file says."""
    lines = fact.line_start, fact.line_end
    return Statement(kind, source, target, how, path, *lines, fact.evidence)


def _table(
    table: Table, models: Sequence[Model], asked: Mapping[str, Sequence[Asked]]
) -> DerivedDocument:
    stated = [
        *(statement("changed_in", FILE + e.path, e.path, e.fact) for e in table.evidence),
        *_foreign_keys(table),
        *_of_models(models, asked),
    ]
    return _document(table.name, table_lines(table, [model.name for model in models]), stated)


def _unmade_tables(
    tables: Tables,
    by_table: Mapping[str, Sequence[Model]],
    asked: Mapping[str, Sequence[Asked]],
) -> Iterator[DerivedDocument]:
    """Tables that models name and no migration makes: stated ones, or all where there is none.

    A class without a table among migrations is a base of models more often than one of them.
    """
    for name in sorted(by_table.keys() - tables.tables.keys()):
        models = [one for one in by_table[name] if one.how == "stated" or not tables.tables]
        if models:
            yield _unmade(name, models, asked)


def _unmade(
    name: str, models: Sequence[Model], asked: Mapping[str, Sequence[Asked]]
) -> DerivedDocument:
    lines = (
        f"table {name}",
        f"models: {', '.join(model.name for model in models)}",
        "incomplete: no migration makes it",
    )
    return _document(name, lines, [*_of_models(models, asked)])


def _document(name: str, lines: tuple[str, ...], stated: Sequence[Statement]) -> DerivedDocument:
    return DerivedDocument("table", TABLE + name, table_keys(name), lines, tuple(stated))


def _foreign_keys(table: TableLike) -> Iterator[Statement]:
    """The tables that it refers to, by the last statement that speaks of that key."""
    for key in table.foreign_keys:
        held = [e for e in table.evidence if _speaks_of(e.fact.values, key.columns)]
        if key.table and held:
            yield statement("references", TABLE + key.table, held[-1].path, held[-1].fact)


def _speaks_of(values: Mapping[str, object], columns: Sequence[str]) -> bool:
    commands = values.get("commands")
    return isinstance(commands, list | tuple) and any(
        one.get("name") == "foreign" and list(one.get("columns", ())) == list(columns)
        for one in commands
    )


def _of_models(
    models: Sequence[Model], asked: Mapping[str, Sequence[Asked]]
) -> Iterator[Statement]:
    """What models map to the table, and the policies that are asked about them by a map."""
    yield from map(_maps, models)
    for model in models:
        for one in asked.get(model.name, ()):
            how: How = "stated" if one.mapped else "convention"
            yield statement(
                "authorizes", one.target, one.path, one.fact, source=one.source, how=how
            )


def _maps(model: Model) -> Statement:
    held = model.evidence
    return statement(
        "maps_to", TABLE + model.table, held.path, held.fact, source=model.name, how=model.how
    )
