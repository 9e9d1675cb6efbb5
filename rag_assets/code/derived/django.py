"""Routes and tables of Django, as derived documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.code.derived.model import ROUTE, Derivation, DerivedDocument, Statement, in_groups
from rag_assets.code.derived.tables import table_lines
from rag_assets.code.derived.unresolved import ROUTES, TABLES, Unresolved
from rag_assets.code.frameworks.django.fields import Model
from rag_assets.code.frameworks.django.models import models_of
from rag_assets.code.frameworks.django.modules import Evidence
from rag_assets.code.frameworks.django.modules import Unresolved as Computed
from rag_assets.code.frameworks.django.routes import routes_of
from rag_assets.code.frameworks.django.routing import Route
from rag_assets.code.frameworks.django.tables import Table, tables_of
from rag_assets.code.model import Fact, FileFacts
from rag_assets.code.names import route_keys, table_keys
from rag_assets.code.nodes import ENDPOINT, FILE, TABLE, endpoint_of

_NOWHERE = Fact("", 0, 0)


def derive(files: Sequence[FileFacts]) -> Derivation:
    """The routes and tables of a repository of Django."""
    python = [one for one in files if one.language == "python"]
    lines = _Lines.of(python)
    routes, tables, models = routes_of(python), tables_of(python), models_of(python)
    by_table: dict[str, list[Model]] = {}
    for model in models.models.values():
        if model.table and not model.abstract and not model.proxy:
            by_table.setdefault(model.table, []).append(model)
    documents = [
        # The same view under the same name, once more for `.json` and its like.
        *(one for r in routes.routes if not r.suffixed for one in _routes(r, lines)),
        *(_table(one, by_table.get(name, ()), lines) for name, one in tables.tables.items()),
    ]
    unresolved = [
        *(_unresolved(one, lines, ROUTES) for one in routes.unresolved),
        *(_unresolved(one, lines, TABLES) for one in tables.unresolved),
    ]
    return Derivation(tuple(documents), tuple(unresolved))


@dataclass(frozen=True, slots=True)
class _Lines:
    """The facts of files by their places, whose lines are known."""

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
        """The fact of a place, else the next one before it."""
        starts = self.facts.get(held.path, {})
        if held.start in starts:
            return starts[held.start]
        before = [start for start in starts if start <= held.start]
        return starts[max(before)] if before else _NOWHERE

    def statement(self, kind: str, target: str, held: Evidence, source: str = "") -> Statement:
        """What a place says."""
        fact = self.at(held)
        places = fact.line_start, fact.line_end
        return Statement(kind, source, target, "stated", held.path, *places, fact.evidence)


def _unresolved(one: Computed, lines: _Lines, about: str) -> Unresolved:
    held = one.evidence
    return Unresolved(held.path, lines.at(held).line_start, " ".join(one.reason.split()), about)


def _routes(route: Route, lines: _Lines) -> Iterator[DerivedDocument]:
    """One document for each method, where methods have views of their own."""
    if not route.actions:
        yield _route(route, route.methods, "", lines)
    for method, action in route.actions:
        yield _route(route, (method.upper(),), action, lines)


def _route(route: Route, methods: Sequence[str], action: str, lines: _Lines) -> DerivedDocument:
    path = "/" + route.uri.lstrip("/")
    name = f"{'|'.join(methods) or 'ANY'} {path}"
    handler = route.handlers.get(action, "")
    view = handler or (f"{route.view}.{action}" if action and route.view else route.view)
    parameters = [f"{held} ({kind})" if kind else held for held, kind in route.parameters]
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
        stated += in_groups(lines.statement("in_group", "", one) for one in groups)
        # What a view inherits is of the view as well, and alone where a package brings it.
        own = "" if handler.startswith(f"{route.view}.") else route.view
        stated += [lines.statement("routes_to", one, last) for one in (handler, own) if one]
        served = methods or ("ANY",)
        targets = [ENDPOINT + endpoint_of(method, path) for method in served]
        stated += [lines.statement("serves", target, last) for target in targets]
    called = route_keys(tuple(methods), path, route.name)
    return DerivedDocument("route", ROUTE + name, called, shown, tuple(stated))


def _table(table: Table, models: Sequence[Model], lines: _Lines) -> DerivedDocument:
    named = [TABLE + key.table for key in table.foreign_keys if key.table]
    stated = [
        *(lines.statement("changed_in", FILE + one.path, one) for one in table.evidence),
        *(lines.statement("references", target, table.evidence[-1]) for target in named),
        *(
            lines.statement("maps_to", TABLE + table.name, model.evidence, source=model.name)
            for model in models
        ),
    ]
    name, shown = table.name, table_lines(table, [model.name for model in models])
    return DerivedDocument("table", TABLE + name, table_keys(name), shown, tuple(stated))
