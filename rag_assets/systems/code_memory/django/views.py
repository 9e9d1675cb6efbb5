"""Views: functions, classes and viewsets, and the routes that routers create for viewsets.

Framework data (`views` in django.toml) list the base classes and their methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rag_assets.systems.code_memory.frameworks.definitions import get_framework
from rag_assets.systems.code_memory.languages.python.program import (
    Evidence,
    Module,
    PythonName,
    PythonProgram,
    Unresolved,
    find_argument,
    get_written_name,
    is_a,
    list_items,
)

Actions = tuple[tuple[str, str], ...]
"""Methods of a view with the HTTP method, in upper case, that runs each."""

LOOPS: Final = frozenset({"for", "while"})
"""Statements whose body runs an unknown number of times."""
_VERBS: Final = ("get", "post", "put", "patch", "delete")
_LIST: Final = (("GET", "list"), ("POST", "create"))
_DETAIL: Final = (
    ("GET", "retrieve"),
    ("PUT", "update"),
    ("PATCH", "partial_update"),
    ("DELETE", "destroy"),
)
_MANAGERS: Final = frozenset({"objects", "_default_manager", "_base_manager", "all_objects"})
_RULES: Final = ("get_urls", "get_routes", "get_lookup_regex", "__init__")
"""Methods of a router's class that may change which routes it creates."""
_REGISTER: Final = ".register"
_MAX_NESTED_REGISTRATIONS: Final = 10


@dataclass(frozen=True, slots=True)
class DjangoView:
    """The view of a route.

    Attributes:
        name: absolute name of a function or a class; "" if it is computed.
        methods: HTTP methods in upper case; empty if they are unknown.
        actions: pairs of an HTTP method and the class's method that answers it, if a viewset or
            `as_view` states them.
        handlers: absolute names of these methods, without methods in other packages.
    """

    name: str
    methods: tuple[str, ...] = ()
    actions: Actions = ()
    handlers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def from_actions(cls, program: PythonProgram, name: str, actions: Actions) -> DjangoView:
        """Return the view of a class whose actions are known."""
        handlers: dict[str, str] = {}
        for place in program.iter_lineage(name):
            for _, action in actions:
                if place.defines(action):
                    handlers.setdefault(action, f"{place.name}.{action}")
        return cls(name, tuple(method for method, _ in actions), actions, handlers)


@dataclass(frozen=True, slots=True)
class DjangoRoute:
    """A route of Django's resolver.

    Attributes:
        pattern: the pattern as Django writes it: the concatenation of all its parts.
        name: the name with its namespaces (`billing:invoice`); "" if it has none.
        evidence: the include statements, outermost first, then its own.
        conditional: whether it depends on a condition that is evaluated at run time.
    """

    pattern: str
    name: str
    view: DjangoView
    evidence: tuple[Evidence, ...]
    conditional: bool = False


