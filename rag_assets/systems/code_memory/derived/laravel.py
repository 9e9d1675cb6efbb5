"""Derives the routes and tables of Laravel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.laravel_routes import name_of, route_document, statement
from rag_assets.systems.code_memory.derived.model import (
    ROUTE,
    Derivation,
    DerivedDocument,
    Statement,
)
from rag_assets.systems.code_memory.derived.tables import TableLike, table_lines
from rag_assets.systems.code_memory.derived.unresolved import ROUTES, TABLES, Unresolved
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.middleware import resolve_middleware
from rag_assets.systems.code_memory.laravel.models import (
    Model,
    Relation,
    may_be_model,
    resolve_models,
)
from rag_assets.systems.code_memory.laravel.policies import RoutePolicies
from rag_assets.systems.code_memory.laravel.receivers import FollowedStatements, Receivers
from rag_assets.systems.code_memory.laravel.routes.model import Evidence, Route
from rag_assets.systems.code_memory.laravel.routes.program import framework_version
from rag_assets.systems.code_memory.laravel.routes.resolver import (
    collect_routes,
    makes_routes,
    run_providers,
)
from rag_assets.systems.code_memory.laravel.schema.tables import Table, Tables, resolve_tables
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import FILE, TABLE, table_keys
from rag_assets.systems.code_memory.symbols.source_types import is_test

SIGN_KINDS: Final = frozenset(
    {"imports", "extends", "implements", "uses_trait"}
    | {"depends_on", "routing", "schema", "eloquent_class"}
)
"""Kinds of the facts that speaks_of_laravel reads."""

Derive: TypeAlias = Callable[[Sequence[FileFacts]], Derivation]

_NAMES_CLASS: Final = frozenset({"imports", "extends", "implements", "uses_trait"})
_NAMESPACES: Final = ("Illuminate\\", "Laravel\\")
_PACKAGES: Final = ("illuminate/", "laravel/")
_CHANGES_WHOLE = 11
"""First version in which `change()` drops attributes that it does not repeat."""


def speaks_of_laravel(one: FileFacts) -> bool:
    """Return whether a file shows that its repository uses Laravel or a Laravel package.

    A route, a model or a migration is sufficient, because a repository may have no manifest. In a
    test, `$router->match("/login")` is a request to any router.
    """
    in_test = is_test(one.path)
    return any(_is_sign(fact) for fact in one.facts if not (in_test and fact.kind == "routing"))


def _is_sign(fact: Fact) -> bool:
    if fact.kind in _NAMES_CLASS:
        return str(fact.values.get("name", "")).startswith(_NAMESPACES)
    if fact.kind == "depends_on":
        return str(fact.values.get("package", "")).startswith(_PACKAGES)
    if fact.kind == "routing":
        return makes_routes(fact)
    return fact.kind == "schema" or may_be_model(fact)


def derive(files: Sequence[FileFacts]) -> Derivation:
    """Derive the routes and tables of a Laravel repository."""
    php = [one for one in files if one.language in {"php", "sql"}]
    # The manifest states the version, on which the router's behaviour depends.
    version = framework_version(files)
    machine = run_providers(files)
    routes = collect_routes(machine)
    tables = resolve_tables(php, change_keeps=version is None or version < _CHANGES_WHOLE)
    models, guards = resolve_models(php), resolve_middleware(php, version)
    inheritance = Inheritance(php)
    followed = FollowedStatements(php, inheritance, Receivers(php, models, inheritance))
    policies = RoutePolicies(php, guards, inheritance)
    by_table: dict[str, list[Model]] = {}
    for model in models.values():
        if model.table and not model.abstract:
            by_table.setdefault(model.table, []).append(model)
    pivots = _pivots(models.values())
    documents = [
        *(route_document(one, guards, policies, inheritance, followed) for one in routes.routes),
        *(
            _table(one, by_table.get(name, ()), pivots.get(name, ()))
            for name, one in tables.tables.items()
        ),
        *_tables_without_migration(tables, by_table),
    ]
    unresolved = [
        *(_describe_unresolved(one.reason, one.evidence, ROUTES) for one in routes.unresolved),
        *(_describe_unresolved_route(one) for one in routes.routes if one.missing and one.evidence),
        *(_describe_unresolved("the table is computed", one, TABLES) for one in tables.unresolved),
        *(
            _describe_unresolved_table(one)
            for one in tables.tables.values()
            if one.reasons and one.evidence
        ),
    ]
    return Derivation(tuple(documents), tuple(unresolved))


def _describe_unresolved_route(route: Route) -> Unresolved:
    return _describe_unresolved(
        "; ".join(route.missing), route.evidence[-1], ROUTE + name_of(route)
    )


def _describe_unresolved_table(table: Table) -> Unresolved:
    return _describe_unresolved("; ".join(table.reasons), table.evidence[-1], TABLE + table.name)


def _describe_unresolved(reason: str, held: Evidence, about: str) -> Unresolved:
    return Unresolved(held.path, held.fact.line_start, " ".join(reason.split()), about)


def _pivots(models: Iterable[Model]) -> Mapping[str, Sequence[tuple[str, Relation]]]:
    """Return relations and their owners by the pivot table that convention gives them."""
    found: dict[str, dict[tuple[str, int], tuple[str, Relation]]] = {}
    for model in models:
        for one in model.relations:
            values = one.evidence.fact.values
            if one.table and "table" not in values["arguments"]:
                place = one.evidence.path, one.evidence.fact.start
                name = f"{values['class']}::{one.name}"
                found.setdefault(one.table, {}).setdefault(place, (name, one))
    return {table: [*held.values()] for table, held in found.items()}


def _table(
    table: Table,
    models: Sequence[Model],
    pivots: Sequence[tuple[str, Relation]],
) -> DerivedDocument:
    between = [
        statement(
            *("relates_to", TABLE + table.name, one.evidence.path, one.evidence.fact),
            source=name,
            how="convention",
        )
        for name, one in pivots
    ]
    stated = [
        *(statement("changed_in", FILE + e.path, e.path, e.fact) for e in table.evidence),
        *_foreign_keys(table),
        *map(_mapping_statement, models),
        *between,
    ]
    return _document(table.name, table_lines(table, [model.name for model in models]), stated)


def _tables_without_migration(
    tables: Tables,
    by_table: Mapping[str, Sequence[Model]],
) -> Iterator[DerivedDocument]:
    """Yield tables that models name although no migration creates them.

    If there are migrations, only explicitly named tables count: a class without a table is then
    more likely a base class of models than a model.
    """
    for name in sorted(by_table.keys() - tables.tables.keys()):
        models = [one for one in by_table[name] if one.how == "stated" or not tables.tables]
        if models:
            yield _table_without_migration(name, models)


def _table_without_migration(name: str, models: Sequence[Model]) -> DerivedDocument:
    lines = (
        f"table {name}",
        f"models: {', '.join(model.name for model in models)}",
        "incomplete: no migration makes it",
    )
    return _document(name, lines, [*map(_mapping_statement, models)])


def _document(name: str, lines: tuple[str, ...], stated: Sequence[Statement]) -> DerivedDocument:
    return DerivedDocument("table", TABLE + name, table_keys(name), lines, tuple(stated))


def _foreign_keys(table: TableLike) -> Iterator[Statement]:
    """Yield the tables that a table refers to, with the last statement about each foreign key."""
    for key in table.foreign_keys:
        held = [e for e in table.evidence if _mentions_columns(e.fact.values, key.columns)]
        if key.table and held:
            yield statement("references", TABLE + key.table, held[-1].path, held[-1].fact)


def _mentions_columns(values: Mapping[str, object], columns: Sequence[str]) -> bool:
    commands = values.get("commands")
    return isinstance(commands, list | tuple) and any(
        one.get("name") == "foreign" and list(one.get("columns", ())) == list(columns)
        for one in commands
    )


def _mapping_statement(model: Model) -> Statement:
    held = model.evidence
    return statement(
        "maps_to", TABLE + model.table, held.path, held.fact, source=model.name, how=model.how
    )
