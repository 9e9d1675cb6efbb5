"""Registrations with routers, including those on the result of an earlier registration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import argument, items_of
from rag_assets.systems.code_memory.django.modules import Module
from rag_assets.systems.code_memory.django.program import Place, Program
from rag_assets.systems.code_memory.django.viewsets import Viewset

_REGISTER: Final = ".register"
_DEEPEST: Final = 10


@dataclass(frozen=True, slots=True)
class Registration:
    """A viewset registered with a router.

    Attributes:
        module: the module that contains the call.
        call: the call of `register`.
        under: the compound statement around it; "" if there is none.
        parents: the registrations that returned the registrar, nearest first.
    """

    module: Module
    call: Any
    under: str = ""
    parents: tuple[Registration, ...] = ()

    @property
    def prefix(self) -> Any:
        """Return the expression for the start of the paths."""
        return argument(self.call, 0, "prefix")

    def viewset(self, program: Program) -> Viewset | None:
        """Return the registered viewset; None if it is computed."""
        value = argument(self.call, 1, "viewset")
        if not isinstance(value, dict) or value["of"] != "name":
            return None
        return Viewset(program, program.external(program.absolute(value["name"], self.module)))

    def nested_prefix(self, program: Program) -> str | None:
        """Return the start of the paths, with the parents' keys, as drf-extensions forms it.

        Returns:
            None if the code does not show it.
        """
        found = ""
        lookups = items_of(argument(self.call, 3, "parents_query_lookups"))
        if len(lookups) < len(self.parents):
            return None
        for parent, lookup in zip(self.parents, reversed(lookups), strict=False):
            set_ = parent.viewset(program)
            if not isinstance(parent.prefix, str) or not isinstance(lookup, str) or set_ is None:
                return None
            found = f"{parent.prefix}/(?P<parent_lookup_{lookup}>{set_.key()})/{found}"
        return f"{found.strip('/')}/{self.prefix}" if found else str(self.prefix)


class Registrations:
    """All registrations in a repository."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._found: dict[str, list[Registration]] = {}
        for module in program:
            for call, under in _calls(module):
                self._add(module, call, under)

    def of(self, router: Place) -> list[Registration]:
        """Return the registrations with a router's variable; those in its own module come first."""
        found = self._found.get(router.name, [])
        return sorted(found, key=lambda one: one.module is not router.module)

    def _add(self, module: Module, call: Any, under: str) -> None:
        router, chain = self._chain(Registration(module, call))
        within = sum(one.module is module and _covers(call, one.call) for one in chain)
        # Nested calls in the same statement also register, before the outer call does.
        for at in reversed(range(within)) if router else ():
            one = replace(chain[at], under=under, parents=tuple(chain[at + 1 :]))
            self._found.setdefault(router, []).append(one)

    def _chain(self, last: Registration) -> tuple[str, list[Registration]]:
        """Return the name of a router, and the registrations from the last back to the first."""
        found = [last]
        while len(found) < _DEEPEST:
            called, module = found[-1].call["call"], found[-1].module
            if called["of"] == "attribute":
                found.append(Registration(module, called["object"]))
                continue
            place = self._program.named(called["name"].removesuffix(_REGISTER), module)
            held = None if place is None else place.module.constant("", place.symbol)
            if place is None or not _registers(held):
                return ("" if place is None else place.name), found
            found.append(Registration(place.module, held))
        return "", found


def _calls(module: Module) -> Iterator[tuple[Any, str]]:
    """Yield the top-level calls of `register` in order, whether or not their result is stored."""
    held = [(one, one.values["call"]) for one in module.invoked]
    held += [(one, one.values["value"]) for one in module.assigned.get("", ())]
    for fact, call in sorted(held, key=lambda one: one[0].start):
        if _registers(call):
            yield call, fact.values["under"]


def _covers(outer: Any, inner: Any) -> bool:
    start, end = outer["at"]
    return bool(start <= inner["at"][0] and inner["at"][1] <= end)


def _registers(value: Any) -> bool:
    """Return whether an expression is a call of the method `register` of an object."""
    if not isinstance(value, dict) or value["of"] != "call":
        return False
    called = value["call"]
    if not isinstance(called, dict):
        return False
    if called["of"] == "attribute":
        return bool(called["name"] == "register") and _registers(called["object"])
    return called["of"] == "name" and str(called["name"]).endswith(_REGISTER)
