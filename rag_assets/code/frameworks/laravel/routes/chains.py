"""Chains of calls: on the router, on what waits for a route, on routes, and on other objects."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag_assets.code.frameworks.laravel.routes import builtins, registrars
from rag_assets.code.frameworks.laravel.routes.evaluation import evaluate
from rag_assets.code.frameworks.laravel.routes.frames import Arguments, Frame, Registrar
from rag_assets.code.frameworks.laravel.routes.marks import FACADES, ROUTER_TYPES
from rag_assets.code.frameworks.laravel.routes.program import ROOT
from rag_assets.code.frameworks.laravel.routes.resources import Pending
from rag_assets.code.frameworks.laravel.routes.router import Draft
from rag_assets.code.frameworks.laravel.routes.values import (
    ROUTER,
    Closure,
    Instance,
    RouterValue,
    Unknown,
    Value,
    array,
    listed,
    text_of,
)

if TYPE_CHECKING:
    from rag_assets.code.frameworks.laravel.routes.machine import Machine

_FOLDERS: Final = {
    "base_path": "",
    "app_path": "app",
    "basepath": "",
    "path": "app",
    "config_path": "config",
    "configpath": "config",
    "database_path": "database",
    "resource_path": "resources",
    "resourcepath": "resources",
    "public_path": "public",
    "storage_path": "storage",
}
_NOT_CACHED: Final = frozenset({"routesarecached", "configurationiscached"})
_CALLS_BACK: Final = frozenset(
    {"booted", "booting", "call", "tap", "afterresolving", "resolving", "callafterresolving"}
)
_STRINGS: Final = "Illuminate\\Support\\Str"
_CONFIGS: Final = frozenset({"Config", "Illuminate\\Support\\Facades\\Config"})
_APPS: Final = frozenset({"App", "Illuminate\\Support\\Facades\\App"})


def run(machine: Machine, node: Mapping[str, Any], frame: Frame) -> Value:
    """The value of a chain of calls, with what it does to the router.

    Args:
        machine: that runs.
        node: the chain as JSON.
        frame: what is known.
    """
    calls = node["calls"]
    if node["root"] is not None:
        value = evaluate(machine, node["root"], frame)
    else:
        first, arguments = calls[0]["name"], _arguments(machine, calls[0], frame)
        if node["class"]:
            value = _static(machine, node["class"], first, arguments, frame)
        else:
            value = _function(machine, first, arguments, frame)
        calls = calls[1:]
    for call in calls:
        arguments = _arguments(machine, call, frame)
        value = member(machine, value, call["name"], arguments, frame)
    return value


def member(machine: Machine, value: Value, name: str, given: Arguments, frame: Frame) -> Value:
    """What a call on a value gives.

    Args:
        machine: that runs.
        value: that it is called on.
        name: of the method, in any case.
        given: its arguments.
        frame: what is known.
    """
    lower = name.lower()
    if isinstance(value, RouterValue):
        return registrars.of_router(machine, lower, given, frame)
    if isinstance(value, Registrar):
        return registrars.of_registrar(machine, value, lower, given, frame)
    if isinstance(value, Draft):
        return registrars.of_route(machine, value, lower, given, frame)
    if isinstance(value, Pending):
        return registrars.of_resource(value, lower, given)
    if isinstance(value, dict):
        return _of_array(machine, value, lower, given, frame)
    if isinstance(value, Closure):
        return machine.closure(value, given, frame) if not name or lower == "call" else value
    if isinstance(value, Instance):
        function = machine.program.method(value.name, name)
        if function is not None:
            return machine.function(function, value, given, frame)
    return _of_application(machine, value, lower, given, frame)


def call_back(machine: Machine, called: Value, given: Arguments, frame: Frame) -> Value:
    """Run what is given as a function: a closure, or an object and a method's name."""
    if isinstance(called, Closure):
        return machine.closure(called, given, frame)
    if isinstance(called, dict) and isinstance(called.get(1), str):
        held = called.get(0)
        value = Instance(held) if isinstance(held, str) else held
        if isinstance(value, Instance):
            return member(machine, value, called[1], given, frame)
    return Unknown("a function")


