"""Framework definitions: the models of rules, and the built-in and tenants' frameworks."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rag_assets.systems.code_memory.frameworks.statements import GRAMMARS, PAGES
from rag_assets.systems.code_memory.symbols.source_types import SourceType


def _require_regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a valid regular expression: {error}") from None
    return text


def _require_route_group(text: str) -> str:
    if "route" not in re.compile(_require_regular_expression(text)).groupindex:
        raise ValueError(f"{text!r} has no group `route`: enclose the route in (?P<route>…)")
    return text


def _require_known_language(name: str) -> str:
    known = sorted({*GRAMMARS, *PAGES})
    if name not in known:
        raise ValueError(f"{name!r} is not a supported language: use one of {', '.join(known)}")
    return name


Expression = Annotated[str, AfterValidator(_require_regular_expression)]
PagePath = Annotated[str, AfterValidator(_require_route_group)]
Language = Annotated[str, AfterValidator(_require_known_language)]


class _Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RouterRules(_Rules):
    """The rules that find a framework's routers: objects that routes are added to.

    Attributes:
        made_by: calls that create a router.
        roots: calls in made_by that create an application, which is never mounted.
        called: usual names of variables with a router.
        types: types of parameters that receive a router.
        root_types: types of applications, which are never mounted.
        prefix: name or position of the argument with the prefix.
        nested: calls that state a prefix for the routes in their block or for the router that they
            return.
        mounts: calls that mount a router, with the arguments for that router and its prefix.
        holders: calls that add their argument, a router or an annotated function, to a router.
        holder_prefix: argument of such a call with the prefix of what it adds.
        lists: calls with the functions that a holder adds: `mount("/api", routes![list, show])`.
        is_implicit: whether a call without a receiver may define a route.
        parts: regular expression of files that a call of `within` loads, as in `draw(:admin)`; the
            group `name` is the argument of that call.
        templates: calls with a block whose routes exist only where the block's name is used; they
            are reported as unresolved.

    Any other call on a router returns that router.
    """

    made_by: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    root_types: tuple[str, ...] = ()
    prefix: str = ""
    nested: tuple[str, ...] = ()
    mounts: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    holders: tuple[str, ...] = ()
    holder_prefix: str = ""
    lists: tuple[str, ...] = ()
    is_implicit: bool = False
    parts: Expression = ""
    templates: tuple[str, ...] = ()


class RouteRules(_Rules):
    """The rules that find routes: calls or annotations that define a route.

    Attributes:
        calls: HTTP method by name of call; "" if the argument in `method` states it.
        annotations: HTTP method by name of an annotation of a function.
        class_prefix: annotations of a class that state the prefix of its routes.
        path_annotation: other annotations of the function that may contain the path.
        path, handler, method, name: the argument, by name or position; `a|b` takes the first that
            exists, `-1` is the last; a path `0+1` consists of two arguments. `key` and
            `value_of_key` are the two sides of `"path" => "controller#action"`; a name that no call
            has, such as `none`, means that the call does not state it.
        prefix: path before every route.
        endpoints: argument with a map of handler and method, or with several such maps.
        method_names: HTTP methods by name of a constant that stands for them.
        variables: names of variables with parts of paths, besides upper-case ones.
        method_call: name of a call on the route with its methods: `add("/x", show).Methods("GET")`.
        default: the HTTP method of a statement that names none; `ANY` for all.
        within: calls; at least one must enclose the route, unless a router is the receiver
            of the function around it.
        verbs: HTTP method by name of a call in the chain of an argument: `get(show).post(store)`.
        has_method_in_path: whether a path may start with the method: `GET /items`.
        is_joined: whether the path consists of all string arguments, joined.
        needs_path: whether a call without a path does not define a route.
        is_plain: whether an annotated function may be a route without a router.
        conventional: path of a method of a class if no annotation has a path: `[controller]` and
            `[action]` stand for their names.
    """

    calls: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    class_prefix: tuple[str, ...] = ()
    path_annotation: tuple[str, ...] = ()
    path: str = "0"
    handler: str = "-1"
    method: str = ""
    name: str = ""
    prefix: str = ""
    endpoints: str = ""
    method_names: Mapping[str, str] = Field(default_factory=dict)
    variables: tuple[str, ...] = ()
    method_call: str = ""
    default: str = "GET"
    within: tuple[str, ...] = ()
    verbs: Mapping[str, str] = Field(default_factory=dict)
    has_method_in_path: bool = False
    is_joined: bool = False
    needs_path: bool = True
    is_plain: bool = False
    conventional: str = ""


class ResourceRules(_Rules):
    """The rules for calls that define the usual routes of a resource: `resources :articles`.

    Attributes:
        calls: `many` or `one` by name of call.
        actions: for `many` and `one`, the method and path of each action: `GET /{id}`.
        only, but: named arguments with the actions to include, or to leave out.
        shallow: named argument that leaves the resources around a resource out of the paths of its
            members.
        blocks: calls within the block that add routes, each with the path parameter of those
            routes: `id` for routes of a single resource, "" for routes of the collection.
    """

    calls: Mapping[str, Literal["many", "one"]]
    actions: Mapping[Literal["many", "one"], Mapping[str, str]]
    only: str = "only"
    but: str = "except"
    shallow: str = ""
    blocks: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_actions(self) -> Self:
        if missing := {*self.calls.values()} - self.actions.keys():
            raise ValueError(
                f"`calls` uses {min(missing)!r}, but `actions` has no entry for it: add one"
            )
        return self


class PageRules(_Rules):
    """The rules for files whose own path states their route, as in Next.js.

    Attributes:
        path: regular expression with the group `route`; an optional group `method` is the method.
        prefix: path before the route.
        methods: HTTP methods; a file answers each for which it exports a function of that name. If
            empty, a file has one route: for any method if there is a prefix, else for GET.
        exports: further names of exported functions, each with its HTTP method.
        drop: regular expression of the parts of a path that do not belong to the route.
    """

    path: PagePath
    prefix: str = ""
    methods: tuple[str, ...] = ()
    exports: Mapping[str, str] = Field(default_factory=dict)
    drop: Expression = ""


class ColumnRules(_Rules):
    """The rules that turn an assignment in the class of a table into a column.

    Attributes:
        calls: names of the columns, by name of call; `{name}` is the assigned name, "" means no
            column, and `*Field` matches any call with that ending.
        stated: argument with the column's name.
        nullable: named argument that is true if the column may be null.
        key: name of the primary key to add if none of the columns has the argument `primary_key`.
        parent_key: the primary key to add instead if a parent of the class has a table of its own;
            `{parent}` is the name of that parent.
        references: argument with a class or a table, by name of call or of a call within it.
        settings: settings with the class that such an argument names, by name of call or setting.
        defaults: classes of settings that the repository does not define, by name of the setting.
        joins: calls that create a join table, unless they have the argument `through`.
        of_bases: columns, separated by blanks, by name of a base class from another package;
            `groups>group` is the join table between this table and the table of the class Group.
    """

    calls: Mapping[str, str]
    stated: str = ""
    nullable: str = ""
    key: str = ""
    parent_key: str = ""
    references: Mapping[str, str] = Field(default_factory=dict)
    settings: Mapping[str, str] = Field(default_factory=dict)
    defaults: Mapping[str, str] = Field(default_factory=dict)
    joins: tuple[str, ...] = ()
    through: str = ""
    of_bases: Mapping[str, str] = Field(default_factory=dict)


class TableRules(_Rules):
    """The rules that decide whether a class has a table, and that name the table.

    Attributes:
        bases, annotations: base classes and annotations of classes with a table; one match is
            enough. Subclasses of a class with such a base match, too.
        base_argument: argument of such a base class with the table's name: `object Orders :
            Table("orders")`.
        annotation, argument: the annotation that states the table's name, and its argument with
            that name.
        field: the variable to which the class assigns the table's name; `Meta.name` is in a nested
            class.
        abstract: the variable that a class without a table sets to true.
        shared: the variable that a class sets to true if it uses its parent's table; `*` if every
            subclass uses it.
        label: the variable to which a class assigns the label of its application.
        apps: base classes of the class that configures an application, in the application's
            folder.
        calls: calls with the table's name as the argument `argument`.
        model: argument of such a call with a class name, from which `naming` derives the table's
            name if the call does not state it.
        configurations: base classes around such a call; their type argument is the class of the
            table.
        entities: calls whose type argument is the class of the table that such a call on their
            result, or in their block, names: `Entity<Order>().ToTable("orders")`. If there are
            configurations or entities, calls elsewhere do not count.
        owned: calls in whose block such a call names the table of another class.
        sets: generic types of properties that are named after a table, such as `DbSet<Order>
            Orders`.
        embedded: regular expression of the names of classes without a table, which others embed.
            Other classes inherit only from these.
        naming: how to derive a table name from a class name if the source states no table name:
            `plural`, `joined` (a plural without underscores), `snake`, `lower`, `same`, or `app`
            after the label of the application; "" for no table.
    """

    bases: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    base_argument: str = ""
    annotation: str = ""
    argument: str = "0"
    field: str = ""
    abstract: str = ""
    shared: str = ""
    label: str = ""
    apps: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    model: str = ""
    configurations: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    owned: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    embedded: Expression = ""
    naming: Literal["", "plural", "joined", "snake", "lower", "same", "app"] = ""
    columns: ColumnRules | None = None


class ChangeRules(_Rules):
    """The rules for calls in migrations that create or alter a table.

    Attributes:
        files: regular expression of the paths of migrations.
        calls: argument with the name of the table or class, by name of call.
        creates, deletes: the calls that create or delete the table of a class. A class is a model
            if its table is created and never deleted, even if its base is from another package.
        renames: arguments with the old and the new name, by name of call.
        naming: `table` if the argument is the table's name, `model` if it is the name of a class in
            the same application.
    """

    files: Expression
    calls: Mapping[str, str]
    creates: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    renames: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    naming: Literal["table", "model"] = "table"


class RequestRules(_Rules):
    """The rules for calls by which a test sends an HTTP request.

    Attributes:
        calls: HTTP method by name of call; "" if an argument or another call in the chain has it.
        path, method: the argument, as in RouteRules.
        verbs: HTTP methods, by names of other calls in the chain: `put().uri("/items/1")`.
        method_call: name of a call in the chain that has the method as its argument.
        named_by: calls that return the path of a route, with the route's name as first argument.
        described_by: calls around a request that name the controller of the requested action.
        helpers: endings of functions that are named after a route and return its path: `_path` for
            `edit_article_path`.
    """

    calls: Mapping[str, str]
    path: str = "0"
    method: str = ""
    verbs: Mapping[str, str] = Field(default_factory=dict)
    method_call: str = ""
    named_by: tuple[str, ...] = ()
    described_by: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()


class EventRules(_Rules):
    """The rules for calls that emit an event or listen to an event.

    Attributes:
        emits, listens: names of the calls; the first argument is the event, the second the
            listener.
        annotations: annotations of listeners; the first argument is the event.
        is_object: whether an event is an object and the receiver of the call; the listener is then
            the first argument.
        requires: an argument that a call must have to emit an event.
    """

    emits: tuple[str, ...] = ()
    listens: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    is_object: bool = False
    requires: str = ""


class ViewRules(_Rules):
    """The functions and classes that Django's interpreter looks for when it reads routes.

    Only the rules of the built-in framework `django` are read.

    Attributes:
        paths: functions that make a pattern of a route.
        includes: functions that include other patterns.
        lists: functions that return the patterns that they receive, each with the prefix it adds.
        routers: classes of routers of viewsets.
        decorators: HTTP methods that a decorator without arguments allows, by its name.
        methods: HTTP methods that a base class from another package answers, by its name.
        actions: actions of a base class of viewsets from another package, by its name.
    """

    paths: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    lists: Mapping[str, str] = Field(default_factory=dict)
    routers: tuple[str, ...] = ()
    decorators: Mapping[str, str] = Field(default_factory=dict)
    methods: Mapping[str, str] = Field(default_factory=dict)
    actions: Mapping[str, str] = Field(default_factory=dict)


class TypeRules(_Rules):
    """The source types that a framework gives to definitions.

    A route's annotation also makes the class of its handler a controller, and the rules of tables
    make classes models.

    Attributes:
        bases, annotations: source type by a pattern of the name of an ancestor or annotation; `*`
            matches any text, and the first match decides. Django's interpreter compares the full
            names of ancestors in other packages; for other frameworks, a pattern matches a name as
            written or its last part, and annotations are plain names.
        names: source type by a pattern of the name of a class, such as `*Job`.
        folders: source type of the classes in a folder or file with this lower-case name; if it is
            `controller`, `service`, `middleware` or `job`, of its public functions, too. In Django,
            only of public classes, and of functions only if it is `service`.
        settings: source type of the definitions that a setting lists; only for Django.
        calls: source type of the first argument, by name of the called method; only for Django.
    """

    bases: Mapping[str, SourceType] = Field(default_factory=dict)
    annotations: Mapping[str, SourceType] = Field(default_factory=dict)
    names: Mapping[str, SourceType] = Field(default_factory=dict)
    folders: Mapping[str, SourceType] = Field(default_factory=dict)
    settings: Mapping[str, SourceType] = Field(default_factory=dict)
    calls: Mapping[str, SourceType] = Field(default_factory=dict)


class Framework(_Rules):
    """A framework with its rules.

    Attributes:
        name: the name in manifests.
        languages: the languages of its files, such as `python` or `vue`; an unknown one is refused
            with the list of all.
        markers: strings; a repository uses the framework if any of its files contains one of them.
        types: the source types of definitions.
        handlers: notation of handlers: `name` for a function's name; `rails` for `orders#show`;
            `alias` for a module and an action; `none` if handlers have no names.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    languages: tuple[Language, ...]
    markers: tuple[str, ...] = ()
    routers: RouterRules = RouterRules()
    routes: tuple[RouteRules, ...] = ()
    resources: ResourceRules | None = None
    pages: tuple[PageRules, ...] = ()
    tables: tuple[TableRules, ...] = ()
    changes: tuple[ChangeRules, ...] = ()
    requests: tuple[RequestRules, ...] = ()
    events: tuple[EventRules, ...] = ()
    views: ViewRules = ViewRules()
    types: TypeRules = TypeRules()
    handlers: Literal["name", "rails", "alias", "none"] = "name"

    def names(self) -> Iterator[str]:
        """Yield every name that the rules of this framework look for."""
        maker_names = (
            maker.rpartition(".")[2].rpartition("::")[2] for maker in self.routers.made_by
        )
        yield from (*maker_names, *self.routers.nested, *self.routers.mounts, *self.routers.holders)
        yield from (*self.routers.lists, *self.routers.templates)
        for routes in self.routes:
            yield from (*routes.calls, *routes.annotations, *routes.class_prefix, *routes.verbs)
            yield from (*routes.path_annotation, *routes.within, routes.method_call)
            yield from routes.variables
        for requests in self.requests:
            yield from (*requests.calls, *requests.verbs, requests.method_call)
            yield from (*requests.named_by, *requests.described_by)
            yield from (f"*{end}" for end in requests.helpers)
        if self.resources is not None:
            yield from (*self.resources.calls, *self.resources.blocks)
        for tables in self.tables:
            yield from (*tables.annotations, tables.annotation, tables.field, *tables.calls)
            yield from (*tables.sets, *tables.entities, *tables.owned)
            stated = (tables.field, tables.abstract, tables.shared, tables.label)
            yield from (v if v[:5] == "self." else v.rpartition(".")[2] for v in stated)
            if tables.apps:
                yield "label"
            if tables.columns is not None:
                yield from (*tables.columns.calls, *tables.columns.joins)
                yield from tables.columns.references
        for changes in self.changes:
            yield from (*changes.calls, *changes.renames)
        yield from (method for pages in self.pages for method in pages.methods)
        yield from filter(str.isidentifier, self.types.annotations)


