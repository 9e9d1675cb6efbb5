"""Frameworks as their files in frameworks/ define them, and what of a text is kept for them."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from rag_assets.code.framework_data.statements import (
    ANNOTATION,
    ASSIGNED,
    CALL,
    CLASS,
    FUNCTION,
    GRAMMARS,
    statements_of,
)
from rag_assets.code.languages.tree import syntax_tree
from rag_assets.code.model import Fact

_LONGEST_CHAIN: Final = 30
_MOST_KEPT: Final = 2_000
"""Statements of one text that are kept."""
FOUND: Final = "frameworks"
"""The kind of the fact that names the frameworks whose markers a file has."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Routers(_Part):
    """What makes an object that routes are added to.

    Attributes:
        made_by: names of calls; called: usual names; types: of parameters.
        prefix: name or position of the argument with the prefix.
        nested: calls that give the prefix of what their block holds, or of what they return.
        rename: of nested ones, whose argument is a name rather than a path.
        mounts: calls that add a router: position or name of the router, and of the prefix.
        holders: calls that add a router, or a function with annotations, that is their argument.
        is_implicit: whether routes are calls on nothing.

    What any other call on a router returns is that router.
    """

    made_by: tuple[str, ...] = ()
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
    handlers: str = "name"

    def names(self) -> Iterator[str]:
        """Yield all names of calls and annotations that count."""
        made = (one.rpartition(".")[2].rpartition("::")[2] for one in self.routers.made_by)
        yield from (*made, *self.routers.nested, *self.routers.mounts, *self.routers.holders)
        for routes in self.routes:
            yield from (*routes.calls, *routes.annotations, *routes.class_prefix, *routes.verbs)
            yield from routes.within
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


@cache
def _names(language: str) -> frozenset[str]:
    known = (one for one in built_in() if language in one.languages)
    return frozenset(name for one in known for name in one.names() if name)


@cache
def _makers(language: str) -> frozenset[str]:
    known = (one for one in built_in() if language in one.languages)
    made = (name for one in known for name in one.routers.made_by)
    return frozenset(one.rpartition(".")[2].rpartition("::")[2] for one in made)


@cache
def _router_names(language: str) -> frozenset[str]:
    known = (one for one in built_in() if language in one.languages)
    return frozenset(name for one in known for name in (*one.routers.called, *one.routers.types))


def framework_facts(text: str, language: str) -> tuple[list[Fact], str]:
    """Return what of a text may count for frameworks, and a note on what is left out.

    Args:
        text: of a file.
        language: as media types name it.
    """
    if language not in GRAMMARS:
        return [], ""
    said = [
        one.name
        for one in built_in()
        if language in one.languages and any(marker in text for marker in one.markers)
    ]
    module, function = GRAMMARS[language]
    tree = syntax_tree(text, module, function)
    if language == "typescript" and tree.has_errors:
        tree = syntax_tree(text, module, "language_tsx")
    found, note = statements_of(tree, language)
    kept = _with_receivers([*_kept(found, language)], found, language)
    if len(kept) > _MOST_KEPT:
        kept, note = kept[:_MOST_KEPT], f"frameworks: more than {_MOST_KEPT} statements"
    if said and kept:
        kept.insert(0, Fact(FOUND, 0, 0, "", {"names": said}))
    return kept, note


def _with_receivers(kept: list[Fact], found: list[Fact], language: str) -> list[Fact]:
    """Return statements with the calls that they are made on, and functions that make routers."""
    by_place = {(one.start, one.end): one for one in found if one.kind == CALL}
    held = {id(one) for one in kept}
    todo = [one for one in kept if one.kind == CALL]
    makers = _makers(language)
    made = sorted(one.start for one in todo if one.values["name"] in makers)
    while todo:
        values = todo.pop().values
        for one in (values.get("on", ["?"]), *values["arguments"]):
            call = by_place.get((one[1], one[2])) if one[0] == "c" else None
            if call is not None and id(call) not in held:
                held.add(id(call))
                todo.append(call)
    names = _names(language)
    for one in found:
        if one.kind == ASSIGNED and one.values["value"][0] == "c" and id(one) not in held:
            place = tuple(one.values["value"][1:3])
            chain = list(_chain(by_place, place))
            if any(call.values["name"] in names for call in chain):
                held |= {id(one), *map(id, chain)}
        if one.kind == FUNCTION and bisect_left(made, one.start) < bisect_left(made, one.end):
            held.add(id(one))
    return [one for one in found if id(one) in held]


def _chain(by_place: Mapping[tuple[int, int], Fact], place: tuple[int, int]) -> Iterator[Fact]:
    """Yield a call and those that it is made on."""
    for _ in range(_LONGEST_CHAIN):
        call = by_place.get(place)
        if call is None:
            return
        yield call
        on = call.values.get("on", ["?"])
        if on[0] != "c":
            return
        place = on[1], on[2]


def _kept(facts: Iterable[Fact], language: str) -> Iterator[Fact]:
    """Yield the statements that a framework may speak of."""
    names, routers = _names(language), _router_names(language)
    for fact in facts:
        values = fact.values
        name = values["name"]
        if fact.kind == CALL:
            given = (*values["arguments"], *values.get("named", {}).values())
            if name in names or any(_is_telling(one, names, routers) for one in given):
                yield fact
        elif fact.kind == ANNOTATION:
            if name in names or any(
                _is_telling(one, names, routers) for one in values["arguments"]
            ):
                yield fact
        elif fact.kind == CLASS:
            yield fact
        elif fact.kind == FUNCTION:
            if name in names or any(p in routers for one in values["parameters"] for p in one):
                yield fact
        elif fact.kind == ASSIGNED and _is_kept(name, values["value"], names, routers):
            yield fact


def _is_kept(name: str, value: list[Any], names: frozenset[str], routers: frozenset[str]) -> bool:
    if value[0] == "c":
        return value[3] in names or name in routers
    is_constant = value[0] == "s" and (value[1][:1] == "/" or name.isupper())
    return is_constant or name in names


def _is_telling(value: list[Any], names: frozenset[str], routers: frozenset[str]) -> bool:
    kind = value[0]
    return (
        (kind == "s" and value[1][:1] == "/" and len(value[1]) > 1)
        or (kind == "n" and value[1] in routers)
        or (kind == "c" and value[3] in names)
    )
