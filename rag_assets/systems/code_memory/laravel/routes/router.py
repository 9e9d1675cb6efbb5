"""A model of Laravel's router: its groups, routes and resources, without handling of requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.inflection import singular
from rag_assets.systems.code_memory.laravel.routes.model import (
    ActionKind,
    Attributes,
    ClosureValue,
    LaravelRoute,
    RouteParameter,
    StatementContext,
    Unknown,
    Value,
    as_array,
    is_list,
    join_texts,
    limit_count,
    list_middleware,
    list_values,
    merge_attributes,
    to_text,
    trim_text,
)

_URI_PARAMETER_WITH_FIELD: Final = re.compile(r"\{(\w+):(\w+)(\??)\}")
_URI_PARAMETER: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(slots=True, eq=False)
class RouteDraft:
    """A route under construction, which later calls may change.

    Attributes:
        action: its attributes; `uses` is the handler.
        kind, target: kind and target of a view or a redirect; None and "" for other routes.
    """

    uri: str | Unknown
    methods: list[str]
    action: Attributes
    context: StatementContext
    wheres: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    kind: ActionKind | None = None
    target: str = ""
    fallback: bool = False
    missing: list[str] = field(default_factory=list)

    def add_name(self, value: Value) -> None:
        """Append a string to the route's name."""
        name = self.action.get("as")
        self.action["as"] = join_texts(value) if name is None else join_texts(name, value)

    def add_middleware(self, names: Iterable[Value], *, key: str = "middleware") -> None:
        """Add middleware to the list in the attribute `key`, which may list excluded middleware."""
        self.action[key] = limit_count([*list_middleware(self.action.get(key)), *names])

    def set_wheres(self, wheres: Mapping[Any, Value]) -> None:
        """Set the regular expressions that parameters must match."""
        for name, pattern in wheres.items():
            text = to_text(pattern)
            if text is None:
                self.missing.append(f"the pattern of {name} is computed")
            self.wheres[str(name)] = text or ""

    def add_prefix(self, value: Value) -> None:
        """Prepend a prefix to the URI."""
        uri = join_texts(
            trim_text(value, strip=str.rstrip), "/", trim_text(self.uri, strip=str.lstrip)
        )
        self.set_uri(uri if uri == "/" else trim_text(uri))

    def set_uri(self, uri: str | Unknown) -> None:
        """Set the URI; columns in its parameters (`{post:slug}`) are stored separately."""
        self.fields = {}
        self.uri = uri
        if isinstance(uri, str):
            self.fields = {
                name: column for name, column, _ in _URI_PARAMETER_WITH_FIELD.findall(uri)
            }
            self.uri = _URI_PARAMETER_WITH_FIELD.sub(r"{\1\3}", uri)

    def build_route(self) -> LaravelRoute:
        """Return the route in its current state; its URI must be known."""
        missing = list(self.missing)
        domain = _read_known_text(self.action, "domain", "the domain", missing)
        fields = self.fields | {
            name: column for name, column, _ in _URI_PARAMETER_WITH_FIELD.findall(domain)
        }
        domain = _URI_PARAMETER_WITH_FIELD.sub(r"{\1\3}", re.sub(r"https?://", "", domain))
        uri = self.uri if isinstance(self.uri, str) else ""
        name = _read_known_text(self.action, "as", "the name", missing)
        kind, action = self._resolve_action(missing)
        words = [(word.rstrip("?"), word) for word in _URI_PARAMETER.findall(domain + uri)]
        middleware, without = (
            tuple(_read_known_middleware(self.action, key, missing))
            for key in ("middleware", "excluded_middleware")
        )
        return LaravelRoute(
            uri=uri,
            methods=tuple(self.methods),
            name=name,
            action=action,
            kind=kind,
            middleware=middleware,
            without_middleware=without,
            domain=domain,
            parameters=tuple(
                RouteParameter(
                    name, word.endswith("?"), fields.get(name, ""), self.wheres.get(name, "")
                )
                for name, word in words
            ),
            wheres=tuple(self.wheres.items()),
            fallback=self.fallback,
            conditional=self.context.conditional,
            missing=tuple(dict.fromkeys((*self.context.missing, *missing))),
            evidence=self.context.evidence,
        )

    def _resolve_action(self, missing: list[str]) -> tuple[ActionKind, str]:
        if self.kind is not None:
            return self.kind, self.target
        uses = self.action.get("uses")
        if isinstance(uses, str):
            return "controller", uses.lstrip("\\")
        if isinstance(uses, ClosureValue):
            return "closure", "Closure"
        if uses is None:
            return "none", ""
        why = uses.why if isinstance(uses, Unknown) else "no action"
        missing.append(f"the action is computed: {why}")
        return "computed", ""


