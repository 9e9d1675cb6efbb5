"""Framework definitions: the built-in files in data/, and the frameworks that tenants add."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rag_assets.systems.code_memory.frameworks.statements import GRAMMARS
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
    if name not in GRAMMARS:
        raise ValueError(
            f"{name!r} is not a supported language: use one of {', '.join(sorted(GRAMMARS))}"
        )
    return name


Expression = Annotated[str, AfterValidator(_require_regular_expression)]
PagePath = Annotated[str, AfterValidator(_require_route_group)]
Language = Annotated[str, AfterValidator(_require_known_language)]


class _Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RouterRules(_Rules):
    """The routers of a framework: objects that routes are added to.

    Attributes:
        made_by: calls that create a router.
        roots: those calls of made_by that create an application, which is never mounted.
        called: usual names of variables that hold a router.
        types: types of parameters that receive a router.
        prefix: name or position of the argument with the prefix.
        nested: calls that state a prefix, either for the routes in their block or for the router
            they return.
        mounts: calls that mount a router, with the arguments for that router and its prefix.
        holders: calls whose argument is a router, or an annotated function, that they add.
        is_implicit: whether a call without a receiver may define a route.

    Any other call on a router returns that router.
    """

    made_by: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    prefix: str = ""
    nested: tuple[str, ...] = ()
    mounts: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    holders: tuple[str, ...] = ()
    is_implicit: bool = False


class RouteRules(_Rules):
    """Calls or annotations that define a route.

    Attributes:
        calls: HTTP method by name of call; "" if the argument named by `method` has it.
        annotations: HTTP method by name of an annotation of a function.
        class_prefix: annotations of a class that state the prefix of its routes.
        path_annotation: further annotations of the function that may contain the path.
        path, handler, method, name: the argument, by name or position; `a|b` takes the first that
            exists, `-1` is the last. `key` and `value_of_key` are the two sides of `"path" =>
            "controller#action"`; a name that no call has, such as `none`, means that the call does
            not state it.
        within: calls, at least one of which must enclose the route.
        verbs: HTTP method by name of a call in the chain of an argument: `get(show).post(store)`.
        has_method_in_path: whether a path may start with the method: `GET /items`.
        is_joined: whether the path consists of all string arguments, joined.
        needs_path: whether a call without a path does not define a route.
        is_plain: whether an annotated function may be a route without a router.
    """

    calls: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    class_prefix: tuple[str, ...] = ()
    path_annotation: tuple[str, ...] = ()
    path: str = "0"
    handler: str = "-1"
    method: str = ""
    name: str = ""
    within: tuple[str, ...] = ()
    verbs: Mapping[str, str] = Field(default_factory=dict)
    has_method_in_path: bool = False
    is_joined: bool = False
    needs_path: bool = True
    is_plain: bool = False


class ResourceRules(_Rules):
    """Calls that define the usual routes of a resource: `resources :articles`.

    Attributes:
        calls: `many` or `one` by name of call.
        actions: for `many` and `one`, the method and path of each action: `GET /{id}`.
        only, but: named arguments with the actions to include, or to leave out.
        blocks: the path parameter of each resource by name of a call within the block: `id` for
            routes of a single resource, "" for routes of all.
    """

    calls: Mapping[str, Literal["many", "one"]]
    actions: Mapping[Literal["many", "one"], Mapping[str, str]]
    only: str = "only"
    but: str = "except"
    blocks: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_actions(self) -> Self:
        if missing := {*self.calls.values()} - self.actions.keys():
            raise ValueError(
                f"`calls` uses {min(missing)!r}, but `actions` has no entry for it: add one"
            )
        return self


class PageRules(_Rules):
    """Files whose own path states their route.

    Attributes:
        path: regular expression with the group `route`.
        prefix: path in front of the route.
        methods: HTTP methods; a file answers those for which it exports a function of that name.
            Without them, a file has one route: for any method if there is a prefix, else for GET.
        drop: regular expression of the parts of a path that do not belong to the route.
    """

    path: PagePath
    prefix: str = ""
    methods: tuple[str, ...] = ()
    drop: Expression = ""


class ColumnRules(_Rules):
    """The rules that turn an assignment in the class of a table into a column.

    Attributes:
        calls: names of the columns, by name of call; `{name}` is the assigned name, "" means no
            column, and `*Field` matches any call with that ending.
        stated: argument with the column's name.
        nullable: named argument that is true if the column may be null.
        key: column to add to a table if none of its columns has the argument `primary_key`.
        parent_key: the same for a class whose parent has a table; `{parent}` is that parent class.
        references: argument with a class or a table, by name of call or of a call within it.
        settings: settings with the class that such an argument names, by name of call or setting.
        defaults: default classes, by name of a setting that the repository does not define.
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
    """The rules that decide whether a class has a table.

    Attributes:
        bases, annotations: base classes and annotations; one match is enough. Subclasses of a class
            with such a base match, too.
        annotation, argument: the annotation that states the table's name, and its argument with
            that name.
        field: the name to which the class assigns the table's name; `Meta.name` is in a nested
            class.
        abstract: the name to which a class without a table assigns true.
        shared: the name to which a class assigns true if it uses its parent's table; `*` if every
            subclass uses it.
        label: the name to which a class assigns the label of its application.
        apps: base classes of the class that configures an application; that class lies in the
            application's folder.
        calls: calls with the table's name as their first argument.
        naming: how to derive a table name from a class name if the source states no table name:
            `plural`, `snake`, `same`, or `app` after the label of the application; "" for no table.
    """

    bases: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    annotation: str = ""
    argument: str = "0"
    field: str = ""
    abstract: str = ""
    shared: str = ""
    label: str = ""
    apps: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    naming: Literal["", "plural", "snake", "same", "app"] = ""
    columns: ColumnRules | None = None


