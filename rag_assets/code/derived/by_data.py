"""Routes and tables of frameworks that data define, as derived documents."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rag_assets.code.derived.model import ROUTE, Derivation, DerivedDocument, Statement
from rag_assets.code.derived.unresolved import ROUTES, Unresolved
from rag_assets.code.framework_data.definitions import Framework, Tables, built_in
from rag_assets.code.framework_data.repository import LAST_PARTS, File, argument
from rag_assets.code.framework_data.routes import Route, RouteReader
from rag_assets.code.model import Fact, FileFacts
from rag_assets.code.names import route_keys, table_keys
from rag_assets.code.naming import defined_name
from rag_assets.code.nodes import ENDPOINT, TABLE, endpoint_of
from rag_assets.code.places import is_test

_MOST_ROUTES: Final = 5_000
_PARAMETERS: Final = (
    (re.compile(r"\{([\w$]+)(?::[^{}]*|\?|=[^{}]*)\}"), r"{\1}"),
    (re.compile(r"\[\[?(?:\.\.\.)?([\w-]+)\]\]?"), r"{\1}"),
    (re.compile(r"<(?:[^<>:]*:)?([\w-]+)>"), r"{\1}"),
    (re.compile(r"(?<=[/.-]):(\w+)(?:\([^()]*\))?\??"), r"{\1}"),
    (re.compile(r"(?<=/)\*{1,2}(\w+)"), r"{\1}"),
)
_HOST: Final = re.compile(r"^/?[a-z][a-z0-9+.-]{0,20}:/{1,2}[^/]*", re.IGNORECASE)
"""A scheme and a host, which may have a user and a password before it: no part of a route."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def derive(files: Sequence[FileFacts], frameworks: Sequence[Framework] | None = None) -> Derivation:
    """Return the routes and tables of a repository, as framework data define them.

    Args:
        files: of one repository.
        frameworks: that may count; by default the built-in ones.
    """
    read = [File(one) for one in files if not is_test(one.path)]
    handlers = _Handlers(read)
    documents: list[DerivedDocument] = []
    unresolved: list[Unresolved] = []
    for framework in built_in() if frameworks is None else frameworks:
        own = [one for one in read if one.language in framework.languages]
        if framework.markers and not any(framework.name in one.frameworks for one in own):
            continue
        reader = RouteReader(framework, own)
        routes = [*islice(reader.routes(), _MOST_ROUTES)]
        documents += _merged(routes, handlers)
        unresolved += (Unresolved(*one, ROUTES) for one in reader.unresolved)
        documents += _tables(framework, own)
    return Derivation(tuple(documents), tuple(dict.fromkeys(unresolved)))


class _Handlers:
    """The definitions of a repository by their last names."""

    def __init__(self, files: Sequence[File]) -> None:
        self._known: dict[str, list[tuple[File, Fact]]] = {}
        for file in files:
            for one in file.declared:
                if one.symbol in file.imported:
                    continue
                last = LAST_PARTS.split(one.symbol)[-1]
                self._known.setdefault(last, []).append((file, one))

    def of(self, route: Route) -> str:
        """Return the node of a route's handler; "" if none or several may be meant."""
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
        """Return those of the definitions whose class, module or file has the owner's name."""
        wanted = [part.lower().lstrip("_") for part in parts[:-1]]
        close = []
        for file, fact in known:
            owners = LAST_PARTS.split(fact.symbol.lower())[:-1]
            if owners == wanted:
                return [(file, fact)]
            if wanted[-1] in owners:
                close.append((file, fact))
        suffix = [
            c for c in close if _ends_with(LAST_PARTS.split(c[1].symbol.lower())[:-1], wanted)
        ]
        if close:
            return suffix or close
        in_path = [c for c in known if wanted[-1] in re.split(r"[/.]", c[0].path.lower())]
        return in_path or ([] if parts[-2][:1].isupper() else [*known])


def _ends_with(parts: Sequence[str], end: Sequence[str]) -> bool:
    return [*parts[-len(end) :]] == [*end]