class ViewReader:
    """A reader of views and of the HTTP methods that they answer."""

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        self._data = get_framework("django").views

    def build_view(self, value: Any, module: Module) -> DjangoView:
        """Return the view in a route's expression: a function or `X.as_view()`, maybe decorated."""
        for _ in range(_MAX_NESTED_REGISTRATIONS):
            written = get_written_name(value)
            owner = written.rpartition(".")[0]
            _, place = self._program.follow(owner, module) if owner else ("", None)
            if place is not None and is_a(place.value, "call"):
                break  # An object, not a class or a module, has this view.
            if is_a(value, "name"):
                name, place = self._program.follow(written, module)
                if place is None or place.value is None:
                    return self._build_function_view(name)
                value, module = place.value, place.module
            elif is_a(value, "call") and written.endswith(".as_view"):
                name, _ = self._program.follow(written.removesuffix(".as_view"), module)
                return self._build_class_view(self._program.resolve_name(name), value)
            elif is_a(value, "call"):
                value = next(iter(value["arguments"]), None)
            else:
                break
        return DjangoView("")

    def _build_function_view(self, name: str) -> DjangoView:
        """Return the view of a function, with the HTTP methods that its decorators allow."""
        name = self._program.resolve_name(name)
        place = self._program.find_place_of_name(name)
        fact = None if place is None else place.module.declared.get(place.symbol)
        for decorator in () if fact is None else fact.values["decorators"]:
            methods = self._data.decorators.get(get_written_name(decorator).rpartition(".")[2])
            if methods is not None:
                arguments = (
                    [*decorator["arguments"], *decorator["named"].values()]
                    if is_a(decorator, "call")
                    else []
                )
                verbs = list_items(arguments[0]) if arguments else methods.split()
                return DjangoView(
                    name, tuple(verb.upper() for verb in verbs if isinstance(verb, str))
                )
        return DjangoView(name)

    def _build_class_view(self, name: str, call: Any) -> DjangoView:
        """Return the view of a class in `X.as_view(…)`, whose argument may state actions."""
        first = find_argument(call, 0, "actions")
        pairs = first["items"] if is_a(first, "dict") else ()
        stated = [(key, value) for key, value in pairs if isinstance(key, str)]
        actions = tuple((key.upper(), value) for key, value in stated if isinstance(value, str))
        if actions:
            return DjangoView.from_actions(self._program, name, actions)
        return DjangoView(name, self._list_http_methods(name))

    def _list_http_methods(self, name: str) -> tuple[str, ...]:
        """Return the HTTP methods of a class-based view, in upper case."""
        verbs: set[str] = set()
        for ancestor in self._program.list_ancestry(name):
            place = self._program.find_place_of_name(ancestor)
            if place is None:
                verbs |= set(self._data.methods.get(ancestor.rpartition(".")[2], "").split())
            else:
                # A statement such as `get = post = …` also defines methods.
                assigned = place.module.assigned.get(place.symbol, ())
                verbs |= {verb for verb in _VERBS if place.defines(verb)}
                verbs |= {ancestor.values["name"] for ancestor in assigned}
        allowed = (
            list_items(self._program.find_attribute_value(name, "http_method_names")) or _VERBS
        )
        return tuple(verb.upper() for verb in _VERBS if verb in verbs and verb in allowed)


@dataclass(frozen=True, slots=True)
class _ExtraAction:
    """A method of a viewset with the decorator `@action`, which gives it a route of its own.

    Attributes:
        is_detail: whether its path contains the key of an object.
    """

    is_detail: bool
    path: str
    url_name: str
    actions: Actions

    @classmethod
    def from_decorator(cls, name: str, decorator: Any) -> _ExtraAction:
        """Return the action that a decorator makes of the method `name`."""
        methods = find_argument(decorator, 0, "methods")
        verbs = ["get"] if methods is None else list_items(methods)
        path, url_name = (decorator["named"].get(key) for key in ("url_path", "url_name"))
        return cls(
            find_argument(decorator, 1, "detail") is True,
            path if isinstance(path, str) else name,
            url_name if isinstance(url_name, str) else name.replace("_", "-"),
            tuple((verb.upper(), name) for verb in verbs if isinstance(verb, str)),
        )