class ChangeRules(_Rules):
    """Calls in migrations that create or alter a table.

    Attributes:
        files: regular expression of the paths of migrations.
        calls: argument with the name of the table or class, by name of call.
        creates, deletes: the calls that create or delete the table of a class. A class is a model
            if its table is created and never deleted, whatever package its base is from.
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
    """Calls by which a test sends an HTTP request.

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
    """Calls that emit an event, or listen to one.

    Attributes:
        emits, listens: names of the calls; the first argument is the event, the second the
            listener.
        annotations: annotations of listeners, which state the event.
        is_object: whether an event is an object and the receiver of the call; the listener is then
            the first argument.
        requires: an argument without which a call emits no event.
    """

    emits: tuple[str, ...] = ()
    listens: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    is_object: bool = False
    requires: str = ""


class ViewRules(_Rules):
    """Functions and classes that Django's interpreter looks for when it reads routes.

    Only those of the built-in framework `django` are read.

    Attributes:
        paths: functions that make a pattern of a route.
        includes: functions that include other patterns.
        lists: functions that return the patterns they receive, each with the prefix it adds.
        routers: classes of routers of viewsets.
        decorators: HTTP methods that a decorator without arguments allows, by its name.
        methods: HTTP methods that a base class from another package answers, by its name.
        actions: actions that a base class of viewsets from another package has, by its name.
    """

    paths: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    lists: Mapping[str, str] = Field(default_factory=dict)
    routers: tuple[str, ...] = ()
    decorators: Mapping[str, str] = Field(default_factory=dict)
    methods: Mapping[str, str] = Field(default_factory=dict)
    actions: Mapping[str, str] = Field(default_factory=dict)


class TypeRules(_Rules):
    """Source types of definitions, which Django's interpreter assigns.

    Only those of the built-in framework `django` are read.

    Attributes:
        bases, decorators: source type by pattern of the whole name of an ancestor in another
            package, or of a decorator; `*` stands for any text, and the first match decides.
        settings: source type of the definitions that a setting lists.
        calls: source type of the first argument, by name of the called method.
        folders: source type of public classes in a folder or module; of functions, too, if it is
            `service`.
    """

    bases: Mapping[str, SourceType] = Field(default_factory=dict)
    decorators: Mapping[str, SourceType] = Field(default_factory=dict)
    settings: Mapping[str, SourceType] = Field(default_factory=dict)
    calls: Mapping[str, SourceType] = Field(default_factory=dict)
    folders: Mapping[str, SourceType] = Field(default_factory=dict)


class Framework(_Rules):
    """A framework.

    Attributes:
        name: the name as manifests call it.
        languages: the languages of its files, such as python; an unknown language raises an error
            with the list of all languages.
        markers: texts; a repository uses the framework if one of its files contains one of them.
        handlers: how a handler is written: `name`; `rails` for `orders#show`, `alias` for a module
            before an action, or `none` if handlers have no names.
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
        made = (one.rpartition(".")[2].rpartition("::")[2] for one in self.routers.made_by)
        yield from (*made, *self.routers.nested, *self.routers.mounts, *self.routers.holders)
        for routes in self.routes:
            yield from (*routes.calls, *routes.annotations, *routes.class_prefix, *routes.verbs)
            yield from (*routes.path_annotation, *routes.within)
        for requests in self.requests:
            yield from (*requests.calls, *requests.verbs, requests.method_call)
            yield from (*requests.named_by, *requests.described_by)
            yield from (f"*{end}" for end in requests.helpers)
        if self.resources is not None:
            yield from (*self.resources.calls, *self.resources.blocks)
        for tables in self.tables:
            yield from (*tables.annotations, tables.annotation, tables.field, *tables.calls)
            stated = (tables.field, tables.abstract, tables.shared, tables.label)
            yield from (one if one[:5] == "self." else one.rpartition(".")[2] for one in stated)
            if tables.apps:
                yield "label"
            if tables.columns is not None:
                yield from (*tables.columns.calls, *tables.columns.joins)
                yield from tables.columns.references
        for changes in self.changes:
            yield from (*changes.calls, *changes.renames)
        yield from (method for pages in self.pages for method in pages.methods)


def find_pattern(name: str, patterns: Iterable[str]) -> str:
    """Return the longest pattern that matches a name; "" if no pattern matches.

    A pattern is a whole name, or `*` followed by the end of a name.
    """
    found = [
        pattern
        for pattern in patterns
        if pattern == name or (pattern[:1] == "*" and name.endswith(pattern[1:]))
    ]
    return max(found, key=lambda one: (one[:1] != "*", len(one)), default="")


@cache
def load_built_in_frameworks() -> tuple[Framework, ...]:
    """Return the built-in frameworks, sorted by file name."""
    folder = files(__package__).joinpath("data")
    read = sorted(folder.iterdir(), key=lambda one: one.name)
    return tuple(
        Framework.model_validate(tomllib.loads(one.read_text("utf-8")))
        for one in read
        if one.name.endswith(".toml")
    )


def framework(name: str) -> Framework:
    """Return the built-in framework with this name."""
    return next(one for one in load_built_in_frameworks() if one.name == name)


@lru_cache(maxsize=64)
def all_frameworks(own: str = "") -> tuple[Framework, ...]:
    """Return the built-in frameworks and a tenant's own.

    A tenant's framework replaces a built-in framework with the same name.

    Args:
        own: the JSON text of Tenant.own_frameworks; "" for the built-in frameworks only.
    """
    added = tuple(Framework.model_validate(load) for load in json.loads(own or "[]"))
    names = {one.name for one in added}
    return (*(one for one in load_built_in_frameworks() if one.name not in names), *added)