def _read_known_text(attributes: Attributes, name: str, what: str, missing: list[str]) -> str:
    """Return an attribute as a string; if code computes it, return "" and add it to `missing`."""
    value = attributes.get(name)
    if isinstance(value, Unknown):
        missing.append(f"{what} is computed: {value.why}")
    return value if isinstance(value, str) else ""


def _read_known_middleware(attributes: Attributes, name: str, missing: list[str]) -> Iterator[str]:
    for middleware in list_middleware(attributes.get(name)):
        text = to_text(middleware)
        if text is None:
            why = middleware.why if isinstance(middleware, Unknown) else "no name"
            missing.append(f"a middleware is computed: {why}")
        elif text:
            yield text


_FIRST_VERSION_WITH_ALL_METHODS_IN_KEY: Final = 11
"""First version in which a route replaces one with the same methods, domain and URI.

In earlier versions, it replaces one with the same last method, domain and URI.
"""

ANY: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Router:
    """A model of Laravel's router, which collects the routes of all groups.

    Args:
        classes: the names of the repository's classes.
        version: major version of Laravel; None if unknown, which counts as a recent version.
    """

    def __init__(self, classes: Container[str], version: int | None = None) -> None:
        self._by_last_method = (
            version is not None and version < _FIRST_VERSION_WITH_ALL_METHODS_IN_KEY
        )
        self._classes = classes
        self._groups: list[Attributes] = []
        self._drafts: dict[str, RouteDraft] = {}

    @property
    def drafts(self) -> Iterable[RouteDraft]:
        """Return the routes; a later route replaces an earlier one with the same key."""
        return self._drafts.values()

    @contextmanager
    def enter_group(self, attributes: Mapping[str, Value]) -> Iterator[None]:
        """Apply the attributes of a group to all routes that are added in the `with` block."""
        merged = dict(attributes)
        if self._groups:
            merged = merge_attributes(merged, self._groups[-1], prepend=True)
        self._groups.append(merged)
        try:
            yield
        finally:
            self._groups.pop()

    def add_route(
        self, methods: Iterable[str], uri: Value, action: Value, context: StatementContext
    ) -> RouteDraft:
        """Add a route to the current group, and return it.

        Args:
            methods: the methods, in order, in any case.
            uri: the URI, below the prefixes of the enclosing groups.
            action: the action as passed to the router: a string, an array, a closure, or null.
        """
        attributes = self._parse_action(action)
        own_prefix = attributes.pop("prefix", None)
        group_prefix = self._get_group_attribute("prefix")
        full_uri = trim_text(join_texts(trim_text(group_prefix), "/", trim_text(uri)))
        upper_methods = [method.upper() for method in methods]
        upper_methods += ["HEAD"] if "GET" in upper_methods and "HEAD" not in upper_methods else []
        draft = RouteDraft(full_uri or "/", upper_methods, attributes, context)
        draft.add_prefix(own_prefix)
        if self._groups:
            draft.action = merge_attributes(attributes, self._groups[-1], prepend=False)
        draft.add_middleware(list_middleware(draft.action.pop("can", None)))
        draft.set_wheres(as_array(draft.action.get("where")))
        domain = draft.action.get("domain")
        key_methods = draft.methods[-1:] if self._by_last_method else draft.methods
        key = f"{'|'.join(key_methods)}{domain if isinstance(domain, str) else ''}{draft.uri}"
        self._drafts[key] = draft
        return draft

    def set_action(self, draft: RouteDraft, action: Value) -> None:
        """Set the action of an existing route."""
        action = _join_pair(action)
        if isinstance(action, str):
            action = self.add_namespace(action)
        draft.action |= self._add_invoke_method({"uses": action})

    def _parse_action(self, action: Value) -> Attributes:
        """Return an action as attributes, completed by controller and namespace of its group."""
        if isinstance(action, str):
            action = {"uses": action}
        if not isinstance(action, dict):
            return {"uses": action}
        attributes = {key: value for key, value in action.items() if isinstance(key, str)}
        if isinstance(action.get("uses"), str):
            attributes["uses"] = self.add_namespace(self._prepend_controller(action["uses"]))
        elif 0 in action and 1 in action and isinstance(action[1], str):
            return {"uses": join_texts(action[0], "@", action[1])}
        elif "uses" in attributes:
            attributes["uses"] = _join_pair(attributes["uses"])
        else:
            closures = (value for value in action.values() if isinstance(value, ClosureValue))
            attributes["uses"] = next(closures, None)
        return self._add_invoke_method(attributes)

    def _add_invoke_method(self, attributes: Attributes) -> Attributes:
        uses = attributes.get("uses")
        if isinstance(uses, str) and "@" not in uses and "::" not in uses:
            attributes["uses"] = f"{uses}@__invoke"
        return attributes

    def _prepend_controller(self, uses: str) -> Value:
        controller = self._get_group_attribute("controller")
        bare = uses.lstrip("\\")
        if controller is None or "@" in uses or "\\" in bare or bare in self._classes:
            return uses
        return join_texts(controller, "@", uses)

    def add_namespace(self, uses: Value) -> Value:
        """Return an action prefixed with its group's namespace, unless it is already qualified."""
        namespace = self._get_group_attribute("namespace")
        within = ("\\", namespace) if isinstance(namespace, str) and namespace else ("\\",)
        if namespace is None or (isinstance(uses, str) and uses.startswith(within)):
            return uses
        return join_texts(namespace, "\\", uses)

    def _get_group_attribute(self, name: str) -> Value:
        return self._groups[-1].get(name) if self._groups else None