class Viewset:
    """A viewset of Django REST framework."""

    def __init__(self, program: PythonProgram, name: str) -> None:
        self._program = program
        self.name = program.resolve_name(name)

    @property
    def key(self) -> str:
        """Return the regular expression for the key of an object in paths."""
        return self._get_string_attribute("lookup_value_regex") or "[^/.]+"

    def iter_routes(self, prefix: str, slash: str) -> Iterator[tuple[str, str, Actions]]:
        """Yield pattern, name suffix and actions of each route of the viewset.

        First come the routes of the list, then routes of extra actions, then routes of one object.

        Args:
            prefix: the prefix under which the viewset is registered.
            slash: the end of a path; "" if absent.
        """
        names, extra, end = self._list_action_names(), self._read_extra_actions(), f"{slash}$"
        start = f"^{prefix}/" if prefix else "^"
        field = (
            self._get_string_attribute("lookup_url_kwarg")
            or self._get_string_attribute("lookup_field")
            or "pk"
        )
        detail = f"{start}(?P<{field}>{self.key})"
        if listed := tuple(pair for pair in _LIST if pair[1] in names):
            yield (f"^{prefix}{end}" if prefix else "^$"), "list", listed
        for action in extra:
            if not action.is_detail:
                yield f"{start}{action.path}{end}", action.url_name, action.actions
        if single := tuple(pair for pair in _DETAIL if pair[1] in names):
            yield f"{detail}{end}", "detail", single
        for action in extra:
            if action.is_detail:
                yield f"{detail}/{action.path}{end}", action.url_name, action.actions

    def find_basename(self) -> str:
        """Return the default base name of routes: the lower-case model name in its `queryset`."""
        value = self._program.find_attribute_value(self.name, "queryset")
        while isinstance(value, dict) and value["of"] in {"call", "attribute"}:
            value = value["call"] if value["of"] == "call" else value["object"]
        written = get_written_name(value)
        if written.endswith("get_user_model"):
            model = next(self._program.iter_assigned_texts("AUTH_USER_MODEL"), "auth.User")
            return model.rpartition(".")[2].lower()
        parts = written.split(".")
        at = next((index for index, part in enumerate(parts) if part in _MANAGERS), 0)
        return parts[at - 1].lstrip(":").lower() if at else ""

    def _get_string_attribute(self, name: str) -> str:
        value = self._program.find_attribute_value(self.name, name)
        return value if isinstance(value, str) else ""

    def _list_action_names(self) -> set[str]:
        """Return the names of the viewset's methods, including those from other packages."""
        data = get_framework("django").views.actions
        ancestors = (base.rpartition(".")[2] for base in self._program.list_ancestry(self.name))
        names = {action for ancestor in ancestors for action in data.get(ancestor, "").split()}
        return names.union(*(place.members for place in self._program.iter_lineage(self.name)))

    def _read_extra_actions(self) -> list[_ExtraAction]:
        """Return the methods with `@action`, in the order in which the framework lists members."""
        actions_by_name: dict[str, _ExtraAction] = {}
        for place in reversed([*self._program.iter_lineage(self.name)]):
            for name, fact in place.members.items():
                actions_by_name.pop(name, None)
                for decorator in fact.values["decorators"]:
                    written = get_written_name(decorator)
                    # `@other.mapping.delete` adds an HTTP method to an action.
                    before, _, verb = written.rpartition(".mapping.")
                    other = before.rpartition(".")[2].lstrip(":")
                    if other in actions_by_name:
                        actions = (*actions_by_name[other].actions, (verb.upper(), name))
                        actions_by_name[other] = replace(actions_by_name[other], actions=actions)
                    elif is_a(decorator, "call") and written.endswith("action"):
                        actions_by_name[name] = _ExtraAction.from_decorator(name, decorator)
        return [actions_by_name[name] for name in sorted(actions_by_name)]


@dataclass(frozen=True, slots=True)
class _Registration:
    """A call that registers a viewset with a router.

    Attributes:
        under: the compound statement around it; "" if there is none.
        parents: with drf-extensions, the registrations that it is nested in, nearest first.
    """

    module: Module
    call: Any
    under: str = ""
    parents: tuple[_Registration, ...] = ()

    @property
    def prefix(self) -> Any:
        """Return the expression of the prefix that starts the viewset's paths."""
        return find_argument(self.call, 0, "prefix")

    def find_viewset(self, program: PythonProgram) -> Viewset | None:
        """Return the registered viewset; None if it is known only at run time."""
        value = find_argument(self.call, 1, "viewset")
        if not is_a(value, "name"):
            return None
        return Viewset(program, program.get_absolute_name(value["name"], self.module))

    def build_nested_prefix(self, program: PythonProgram) -> str | None:
        """Return the prefix below the parents' prefixes and keys; None if one is not a literal."""
        if not isinstance(self.prefix, str):
            return None
        full_prefix = self.prefix
        lookups = list_items(find_argument(self.call, 3, "parents_query_lookups"))
        if len(lookups) < len(self.parents):
            return None
        for parent, lookup in zip(self.parents, reversed(lookups), strict=False):
            viewset = parent.find_viewset(program)
            if not isinstance(parent.prefix, str) or not isinstance(lookup, str) or viewset is None:
                return None
            full_prefix = f"{parent.prefix}/(?P<parent_lookup_{lookup}>{viewset.key})/{full_prefix}"
        return full_prefix


