"""Routes that a Django REST framework router creates for its registered viewsets."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import LOOPS, argument, is_a
from rag_assets.systems.code_memory.django.modules import Evidence, Unresolved
from rag_assets.systems.code_memory.django.program import Place, Program
from rag_assets.systems.code_memory.django.registrations import Registration, Registrations
from rag_assets.systems.code_memory.django.views import View

_PACKAGE: Final = "rest_framework_nested.routers."
NESTED: Final = frozenset({f"{_PACKAGE}NestedSimpleRouter", f"{_PACKAGE}NestedDefaultRouter"})
_DEEPEST: Final = 10


@dataclass(frozen=True, slots=True)
class Around:
    """What the enclosing routers contribute to a router's paths.

    Attributes:
        pattern: the start of the paths: the parents' prefixes and keys.
        slash: the end of the paths, unless the router states another.
        depth: number of enclosing routers.
    """

    pattern: str = ""
    slash: str = "/"
    depth: int = 0


def slash_of(made: Any, otherwise: str = "/") -> str:
    """Return the end of a router's paths: a slash or "".

    Args:
        made: the call that created the router.
        otherwise: the end to use if the call does not state one.
    """
    stated = made["named"].get("trailing_slash")
    return otherwise if stated is None else "/" if stated else ""


def around(
    program: Program, registrations: Registrations, router: Place, made: Any, left: int = _DEEPEST
) -> Around | None:
    """Return what the enclosing routers contribute to the paths; None if the code lacks it.

    Args:
        router: the variable that holds the router.
        made: the call that created the router.
        left: maximum number of further enclosing routers.
    """
    called = made["call"]
    name = program.absolute(called["name"], router.module) if is_a(called, "name") else ""
    if NESTED.isdisjoint(program.ancestry(name)):
        return Around(slash=slash_of(made))
    parent, prefix = argument(made, 0, "parent_router"), argument(made, 1, "parent_prefix")
    place = program.named(parent["name"], router.module) if is_a(parent, "name") else None
    outer = None if place is None else place.module.constant("", place.symbol)
    if place is None or not is_a(outer, "call") or not isinstance(prefix, str) or not left:
        return None
    found = around(program, registrations, place, outer, left - 1)
    held = next((one for one in registrations.of(place) if one.prefix == prefix), None)
    set_ = None if held is None else held.viewset(program)
    lookup = made["named"].get("lookup", f"nested_{found.depth + 1}" if found else "")
    if found is None or set_ is None or not isinstance(lookup, str):
        return None
    pattern = f"{prefix}/{set_.lookup(f'{lookup}_')}/".removeprefix("/")
    return Around(found.pattern + pattern, slash_of(made, found.slash), found.depth + 1)


_EXTENDED: Final = frozenset(
    f"rest_framework_extensions.routers.{name}"
    for name in ("ExtendedDefaultRouter", "ExtendedSimpleRouter")
)
"""Routers whose method `register` returns a registrar."""

_PLAIN: Final = frozenset(
    f"{package}.routers.{name}"
    for package in ("rest_framework", "rest_framework_extensions", "rest_framework_nested")
    for name in ("DefaultRouter", "SimpleRouter")
)
ROUTERS: Final = _PLAIN | _EXTENDED | NESTED
_RULES: Final = frozenset({"routes", "get_urls", "get_routes", "get_lookup_regex"})


@dataclass(frozen=True, slots=True)
class RouterRoute:
    """A route of a router.

    Attributes:
        pattern: the pattern as the router writes it.
        name: the name without namespaces.
        view: the viewset with the actions of this route.
        evidence: the registration.
        suffixed: whether the router also adds the route with a format suffix.
        conditional: whether it is registered under a condition.
    """

    pattern: str
    name: str
    view: View
    evidence: Evidence
    suffixed: bool
    conditional: bool = False


def routes_of_router(
    program: Program,
    place: Place,
    made: Any,
    lineage: list[str],
    registrations: Registrations,
) -> Iterator[RouterRoute | Unresolved]:
    """Yield the routes of a router: for each viewset list, extra actions, then detail.

    Args:
        place: the variable that holds the router.
        made: the call that created the router.
        lineage: the class of the router with its ancestors.
    """
    own = [one for one in lineage if program.place(one) is not None]
    if any(_defines(program, one, _RULES) for one in own):
        yield Unresolved("a router with rules of its own", place.module.evidence(made))
        return
    if made["named"].get("use_regex_path", True) is not True:
        yield Unresolved("a router that writes no regular expressions", place.module.evidence(made))
        return
    if any(_defines(program, one, {"__init__"}) for one in own):
        yield Unresolved("a router that may change its rules", place.module.evidence(made))
    outer = around(program, registrations, place, made)
    if outer is None:
        yield Unresolved("a router within a computed one", place.module.evidence(made))
        return
    router = _Router(program, place, made, lineage, outer)
    for one in registrations.of(place):
        yield from router.registered(one)
    yield from router.root()


class _Router:
    def __init__(
        self, program: Program, place: Place, made: Any, lineage: list[str], outer: Around
    ) -> None:
        self._program = program
        self._lineage = lineage
        self._evidence = place.module.evidence(made)
        self._nests = not _EXTENDED.isdisjoint(lineage)
        self._outer = outer
        self._extends = any(one.endswith("DefaultRouter") for one in lineage)
        self._has_root = made["named"].get("include_root_view", self._class("include_root_view"))
        self._suffixed = self._extends and self._class("include_format_suffixes") is not False

    def registered(self, one: Registration) -> Iterator[RouterRoute | Unresolved]:
        evidence = one.module.evidence(one.call)
        if one.under:
            yield Unresolved(f"depends on `{one.under}`", evidence)
        if one.under in LOOPS:
            return
        set_ = one.viewset(self._program)
        if not isinstance(one.prefix, str) or set_ is None:
            yield Unresolved("a computed registration", evidence)
            return
        base = argument(one.call, 2, "basename") or one.call["named"].get("base_name")
        base = base or set_.basename()
        if not isinstance(base, str) or not base:
            yield Unresolved("a registration without a name", evidence)
            return
        prefix = one.nested_prefix(self._program) if self._nests or not one.parents else None
        if prefix is None:
            yield Unresolved("a registration with what another returns", evidence)
            return
        for own, suffix, actions in set_.routes(prefix, self._outer.slash):
            pattern = f"^{self._outer.pattern}{own.removeprefix('^')}"
            view = View(set_.name, actions, tuple(method for method, _ in actions))
            name, under = f"{base}-{suffix}", bool(one.under)
            yield RouterRoute(pattern, name, view, evidence, self._suffixed, under)

    def root(self) -> Iterator[RouterRoute]:
        """Yield the route of the API root, which some routers add."""
        if self._extends and self._has_root is not False:
            name = self._class("root_view_name")
            shown = View(self._root_view(), (), ("GET",))
            name = name if isinstance(name, str) else "api-root"
            yield RouterRoute("", name, shown, self._evidence, self._suffixed)

    def _root_view(self) -> str:
        for one in self._lineage:
            place = self._program.place(one)
            value = None if place is None else place.module.constant(place.symbol, "APIRootView")
            if place is not None and isinstance(value, dict) and value["of"] == "name":
                return self._program.absolute(value["name"], place.module)
        return "rest_framework.routers.APIRootView"

    def _class(self, name: str) -> Any:
        """Return an attribute of the router's class; None if the class does not have it."""
        for one in self._lineage:
            place = self._program.place(one)
            if place is not None and place.module.values(place.symbol, name):
                return place.module.constant(place.symbol, name)
        return None


def _defines(program: Program, name: str, wanted: Set[str]) -> bool:
    place = program.place(name)
    if place is None:
        return False
    names = {one.values["name"] for one in place.module.assigned.get(place.symbol, ())}
    methods = {
        s.rpartition(".")[2] for s in place.module.declared if s.startswith(f"{place.symbol}.")
    }
    return not wanted.isdisjoint(names | methods)
