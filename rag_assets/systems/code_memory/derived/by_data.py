"""Derives the routes and tables of frameworks that are described by data."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    ROUTE,
    ROUTES,
    Derivation,
    DerivedDocument,
    Statement,
    Unresolved,
)
from rag_assets.systems.code_memory.frameworks.definitions import Framework
from rag_assets.systems.code_memory.frameworks.repository import LAST_PARTS, File
from rag_assets.systems.code_memory.frameworks.routes import Route, RouteReader
from rag_assets.systems.code_memory.frameworks.tables import Column, TableReader
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ENDPOINT,
    FILE,
    TABLE,
    format_endpoint,
    route_keys,
    table_keys,
)
from rag_assets.systems.code_memory.symbols.naming import defined_name
from rag_assets.systems.code_memory.symbols.source_types import is_test

_MOST_ROUTES: Final = 5_000
_PARAMETERS: Final = (
    (re.compile(r"\{([\w$]+)(?::[^{}]*|\?|=[^{}]*)\}"), r"{\1}"),
    (re.compile(r"\[\[?(?:\.\.\.)?([\w-]+)\]\]?"), r"{\1}"),
    (re.compile(r"<(?:[^<>:]*:)?([\w-]+)>"), r"{\1}"),
    (re.compile(r"(?<=[/.-]):(\w+)(?:\([^()]*\))?\??"), r"{\1}"),
    (re.compile(r"(?<=/)\*{1,2}(\w+)"), r"{\1}"),
)
_HOST: Final = re.compile(r"^/?[a-z][a-z0-9+.-]{0,20}:/{1,2}[^/]*", re.IGNORECASE)
"""Matches a scheme and host, with an optional user and password; they are not part of a route."""


def derive(files: Sequence[FileFacts], frameworks: Sequence[Framework]) -> Derivation:
    """Derive the routes and tables of a repository from the data that describe its frameworks."""
    read = [File(one) for one in files if not is_test(one.path)]
    handlers = _Handlers(read)
    documents: list[DerivedDocument] = []
    unresolved: list[Unresolved] = []
    for framework in frameworks:
        own = [one for one in read if one.language in framework.languages]
        if framework.markers and not any(framework.name in one.frameworks for one in own):
            continue
        reader = RouteReader(framework, own)
        routes = [*islice(reader.routes(), _MOST_ROUTES)]
        documents += _merge_routes(routes, handlers)
        unresolved += (Unresolved(*one, ROUTES) for one in reader.unresolved)
        documents += _tables(framework, own)
    return Derivation(tuple(documents), tuple(dict.fromkeys(unresolved)))


class _Handlers:
    """The definitions of a repository, by the last part of their names."""

    def __init__(self, files: Sequence[File]) -> None:
        self._known: dict[str, list[tuple[File, Fact]]] = {}
        for file in files:
            for one in file.declared:
                if one.symbol in file.imported:
                    continue
                last = LAST_PARTS.split(one.symbol)[-1]
                self._known.setdefault(last, []).append((file, one))

    def of(self, route: Route) -> str:
        """Return the node of a route's handler; "" if no definition or several match."""
        parts = [part for part in LAST_PARTS.split(route.handler) if part]
        if not parts:
            return ""
        known = [c for c in self._known.get(parts[-1], ()) if c[0].language == route.file.language]
        if route.handler_at >= 0:
            own = [c for c in known if c[0] is route.file and c[1].start <= route.handler_at]
            own = [c for c in own if c[1].end > route.handler_at] or [
                c for c in known if c[0] is route.file and c[1].end >= route.handler_at
            ]
            known = own[:1] or own
        elif len(parts) > 1 and parts[-2] not in {"self", "this"}:
            known = self._of_owner(parts, known)
        elif len(known) > 1:
            known = [c for c in known if c[0] is route.file] or known
        if len(known) > 1:
            folder = posixpath.dirname(route.file.path)
            known = [c for c in known if posixpath.dirname(c[0].path) == folder] or known
        if len(known) != 1:
            return ""
        file, fact = known[0]
        return defined_name(fact.symbol, file.path)

    def _of_owner(
        self, parts: Sequence[str], known: Sequence[tuple[File, Fact]]
    ) -> list[tuple[File, Fact]]:
        """Return the definitions whose class, module or file has the owner's name."""
        wanted = [part.lower().lstrip("_") for part in parts[:-1]]
        close: list[tuple[File, Fact]] = []
        suffix: list[tuple[File, Fact]] = []
        for file, fact in known:
            owners = LAST_PARTS.split(fact.symbol.lower())[:-1]
            if owners == wanted:
                return [(file, fact)]
            if wanted[-1] in owners:
                close.append((file, fact))
                if owners[-len(wanted) :] == wanted:
                    suffix.append((file, fact))
        if close:
            return suffix or close
        in_path = [c for c in known if wanted[-1] in re.split(r"[/.]", c[0].path.lower())]
        return in_path or ([] if parts[-2][:1].isupper() else [*known])


