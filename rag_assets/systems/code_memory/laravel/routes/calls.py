"""Calls on functions, objects, the application and its loaders; not on the router."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.laravel.routes.model import (
    MAX_CALLS,
    ROUTER,
    Arguments,
    ClosureValue,
    Instance,
    PhpArray,
    Registrar,
    RouterValue,
    Unknown,
    Value,
    is_list,
    list_values,
    make_array,
    to_text,
)
from rag_assets.systems.code_memory.laravel.routes.program import ROOT
from rag_assets.systems.code_memory.laravel.routes.reader import FACADES, ROUTER_TYPES
from rag_assets.systems.code_memory.laravel.routes.registrars import (
    add_broadcast_routes,
    call_registrar,
    call_resource,
    call_route,
    call_router,
    evaluate_group,
)
from rag_assets.systems.code_memory.laravel.routes.router import PendingResource, RouteDraft

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_PLACEHOLDER: Final = re.compile(r"%(?:(\d+)\$)?([sdi%])")

_Arguments = Sequence[Value]


def call_builtin(name: str, arguments: _Arguments) -> Value:
    """Return a PHP function's result; Unknown if its arguments do not determine it."""
    function = _BUILTINS.get(name)
    if function is None or any(isinstance(argument, Unknown) for argument in arguments):
        return Unknown(f"{name}()")
    try:
        return function(arguments)
    except (IndexError, AttributeError, TypeError, ValueError, OverflowError):
        return Unknown(f"{name}()")


def _wrap_text_function(function: Callable[[str], str]) -> Callable[[_Arguments], Value]:
    def apply(arguments: _Arguments) -> Value:
        text = to_text(arguments[0])
        return Unknown("no text") if text is None else function(text)

    return apply


def _sprintf(arguments: _Arguments) -> Value:
    form, values = str(arguments[0]), list(arguments[1:])
    following = iter(values)

    def replace(match: re.Match[str]) -> str:
        if match[2] == "%":
            return "%"
        value = values[int(match[1]) - 1] if match[1] else next(following, "")
        return to_text(value) or ""

    return _PLACEHOLDER.sub(replace, form)


def _dirname(arguments: _Arguments) -> Value:
    path = str(arguments[0])
    for _ in range(min(int(arguments[1]) if len(arguments) > 1 else 1, len(path))):
        path = posixpath.dirname(path.rstrip("/"))
    return path if path.startswith(ROOT.rstrip("/")) else ROOT.rstrip("/")


def _implode(arguments: _Arguments) -> Value:
    glue, pieces = (arguments[0], arguments[1]) if len(arguments) > 1 else ("", arguments[0])
    texts = [to_text(value) for value in list_values(pieces)]
    return Unknown("no texts") if None in texts else str(glue).join(map(str, texts))


_BUILTINS: Final[Mapping[str, Callable[[_Arguments], Value]]] = {
    "sprintf": _sprintf,
    "implode": _implode,
    "join": _implode,
    "dirname": _dirname,
    "realpath": lambda arguments: arguments[0],
    "basename": _wrap_text_function(posixpath.basename),
    "strtolower": _wrap_text_function(str.lower),
    "strtoupper": _wrap_text_function(str.upper),
    "ucfirst": _wrap_text_function(lambda text: text[:1].upper() + text[1:]),
    "lcfirst": _wrap_text_function(lambda text: text[:1].lower() + text[1:]),
    "str_replace": lambda arguments: str(arguments[2]).replace(
        str(arguments[0]), str(arguments[1])
    ),
    "array_values": lambda arguments: make_array(arguments[0].values()),
    "array_keys": lambda arguments: make_array(arguments[0].keys()),
    "array_filter": lambda arguments: {k: v for k, v in arguments[0].items() if v},
    "explode": lambda arguments: make_array(str(arguments[1]).split(str(arguments[0]))),
    "array_is_list": lambda arguments: is_list(arguments[0]),
    "collect": lambda arguments: arguments[0],
}
"""Functions by name; if the arguments cause an error, the result is unknown."""


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
"""Folders below the application's root, by the functions and methods that return them."""


def call_function(machine: Machine, name: str, arguments: Arguments) -> Value:
    """Return the result of a function, without namespace: the repository's, Laravel's or PHP's."""
    lower = name.lower()
    own = machine.program.functions.get(lower)
    if own is not None:
        return machine.call_function(own, None, arguments)
    if lower in _FOLDERS:
        return _join_path(machine, _FOLDERS[lower], arguments)
    if lower in {"app", "resolve"}:
        service_name = arguments.get(0, "abstract")
        is_known = isinstance(service_name, str) and service_name in machine.program.classes
        service = Instance(service_name) if is_known else Unknown("app()")
        return ROUTER if is_router_name(arguments) else service
    if lower == "config":
        return read_setting(machine, arguments) if arguments.all else Unknown("config()")
    if lower == "env":
        machine.record_assumptions("the application's environment is unknown")
        return arguments.get(1, "default")
    machine.spend_steps(
        sum(len(argument) for argument in arguments.all if isinstance(argument, str | dict)) // 10
    )
    return call_builtin(lower, arguments.positional)