def _join_pair(action: Value) -> Value:
    """Return a pair of a class and a method as one string; any other value unchanged."""
    is_pair = is_list(action) and len(action) > 1
    return join_texts(action[0], "@", action[1]) if is_pair else action


RESOURCE: Final = ("index", "create", "store", "show", "edit", "update", "destroy")
API_RESOURCE: Final = ("index", "show", "store", "update", "destroy")
SINGLETON: Final = ("show", "edit", "update")
_VERBS: Final[Mapping[str, Sequence[str]]] = {
    "index": ("GET", "HEAD"),
    "create": ("GET", "HEAD"),
    "store": ("POST",),
    "show": ("GET", "HEAD"),
    "edit": ("GET", "HEAD"),
    "update": ("PUT", "PATCH"),
    "destroy": ("DELETE",),
}
_NAMED_IN_URI: Final = frozenset({"create", "edit"})
_ACTIONS_WITH_PARAMETER: Final = frozenset({"show", "edit", "update", "destroy"})


@dataclass(slots=True, eq=False)
class PendingResource:
    """A resource that is registered when its statement ends.

    Attributes:
        name: the name as stated; may contain dots and slashes.
        options: the options of the registrar, by Laravel's names.
        singleton: whether there is one such resource, so that its routes have no parameter.
    """

    name: Value
    controller: Value
    options: Attributes
    singleton: bool = False


def register_resource(router: Router, pending: PendingResource, context: StatementContext) -> None:
    """Add the routes of a resource to a router, in Laravel's order."""
    prefix, separator, name = str(pending.name).rpartition("/")
    with router.enter_group({"prefix": prefix}) if separator else nullcontext():
        _add_resource_routes(router, name, pending, context)


def _add_resource_routes(
    router: Router, name: str, pending: PendingResource, context: StatementContext
) -> None:
    options = pending.options
    name_parameter = _build_parameter_namer(options.get("parameters"))
    for method in _list_resource_methods(pending):
        below = method in _ACTIONS_WITH_PARAMETER and not pending.singleton
        own = name.rpartition(".")[2] if below and options.get("shallow") else name
        uri = _build_resource_uri(own, name_parameter)
        if below:
            uri += f"/{{{name_parameter(name.rpartition('.')[2])}}}"
        if method in _NAMED_IN_URI:
            uri += f"/{method}"
        action: Attributes = {
            "as": _build_resource_name(own, method, options),
            "uses": join_texts(pending.controller, "@", method),
            "where": options.get("wheres"),
        }
        for key in ("middleware", "excluded_middleware"):
            if options.get(key) is not None:
                action[key] = options[key]
        draft = router.add_route(_VERBS[method], uri, action, context)
        fields = as_array(options.get("scoped"))
        draft.fields |= {str(key): str(column) for key, column in fields.items()}


def _build_resource_uri(name: str, name_parameter: Callable[[str], str]) -> str:
    """Return the path of a resource, below the paths of its outer resources."""
    *outer, last = name.split(".")
    uri = "/".join([*(f"{name_}/{{{name_parameter(name_)}}}" for name_ in outer), last])
    return uri.replace(f"/{{{name_parameter(last)}}}", "") if outer else uri


def _build_parameter_namer(parameters: Value) -> Callable[[str], str]:
    """Return a function that names a resource's URI parameter: stated, or the name's singular."""
    return lambda name: (to_text(as_array(parameters).get(name)) or singular(name)).replace(
        "-", "_"
    )


def _list_resource_methods(pending: PendingResource) -> list[str]:
    only, but = (pending.options.get(name) for name in ("only", "except"))
    return [
        method
        for method in (SINGLETON if pending.singleton else RESOURCE)
        if (only is None or method in list_values(only)) and method not in list_values(but)
    ]


def _build_resource_name(resource: str, method: str, options: Attributes) -> Value:
    names, prefix = options.get("names"), options.get("as")
    name: Value = resource
    if isinstance(names, str):
        name = names
    elif isinstance(names, dict) and names.get(method) is not None:
        return names[method]
    before = "" if prefix is None else join_texts(prefix, ".")
    texts = join_texts(before, name, ".", method)
    return texts if isinstance(texts, Unknown) else texts.strip(".")
