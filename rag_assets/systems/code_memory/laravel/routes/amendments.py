"""Calls that change existing objects: a route that was added, or a pending resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.laravel.routes import stated
from rag_assets.systems.code_memory.laravel.routes.drafts import Draft
from rag_assets.systems.code_memory.laravel.routes.frames import Arguments, Frame
from rag_assets.systems.code_memory.laravel.routes.groups import listed_of
from rag_assets.systems.code_memory.laravel.routes.resources import Pending
from rag_assets.systems.code_memory.laravel.routes.stated import CONSTRAINTS, keyed
from rag_assets.systems.code_memory.laravel.routes.values import Unknown, Value, array, listed

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_SILENT: Final = frozenset(
    {"scopebindings", "withoutscopedbindings", "withtrashed", "missing", "defaults", "setdefaults"}
    | {"block", "withoutblocking", "metadata", "getname", "uri"}
)
"""Calls on a route that do not change any of the reported attributes."""


def of_route(machine: Machine, draft: Draft, name: str, given: Arguments, frame: Frame) -> Value:
    """Apply a call on a route; return its result.

    Args:
        name: the name of the call, in lower case.
    """
    if name in CONSTRAINTS:
        draft.where(stated.wheres(name, given))
    elif name in _OF_ROUTE:
        _OF_ROUTE[name](draft, given)
    elif name == "uses":
        machine.router.uses(draft, given.at(0))
    elif ("route", name) in machine.macros:
        return machine.closure(machine.macros["route", name], given, frame, this=draft)
    elif name not in _SILENT:
        draft.missing.append(f"what Laravel's routes do not have: {name}()")
    return draft


def of_resource(pending: Pending, name: str, given: Arguments) -> Value:
    """Apply a call on a pending resource; return the resource.

    Args:
        name: the name of the call, in lower case.
    """
    if name in CONSTRAINTS:
        pending.options["wheres"] = stated.wheres(name, given)
    elif name in _OF_RESOURCE:
        _OF_RESOURCE[name](pending, name, given)
    return pending


def _fallback(draft: Draft, _given: Arguments) -> None:
    draft.fallback = True


_OF_ROUTE: Final[Mapping[str, Callable[[Draft, Arguments], None]]] = {
    "name": lambda draft, given: draft.name(given.at(0, "name")),
    "middleware": lambda draft, given: draft.middleware(stated.names(given)),
    "withoutmiddleware": lambda draft, given: draft.middleware(
        listed(given.at(0, "middleware")), key="excluded_middleware"
    ),
    "can": lambda draft, given: draft.middleware([stated.ability(given)]),
    "domain": lambda draft, given: draft.domain(given.at(0, "domain")),
    "prefix": lambda draft, given: draft.prefix(given.at(0, "prefix")),
    "fallback": _fallback,
}


def _limited(pending: Pending, name: str, given: Arguments) -> None:
    first = given.at(0, "methods")
    pending.options[name] = first if isinstance(first, dict | Unknown) else array(given.given)


def _renamed(pending: Pending, name: str, given: Arguments) -> None:
    pending.options[name] = given.at(0, name)


def _renamed_one(pending: Pending, name: str, given: Arguments) -> None:
    key = f"{name}s"
    pending.options[key] = {**keyed(pending.options.get(key)), str(given.at(0)): given.at(1)}


def _guarded(pending: Pending, _name: str, given: Arguments) -> None:
    options, own = pending.options, listed(given.at(0, "middleware"))
    options["middleware"] = own
    for_methods = keyed(options.get("middleware_for"))
    options["middleware_for"] = {
        method: _unique(listed_of(held) + own) for method, held in for_methods.items()
    }


def _guarded_for(pending: Pending, _name: str, given: Arguments) -> None:
    options = pending.options
    own = _unique(listed_of(options.get("middleware")) + listed(given.at(1, "middleware")))
    by_method = {str(method): own for method in listed(given.at(0, "methods"))}
    options["middleware_for"] = {**keyed(options.get("middleware_for")), **by_method}


def _freed(pending: Pending, _name: str, given: Arguments) -> None:
    held = listed_of(pending.options.get("excluded_middleware"))
    pending.options["excluded_middleware"] = [*held, *listed(given.at(0, "middleware"))]


def _freed_for(pending: Pending, _name: str, given: Arguments) -> None:
    key, own = "excluded_middleware_for", listed(given.at(1, "middleware"))
    by_method = {str(method): own for method in listed(given.at(0, "methods"))}
    pending.options[key] = {**keyed(pending.options.get(key)), **by_method}


def _shallow(pending: Pending, _name: str, given: Arguments) -> None:
    pending.options["shallow"] = given.at(0, "shallow", default=True)


def _scoped(pending: Pending, _name: str, given: Arguments) -> None:
    pending.options["bindingFields"] = keyed(given.at(0, "fields"))


def _extended(pending: Pending, name: str, _given: Arguments) -> None:
    pending.options[name] = True


def _unique(names: list[Value]) -> list[Value]:
    return list(dict.fromkeys(names))


_OF_RESOURCE: Final[Mapping[str, Callable[[Pending, str, Arguments], None]]] = {
    "only": _limited,
    "except": _limited,
    "names": _renamed,
    "parameters": _renamed,
    "name": _renamed_one,
    "parameter": _renamed_one,
    "middleware": _guarded,
    "middlewarefor": _guarded_for,
    "withoutmiddleware": _freed,
    "withoutmiddlewarefor": _freed_for,
    "shallow": _shallow,
    "scoped": _scoped,
    "creatable": _extended,
    "destroyable": _extended,
}
