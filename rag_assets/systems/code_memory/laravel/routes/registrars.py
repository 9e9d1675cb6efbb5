"""Calls on the router, routes, resources and the attributes of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.laravel.routes.model import (
    CONSTRAINTS,
    ROUTER,
    Arguments,
    Attributes,
    ClosureValue,
    Instance,
    Registrar,
    Unknown,
    Value,
    as_array,
    is_list,
    join_texts,
    limit_count,
    list_middleware,
    list_values,
    make_array,
    read_ability,
    read_constraints,
    read_names,
    to_text,
)
from rag_assets.systems.code_memory.laravel.routes.reader import DIRECT, RESOURCES, VERBS
from rag_assets.systems.code_memory.laravel.routes.router import (
    ANY,
    API_RESOURCE,
    PendingResource,
    RouteDraft,
)

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_CSRF: Final = "Illuminate\\Foundation\\Http\\Middleware\\VerifyCsrfToken"
_BROADCASTS: Final = "\\Illuminate\\Broadcasting\\BroadcastController@authenticate"


def add_broadcast_routes(machine: Machine, arguments: Arguments) -> None:
    """Add the route that `Broadcast::routes()` creates."""
    attributes = as_array(arguments.get(0, "attributes")) or {"middleware": make_array(["web"])}
    with machine.router.enter_group({str(key): value for key, value in attributes.items()}):
        draft = machine.router.add_route(
            ("GET", "POST"), "/broadcasting/auth", _BROADCASTS, machine.build_context()
        )
        draft.add_middleware([_CSRF], key="excluded_middleware")


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
_ROUTE_STEPS: Final = 20
_IGNORED_ROUTER_CALLS: Final = frozenset(
    {"bind", "model", "getroutes", "substituteimplicitbindingsusing", "mixin", "aliasmiddleware"}
    | {"middlewaregroup", "pushmiddlewaretogroup", "prependmiddlewaretogroup"}
)


def call_router(machine: Machine, name: str, arguments: Arguments) -> Value:
    """Apply a call on the router, and return its result; `name` is in lower case."""
    routes = _add_routes(machine, name, arguments, {})
    if routes is not None:
        return routes
    if name in _ATTRIBUTES:
        return call_registrar(machine, Registrar({}), name, arguments)
    if name not in _IGNORED_ROUTER_CALLS:
        machine.record_unresolved(f"an unsupported router call: {name}()")
    return Unknown(f"{name}()")


def call_registrar(
    machine: Machine, registrar: Registrar, name: str, arguments: Arguments
) -> Value:
    """Apply a call that changes attributes of the next group or route; return its result."""
    if name == "group":
        evaluate_group(machine, registrar.attributes, arguments.get(0, "callback"))
        return registrar
    routes = _add_routes(machine, name, arguments, registrar.attributes)
    if routes is not None:
        return routes
    if name in _ATTRIBUTES:
        changed = _read_attribute(registrar.attributes, name, arguments)
        return Registrar({**registrar.attributes, **changed})
    if name in {"when", "unless", "tap"}:
        machine.record_unresolved("route attributes that depend on a condition")
        return registrar
    with machine.router.enter_group(registrar.attributes):
        return call_router(machine, name, arguments)


def evaluate_group(machine: Machine, attributes: Mapping[str, Value], content: Value) -> None:
    """Evaluate the content of a group, which is a closure, a file, several files, or a method."""
    known_attributes = _keep_literal_prefix(machine, attributes)
    is_array = isinstance(content, dict)
    with machine.enter_group(), machine.router.enter_group(known_attributes):
        if isinstance(content, ClosureValue) or (is_array and isinstance(content.get(0), Instance)):
            machine.call_value(content, Arguments((ROUTER,)))
        else:
            for path in content.values() if is_array else [content]:
                machine.load_file(path, is_route_file=True)


def _add_routes(machine: Machine, name: str, arguments: Arguments, attributes: Attributes) -> Value:
    """Add the routes that a call creates, and return them; None for any other call."""
    if name in VERBS or name in {"any", "match", "addroute"}:
        return _add_route(machine, name, arguments, attributes)
    if name in RESOURCES:
        return _add_resource(machine, name, arguments, attributes)
    if attributes:
        return None
    if name == "group":
        evaluate_group(machine, *_split_group_arguments(arguments))
        return ROUTER
    return _add_direct(machine, name, arguments) if name in DIRECT else None


def _add_route(
    machine: Machine, name: str, arguments: Arguments, attributes: Attributes
) -> RouteDraft:
    attributes = _keep_literal_prefix(machine, attributes)
    position, missing = 0, ""
    methods: tuple[str, ...] = ANY if name == "any" else (name,)
    if name in {"match", "addroute"}:
        stated_methods = list_values(arguments.get(0, "methods"))
        is_computed = any(isinstance(method, Unknown) for method in stated_methods)
        missing = "the methods are computed" if is_computed else ""
        methods = tuple(method for method in stated_methods if isinstance(method, str))
        position = 1
    machine.spend_steps(_ROUTE_STEPS)
    action = arguments.get(position + 1, "action")
    full_action = _merge_action(action, attributes) if attributes else action
    context = machine.build_context()
    draft = machine.router.add_route(methods, arguments.get(position, "uri"), full_action, context)
    draft.missing += [missing] if missing else []
    return draft


def _add_direct(machine: Machine, name: str, arguments: Arguments) -> RouteDraft:
    """Add the route of `fallback`, `view` or `redirect`, and return it."""
    context = machine.build_context()
    if name == "fallback":
        action = arguments.get(0, "action")
        draft = machine.router.add_route(("GET",), "{fallbackPlaceholder}", action, context)
        draft.set_wheres({"fallbackPlaceholder": ".*"})
        draft.fallback = True
        return draft
    views = name == "view"
    methods = ("GET", "HEAD") if views else ANY
    draft = machine.router.add_route(methods, arguments.get(0, "uri"), ClosureValue(None), context)
    target = to_text(arguments.get(1, "view" if views else "destination"))
    draft.kind, draft.target = "view" if views else "redirect", target or ""
    if target is None:
        draft.missing.append(f"the target of the {name} is computed")
    return draft


def _add_resource(
    machine: Machine, name: str, arguments: Arguments, attributes: Mapping[str, Value]
) -> Value:
    """Return the pending resource of a call.

    If the call names several resources, register them at once and return the router.
    """
    names_several = name.endswith("s")
    stated_options = arguments.get(1 if names_several else 2, "options")
    options: Attributes = {str(key): value for key, value in as_array(stated_options).items()}
    options |= dict(attributes)
    if isinstance(stated_options, Unknown):
        options["the options"] = stated_options
    if name.startswith("api"):
        excepted = list_values(options.get("except"))
        only = make_array(value for value in API_RESOURCE if value not in excepted)
        options = {"only": only, **options}
    if not names_several:
        stated = arguments.get(0, "name"), arguments.get(1, "controller")
        return PendingResource(*stated, options, name == "singleton")
    resources = arguments.get(0)
    if not isinstance(resources, dict):
        machine.record_unresolved("computed resources")
        resources = {}
    for value, controller in resources.items():
        machine.register_resource(PendingResource(value, controller, dict(options)))
    return ROUTER


def _split_group_arguments(arguments: Arguments) -> tuple[dict[str, Any], Value]:
    attributes, callback = arguments.get(0, "attributes"), arguments.get(1, "routes")
    if isinstance(attributes, ClosureValue | str):  # Lumen allows a call without attributes.
        return {}, attributes
    if isinstance(attributes, Unknown):
        computed = dict.fromkeys(("prefix", "as", "middleware", "domain"), attributes)
        return computed, callback
    return {str(key): value for key, value in as_array(attributes).items()}, callback


def _keep_literal_prefix(machine: Machine, attributes: Mapping[str, Value]) -> Attributes:
    """Return attributes in which a computed prefix is reduced to its literal part.

    A prefix that is a literal stays unchanged.
    """
    known_attributes = dict(attributes)
    prefix = known_attributes.get("prefix")
    if isinstance(prefix, Unknown):
        machine.record_assumptions(f"the prefix is computed: {prefix.why}")
        known_attributes["prefix"] = prefix.rest or None
    return known_attributes


def _merge_action(action: Value, attributes: Attributes) -> Value:
    """Return a route's action as an array, merged with the pending attributes."""
    if action is None:
        return dict(attributes)
    if is_list(action) and len(action) > 1 and isinstance(action[1], str):
        uses = join_texts(action[0], "@", action[1])
        absolute = uses if isinstance(uses, Unknown) or uses.startswith("\\") else f"\\{uses}"
        return {**attributes, "uses": absolute}
    if isinstance(action, dict):
        return {**attributes, **action}
    return {**attributes, "uses": action}