def _merged(routes: Sequence[Route], handlers: _Handlers) -> Iterator[DerivedDocument]:
    known: set[str] = set()
    for route in routes:
        path = _template(route.path)
        name = f"{'|'.join(route.methods)} {path}"
        if name in known:
            continue
        known.add(name)
        target = handlers.of(route)
        fact = route.fact
        place = (route.file.path, fact.line_start, fact.line_end, fact.evidence)
        lines = (
            f"route {name}",
            f"methods: {', '.join(route.methods)}",
            f"framework: {route.framework}",
            f"handler: {route.handler or 'a function without a name'}",
        )
        stated = [Statement("routes_to", "", target, "stated", *place)] if target else []
        served = [ENDPOINT + endpoint_of(method, path) for method in route.methods]
        stated += [Statement("serves", "", one, "stated", *place) for one in served]
        called = route_keys(route.methods, path, "")
        yield DerivedDocument("route", ROUTE + name, called, lines, tuple(stated))


def _tables(framework: Framework, files: Sequence[File]) -> Iterator[DerivedDocument]:
    models: dict[str, list[tuple[File, Fact, str, bool]]] = {}
    for tables in framework.tables:
        for file in files:
            for table, fact, model, is_named in _mapped(tables, file):
                models.setdefault(table, []).append((file, fact, model, is_named))
    for table, held in sorted(models.items()):
        names = [_model_node(file, fact, model) for file, fact, model, _ in held]
        lines = (f"table {table}", f"models: {', '.join(n for n in names if n)}")
        stated = [
            Statement(
                *("maps_to", name, TABLE + table, "stated" if is_named else "convention"),
                *(file.path, fact.line_start, fact.line_end, fact.evidence),
            )
            for (file, fact, _, is_named), name in zip(held, names, strict=True)
            if name
        ]
        yield DerivedDocument("table", TABLE + table, table_keys(table), lines, tuple(stated))


def _mapped_by_calls(tables: Tables, file: File) -> Iterator[tuple[str, Fact, str, bool]]:
    """Yield tables that calls name: `schema "orders"`."""
    for call in file.calls:
        if call.values["name"] in tables.calls:
            value = argument(call, tables.argument)
            owner = file.around(
                [c for c in file.calls if c.values["name"] == "defmodule"], call.start
            )
            held = file.around(file.classes, call.start)
            name = held[-1].values["name"] if held else ""
            if owner and owner[-1].values["arguments"]:
                name = str(owner[-1].values["arguments"][0][-1])
            if value is not None and value[0] in {"s", "n"}:
                yield str(value[1]), call, name, True


def _mapped(tables: Tables, file: File) -> Iterator[tuple[str, Fact, str, bool]]:
    """Yield tables with what states them, the class, and whether it names the table."""
    yield from _mapped_by_calls(tables, file)
    for one in file.classes:
        marks = [a for a in file.annotations if a.values["target"][0] == one.start]
        named = [a.values["name"] for a in marks]
        bases = {*one.values["bases"]}
        if one.values["name"] in tables.bases:
            continue
        is_model = bases & {*tables.bases} or {*named} & {*tables.annotations}
        assigned = (
            [v for v in file.values if one.start <= v.start < one.end] if tables.field else ()
        )
        told = next((v for v in assigned if v.values["name"] == tables.field), None)
        if told is not None and told.values["value"][0] == "s" and (is_model or not tables.bases):
            yield told.values["value"][1], told, one.values["name"], True
            continue
        if not is_model:
            continue
        values = (
            argument(a, tables.argument) for a in marks if a.values["name"] == tables.annotation
        )
        value = next((v for v in values if v is not None and v[0] in {"s", "n", "d"}), None)
        if value is not None and value[0] == "d":
            value = value[1].get("name")
        if value is not None:
            yield str(value[1]), one, one.values["name"], True
        elif tables.naming:
            yield _table_name(one.values["name"], tables.naming), one, one.values["name"], False


def _model_node(file: File, fact: Fact, model: str) -> str:
    last = LAST_PARTS.split(model)[-1]
    own = [d for d in file.declared if LAST_PARTS.split(d.symbol)[-1] == last]
    return defined_name(own[0].symbol, file.path) if own and model else model


def _template(path: str) -> str:
    shown = "/" + _HOST.sub("", path).strip("/")
    for pattern, by in _PARAMETERS:
        shown = pattern.sub(by, shown)
    return " ".join(shown.split())


def _table_name(model: str, naming: str) -> str:
    if naming == "same":
        return model
    name = "_".join(_WORD.findall(model)).lower()
    if naming == "snake":
        return name
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return name[:-1] + "ies"
    return name + ("es" if name.endswith(("s", "x", "ch", "sh")) else "s")