def _join_path(machine: Machine, folder: str, arguments: Arguments) -> Value:
    """Return a path in a folder of the application; the first argument is the path below it."""
    below = to_text(arguments.get(0, "path", ""))
    if below is None:
        return Unknown("a path")
    root = machine.program.find_root(machine.frame.path)
    return f"{ROOT}{root}{posixpath.join(folder, below.lstrip('/'))}".rstrip("/")


def read_setting(machine: Machine, arguments: Arguments) -> Value:
    """Return the value of a setting from its file, or else the default that the call states."""
    name = arguments.get(0, "key")
    if not isinstance(name, str):
        return Unknown("config()")
    machine.spend_steps(machine.program.compute_lookup_cost(name))
    setting = machine.program.find_setting(name, machine.frame.path)
    if setting is None:
        return Unknown(f"config('{name}')")
    path, value = setting
    if not isinstance(value, dict):
        return make_array(value) if isinstance(value, list) else value
    if "env" in value:
        machine.record_assumptions(f"the default of config('{name}')")
        return value["default"]
    if "of" in value:
        machine.record_assumptions(f"the computed value of config('{name}')")
        return machine.evaluate_in_file(value, path)
    return {key: read_setting(machine, Arguments((f"{name}.{key}",))) for key in value["keys"]}


def is_router_name(arguments: Arguments) -> bool:
    """Return whether the first argument of a container lookup names the router."""
    name = arguments.get(0)
    return isinstance(name, str) and (name == "router" or name in ROUTER_TYPES)


def _load_route_file(machine: Machine, arguments: Arguments) -> None:
    with machine.enter_group():
        machine.load_file(arguments.get(0, "path"), is_route_file=True)


def _defer_routes(machine: Machine, arguments: Arguments) -> None:
    for statement in machine.frame.context.evidence[-1:]:
        closures = (value for value in arguments.all if isinstance(value, ClosureValue))
        machine.deferred += ((closure, statement) for closure in closures)


def _apply_with_routing(machine: Machine, arguments: Arguments) -> None:
    """Add the routes that `withRouting` configures (Laravel 11 and later)."""
    names = ("using", "web", "api", "commands", "channels", "pages", "health", "apiPrefix", "then")
    options = {name: arguments.get(position, name) for position, name in enumerate(names)}
    with machine.enter_group():
        if options["using"] is not None:
            machine.call_value(options["using"], Arguments())
        else:
            prefix = "api" if options["apiPrefix"] is None else options["apiPrefix"]
            for path in list_values(options["api"]):
                evaluate_group(machine, {"middleware": ["api"], "prefix": prefix}, path)
            if isinstance(options["health"], str):
                context = machine.build_context()
                machine.router.add_route(("GET",), options["health"], ClosureValue(None), context)
            for path in list_values(options["web"]):
                evaluate_group(machine, {"middleware": ["web"]}, path)
            machine.call_value(options["then"], Arguments())
        # The channels file, if it exists, adds the route that authorizes listeners.
        path = options["channels"]
        if isinstance(path, str) and machine.program.find_file(path, machine.frame.path):
            add_broadcast_routes(machine, Arguments())


_LOADERS: Final[Mapping[str, Callable[[Machine, Arguments], None]]] = {
    "loadroutesfrom": _load_route_file,
    "loadroutesusing": _defer_routes,
    "routes": _defer_routes,
    "withrouting": _apply_with_routing,
    "withbroadcasting": lambda machine, arguments: add_broadcast_routes(
        machine, Arguments(arguments.positional[1:])
    ),
}
"""Functions that load route files, by the name of the call in lower case."""


_NOT_CACHED: Final = frozenset({"routesarecached", "configurationiscached"})
_CALLS_BACK: Final = frozenset(
    {"booted", "booting", "call", "tap", "afterresolving", "resolving", "callafterresolving"}
)
_CONFIGS: Final = frozenset({"Config", "Illuminate\\Support\\Facades\\Config"})
_APPS: Final = frozenset({"App", "Illuminate\\Support\\Facades\\App"})
_OWN_CLASS_NAMES: Final = frozenset({"self", "static", "parent"})


def evaluate_chain(machine: Machine, node: Mapping[str, Any]) -> Value:
    """Return the value of a chain of calls, and apply its effects on the router."""
    calls = node["calls"]
    if len(calls) > MAX_CALLS:
        machine.record_unresolved("the chain has too many calls")
        return Unknown("a long chain")
    if node["root"] is not None:
        value = machine.evaluate(node["root"])
    else:
        first, arguments = calls[0]["name"], _evaluate_arguments(machine, calls[0])
        if node["class"]:
            value = _call_static(machine, node["class"], first, arguments)
        else:
            value = call_function(machine, first, arguments)
        calls = calls[1:]
    for call in calls:
        value = call_member(machine, value, call["name"], _evaluate_arguments(machine, call))
    return value


