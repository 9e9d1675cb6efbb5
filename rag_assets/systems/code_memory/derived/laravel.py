"""Derivation of Laravel's routes and tables, with the lines of code that state them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    ROUTE,
    ROUTES,
    TABLES,
    Derivation,
    DerivedDocument,
    DerivedStatement,
    UnresolvedStatement,
    build_description,
    link_groups,
)
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.models import (
    EloquentModel,
    EloquentRelation,
    may_be_model,
    resolve_models,
)
from rag_assets.systems.code_memory.laravel.policies import Policies, resolve_middleware
from rag_assets.systems.code_memory.laravel.receivers import FollowedStatements, Receivers
from rag_assets.systems.code_memory.laravel.routes.machine import (
    collect_routes,
    makes_routes,
    run_providers,
)
from rag_assets.systems.code_memory.laravel.routes.model import LaravelRoute, LocatedFact
from rag_assets.systems.code_memory.laravel.routes.program import find_framework_version
from rag_assets.systems.code_memory.laravel.schema.tables import MigratedTable, resolve_tables
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ENDPOINT,
    FILE,
    MIDDLEWARE,
    TABLE,
    format_endpoint,
    list_route_keys,
    list_table_keys,
)
from rag_assets.systems.code_memory.symbols.source_types import is_test

_NAMES_CLASS: Final = frozenset({"imports", "extends", "implements", "uses_trait"})
SIGN_KINDS: Final = _NAMES_CLASS | {"depends_on", "routing", "schema", "eloquent_class"}
"""Kinds of the facts that has_laravel_sign reads."""

_NAMESPACES: Final = ("Illuminate\\", "Laravel\\")
_PACKAGES: Final = ("illuminate/", "laravel/")
_FIRST_VERSION_WITH_FULL_CHANGE: Final = 11
"""First version in which `change()` drops attributes that it does not repeat."""
_METHOD_COUNT_OF_ANY: Final = 7
_INVOKED: Final = "__invoke"
_COMPONENT: Final = "Livewire\\Component"
_COMPONENT_METHODS: Final = ("mount", "render")
"""Methods of a Livewire component that run when a route leads to the component."""
_SHOWN_ATTRIBUTES: Final = (
    *("length", "total", "places", "default", "unsigned", "autoIncrement", "comment"),
)
_MAX_ATTRIBUTE_CHARACTERS: Final = 200


def has_laravel_sign(file: FileFacts) -> bool:
    """Return whether a file shows that its repository uses Laravel or a Laravel package.

    A route, a model or a migration is sufficient, because a repository may have no manifest. Routes
    in tests do not count: there, `$router->match("/login")` may be a request to any router.
    """
    in_test = is_test(file.path)
    return any(_is_sign(fact) for fact in file.facts if not (in_test and fact.kind == "routing"))


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
    php = [file for file in files if file.language in {"php", "sql"}]
    # The manifest states the version, on which the router's behaviour depends.
    version = find_framework_version(files)
    routes = collect_routes(run_providers(files))
    tables = resolve_tables(
        php, change_keeps=version is None or version < _FIRST_VERSION_WITH_FULL_CHANGE
    )
    models = resolve_models(php)
    by_table: dict[str, list[EloquentModel]] = {}
    for model in models.values():
        if model.table and not model.abstract:
            by_table.setdefault(model.table, []).append(model)
    pivots = _group_by_pivot(models.values())
    builder = _RouteDocumentBuilder(php, models, version)
    documents = [builder.build_document(route) for route in routes.routes]
    for name, table in tables.tables.items():
        models_of_table, pivots_of_table = by_table.get(name, ()), pivots.get(name, ())
        documents.append(_build_table_document(name, table, models_of_table, pivots_of_table))
    for name in sorted(by_table.keys() - tables.tables.keys()):
        # If there are migrations, only a named table counts: a class without a table is then more
        # likely a base class of models than a model.
        stated_models = [
            model for model in by_table[name] if model.how == "stated" or not tables.tables
        ]
        if stated_models:
            documents.append(_build_unmigrated_table_document(name, stated_models))
    unresolved = [(statement.reason, statement.evidence, ROUTES) for statement in routes.unresolved]
    unresolved += [
        ("; ".join(route.missing), route.evidence[-1], ROUTE + format_route_name(route))
        for route in routes.routes
        if route.missing and route.evidence
    ]
    unresolved += [("the table is computed", statement, TABLES) for statement in tables.unresolved]
    unresolved += [
        ("; ".join(table.reasons), table.evidence[-1], TABLE + name)
        for name, table in tables.tables.items()
        if table.reasons
    ]
    described = (
        UnresolvedStatement(at.path, at.fact.line_start, " ".join(reason.split()), about)
        for reason, at, about in unresolved
    )
    return Derivation(tuple(documents), tuple(described))


def _build_statement(
    kind: str, target: str, at: LocatedFact, *, source: str = "", how: How = "stated"
) -> DerivedStatement:
    return DerivedStatement.from_fact(kind, target, at.path, at.fact, source=source, how=how)


def format_route_name(route: LaravelRoute) -> str:
    """Return the name of a route's node without the node prefix: `GET /invoices/{invoice}`."""
    methods = tuple(method for method in route.methods if method != "HEAD") or route.methods
    shown_methods = "ANY" if len(route.methods) >= _METHOD_COUNT_OF_ANY else "|".join(methods)
    return f"{shown_methods} {route.domain}/{route.uri.lstrip('/')}"