def _of_application(
    machine: Machine, value: Value, name: str, given: Arguments, frame: Frame
) -> Value:
    """Calls on providers, on the application, and on what is not known."""
    loader = _LOADERS.get(name)
    if loader is not None:
        loader(machine, given, frame)
        return value
    if name in _CALLS_BACK:
        for one in given.all:
            call_back(machine, one, Arguments(()), frame)
        return value
    if name in _FOLDERS:
        return _path(machine, _FOLDERS[name], given, frame)
    if name in {"make", "get"} and _names_router(given):
        return ROUTER
    if name == "get" and isinstance(value, Unknown) and value.why == "config()":
        return _setting(machine, given, frame)
    if name in _NOT_CACHED:
        return False
    if any(one is ROUTER for one in given.all):
        machine.miss("a call that is given the router", frame)
    return value if isinstance(value, Unknown) else Unknown(f"{name}()")


def _load(machine: Machine, given: Arguments, frame: Frame) -> None:
    with machine.within(frame):
        machine.load(given.at(0, "path"), frame, stated=True)


def _defer(machine: Machine, given: Arguments, frame: Frame) -> None:
    last = frame.context.evidence[-1:]
    machine.deferred += [(one, at) for one in given.all if isinstance(one, Closure) for at in last]


def _package(machine: Machine, given: Arguments, frame: Frame) -> None:
    """Files of routes that a package names: `hasRoutes('web', 'api')`."""
    folder = posixpath.dirname(posixpath.dirname(frame.path))
    with machine.within(frame):
        for one in given.all:
            for name in listed(one):
                machine.load(f"{ROOT}{folder}/routes/{text_of(name)}.php", frame, stated=True)


def _configured(machine: Machine, given: Arguments, frame: Frame) -> None:
    """`withRouting`, as Laravel 11 and later have it."""
    names = ("using", "web", "api", "commands", "channels", "pages", "health", "apiPrefix", "then")
    told = {name: given.at(position, name) for position, name in enumerate(names)}
    with machine.within(frame):
        if told["using"] is not None:
            call_back(machine, told["using"], Arguments(()), frame)
            return
        prefix = "api" if told["apiPrefix"] is None else told["apiPrefix"]
        for path in listed(told["api"]):
            attributes = {"middleware": ["api"], "prefix": prefix}
            registrars.group(machine, attributes, path, frame)
        if isinstance(told["health"], str):
            machine.router.add(("GET",), told["health"], Closure(None), machine.context(frame))
        for path in listed(told["web"]):
            registrars.group(machine, {"middleware": ["web"]}, path, frame)
        call_back(machine, told["then"], Arguments(()), frame)


_LOADERS: Final[Mapping[str, Callable[[Machine, Arguments, Frame], None]]] = {
    "loadroutesfrom": _load,
    "loadroutesusing": _defer,
    "routes": _defer,
    "hasroute": _package,
    "hasroutes": _package,
    "withrouting": _configured,
}


def _static(machine: Machine, owner: str, name: str, given: Arguments, frame: Frame) -> Value:
    lower = name.lower()
    if owner in FACADES or owner in ROUTER_TYPES:
        return registrars.of_router(machine, lower, given, frame)
    if owner == _STRINGS and lower in builtins.STRINGS:
        text = text_of(given.at(0))
        return Unknown("no text") if text is None else builtins.STRINGS[lower](text)
    if owner in _CONFIGS and lower == "get":
        return _setting(machine, given, frame)
    if owner in _APPS:
        return _of_application(machine, Unknown("app()"), lower, given, frame)
    above = owner == "parent"
    own = owner in {"self", "static", "parent"}
    this = frame.this if own and isinstance(frame.this, Instance) else None
    if own:
        owner = frame.owner if above or this is None else this.name
    function = machine.program.method(owner, name, above=above)
    if function is not None:
        return machine.function(function, this or Instance(owner), given, frame)
    if lower == "routes":
        machine.miss(f"routes of a package: {owner.rpartition(chr(92))[2]}::routes()", frame)
    elif any(one is ROUTER for one in given.all):
        machine.miss("a call that is given the router", frame)
    return Unknown(f"{owner.rpartition(chr(92))[2]}::{name}()")


