"""The views of routes, and the HTTP methods that they accept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import is_a
from rag_assets.systems.code_memory.django.modules import Module
from rag_assets.systems.code_memory.django.program import Place, Program

HTTP_METHODS: Final = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
_TOLD: Final = ("get", "post", "put", "patch", "delete")
_GENERIC: Final = {
    "TemplateView": "get",
    "ListView": "get",
    "DetailView": "get",
    "RedirectView": "get post put patch delete",
    "FormView": "get post put",
    "CreateView": "get post put",
    "UpdateView": "get post put",
    "DeleteView": "get post delete",
    "ProcessFormView": "get post put",
    "LoginView": "get post put",
    "LogoutView": "post",
    "PasswordChangeView": "get post put",
    "PasswordResetView": "get post put",
    "PasswordResetConfirmView": "get post put",
    "PasswordChangeDoneView": "get",
    "PasswordResetDoneView": "get",
    "PasswordResetCompleteView": "get",
    "JavaScriptCatalog": "get",
    "JSONCatalog": "get",
    "ObtainAuthToken": "post",
    "ArchiveIndexView": "get",
    "YearArchiveView": "get",
    "MonthArchiveView": "get",
    "WeekArchiveView": "get",
    "DayArchiveView": "get",
    "TodayArchiveView": "get",
    "DateDetailView": "get",
    "CreateAPIView": "post",
    "ListAPIView": "get",
    "RetrieveAPIView": "get",
    "DestroyAPIView": "delete",
    "UpdateAPIView": "put patch",
    "ListCreateAPIView": "get post",
    "RetrieveUpdateAPIView": "get put patch",
    "RetrieveDestroyAPIView": "get delete",
    "RetrieveUpdateDestroyAPIView": "get put patch delete",
}
_DECORATORS: Final = {"require_GET": ("GET",), "require_POST": ("POST",), "require_safe": ("GET",)}
_LISTS: Final = frozenset({"require_http_methods", "api_view"})
_DEEPEST: Final = 10


@dataclass(frozen=True, slots=True)
class View:
    """The view of a route.

    Attributes:
        name: absolute name of a function or a class; "" if it is computed.
        actions: methods of the class, by HTTP method in upper case.
        methods: HTTP methods in upper case; empty if they are unknown.
    """

    name: str
    actions: tuple[tuple[str, str], ...] = ()
    methods: tuple[str, ...] = ()


def view_of(program: Program, value: Any, module: Module) -> View:
    """Return the view in a route's expression.

    Args:
        value: the expression: a function, `X.as_view()`, or one of these within decorators.
        module: the module that contains it.
    """
    for _ in range(_DEEPEST):
        if isinstance(value, str):
            return _named(program, value)
        written = _written(value)
        if not isinstance(value, dict) or is_of_object(program, written, module):
            break
        if is_a(value, "name"):
            name = program.absolute(written, module)
            place = program.named(written, module)
            held = None if place is None else _held(place)
            if held is None or place is None:
                return _named(program, name if place is None else place.name)
            value, module = held, place.module
        elif is_a(value, "call"):
            found = _called(program, value, written, module)
            if found is not None:
                return found
            value = value["arguments"][0] if value["arguments"] else None
        else:
            break
    return View("")


def _written(value: Any) -> str:
    """Return the name in an expression, or the name of the function that it calls."""
    called = value["call"] if is_a(value, "call") else value
    return str(called["name"]) if is_a(called, "name") else ""


def _called(program: Program, call: Any, called: str, module: Module) -> View | None:
    """Return the view that a call such as `X.as_view()` creates; None for any other call."""
    if called.endswith(".as_view"):
        name, _ = _meant(program, called.removesuffix(".as_view"), module)
        return _class(program, name, call)
    made = _instance(program, called, module)
    return View(made) if made else None


def is_of_object(program: Program, written: str, module: Module) -> bool:
    """Return whether a dotted name belongs to an object in a variable, not to a class or module."""
    owner = written.rpartition(".")[0]
    _, place = _meant(program, owner, module) if owner else ("", None)
    return place is not None and is_a(_held(place), "call")


def _meant(program: Program, written: str, module: Module) -> tuple[str, Place | None]:
    """Return what a name refers to; variables that only rename something are followed."""
    for _ in range(_DEEPEST):
        place = program.named(written, module)
        held = None if place is None else _held(place)
        if place is None or not is_a(held, "name"):
            break
        written, module = held["name"], place.module
    return (program.absolute(written, module) if place is None else place.name), place


def _instance(program: Program, called: str, module: Module) -> str:
    """Return the class of a view that is an object, such as a feed."""
    place = program.place(program.absolute(called, module)) if called else None
    fact = None if place is None else place.module.declared.get(place.symbol)
    if place is None or fact is None or fact.values["role"] != "class":
        return ""
    return place.name


def _held(place: Place) -> Any:
    """Return the value of a variable; None for anything else."""
    owner, _, name = place.symbol.rpartition(".")
    if place.symbol in place.module.declared or not name:
        return None
    return place.module.constant(owner, name)


def _named(program: Program, name: str) -> View:
    external = program.external(name)
    place = program.place(external)
    if place is None:
        return View(external)
    fact = place.module.declared.get(place.symbol)
    found: tuple[str, ...] = ()
    for decorator in [] if fact is None else fact.values["decorators"]:
        found = found or _decorated(decorator)
    return View(place.name, (), found)


def _decorated(value: Any) -> tuple[str, ...]:
    """Return the HTTP methods that a decorator allows."""
    if not isinstance(value, dict):
        return ()
    called = value["call"] if value["of"] == "call" else value
    name = called.get("name", "").rpartition(".")[2] if isinstance(called, dict) else ""
    if name in _DECORATORS:
        return _DECORATORS[name]
    if name not in _LISTS or value["of"] != "call":
        return ()
    values = [*value["arguments"], *value["named"].values()]
    items = values[0].get("items", []) if values and isinstance(values[0], dict) else []
    if not values and name == "api_view":
        return ("GET",)
    return tuple(item.upper() for item in items if isinstance(item, str))


def _class(program: Program, name: str, call: Any) -> View:
    external = program.external(name)
    place = program.place(external)
    name = external if place is None else place.name
    actions = _actions(call)
    if actions:
        return View(name, actions, tuple(method for method, _ in actions))
    return View(name, (), methods_of(program, name))


def _actions(call: Any) -> tuple[tuple[str, str], ...]:
    """Return the actions in `ViewSet.as_view({"get": "list"})`."""
    first = call["arguments"][0] if call["arguments"] else call["named"].get("actions")
    if not isinstance(first, dict) or first["of"] != "dict":
        return ()
    return tuple(
        (key.upper(), value)
        for key, value in first["items"]
        if isinstance(key, str) and isinstance(value, str)
    )


def methods_of(program: Program, name: str) -> tuple[str, ...]:
    """Return the HTTP methods of a class-based view, in upper case."""
    found: set[str] = set()
    allowed: set[str] | None = None
    for one in program.ancestry(name):
        place = program.place(one)
        if place is None:
            found |= set(_GENERIC.get(one.rpartition(".")[2], "").split())
            continue
        declared = place.module.declared
        found |= {verb for verb in _TOLD if f"{place.symbol}.{verb}" in declared}
        # A statement such as `get = post = …` also defines methods.
        assigned = {f.values["name"] for f in place.module.assigned.get(place.symbol, ())}
        found |= assigned & set(_TOLD)
        stated = place.module.constant(place.symbol, "http_method_names")
        if allowed is None and isinstance(stated, dict):
            allowed = {item for item in stated.get("items", []) if isinstance(item, str)}
    kept = found if allowed is None else found & allowed
    return tuple(verb.upper() for verb in _TOLD if verb in kept)