def _merge_routes(routes: Sequence[Route], handlers: _Handlers) -> Iterator[DerivedDocument]:
    known: set[str] = set()
    for route in routes:
        path = _template(route.path)
        name = f"{'|'.join(route.methods)} {path}"
        if name in known:
            continue
        known.add(name)
        target = handlers.of(route)
        lines = (
            f"route {name}",
            f"methods: {', '.join(route.methods)}",
            *([f"name: {route.name}"] if route.name else []),
            f"framework: {route.framework}",
            f"handler: {route.handler or 'a function without a name'}",
        )
        targets = [("routes_to", target)] if target else []
        targets += [("serves", ENDPOINT + format_endpoint(one, path)) for one in route.methods]
        place = route.file.path, route.fact
        stated = [Statement.from_fact(kind, node, *place) for kind, node in targets]
        called = route_keys(route.methods, path, route.name)
        yield DerivedDocument("route", ROUTE + name, called, lines, tuple(stated))


def _tables(framework: Framework, files: Sequence[File]) -> Iterator[DerivedDocument]:
    for table in TableReader(framework, files).tables():
        names = [_model_node(one.file, one.fact, one.model) for one in table.models]
        models = ", ".join(one for one in names if one)
        lines = (
            f"table {table.name}",
            *([f"models: {models}"] if models else []),
            *(["columns:"] if table.columns else []),
            *(f"- {_column(one)}" for one in table.columns.values()),
        )
        stated = [
            Statement.from_fact("changed_in", FILE + file.path, file.path, call)
            for file, call in table.changes
        ]
        stated += [
            Statement.from_fact("references", TABLE + one.refers_to, one.file.path, one.fact)
            for one in table.columns.values()
            if one.refers_to
        ]
        for one, name in zip(table.models, names, strict=True):
            how: How = "stated" if one.is_named else "convention"
            place = TABLE + table.name, one.file.path, one.fact
            source = name or FILE + one.file.path
            stated.append(Statement.from_fact("maps_to", *place, source=source, how=how))
        called = table_keys(table.name)
        yield DerivedDocument("table", TABLE + table.name, called, lines, tuple(stated))


def _column(one: Column) -> str:
    shown = f"{one.name} {one.kind}".rstrip() + (", nullable" if one.is_nullable else "")
    return f"{shown}, refers to {one.refers_to}" if one.refers_to else shown


def _model_node(file: File, fact: Fact, model: str) -> str:
    last = LAST_PARTS.split(model)[-1]
    own = [d for d in file.declared if LAST_PARTS.split(d.symbol)[-1] == last]
    return defined_name(own[0].symbol, file.path) if own and model else ""


def _template(path: str) -> str:
    shown = "/" + _HOST.sub("", path).strip("/")
    for pattern, by in _PARAMETERS:
        shown = pattern.sub(by, shown)
    return " ".join(shown.split())