def _read_attribute(pending: Attributes, name: str, arguments: Arguments) -> Attributes:
    key = _ALIASES.get(name, name)
    if name in CONSTRAINTS:
        return {"where": {**as_array(pending.get("where")), **read_constraints(name, arguments)}}
    if name == "can":
        return {"can": limit_count([*list_middleware(pending.get("can")), read_ability(arguments)])}
    if name == "middleware":
        return {key: read_names(arguments)}
    if name == "withoutmiddleware":
        names = [*list_middleware(pending.get(key)), *list_values(arguments.get(0))]
        return {key: limit_count(names)}
    return {key: arguments.all[0] if arguments.all else True}


_IGNORED_ROUTE_CALLS: Final = frozenset(
    {"scopebindings", "withoutscopedbindings", "withtrashed", "missing", "defaults", "setdefaults"}
    | {"block", "withoutblocking", "metadata", "getname", "uri"}
)
"""Calls on a route that do not change any of the reported attributes."""


_TEXT_SETTERS: Final = {"name": RouteDraft.add_name, "prefix": RouteDraft.add_prefix}


def call_route(machine: Machine, draft: RouteDraft, name: str, arguments: Arguments) -> Value:
    """Apply a call on a route, and return its result; `name` is in lower case."""
    first = arguments.get(0, name)
    if name in CONSTRAINTS:
        draft.set_wheres(read_constraints(name, arguments))
    elif name in _TEXT_SETTERS:
        _TEXT_SETTERS[name](draft, first)
    elif name == "domain":
        draft.action["domain"] = first
    elif name == "middleware":
        draft.add_middleware(read_names(arguments))
    elif name == "withoutmiddleware":
        excluded = list_values(arguments.get(0, "middleware"))
        draft.add_middleware(excluded, key="excluded_middleware")
    elif name == "can":
        draft.add_middleware([read_ability(arguments)])
    elif name == "uses":
        machine.router.set_action(draft, first)
    elif name == "fallback":
        draft.fallback = True
    elif name not in _IGNORED_ROUTE_CALLS:
        draft.missing.append(f"a call that Laravel's routes do not have: {name}()")
    return draft


def call_resource(pending: PendingResource, name: str, arguments: Arguments) -> Value:
    """Apply a call on a pending resource, and return the resource; `name` is in lower case."""
    first = arguments.get(0)
    if name in CONSTRAINTS:
        pending.options["wheres"] = read_constraints(name, arguments)
    elif name in {"only", "except"}:
        methods = first if isinstance(first, dict | Unknown) else make_array(arguments.positional)
        pending.options[name] = methods
    elif name in {"names", "parameters", "middleware"}:
        pending.options[name] = first
    elif name == "shallow":
        pending.options[name] = arguments.get(0, default=True)
    elif name == "scoped":
        pending.options[name] = as_array(first)
    elif name == "withoutmiddleware":
        middleware = list_middleware(pending.options.get("excluded_middleware"))
        pending.options["excluded_middleware"] = [*middleware, *list_values(first)]
    elif name not in _IGNORED_ROUTE_CALLS:
        pending.options[name] = Unknown(f"{name}()")
    return pending