def call_member(machine: Machine, value: Value, name: str, arguments: Arguments) -> Value:
    """Return the result of calling a method on a value."""
    evaluate_call = _MEMBERS.get(type(value), _call_application)
    return evaluate_call(machine, value, name.lower(), arguments)


def _call_closure(machine: Machine, value: ClosureValue, name: str, arguments: Arguments) -> Value:
    is_call = name in {"", "call", "__invoke"}
    return machine.call_closure(value, arguments) if is_call else value


def _call_instance(machine: Machine, value: Instance, name: str, arguments: Arguments) -> Value:
    function = machine.program.find_method(value.name, name or "__invoke")
    if function is not None:
        return machine.call_function(function, value, arguments)
    return _call_application(machine, value, name, arguments)


def _call_array(machine: Machine, value: PhpArray, name: str, arguments: Arguments) -> Value:
    """Return the result of a collection's method; a collection is represented by an array."""
    if name == "each":
        for key, item in value.items():
            machine.call_value(arguments.get(0), Arguments((item, key)))
        return value
    return value if name in {"all", "toarray"} else Unknown(f"{name}()")


def _call_application(machine: Machine, value: Value, name: str, arguments: Arguments) -> Value:
    """Return the result of a call on a provider, the application, or an unknown value."""
    if name in _LOADERS:
        _LOADERS[name](machine, arguments)
        return value
    if name in _CALLS_BACK:
        for callback in arguments.all:
            machine.call_value(callback, Arguments())
        return value
    if name in _FOLDERS:
        return _join_path(machine, _FOLDERS[name], arguments)
    if name in {"make", "get"} and is_router_name(arguments):
        return ROUTER
    if name == "get" and isinstance(value, Unknown) and value.why == "config()":
        return read_setting(machine, arguments)
    _report_passed_router(machine, arguments)
    unknown = value if isinstance(value, Unknown) else Unknown(f"{name}()")
    return unknown if name not in _NOT_CACHED else False


def _report_passed_router(machine: Machine, arguments: Arguments) -> None:
    if any(argument is ROUTER for argument in arguments.all):
        machine.record_unresolved("the router is passed to a call")


def _call_static(machine: Machine, owner: str, name: str, arguments: Arguments) -> Value:
    """Return the result of a static call on the router or on any class."""
    lower = name.lower()
    if owner in FACADES or owner in ROUTER_TYPES:
        return call_router(machine, lower, arguments)
    if owner in _OWN_CLASS_NAMES:
        return _call_own(machine, owner, name, arguments)
    function = machine.program.find_method(owner, name)
    if function is not None:
        return machine.call_function(function, Instance(owner), arguments)
    return _call_foreign(machine, owner, lower, arguments)


def _call_own(machine: Machine, owner: str, name: str, arguments: Arguments) -> Value:
    """Return the result of a call on `self`, `static` or `parent`."""
    skips_class, frame = owner == "parent", machine.frame
    this = frame.this if isinstance(frame.this, Instance) else None
    holder = frame.owner if skips_class or this is None else this.name
    function = machine.program.find_method(holder, name, above=skips_class)
    if function is not None:
        return machine.call_function(function, this or Instance(holder), arguments)
    return Unknown(f"{owner}::{name}()")


def _call_foreign(machine: Machine, owner: str, name: str, arguments: Arguments) -> Value:
    """Return the result of a static call on a class outside the repository."""
    if owner in _CONFIGS and name == "get":
        return read_setting(machine, arguments)
    short = owner.rpartition("\\")[2]
    if owner in _APPS:
        return _call_application(machine, Unknown("app()"), name, arguments)
    if short == "Broadcast" and name == "routes":
        add_broadcast_routes(machine, arguments)
    elif name == "routes":
        machine.record_unresolved(f"routes of a package: {short}::routes()")
    else:
        _report_passed_router(machine, arguments)
    return Unknown(f"{short}::{name}()")


def _evaluate_arguments(machine: Machine, call: Mapping[str, Any]) -> Arguments:
    named_arguments = {key: machine.evaluate(node) for key, node in call.get("named", {}).items()}
    return Arguments([machine.evaluate(node) for node in call["arguments"]], named_arguments)


_MEMBERS: Final[Mapping[type, Callable[[Machine, Any, str, Arguments], Value]]] = {
    RouterValue: lambda machine, _, name, arguments: call_router(machine, name, arguments),
    Registrar: call_registrar,
    RouteDraft: call_route,
    PendingResource: lambda _, pending, name, arguments: call_resource(pending, name, arguments),
    dict: _call_array,
    ClosureValue: _call_closure,
    Instance: _call_instance,
}
"""Functions that evaluate a call, by the type of the receiver."""
