"""Calls that make routes: on the router, on attributes that wait, on routes, on resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag_assets.code.frameworks.laravel.routes.frames import Arguments, Frame, Registrar
from rag_assets.code.frameworks.laravel.routes.groups import Attributes, joined
from rag_assets.code.frameworks.laravel.routes.marks import RESOURCES, VERBS
from rag_assets.code.frameworks.laravel.routes.resources import (
    API_RESOURCE,
    API_SINGLETON,
    Pending,
)
from rag_assets.code.frameworks.laravel.routes.router import ANY, Draft
from rag_assets.code.frameworks.laravel.routes.values import (
    ROUTER,
    Closure,
    Instance,
    Unknown,
    Value,
    array,
    is_list,
    listed,
    text_of,
)

if TYPE_CHECKING:
    from rag_assets.code.frameworks.laravel.routes.machine import Machine

_ALIASES: Final = {
    "name": "as",
    "scopebindings": "scope_bindings",
    "withoutscopedbindings": "scope_bindings",
    "withoutmiddleware": "excluded_middleware",
}
_ATTRIBUTES: Final = frozenset(
    {"as", "controller", "domain", "middleware", "name", "namespace", "prefix", "where", "missing"}
    | {"scopebindings", "withoutscopedbindings", "withoutmiddleware"}
)
_CONSTRAINTS: Final = {
    "wherealpha": "[a-zA-Z]+",
    "wherealphanumeric": "[a-zA-Z0-9]+",
    "wherenumber": "[0-9]+",
    "whereulid": "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}",
    "whereuuid": "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}",
}
_SILENT: Final = frozenset({"bind", "model", "aliasmiddleware", "middlewaregroup", "getroutes"})


def of_router(machine: Machine, name: str, given: Arguments, frame: Frame) -> Value:
    """A call on the router."""
    if name in VERBS or name in _DIRECT:
        return _route(machine, name, given, frame)
    if name in RESOURCES:
        return _resource(machine, name, given, {}, frame)
    if name == "group":
        attributes, callback = _group_arguments(given)
        group(machine, attributes, callback, frame)
        return None
    if name in _ATTRIBUTES or _is_constraint(name):
        return of_registrar(machine, Registrar({}), name, given, frame)
    if name == "macro" and isinstance(given.at(1, "macro"), Closure):
        machine.macros.setdefault(str(given.at(0, "name")).lower(), given.at(1, "macro"))
        return None
    if name in _SETTINGS:
        _SETTINGS[name](machine, given)
        return None
    macro = machine.macros.get(name)
    if macro is not None:
        return machine.closure(macro, given, frame, this=ROUTER)
    if name not in _SILENT:
        machine.miss(f"what the router does not have: {name}()", frame)
    return Unknown(f"{name}()")


def of_registrar(
    machine: Machine, held: Registrar, name: str, given: Arguments, frame: Frame
) -> Value:
    """A call on attributes that wait for a group or a route."""
    if name == "group":
        group(machine, held.attributes, given.at(0, "callback"), frame)
        return held
    if name in VERBS or name in {"any", "match"}:
        position = 2 if name == "match" else 1
        action = _compiled(given.at(position, "action"), held.attributes)
        return _route(machine, name, given, frame, action=action)
    if name in RESOURCES:
        return _resource(machine, name, given, held.attributes, frame)
    if name in _ATTRIBUTES or _is_constraint(name) or name == "can":
        return Registrar({**held.attributes, **_attribute(held.attributes, name, given)})
    if name in {"when", "unless", "tap"}:
        machine.miss("attributes under a condition", frame)
        return held
    with machine.router.group(held.attributes):
        return of_router(machine, name, given, frame)


def of_route(machine: Machine, draft: Draft, name: str, given: Arguments, frame: Frame) -> Value:
    """A call on a route."""
    first = given.at(0)
    if name == "name":
        draft.name(first)
    elif name in {"middleware", "withoutmiddleware"}:
        key = "middleware" if name == "middleware" else "excluded_middleware"
        draft.middleware(_names(given), key=key)
    elif name == "can":
        draft.middleware([_ability(given)])
    elif name == "where" or _is_constraint(name) or name == "setwheres":
        draft.where(_wheres(name, given))
    elif name == "domain":
        draft.domain(first)
    elif name == "prefix":
        draft.prefix(first)
    elif name == "uses":
        machine.router.uses(draft, first)
    elif name == "fallback":
        draft.fallback = True
    elif name in {"name", "as"}:
        machine.miss("a name", frame)
    return draft


def of_resource(pending: Pending, name: str, given: Arguments) -> Value:
    """A call on a resource that waits."""
    options, first = pending.options, given.at(0)
    if name in {"only", "except"}:
        options[name] = first if isinstance(first, dict | Unknown) else array(given.given)
    elif name in {"names", "parameters"}:
        options[name] = first
    elif name in {"name", "parameter"}:
        key = f"{name}s"
        options[key] = {**_keyed(options.get(key)), str(first): given.at(1)}
    elif name == "middleware":
        options[name] = listed(first) if len(given.given) == 1 else list(given.given)
    elif name == "withoutmiddleware":
        held = options.get("excluded_middleware")
        options["excluded_middleware"] = [*_middleware(held), *listed(first)]
    elif name in {"middlewarefor", "withoutmiddlewarefor"}:
        key = "middleware_for" if name == "middlewarefor" else "excluded_middleware_for"
        by_method = {str(method): given.at(1) for method in listed(first)}
        options[key] = {**_keyed(options.get(key)), **by_method}
    elif name == "where" or _is_constraint(name):
        options["wheres"] = {**_keyed(options.get("wheres")), **_wheres(name, given)}
    elif name == "shallow":
        options["shallow"] = given.at(0, "shallow", default=True)
    elif name == "scoped":
        options["bindingFields"] = first if isinstance(first, dict) else {}
    elif name in {"creatable", "destroyable"}:
        options[name] = True
    return pending


def group(machine: Machine, attributes: Mapping[str, Value], callback: Value, frame: Frame) -> None:
    """Run what a group has: a closure, a file, or a method.

    Args:
        machine: that runs.
        attributes: of the group.
        callback: what it has.
        frame: what is known.
    """
    with machine.within(frame), machine.router.group(attributes):
        if isinstance(callback, Closure):
            machine.closure(callback, Arguments((ROUTER,)), frame)
        elif isinstance(callback, dict) and not isinstance(callback.get(0), Instance):
            for path in callback.values():
                machine.load(path, frame, stated=True)
        elif isinstance(callback, dict):
            machine.call(callback, Arguments((ROUTER,)), frame)
        else:
            machine.load(callback, frame, stated=True)


def _route(
    machine: Machine, name: str, given: Arguments, frame: Frame, *, action: Value = None
) -> Draft:
    context = machine.context(frame)
    if name == "fallback":
        draft = machine.router.add(
            ("GET",), "{fallbackPlaceholder}", given.at(0, "action"), context
        )
        draft.where({"fallbackPlaceholder": ".*"})
        draft.fallback = True
        return draft
    if name in {"redirect", "permanentredirect", "view"}:
        told = ("GET", "HEAD") if name == "view" else ANY
        draft = machine.router.add(told, given.at(0, "uri"), Closure(None), context)
        target = text_of(given.at(1, "view" if name == "view" else "destination"))
        draft.kind, draft.target = "view" if name == "view" else "redirect", target or ""
        if target is None:
            draft.missing.append(f"where it leads is computed: {name}")
        return draft
    methods: tuple[str, ...] = ANY if name == "any" else (name,)
    position = 0
    if name == "match":
        methods, position = tuple(map(str, listed(given.at(0, "methods")))), 1
    chosen = given.at(position + 1, "action") if action is None else action
    draft = machine.router.add(methods, given.at(position, "uri"), chosen, context)
    if any(isinstance(one, Unknown) for one in listed(given.at(0, "methods"))) and position:
        draft.missing.append("the methods are computed")
    return draft


def _resource(
    machine: Machine, name: str, given: Arguments, attributes: Mapping[str, Value], frame: Frame
) -> Value:
    """Resources that wait; several of them are registered at once."""
    several, singleton, api = name.endswith("s"), "singleton" in name, name.startswith("api")
    stated = given.at(1 if several else 2, "options")
    options: Attributes = {str(key): one for key, one in _keyed(stated).items()} | attributes
    if isinstance(stated, Unknown):
        options["the options"] = stated
    if api:
        allowed = API_SINGLETON if singleton else API_RESOURCE
        excepted = listed(options.get("except"))
        only = array(one for one in allowed if one not in excepted)
        options = {"only": only, **options}
    if not several:
        return Pending(given.at(0, "name"), given.at(1, "controller"), options, singleton)
    resources = given.at(0)
    if not isinstance(resources, dict):
        machine.miss("resources that are computed", frame)
        return None
    for one, controller in resources.items():
        machine.settle(Pending(one, controller, dict(options), singleton), frame)
    return None


def _group_arguments(given: Arguments) -> tuple[dict[str, Any], Value]:
    attributes, callback = given.at(0, "attributes"), given.at(1, "routes")
    if isinstance(attributes, Closure | str):  # without attributes, as Lumen lets one write it
        return {}, attributes
    if isinstance(attributes, Unknown):
        return {"prefix": attributes, "as": attributes}, callback
    return {str(key): value for key, value in _keyed(attributes).items()}, callback


def _compiled(action: Value, attributes: Attributes) -> Value:
    """An action with the attributes before it."""
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
    if name == "where" or _is_constraint(name):
        return {"where": {**_keyed(held.get("where")), **_wheres(name, given)}}
    if name == "can":
        return {"middleware": [*_middleware(held.get("middleware")), _ability(given)]}
    if name == "middleware":
        return {key: _names(given)}
    if name == "withoutmiddleware":
        return {key: [*_middleware(held.get(key)), *listed(given.at(0))]}
    return {key: given.given[0] if given.all else True}


def _wheres(name: str, given: Arguments) -> dict[str | int, Value]:
    first, second = given.at(0), given.at(1)
    if name in {"where", "setwheres"}:
        return first if isinstance(first, dict) else {str(first): second}
    if name == "wherein":
        texts = [text_of(one) for one in listed(second)]
        pattern: Value = Unknown("a list") if None in texts else "|".join(map(str, texts))
    else:
        pattern = _CONSTRAINTS[name]
    return {str(one): pattern for one in listed(first)}


def _names(given: Arguments) -> list[Value]:
    first = given.at(0)
    return listed(first) if isinstance(first, dict) else list(given.all)


def _middleware(value: Value) -> list[Value]:
    return value if isinstance(value, list) else listed(value)


def _ability(given: Arguments) -> Value:
    models = listed(given.at(1, "models"))
    parts = [part for one in models for part in (",", one)]
    return joined("can:", given.at(0, "ability"), *parts)


def _keyed(value: Value) -> dict[str | int, Value]:
    return value if isinstance(value, dict) else {}


def _is_constraint(name: str) -> bool:
    return name in _CONSTRAINTS or name == "wherein"


def _verbs(machine: Machine, given: Arguments) -> None:
    named = {str(k): str(v) for k, v in _keyed(given.at(0)).items()}
    machine.naming.verbs |= {k: v for k, v in named.items() if k in {"create", "edit"}}


def _parameters(machine: Machine, given: Arguments) -> None:
    machine.naming.parameters = {str(k): str(v) for k, v in _keyed(given.at(0)).items()}


def _singular(machine: Machine, given: Arguments) -> None:
    machine.naming.singular = given.at(0, default=True) is not False


def _patterns(machine: Machine, given: Arguments) -> None:
    first = given.at(0)
    found = first if isinstance(first, dict) else {first: given.at(1)}
    machine.router.patterns |= {str(key): value for key, value in found.items()}


_DIRECT: Final = frozenset({"match", "any", "fallback", "redirect", "permanentredirect", "view"})
_SETTINGS: Final[Mapping[str, Callable[[Machine, Arguments], None]]] = {
    "resourceverbs": _verbs,
    "resourceparameters": _parameters,
    "singularresourceparameters": _singular,
    "pattern": _patterns,
    "patterns": _patterns,
}
