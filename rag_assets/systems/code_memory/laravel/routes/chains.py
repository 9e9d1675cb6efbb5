"""Chains of calls: on the router, on pending attributes, on routes, and on other objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.laravel.routes import (
    amendments,
    builtins,
    functions,
    packages,
    registrars,
)
from rag_assets.systems.code_memory.laravel.routes.drafts import Draft
from rag_assets.systems.code_memory.laravel.routes.evaluation import evaluate
from rag_assets.systems.code_memory.laravel.routes.frames import (
    MOST_CALLS,
    Arguments,
    Frame,
    Registrar,
)
from rag_assets.systems.code_memory.laravel.routes.guards import Configuration
from rag_assets.systems.code_memory.laravel.routes.loaders import LOADERS
from rag_assets.systems.code_memory.laravel.routes.marks import FACADES, ROUTE_TYPE, ROUTER_TYPES
from rag_assets.systems.code_memory.laravel.routes.resources import Pending
from rag_assets.systems.code_memory.laravel.routes.values import (
    ROUTER,
    Closure,
    Instance,
    RouterValue,
    Unknown,
    Value,
    text_of,
)

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_NOT_CACHED: Final = frozenset({"routesarecached", "configurationiscached"})
_CALLS_BACK: Final = frozenset(
    {"booted", "booting", "call", "tap", "afterresolving", "resolving", "callafterresolving"}
)
_STRINGS: Final = "Illuminate\\Support\\Str"
_CONFIGS: Final = frozenset({"Config", "Illuminate\\Support\\Facades\\Config"})
_APPS: Final = frozenset({"App", "Illuminate\\Support\\Facades\\App"})
_OWN: Final = frozenset({"self", "static", "parent"})


def run(machine: Machine, node: Mapping[str, Any], frame: Frame) -> Value:
    """Return the value of a chain of calls, and apply its effects on the router.

    Args:
        node: the chain as JSON.
    """
    calls = node["calls"]
    if len(calls) > MOST_CALLS:
        machine.miss("a chain of too many calls", frame)
        return Unknown("a long chain")
    if node["root"] is not None:
        value = evaluate(machine, node["root"], frame)
    else:
        first, arguments = calls[0]["name"], _arguments(machine, calls[0], frame)
        if node["class"]:
            value = _static(machine, node["class"], first, arguments, frame)
        else:
            value = functions.called(machine, first, arguments, frame)
        calls = calls[1:]
    for call in calls:
        arguments = _arguments(machine, call, frame)
        value = member(machine, value, call["name"], arguments, frame)
    return value


def member(machine: Machine, value: Value, name: str, given: Arguments, frame: Frame) -> Value:
    """Return the result of calling a method on a value.

    Args:
        value: the receiver.
        name: the name of the method, in any case.
    """
    called = _MEMBERS.get(type(value), _of_application)
    return called(machine, value, name.lower(), given, frame)


def call_back(machine: Machine, called: Value, given: Arguments, frame: Frame) -> Value:
    """Evaluate a callable value, which is a closure or an object with a method name."""
    if isinstance(called, Closure):
        return machine.closure(called, given, frame)
    if isinstance(called, dict) and isinstance(called.get(1), str):
        held = called.get(0)
        value = Instance(held) if isinstance(held, str) else held
        if isinstance(value, Instance):
            return member(machine, value, called[1], given, frame)
    return Unknown("a function")


def _of_pending(
    _machine: Machine, value: Pending, name: str, given: Arguments, _frame: Frame
) -> Value:
    return amendments.of_resource(value, name, given)


def _of_configuration(
    _machine: Machine, value: Configuration, name: str, given: Arguments, _frame: Frame
) -> Value:
    value.call(name, given)
    return value


def _of_router(machine: Machine, _value: Value, name: str, given: Arguments, frame: Frame) -> Value:
    return registrars.of_router(machine, name, given, frame)


def _of_closure(
    machine: Machine, value: Closure, name: str, given: Arguments, frame: Frame
) -> Value:
    return machine.closure(value, given, frame) if name in {"", "call", "__invoke"} else value


def _of_instance(
    machine: Machine, value: Instance, name: str, given: Arguments, frame: Frame
) -> Value:
    function = machine.program.method(value.name, name or "__invoke")
    if function is not None:
        return machine.function(function, value, given, frame)
    return _of_application(machine, value, name, given, frame)


def _of_array(
    machine: Machine, value: dict[str | int, Value], name: str, given: Arguments, frame: Frame
) -> Value:
    """Return the result of a call on a collection, which is represented by an array."""
    if name == "each":
        for key, item in value.items():
            call_back(machine, given.at(0), Arguments((item, key)), frame)
        return value
    return value if name in {"all", "toarray"} else Unknown(f"{name}()")


def _of_application(
    machine: Machine, value: Value, name: str, given: Arguments, frame: Frame
) -> Value:
    """Return the result of a call on a provider, on the application, or on an unknown value."""
    loader = LOADERS.get(name)
    if loader is not None:
        loader(machine, given, frame)
        return value
    if name in _CALLS_BACK:
        for one in given.all:
            call_back(machine, one, Arguments(()), frame)
        return value
    return _asked(machine, value, name, given, frame)


def _asked(machine: Machine, value: Value, name: str, given: Arguments, frame: Frame) -> Value:
    """Return a folder, a service or a setting that the application provides."""
    if name in functions.FOLDERS:
        return functions.path_below(machine, functions.FOLDERS[name], given, frame)
    if name in {"make", "get"} and functions.names_router(given):
        return ROUTER
    if name == "get" and isinstance(value, Unknown) and value.why == "config()":
        return functions.setting(machine, given, frame)
    if name in _NOT_CACHED:
        return False
    if any(one is ROUTER for one in given.all):
        machine.miss("a call that is given the router", frame)
    return value if isinstance(value, Unknown) else Unknown(f"{name}()")


def _static(machine: Machine, owner: str, name: str, given: Arguments, frame: Frame) -> Value:
    """Return the result of a static call."""
    lower = name.lower()
    if lower == "macro" and owner in _MACROS:
        return _macro(machine, _MACROS[owner], given)
    if owner in FACADES or owner in ROUTER_TYPES:
        return registrars.of_router(machine, lower, given, frame)
    if owner in _OWN:
        return _own(machine, owner, name, given, frame)
    function = machine.program.method(owner, name)
    if function is not None:
        return machine.function(function, Instance(owner), given, frame)
    return _foreign(machine, owner, lower, given, frame)


def _macro(machine: Machine, kind: str, given: Arguments) -> Value:
    closure = given.at(1, "macro")
    if isinstance(closure, Closure):
        machine.macros.setdefault((kind, str(given.at(0, "name")).lower()), closure)
    return None


def _own(machine: Machine, owner: str, name: str, given: Arguments, frame: Frame) -> Value:
    """Return the result of calling a method of a class in the repository, own or inherited."""
    above = owner == "parent"
    this = frame.this if isinstance(frame.this, Instance) else None
    holder = frame.owner if above or this is None else this.name
    function = machine.program.method(holder, name, above=above)
    if function is not None:
        return machine.function(function, this or Instance(holder), given, frame)
    return Unknown(f"{owner}::{name}()")


def _foreign(machine: Machine, owner: str, name: str, given: Arguments, frame: Frame) -> Value:
    """Return the result of a static call on a class outside the repository."""
    if owner == _STRINGS and name in builtins.STRINGS:
        text = text_of(given.at(0))
        return Unknown("no text") if text is None else builtins.STRINGS[name](text)
    if owner in _CONFIGS and name == "get":
        return functions.setting(machine, given, frame)
    short = owner.rpartition("\\")[2]
    if owner in _APPS:
        return _of_application(machine, Unknown("app()"), name, given, frame)
    if packages.of_facade(machine, short, name, given, frame):
        return Unknown(f"{short}::{name}()")
    if name == "routes":
        machine.miss(f"routes of a package: {short}::routes()", frame)
    elif any(one is ROUTER for one in given.all):
        machine.miss("a call that is given the router", frame)
    return Unknown(f"{short}::{name}()")


_MACROS: Final = {
    **dict.fromkeys(FACADES | ROUTER_TYPES, "router"),
    "Illuminate\\Routing\\RouteRegistrar": "registrar",
    ROUTE_TYPE: "route",
}
"""Classes that may have macros, each with its kind of macros."""


def _arguments(machine: Machine, call: Mapping[str, Any], frame: Frame) -> Arguments:
    named = {key: evaluate(machine, one, frame) for key, one in call.get("named", {}).items()}
    return Arguments(tuple(evaluate(machine, one, frame) for one in call["arguments"]), named)


_MEMBERS: Final[Mapping[type, Callable[[Machine, Any, str, Arguments, Frame], Value]]] = {
    RouterValue: _of_router,
    Registrar: registrars.of_registrar,
    Draft: amendments.of_route,
    Pending: _of_pending,
    Configuration: _of_configuration,
    dict: _of_array,
    Closure: _of_closure,
    Instance: _of_instance,
}
"""Functions that evaluate a call, by the type of the receiver."""
