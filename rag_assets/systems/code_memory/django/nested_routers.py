"""Routers within routers, as in drf-nested-routers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import argument, is_a
from rag_assets.systems.code_memory.django.program import Place, Program
from rag_assets.systems.code_memory.django.registrations import Registrations

_PACKAGE: Final = "rest_framework_nested.routers."
NESTED: Final = frozenset({f"{_PACKAGE}NestedSimpleRouter", f"{_PACKAGE}NestedDefaultRouter"})
_DEEPEST: Final = 10


@dataclass(frozen=True, slots=True)
class Around:
    """The contribution of the enclosing routers to a router's paths.

    Attributes:
        pattern: the start of the paths: the parents' prefixes and keys.
        slash: the end of the paths, unless the router states another.
        depth: number of enclosing routers.
    """

    pattern: str = ""
    slash: str = "/"
    depth: int = 0


def slash_of(made: Any, otherwise: str = "/") -> str:
    """Return the end of a router's paths.

    Args:
        made: the call that created the router.
        otherwise: default if the call does not state it.
    """
    stated = made["named"].get("trailing_slash")
    return otherwise if stated is None else "/" if stated else ""


def around(
    program: Program, registrations: Registrations, router: Place, made: Any, left: int = _DEEPEST
) -> Around | None:
    """Return the contribution of the enclosing routers; None if the text does not show it.

    Args:
        router: the variable that holds the router.
        made: the call that created the router.
        left: remaining number of enclosing routers.
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