class _RouteDocumentBuilder:
    """A builder of the documents of routes, with each route's action and middleware."""

    def __init__(
        self, files: Sequence[FileFacts], models: Mapping[str, EloquentModel], version: int | None
    ) -> None:
        self._guards = resolve_middleware(files, version)
        self._inheritance = Inheritance(files)
        receivers = Receivers(files, models, self._inheritance)
        self._policies = Policies(files, self._guards, self._inheritance)
        self._followed = FollowedStatements(files, self._inheritance, receivers, self._policies)

    def build_document(self, route: LaravelRoute) -> DerivedDocument:
        """Return the document of a route."""
        path, name = "/" + route.uri.lstrip("/"), format_route_name(route)
        action = route.action
        if route.kind != "controller":
            action = route.kind if action.lower() == route.kind else f"{route.kind} {action}"
        described = {
            "methods": ", ".join(route.methods),
            "name": route.name,
            "action": action,
            "middleware": ", ".join(route.middleware),
            "without middleware": ", ".join(route.without_middleware),
            "parameters": ", ".join(_describe_parameters(route)),
            "fallback": "yes" if route.fallback else "",
            "conditional": "yes" if route.conditional else "",
            "incomplete": "; ".join(route.missing),
        }
        words = {label: " ".join(text.split()) for label, text in described.items()}
        lines = build_description(f"route {name}", words)
        keys = list_route_keys(route.methods, path, route.name)
        statements = tuple(self._iter_statements(route, path)) if route.evidence else ()
        return DerivedDocument("route", ROUTE + name, keys, lines, statements)

    def _iter_statements(self, route: LaravelRoute, path: str) -> Iterator[DerivedStatement]:
        *groups, last = route.evidence
        yield from link_groups(_build_statement("in_group", "", group) for group in groups)
        if route.kind == "controller" and route.action:
            yield from self._iter_statements_of_action(route, last)
        for middleware in dict.fromkeys(route.middleware):
            guard = middleware.partition(":")[0]
            at = next((e for e in (last, *reversed(groups)) if _names_middleware(e, guard)), last)
            yield _build_statement("guarded_by", _get_middleware_node(guard), at)
            for name in self._guards.get(guard, ()):
                # The route only has an alias; another file states the alias's class.
                yield _build_statement("guarded_by", _get_middleware_node(name), at, how="inferred")
        for method in route.methods:
            if method != "HEAD" and not route.fallback:
                yield _build_statement("serves", ENDPOINT + format_endpoint(method, path), last)
        for middleware in dict.fromkeys(route.middleware):
            yield from self._iter_statements_of_policy(route, middleware)

    def _iter_statements_of_action(
        self, route: LaravelRoute, last: LocatedFact
    ) -> Iterator[DerivedStatement]:
        """Yield statements for the methods that a route runs, and for what they call.

        If the method is inherited, the controller itself is also a target.
        """
        owner, _, method = route.action.partition("@")
        names = [method or _INVOKED]
        if names == [_INVOKED] and _COMPONENT in self._inheritance.iter_ancestors(owner):
            names += _COMPONENT_METHODS
        declared = [self._inheritance.find_method(owner, name) for name in names]
        methods = [declaration.symbol for declaration in declared if declaration is not None]
        for target in methods or [f"{owner}::{names[0]}"]:
            yield _build_statement("routes_to", target, last)
        is_own = any(method_name.startswith(f"{owner}::") for method_name in methods)
        if self._inheritance.is_declared(owner) and not is_own:
            yield _build_statement("routes_to", owner, last)
        for target in methods:
            for own_method in self._followed.list_own_methods(target):
                path = self._inheritance.get_path(own_method)
                for above, fact in self._inheritance.iter_inherited_calls(own_method):
                    yield DerivedStatement.from_fact("calls", above, path, fact, source=own_method)
            for relation in self._followed.iter_relations(target):
                infer = partial(DerivedStatement.from_fact, source=relation.source, how="inferred")
                yield infer(relation.kind, relation.target, relation.path, relation.fact)

    def _iter_statements_of_policy(
        self, route: LaravelRoute, middleware: str
    ) -> Iterator[DerivedStatement]:
        """Yield statements for the policy that a middleware checks: its class and its method."""
        check = self._policies.find_check(route, middleware)
        if check is not None:
            places = (e for e in reversed(route.evidence) if _names_middleware(e, middleware))
            at = next(places, route.evidence[-1])
            policy, method, is_mapped = check
            how: How = "stated" if is_mapped else "convention"
            if policy:
                yield _build_statement("guarded_by", policy, at, how=how)
            yield _build_statement("authorizes", method, at, how=how)


