"""Routes of Laravel as derived documents: each route's action and guards, with their lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    ROUTE,
    DerivedDocument,
    Statement,
    link_groups,
)
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.policies import RoutePolicies
from rag_assets.systems.code_memory.laravel.receivers import FollowedStatements
from rag_assets.systems.code_memory.laravel.routes.model import Evidence, Route
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.names import (
    ENDPOINT,
    MIDDLEWARE,
    endpoint_of,
    route_keys,
)

_ALL_METHODS = 7
_INVOKED = "__invoke"
_COMPONENT = "Livewire\\Component"
_OF_COMPONENTS = ("mount", "render")
"""Methods of a Livewire component that run when a route leads to the component."""


def name_of(route: Route) -> str:
    """Return the name of a route's node without its prefix: `GET /invoices/{invoice}`."""
    methods = tuple(one for one in route.methods if one != "HEAD") or route.methods
    shown = "ANY" if len(route.methods) >= _ALL_METHODS else "|".join(methods)
    return f"{shown} {route.domain}/{route.uri.lstrip('/')}"


def route_document(
    route: Route,
    guards: Mapping[str, Sequence[str]],
    policies: RoutePolicies,
    inheritance: Inheritance,
    followed: FollowedStatements,
) -> DerivedDocument:
    """Return the document of a route.

    Args:
        guards: middleware classes by their aliases.
        policies: the policies that middleware checks.
        inheritance: the inheritance of the repository's classes.
        followed: statements in actions about objects whose classes several files determine.
    """
    path = "/" + route.uri.lstrip("/")
    name = name_of(route)
    lines = (
        f"route {name}",
        f"methods: {', '.join(route.methods)}",
        *_format_line("name", route.name),
        *_format_line("action", _action(route)),
        *_format_line("middleware", ", ".join(route.middleware)),
        *_format_line("without middleware", ", ".join(route.without_middleware)),
        *_format_line("parameters", ", ".join(_parameters(route))),
        *_format_line("fallback", "yes" if route.fallback else ""),
        *_format_line("conditional", "yes" if route.conditional else ""),
        *_format_line("incomplete", "; ".join(route.missing)),
    )
    called = route_keys(route.methods, path, route.name)
    actions = [*_statements_of_action(route, inheritance, followed)]
    stated = (
        *_statements_of_route(route, path, guards, actions),
        *_statements_of_policies(route, policies),
    )
    return DerivedDocument("route", ROUTE + name, called, lines, stated)


def _action(route: Route) -> str:
    if route.kind == "controller":
        return route.action
    return route.kind if route.action.lower() == route.kind else f"{route.kind} {route.action}"


def _format_line(label: str, value: str) -> tuple[str, ...]:
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


def _statements_of_action(
    route: Route, inheritance: Inheritance, followed: FollowedStatements
) -> Iterator[Statement]:
    """Yield the method that the route runs; if the method is inherited, also the controller."""
    if route.kind != "controller" or not route.action or not route.evidence:
        return
    (owner, _, method), last = route.action.partition("@"), route.evidence[-1]
    called = [method or _INVOKED]
    if called == [_INVOKED] and _COMPONENT in inheritance.ancestors(owner):
        called += _OF_COMPONENTS
    found = [inheritance.method(owner, one) for one in called]
    run = [one.symbol for one in found if one is not None]
    for target in run or [f"{owner}::{called[0]}"]:
        yield _build_statement("routes_to", target, last)
    if inheritance.is_declared(owner) and not any(one.startswith(f"{owner}::") for one in run):
        yield _build_statement("routes_to", owner, last)
    for target in run:
        for own in followed.own_methods(target):
            for above, fact in inheritance.calls(own):
                yield statement("calls", above, inheritance.path_of(own), fact, source=own)
        for one in followed.relations_of_action(target):
            yield statement(
                one.kind, one.target, one.path, one.fact, source=one.source, how="inferred"
            )


def _statements_of_route(
    route: Route, path: str, guards: Mapping[str, Sequence[str]], actions: Sequence[Statement]
) -> Iterator[Statement]:
    if not route.evidence:
        return
    *groups, last = route.evidence
    yield from link_groups(_build_statement("in_group", "", group) for group in groups)
    yield from actions
    for one in dict.fromkeys(route.middleware):
        guard = one.partition(":")[0]
        held = next((e for e in (last, *reversed(groups)) if _mentions_middleware(e, guard)), last)
        yield _build_statement("guarded_by", guard if "\\" in guard else MIDDLEWARE + guard, held)
        for name in guards.get(guard, ()):
            # A group lists classes and aliases; their arguments follow a colon.
            bare = name.partition(":")[0]
            target = bare if "\\" in bare else MIDDLEWARE + bare
            # The route only has an alias; another file states the alias's class.
            yield _build_statement("guarded_by", target, held, how="inferred")
    for method in route.methods:
        if method != "HEAD" and not route.fallback:
            yield _build_statement("serves", ENDPOINT + endpoint_of(method, path), last)


def _statements_of_policies(route: Route, policies: RoutePolicies) -> Iterator[Statement]:
    """Yield the policies that the route's middleware checks, each as class and method."""
    for one in dict.fromkeys(route.middleware) if route.evidence else ():
        asked = policies.find_check(route, one)
        if asked is not None:
            last = route.evidence[-1]
            held = next((e for e in reversed(route.evidence) if _mentions_middleware(e, one)), last)
            how: How = "stated" if asked.mapped else "convention"
            if asked.policy:
                yield _build_statement("guarded_by", asked.policy, held, how)
            yield _build_statement("authorizes", asked.method, held, how)


def _mentions_middleware(held: Evidence, guard: str) -> bool:
    """Return whether a statement names a middleware, as a string or as a class."""
    said = guard.rpartition("\\")[2]
    marks = (f"'{guard}", f'"{guard}', f"{said}::")
    return any(mark in held.fact.evidence for mark in marks)


def _build_statement(kind: str, target: str, held: Evidence, how: How = "stated") -> Statement:
    return statement(kind, target, held.path, held.fact, how=how)


def statement(
    kind: str, target: str, path: str, fact: Fact, *, source: str = "", how: How = "stated"
) -> Statement:
    """Return the statement that a file's fact supports."""
    lines = fact.line_start, fact.line_end
    return Statement(kind, source, target, how, path, *lines, fact.evidence)