def find_pattern(name: str, patterns: Iterable[str]) -> str:
    """Return the longest pattern that matches a name; "" if no pattern matches.

    A pattern is a whole name, or `*` followed by the end of a name.
    """
    matching = [
        pattern
        for pattern in patterns
        if pattern == name or (pattern[:1] == "*" and name.endswith(pattern[1:]))
    ]
    return max(matching, key=lambda pattern: (pattern[:1] != "*", len(pattern)), default="")


@cache
def load_built_in_frameworks() -> tuple[Framework, ...]:
    """Return the built-in frameworks, sorted by file name."""
    folder = files(__package__).joinpath("data")
    return tuple(
        Framework.model_validate(tomllib.loads(file.read_text("utf-8")))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    )


def get_framework(name: str) -> Framework:
    """Return the built-in framework with this name."""
    return next(framework for framework in load_built_in_frameworks() if framework.name == name)


@lru_cache(maxsize=64)
def load_all_frameworks(own: str = "") -> tuple[Framework, ...]:
    """Return the built-in frameworks and a tenant's own frameworks.

    A tenant's framework replaces the built-in framework of the same name.

    Args:
        own: the JSON text of Tenant.own_frameworks_json; "" for the built-in frameworks only.
    """
    added = tuple(Framework.model_validate(values) for values in json.loads(own or "[]"))
    names = {framework.name for framework in added}
    return (
        *(framework for framework in load_built_in_frameworks() if framework.name not in names),
        *added,
    )
