"""Views: the functions and classes that answer routes, and the HTTP methods they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rag_assets.systems.code_memory.django.program import (
    Module,
    Program,
    argument,
    is_a,
    items_of,
    written_name,
)
from rag_assets.systems.code_memory.frameworks.definitions import framework

Actions = tuple[tuple[str, str], ...]
"""Methods of a view with the HTTP method, in upper case, that runs each."""

_VERBS: Final = ("get", "post", "put", "patch", "delete")
_DEEPEST: Final = 10


@dataclass(frozen=True, slots=True)
class View:
    """The view of a route.

    Attributes:
        name: absolute name of a function or a class; "" if it is computed.
        methods: HTTP methods in upper case; empty if they are unknown.
        actions: the methods that run, if a viewset or a call of `as_view` states them.
    """

    name: str
    methods: tuple[str, ...] = ()
    actions: Actions = ()

    @classmethod
    def from_actions(cls, name: str, actions: Actions) -> View:
        """Return the view of a class whose actions are known."""
        return cls(name, tuple(method for method, _ in actions), actions)


class ViewReader:
    """Reads views and the HTTP methods that they answer."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._data = framework("django").views

    def view(self, value: Any, module: Module) -> View:
        """Return the view in a route's expression.

        Args:
            value: the expression: a function, `X.as_view()`, or one of these within decorators.
            module: the module that contains it.
        """
        for _ in range(_DEEPEST):
            written = written_name(value)
            if self._program.is_of_object(written, module):
                break
            if is_a(value, "name"):
                name, place = self._program.follow(written, module)
                if place is None or place.value is None:
                    return self._function(name)
                value, module = place.value, place.module
            elif is_a(value, "call") and written.endswith(".as_view"):
                name, _ = self._program.follow(written.removesuffix(".as_view"), module)
                return self._class(self._program.defined(name), value)
            elif is_a(value, "call"):
                value = next(iter(value["arguments"]), None)
            else:
                break
        return View("")

    def _function(self, name: str) -> View:
        """Return the view of a function, with the HTTP methods that its decorators allow."""
        name = self._program.defined(name)
        place = self._program.place(name)
        fact = None if place is None else place.module.declared.get(place.symbol)
        for one in () if fact is None else fact.values["decorators"]:
            methods = self._data.decorators.get(written_name(one).rpartition(".")[2])
            if methods is not None:
                stated = [*one["arguments"], *one["named"].values()] if is_a(one, "call") else []
                listed = [item.upper() for item in items_of(stated[0])] if stated else []
                return View(name, tuple(listed or methods.split()))
        return View(name)

    def _class(self, name: str, call: Any) -> View:
        """Return the view of a class; `as_view({"get": "list"})` states its actions."""
        first = argument(call, 0, "actions")
        pairs = first["items"] if is_a(first, "dict") else ()
        stated = [(key, value) for key, value in pairs if isinstance(key, str)]
        actions = tuple((key.upper(), value) for key, value in stated if isinstance(value, str))
        return View.from_actions(name, actions) if actions else View(name, self._methods(name))

    def _methods(self, name: str) -> tuple[str, ...]:
        """Return the HTTP methods of a class-based view, in upper case."""
        known: set[str] = set()
        for one in self._program.ancestry(name):
            place = self._program.place(one)
            if place is None:
                known |= set(self._data.methods.get(one.rpartition(".")[2], "").split())
            else:
                # A statement such as `get = post = …` also defines methods.
                assigned = place.module.assigned.get(place.symbol, ())
                known |= {*place.members, *(one.values["name"] for one in assigned)}
        allowed = items_of(self._program.attribute(name, "http_method_names")) or _VERBS
        return tuple(verb.upper() for verb in _VERBS if verb in known and verb in allowed)
