"""Derives the routes of Django; the module by_data derives its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    ROUTE,
    ROUTES,
    Derivation,
    DerivedDocument,
    Statement,
    Unresolved,
    link_groups,
)
from rag_assets.systems.code_memory.django.urlconf import (
    build_path_template,
    list_parameters,
    read_routes,
)
from rag_assets.systems.code_memory.django.views import Route
from rag_assets.systems.code_memory.languages.python.program import Evidence
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import ENDPOINT, format_endpoint, route_keys

_NOWHERE = Fact("", 0, 0)


def derive(files: Sequence[FileFacts]) -> Derivation:
    """Derive the routes of a Django repository."""
    python = [one for one in files if one.language == "python"]
    lines = _Lines.of(python)
    routes = read_routes(python)
    documents = (one for route in routes.routes for one in _routes(route, lines))
    computed = ((" ".join(one.reason.split()), one.evidence) for one in routes.unresolved)
    unresolved = (Unresolved(at.path, lines.at(at).line_start, why, ROUTES) for why, at in computed)
    return Derivation(tuple(documents), tuple(unresolved))


@dataclass(frozen=True, slots=True)
class _Lines:
    """Finds facts, which have line numbers, by path and offset."""

    facts: dict[str, dict[int, Fact]]

    @classmethod
    def of(cls, files: Sequence[FileFacts]) -> _Lines:
        found: dict[str, dict[int, Fact]] = {}
        for one in files:
            starts = found.setdefault(one.path, {})
            for fact in one.facts:
                known = starts.get(fact.start)
                if known is None or fact.end > known.end:
                    starts[fact.start] = fact
        return cls(found)

    def at(self, held: Evidence) -> Fact:
        """Return the fact at an offset, else the nearest fact before it."""
        starts = self.facts.get(held.path, {})
        if held.start in starts:
            return starts[held.start]
        before = [start for start in starts if start <= held.start]
        return starts[max(before)] if before else _NOWHERE

    def statement(self, kind: str, target: str, held: Evidence, source: str = "") -> Statement:
        """Return a statement that refers to the lines of its evidence."""
        return Statement.from_fact(kind, target, held.path, self.at(held), source=source)


def _routes(route: Route, lines: _Lines) -> Iterator[DerivedDocument]:
    """Yield one document per HTTP method if methods have their own views, else one document."""
    if not route.view.actions:
        yield _route(route, route.view.methods, "", lines)
    for method, action in route.view.actions:
        yield _route(route, (method.upper(),), action, lines)


def _route(route: Route, methods: Sequence[str], action: str, lines: _Lines) -> DerivedDocument:
    path = "/" + build_path_template(route.pattern).lstrip("/")
    name = f"{'|'.join(methods) or 'ANY'} {path}"
    handler, owner = route.view.handlers.get(action, ""), route.view.name
    view = handler or (f"{owner}.{action}" if action and owner else owner)
    parameters = [f"{held} ({kind})" for held, kind in list_parameters(route.pattern)]
    shown = (
        f"route {name}",
        *([f"methods: {', '.join(methods)}"] if methods else []),
        *([f"name: {route.name}"] if route.name else []),
        *([f"view: {view}"] if view else ["view: computed"]),
        *([f"parameters: {', '.join(parameters)}"] if parameters else []),
        *(["conditional: yes"] if route.conditional else []),
    )
    stated: list[Statement] = []
    if route.evidence:
        *groups, last = route.evidence
        stated += link_groups(lines.statement("in_group", "", one) for one in groups)
        # An inherited action also routes to the view; an action that only a package has, to the
        # view alone.
        own = "" if handler.startswith(f"{owner}.") else owner
        stated += [lines.statement("routes_to", one, last) for one in (handler, own) if one]
        served = methods or ("ANY",)
        targets = [ENDPOINT + format_endpoint(method, path) for method in served]
        stated += [lines.statement("serves", target, last) for target in targets]
    called = route_keys(tuple(methods), path, route.name)
    return DerivedDocument("route", ROUTE + name, called, shown, tuple(stated))