def _function(machine: Machine, name: str, given: Arguments, frame: Frame) -> Value:
    lower = name.lower()
    if lower in _FOLDERS:
        return _path(machine, _FOLDERS[lower], given, frame)
    if lower in {"app", "resolve"}:
        named = given.at(0, "abstract")
        if _names_router(given):
            return ROUTER
        known = isinstance(named, str) and named in machine.program.classes
        return Instance(named) if known else Unknown("app()")
    if lower == "config":
        return _setting(machine, given, frame) if given.all else Unknown("config()")
    if lower == "env":
        machine.assume("what the environment does not say")
        return given.at(1, "default")
    if lower == "glob":
        return _found(machine, given.at(0), frame)
    if lower == "module_path":
        return _module(machine, given)
    if lower == "tap":
        call_back(machine, given.at(1), Arguments(given.given[:1]), frame)
        return given.at(0)
    function = machine.program.functions.get(lower)
    if function is not None:
        return machine.function(function, None, given, frame)
    return builtins.called(lower, given.given)


def _arguments(machine: Machine, call: Mapping[str, Any], frame: Frame) -> Arguments:
    named = {key: evaluate(machine, one, frame) for key, one in call.get("named", {}).items()}
    return Arguments(tuple(evaluate(machine, one, frame) for one in call["arguments"]), named)


def _of_array(
    machine: Machine, value: dict[str | int, Value], name: str, given: Arguments, frame: Frame
) -> Value:
    """Calls on a collection."""
    if name == "each":
        for key, item in value.items():
            call_back(machine, given.at(0), Arguments((item, key)), frame)
        return value
    return value if name in {"all", "toarray"} else Unknown(f"{name}()")


def _path(machine: Machine, folder: str, given: Arguments, frame: Frame) -> Value:
    below = text_of(given.at(0, "path", ""))
    if below is None:
        return Unknown("a path")
    root = machine.program.root_of(frame.path)
    return f"{ROOT}{root}{posixpath.join(folder, below.lstrip('/'))}".rstrip("/")


def _found(machine: Machine, pattern: Value, frame: Frame) -> Value:
    if not isinstance(pattern, str):
        return Unknown("glob()")
    return array(ROOT + path for path in machine.program.matching(pattern, frame.path))


def _module(machine: Machine, given: Arguments) -> Value:
    """The path of a file in a module: `module_path('Blog', '/routes/web.php')`."""
    name, below = text_of(given.at(0)), text_of(given.at(1, default=""))
    wanted = f"{name}/{(below or '').lstrip('/')}".lower()
    found = [one for one in machine.program.paths if f"/{one.lower()}".endswith(f"/{wanted}")]
    return ROOT + found[0] if len(found) == 1 else Unknown("module_path()")


def _setting(machine: Machine, given: Arguments, frame: Frame) -> Value:
    name = given.at(0, "key")
    if not isinstance(name, str):
        return Unknown("config()")
    stated, value = machine.program.setting(name, frame.path)
    if not stated:
        return Unknown(f"config('{name}')")
    if isinstance(value, dict):
        machine.assume(f"the default of config('{name}')")
        return value["default"]
    return array(value) if isinstance(value, list) else value


def _names_router(given: Arguments) -> bool:
    return given.at(0) == "router" or given.at(0) in ROUTER_TYPES
