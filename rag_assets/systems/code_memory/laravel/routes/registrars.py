"""Calls that create routes: on the router, and on attributes that a group or route will get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.laravel.routes import stated
from rag_assets.systems.code_memory.laravel.routes.drafts import Draft
from rag_assets.systems.code_memory.laravel.routes.frames import Arguments, Frame, Registrar
from rag_assets.systems.code_memory.laravel.routes.groups import Attributes, joined, listed_of
from rag_assets.systems.code_memory.laravel.routes.marks import DIRECT, GUARDING, RESOURCES, VERBS
from rag_assets.systems.code_memory.laravel.routes.packages import ON_ROUTER
from rag_assets.systems.code_memory.laravel.routes.resources import (
    API_RESOURCE,
    API_SINGLETON,
    Pending,
)
from rag_assets.systems.code_memory.laravel.routes.router import ANY
from rag_assets.systems.code_memory.laravel.routes.stated import CONSTRAINTS, keyed
from rag_assets.systems.code_memory.laravel.routes.values import (
    ROUTER,
    Closure,
    Instance,
    Unknown,
    Value,
    array,
    few,
    is_list,
    listed,
    text_of,
)

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_ALIASES: Final = {
    "name": "as",
    "scopebindings": "scope_bindings",
    "withoutscopedbindings": "scope_bindings",
    "withoutmiddleware": "excluded_middleware",
}
_ATTRIBUTES: Final = (
    frozenset({"as", "can", "controller", "domain", "metadata", "middleware", "missing", "name"})
    | {"namespace", "prefix", "scopebindings", "withoutscopedbindings", "withoutmiddleware"}
    | CONSTRAINTS - {"setwheres"}
)
_STEPS_OF_ROUTE: Final = 20
_SILENT: Final = frozenset(
    {"bind", "model", "getroutes", "substituteimplicitbindingsusing", "mixin"}
)


def of_router(machine: Machine, name: str, given: Arguments, frame: Frame) -> Value:
    """Apply a call on the router; return its result.

    Args:
        name: the name of the call, in lower case.
    """
    made = _made(machine, name, given, {}, frame)
    if made is not None:
        return made
    if name in _ATTRIBUTES:
        return of_registrar(machine, Registrar({}), name, given, frame)
    if name in _SETTINGS:
        _SETTINGS[name](machine, given)
        return ROUTER
    if name in ON_ROUTER and ("router", name) not in machine.macros:
        return ON_ROUTER[name](machine, given, frame)
    macro = machine.macros.get(("router", name))
    if macro is not None:
        return machine.closure(macro, given, frame, this=ROUTER)
    if name not in _SILENT:
        machine.miss(f"what the router does not have: {name}()", frame)
    return Unknown(f"{name}()")


def of_registrar(
    machine: Machine, held: Registrar, name: str, given: Arguments, frame: Frame
) -> Value:
    """Apply a call on attributes that a group or route will get; see of_router."""
    if name == "group":
        group(machine, held.attributes, given.at(0, "callback"), frame)
        return held
    made = _made(machine, name, given, held.attributes, frame)
    if made is not None:
        return made
    if name in _ATTRIBUTES:
        return Registrar({**held.attributes, **_attribute(held.attributes, name, given)})
    macro = machine.macros.get(("registrar", name))
    if macro is not None:
        return machine.closure(macro, given, frame, this=held)
    if name in {"when", "unless", "tap"}:
        machine.miss("attributes under a condition", frame)
        return held
    with machine.router.group(held.attributes):
        return of_router(machine, name, given, frame)


def group(machine: Machine, attributes: Mapping[str, Value], callback: Value, frame: Frame) -> None:
    """Evaluate the content of a group: a closure, a file, or a method.

    Args:
        attributes: the attributes of the group.
        callback: the content of the group.
    """
    known = _with_known_prefix(machine, attributes)
    with machine.within(frame), machine.router.group(known):
        if isinstance(callback, Closure):
            machine.closure(callback, Arguments((ROUTER,)), frame)
        elif isinstance(callback, dict) and not isinstance(callback.get(0), Instance):
            for path in callback.values():
                machine.load(path, frame, stated=True)
        elif isinstance(callback, dict):
            machine.call(callback, Arguments((ROUTER,)), frame)
        else:
            machine.load(callback, frame, stated=True)


def _made(
    machine: Machine, name: str, given: Arguments, attributes: Attributes, frame: Frame
) -> Value:
    """Return the routes that a call creates; None for other calls.

    Args:
        name: the name of the call.
        attributes: attributes that the created routes get.
    """
    if name in VERBS or name in {"any", "match", "addroute"}:
        return _route(machine, name, given, attributes, frame)
    if name in RESOURCES:
        return _resource(machine, name, given, attributes, frame)
    if attributes:
        return None
    if name == "group":
        found, callback = _group_arguments(given)
        group(machine, found, callback, frame)
        return ROUTER
    if name == "fallback":
        return _fallback(machine, given, frame)
    return _direct(machine, name, given, frame) if name in DIRECT else None


def _route(
    machine: Machine, name: str, given: Arguments, attributes: Attributes, frame: Frame
) -> Draft:
    attributes = _with_known_prefix(machine, attributes)
    position, missing = 0, ""
    methods: tuple[str, ...] = ANY if name == "any" else (name,)
    if name in {"match", "addroute"}:
        stated_methods = listed(given.at(0, "methods"))
        missing = "the methods are computed" if _any_unknown(stated_methods) else ""
        methods = tuple(one for one in stated_methods if isinstance(one, str))
        position = 1
    machine.spend(_STEPS_OF_ROUTE)
    action = given.at(position + 1, "action")
    chosen = _compiled(action, attributes) if attributes else action
    context = machine.context(frame)
    draft = machine.router.add(methods, given.at(position, "uri"), chosen, context)
    draft.missing += [missing] if missing else []
    return draft


def _fallback(machine: Machine, given: Arguments, frame: Frame) -> Draft:
    context = machine.context(frame)
    action = given.at(0, "action")
    draft = machine.router.add(("GET",), "{fallbackPlaceholder}", action, context)
    draft.where({"fallbackPlaceholder": ".*"})
    draft.fallback = True
    return draft


def _direct(machine: Machine, name: str, given: Arguments, frame: Frame) -> Draft:
    """Add a view or redirect route."""
    views = name == "view"
    context, uri = machine.context(frame), given.at(0, "uri")
    draft = machine.router.add(("GET", "HEAD") if views else ANY, uri, Closure(None), context)
    target = text_of(given.at(1, "view" if views else "destination"))
    draft.kind, draft.target = "view" if views else "redirect", target or ""
    if target is None:
        draft.missing.append(f"where it leads is computed: {name}")
    return draft


def _resource(
    machine: Machine, name: str, given: Arguments, attributes: Mapping[str, Value], frame: Frame
) -> Value:
    """Return a pending resource; if a call names several resources, register them at once."""
    several, singleton = name.endswith("s"), "singleton" in name
    told = given.at(1 if several else 2, "options")
    options: Attributes = {str(key): one for key, one in keyed(told).items()}
    options |= dict(attributes)
    if isinstance(told, Unknown):
        options["the options"] = told
    if name.startswith("api"):
        allowed = API_SINGLETON if singleton else API_RESOURCE
        excepted = listed(options.get("except"))
        only = array(one for one in allowed if one not in excepted)
        options = {"only": only, **options}
    if not several:
        return Pending(given.at(0, "name"), given.at(1, "controller"), options, singleton)
    resources = given.at(0)
    if not isinstance(resources, dict):
        machine.miss("resources that are computed", frame)
        return ROUTER
    for one, controller in resources.items():
        machine.settle(Pending(one, controller, dict(options), singleton), frame)
    return ROUTER


def _group_arguments(given: Arguments) -> tuple[dict[str, Any], Value]:
    attributes, callback = given.at(0, "attributes"), given.at(1, "routes")
    if isinstance(attributes, Closure | str):  # Lumen allows a call without attributes.
        return {}, attributes
    if isinstance(attributes, Unknown):
        computed = dict.fromkeys(("prefix", "as", "middleware", "domain"), attributes)
        return computed, callback
    return {str(key): value for key, value in keyed(attributes).items()}, callback


def _with_known_prefix(machine: Machine, attributes: Mapping[str, Value]) -> Attributes:
    """Return attributes in which a computed prefix is replaced by its known part."""
    found = dict(attributes)
    prefix = found.get("prefix")
    if isinstance(prefix, Unknown):
        machine.assume(f"the prefix is computed: {prefix.why}")
        found["prefix"] = prefix.rest or None
    return found


def _compiled(action: Value, attributes: Attributes) -> Value:
    """Return an action merged with the pending attributes."""
    if action is None:
        return dict(attributes)
    if is_list(action) and len(action) > 1 and isinstance(action[1], str):
        uses = joined(action[0], "@", action[1])
        absolute = uses if isinstance(uses, Unknown) or uses.startswith("\\") else f"\\{uses}"
        return {**attributes, "uses": absolute}
    if isinstance(action, dict):
        return {**attributes, **action}
    return {**attributes, "uses": action}


def _attribute(held: Attributes, name: str, given: Arguments) -> Attributes:
    key = _ALIASES.get(name, name)
    if name in CONSTRAINTS:
        return {"where": {**keyed(held.get("where")), **stated.wheres(name, given)}}
    if name == "can":
        return {"can": few([*listed_of(held.get("can")), stated.ability(given)])}
    if name == "middleware":
        return {key: stated.names(given)}
    if name == "withoutmiddleware":
        return {key: few([*listed_of(held.get(key)), *listed(given.at(0))])}
    return {key: given.all[0] if given.all else True}


def _any_unknown(values: list[Value]) -> bool:
    return any(isinstance(one, Unknown) for one in values)


def _verbs(machine: Machine, given: Arguments) -> None:
    named = {str(k): str(v) for k, v in keyed(given.at(0)).items()}
    machine.naming.verbs |= {k: v for k, v in named.items() if k in {"create", "edit"}}


def _parameters(machine: Machine, given: Arguments) -> None:
    machine.naming.parameters = {str(k): str(v) for k, v in keyed(given.at(0)).items()}


def _singular(machine: Machine, given: Arguments) -> None:
    machine.naming.singular = given.at(0, default=True) is not False


def _patterns(machine: Machine, given: Arguments) -> None:
    first = given.at(0)
    found = first if isinstance(first, dict) else {first: given.at(1)}
    machine.router.patterns |= {str(key): value for key, value in found.items()}


def _guarding(name: str) -> Callable[[Machine, Arguments], None]:
    return lambda machine, given: machine.guards.of_router(name, given)


_SETTINGS: Final[Mapping[str, Callable[[Machine, Arguments], None]]] = {
    **{name: _guarding(name) for name in GUARDING},
    "resourceverbs": _verbs,
    "resourceparameters": _parameters,
    "singularresourceparameters": _singular,
    "pattern": _patterns,
    "patterns": _patterns,
}