class RouterReader:
    """A reader of the routes that a repository's routers create."""

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        self._classes = get_framework("django").views.routers
        self._registrations: dict[str, list[_Registration]] = {}
        for module in program:
            for call, under in _iter_register_calls(module):
                router, parents = self._find_router(call, module)
                registration = _Registration(module, call, under, parents)
                self._registrations.setdefault(router, []).append(registration)

    def is_router(self, place: PythonName) -> bool:
        """Return whether the value of a variable is a router."""
        function = self._program.get_called_name(place.value, place.module)
        return any(ancestor in self._classes for ancestor in self._program.list_ancestry(function))

    def iter_routes(self, router: PythonName) -> Iterator[DjangoRoute | Unresolved]:
        """Yield the routes of a router; per viewset: list routes, extra actions, detail routes."""
        creation, evidence = router.value, router.module.build_evidence(router.value)
        name = self._program.get_called_name(creation, router.module)
        classes = [*self._program.iter_lineage(name)]
        if any(place.defines(rule) for place in classes for rule in _RULES):
            yield Unresolved("a router class that overrides how routes are created", evidence)
        trailing_slash = creation["named"].get("trailing_slash")
        slash = "/" if trailing_slash is None or trailing_slash else ""
        # Registrations in the router's own module come first.
        registrations = self._registrations.get(router.name, [])
        for registration in sorted(
            registrations, key=lambda registration: registration.module is not router.module
        ):
            yield from self._iter_routes_of_registration(registration, slash)
        if any(
            ancestor.endswith("DefaultRouter") for ancestor in self._program.list_ancestry(name)
        ):
            root = DjangoView("rest_framework.routers.APIRootView", ("GET",))
            yield DjangoRoute("", "api-root", root, (evidence,))

    def _iter_routes_of_registration(
        self, registration: _Registration, slash: str
    ) -> Iterator[DjangoRoute | Unresolved]:
        evidence = registration.module.build_evidence(registration.call)
        if registration.under:
            yield Unresolved(f"depends on `{registration.under}`", evidence)
        if registration.under in LOOPS:
            return
        viewset, prefix = (
            registration.find_viewset(self._program),
            registration.build_nested_prefix(self._program),
        )
        if prefix is None or viewset is None:
            yield Unresolved("a computed registration", evidence)
            return
        base = find_argument(registration.call, 2, "basename") or viewset.find_basename()
        if not isinstance(base, str) or not base:
            yield Unresolved("a registration without a name", evidence)
            return
        for pattern, suffix, actions in viewset.iter_routes(prefix, slash):
            view = DjangoView.from_actions(self._program, viewset.name, actions)
            yield DjangoRoute(
                pattern, f"{base}-{suffix}", view, (evidence,), bool(registration.under)
            )

    def _find_router(
        self, call: Any, module: Module, remaining_steps: int = _MAX_NESTED_REGISTRATIONS
    ) -> tuple[str, tuple[_Registration, ...]]:
        """Return the router that a registration belongs to, and the registrations it is nested in.

        With drf-extensions, a viewset may be registered with the result of another registration.
        """
        place = self._program.find_place(get_written_name(call).removesuffix(_REGISTER), module)
        value = None if place is None else place.value
        if place is None or not remaining_steps or not get_written_name(value).endswith(_REGISTER):
            return ("" if place is None else place.name), ()
        router, parents = self._find_router(value, place.module, remaining_steps - 1)
        return router, (_Registration(place.module, value), *parents)


def _iter_register_calls(module: Module) -> Iterator[tuple[Any, str]]:
    """Yield the top-level calls of `register` in order, assigned or not.

    Each comes with the compound statement around it (`if`, `for` …), "" if there is none.
    """
    statements = [(call_fact, call_fact.values["call"]) for call_fact in module.invoked]
    statements += [
        (call_fact, call_fact.values["value"]) for call_fact in module.assigned.get("", ())
    ]
    for fact, call in sorted(statements, key=lambda statement: statement[0].start):
        if is_a(call, "call") and get_written_name(call).endswith(_REGISTER):
            yield call, fact.values["under"]