def _describe_parameters(route: LaravelRoute) -> Iterator[str]:
    for parameter in route.parameters:
        more = ["optional"] if parameter.optional else []
        more += [f"by {parameter.field}"] if parameter.field else []
        more += [f"matching {parameter.pattern}"] if parameter.pattern else []
        yield f"{parameter.name} ({', '.join(more)})" if more else parameter.name


def _names_middleware(at: LocatedFact, guard: str) -> bool:
    """Return whether the text of a statement names a middleware, as a string or as a class."""
    last = guard.rpartition("\\")[2]
    marks = (f"'{guard}", f'"{guard}', f"{last}::")
    return any(mark in at.fact.evidence for mark in marks)


def _group_by_pivot(
    models: Iterable[EloquentModel],
) -> Mapping[str, Sequence[tuple[str, EloquentRelation]]]:
    """Return, by pivot table, the relations that use it by convention, each with its method."""
    pivots: dict[str, dict[tuple[str, int], tuple[str, EloquentRelation]]] = defaultdict(dict)
    for relation in (relation for model in models for relation in model.relations):
        at = relation.evidence
        if relation.table and "table" not in at.fact.values["arguments"]:
            name = f"{at.fact.values['class']}::{relation.name}"
            pivots[relation.table].setdefault((at.path, at.fact.start), (name, relation))
    return {table: [*relations.values()] for table, relations in pivots.items()}


def _build_table_document(
    name: str,
    table: MigratedTable,
    models: Sequence[EloquentModel],
    pivots: Sequence[tuple[str, EloquentRelation]],
) -> DerivedDocument:
    statements = [_build_statement("changed_in", FILE + at.path, at) for at in table.evidence]
    for key in table.foreign_keys.values():
        places = [
            at
            for at in table.evidence
            for command in at.fact.values.get("commands") or ()
            if command.get("name") == "foreign" and [*command.get("columns", ())] == key.columns
        ]
        if key.table and places:  # The last statement about a foreign key counts.
            statements.append(_build_statement("references", TABLE + key.table, places[-1]))
    statements += map(_build_mapping_statement, models)
    node = TABLE + name
    statements += [
        _build_statement("relates_to", node, relation.evidence, source=method, how="convention")
        for method, relation in pivots
    ]
    lines = _describe_table(name, table, [model.name for model in models])
    return DerivedDocument("table", node, list_table_keys(name), lines, tuple(statements))


def _build_unmigrated_table_document(name: str, models: Sequence[EloquentModel]) -> DerivedDocument:
    """Return the document of a table that models use although no migration creates it."""
    names = ", ".join(model.name for model in models)
    labelled = {"models": names, "incomplete": "no migration makes it"}
    statements = tuple(map(_build_mapping_statement, models))
    lines = build_description(f"table {name}", labelled)
    return DerivedDocument("table", TABLE + name, list_table_keys(name), lines, statements)


def _build_mapping_statement(model: EloquentModel) -> DerivedStatement:
    target = TABLE + model.table
    return _build_statement("maps_to", target, model.evidence, source=model.name, how=model.how)


def _get_middleware_node(name: str) -> str:
    """Return the node of a middleware's class or alias; its arguments are dropped."""
    bare = name.partition(":")[0]
    return bare if "\\" in bare else MIDDLEWARE + bare


def _describe_table(name: str, table: MigratedTable, models: Sequence[str]) -> tuple[str, ...]:
    columns = (_describe_column(*column) for column in table.columns.items())
    indexes = [
        f"- {kind} ({', '.join(columns)}) {index}".rstrip()
        for index, (kind, columns) in table.indexes.items()
    ]
    keys = [
        f"- ({', '.join(key.columns)}) to {key.table or '?'} ({', '.join(key.references)})"
        + (f" on delete {key.on_delete}" if key.on_delete else "")
        for key in table.foreign_keys.values()
    ]
    return (
        *build_description(f"table {name}", {"models": ", ".join(models)}),
        "columns:",
        *(f"- {column}" for column in columns),
        *(["indexes:", *indexes] if indexes else []),
        *(["foreign keys:", *keys] if keys else []),
        *([f"incomplete: {'; '.join(table.reasons)}"] if table.reasons else []),
    )


def _describe_column(name: str, attributes: Mapping[str, Any]) -> str:
    described = [f"{name} {attributes.get('type', '')}"]
    described += ["nullable"] if attributes.get("nullable") else []
    for attribute in _SHOWN_ATTRIBUTES:
        value = attributes.get(attribute)
        if value is True:
            described.append(attribute)
        elif value not in (None, False):
            described.append(
                f"{attribute} {' '.join(str(value).split())[:_MAX_ATTRIBUTE_CHARACTERS]}"
            )
    return ", ".join(described)
