"""Frameworks as their files in frameworks/ define them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Routers(_Part):
    """What makes an object that routes are added to.

    Attributes:
        made_by: names of calls; called: usual names; types: of parameters.
        roots: those of made_by that make what is never mounted: applications.
        prefix: name or position of the argument with the prefix.
        nested: calls that give the prefix of what their block holds, or of what they return.
        rename: of nested ones, whose argument is a name rather than a path.
        mounts: calls that add a router: position or name of the router, and of the prefix.
        holders: calls that add a router, or a function with annotations, that is their argument.
        is_implicit: whether routes are calls on nothing.

    What any other call on a router returns is that router.
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


class Routes(_Part):
    """Calls or annotations that make a route.

    Attributes:
        calls: method by name of call; "" where `method` says which argument has it.
        annotations: the same, of annotations of functions.
        class_prefix: annotations of a class with the prefix of its routes.
        path, handler, method: names or positions of arguments, `|` between several; `-1` is the
            last, `chain` the handlers in calls on what `verbs` return.
        within: calls, one of which must hold it.
        has_method_in_path: whether a path begins with the method: `GET /items`.
        is_joined: whether all strings are parts of the path.
        needs_path: whether a call without a path is none.
        is_plain: whether annotations stand for themselves although there are routers.
    """

    calls: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    class_prefix: tuple[str, ...] = ()
    path: str = "0"
    handler: str = "-1"
    method: str = ""
    within: tuple[str, ...] = ()
    verbs: Mapping[str, str] = Field(default_factory=dict)
    has_method_in_path: bool = False
    is_joined: bool = False
    needs_path: bool = True
    is_plain: bool = False


class Resources(_Part):
    """Calls that make the usual routes of a resource: `resources :articles`."""

    calls: Mapping[str, str]
    actions: Mapping[str, Mapping[str, str]]
    only: str = "only"
    but: str = "except"
    blocks: Mapping[str, str] = Field(default_factory=dict)


class Pages(_Part):
    """Files whose place is their route.

    Attributes:
        path: regular expression with the group `route`.
        methods: names of exported functions; any method if there are none.
    """

    path: str
    prefix: str = ""
    methods: tuple[str, ...] = ()
    drop: str = ""


class Tables(_Part):
    """What maps a class to a table.

    Attributes:
        bases, annotations: of the class, of which one is enough.
        annotation, argument: that name the table.
        field: an assignment in the class that names it.
        calls: whose first argument is the table.
        naming: of a table that nothing names: `plural`, `snake`, `same`, or "" for none.
    """

    bases: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    annotation: str = ""
    argument: str = "0"
    field: str = ""
    calls: tuple[str, ...] = ()
    naming: str = ""


class Requests(_Part):
    """Calls by which a test sends a request by HTTP.

    Attributes:
        calls: method by name of call; "" where an argument or another call of its chain says it.
        path, method: names or positions of arguments, `|` between several.
        verbs: methods by names of other calls of the chain: `put().uri("/items/1")`.
        method_call: a call of the chain that has the method as its argument.
    """

    calls: Mapping[str, str]
    path: str = "0"
    method: str = ""
    verbs: Mapping[str, str] = Field(default_factory=dict)
    method_call: str = ""


class Framework(_Part):
    """A framework.

    Attributes:
        name: as manifests call it.
        languages: of its files, some of GRAMMARS.
        markers: texts of which one of a repository's files has one.
        handlers: how a handler is written: `name`; `rails` for `orders#show`, `alias` for a module
            before an action, or `none`.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    languages: tuple[str, ...]
    markers: tuple[str, ...] = ()
    routers: Routers = Routers()
    routes: tuple[Routes, ...] = ()
    resources: Resources | None = None
    pages: tuple[Pages, ...] = ()
    tables: tuple[Tables, ...] = ()
    requests: tuple[Requests, ...] = ()
    handlers: str = "name"

    def names(self) -> Iterator[str]:
        """Yield all names of calls and annotations that count."""
        made = (one.rpartition(".")[2].rpartition("::")[2] for one in self.routers.made_by)
        yield from (*made, *self.routers.nested, *self.routers.mounts, *self.routers.holders)
        for routes in self.routes:
            yield from (*routes.calls, *routes.annotations, *routes.class_prefix, *routes.verbs)
            yield from routes.within
        for requests in self.requests:
            yield from (*requests.calls, *requests.verbs, requests.method_call)
        if self.resources is not None:
            yield from (*self.resources.calls, *self.resources.blocks)
        for tables in self.tables:
            yield from (*tables.annotations, tables.annotation, tables.field, *tables.calls)
        yield from (method for pages in self.pages for method in pages.methods)


@cache
def built_in() -> tuple[Framework, ...]:
    """Return the frameworks of the files in frameworks/, by name."""
    folder = files(__package__).joinpath("frameworks")
    read = sorted(folder.iterdir(), key=lambda one: one.name)
    return tuple(
        Framework.model_validate(tomllib.loads(one.read_text("utf-8")))
        for one in read
        if one.name.endswith(".toml")
    )
