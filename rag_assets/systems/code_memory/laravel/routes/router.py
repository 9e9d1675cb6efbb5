"""Laravel's router as far as no request is needed: groups, and routes as they are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from rag_assets.systems.code_memory.laravel.routes.drafts import Context, Draft, text_at
from rag_assets.systems.code_memory.laravel.routes.groups import (
    Attributes,
    joined,
    listed_of,
    merged,
    trimmed,
)
from rag_assets.systems.code_memory.laravel.routes.values import (
    Closure,
    Value,
    is_list,
)

_BY_ALL_METHODS: Final = 11
"""First version in which a route replaces one with the same methods, domain and URI.

In earlier versions, it replaces one with the same last method, domain and URI.
"""

ANY: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Router:
    """The router.

    Attributes:
        patterns: regular expressions of parameters; they apply to all later routes.

    Args:
        is_class: returns whether a name is a class.
        version: version of the framework; None if it is unknown, which counts as a late version.
    """

    def __init__(self, is_class: Callable[[str], bool], version: int | None = None) -> None:
        self._by_last_method = version is not None and version < _BY_ALL_METHODS
        self.patterns: dict[str, Value] = {}
        self._is_class = is_class
        self._groups: list[Attributes] = []
        self._drafts: dict[str, Draft] = {}

    @property
    def drafts(self) -> Iterable[Draft]:
        """Return the routes; a later route replaces an earlier one with the same key."""
        return self._drafts.values()

    @contextmanager
    def group(self, attributes: Mapping[str, Value]) -> Iterator[None]:
        """Apply the attributes of a group to all routes that are added in the `with` block."""
        found = dict(attributes)
        if self._groups:
            found = merged(found, self._groups[-1], prepend=True)
        self._groups.append(found)
        try:
            yield
        finally:
            self._groups.pop()

    def add(self, methods: Iterable[str], uri: Value, action: Value, context: Context) -> Draft:
        """Add a route.

        Args:
            methods: the methods, in order, in any case.
            uri: the URI, below the prefixes of the enclosing groups.
            action: the action as passed to the router: a text, an array, a closure, or null.
        """
        attributes = self._parsed(action)
        own = attributes.pop("prefix", None)
        last = self._last("prefix")
        full = trimmed(joined(trimmed(last), "/", trimmed(uri)))
        draft = Draft(full or "/", _methods(methods), attributes, context)
        draft.prefix(own)
        if self._groups:
            draft.action = merged(attributes, self._groups[-1], prepend=False)
        draft.middleware(listed_of(draft.action.pop("can", None)))
        wheres = draft.action.get("where")
        draft.where({**self.patterns, **(wheres if isinstance(wheres, dict) else {})})
        domain = text_at(draft.action, "domain")
        told = draft.methods[-1:] if self._by_last_method else draft.methods
        self._drafts[f"{'|'.join(told)}{domain}{draft.uri}"] = draft
        return draft

    def uses(self, draft: Draft, action: Value) -> None:
        """Set the action of an existing route."""
        if is_list(action) and len(action) > 1:
            action = joined(action[0], "@", action[1])
        if isinstance(action, str):
            action = self.in_namespace(action)
        draft.action |= self._invokable({"uses": action})

    def _parsed(self, action: Value) -> Attributes:
        """Return an action as attributes, with the controller and the namespace of its group."""
        if isinstance(action, str):
            action = {"uses": action}
        if not isinstance(action, dict):
            return {"uses": action}
        if isinstance(action.get("uses"), str):
            named = self.in_namespace(self._with_controller(action["uses"]))
            return self._invokable({**_attributes(action), "uses": named})
        if 0 in action and 1 in action and isinstance(action[1], str):
            return {"uses": joined(action[0], "@", action[1])}
        found = _attributes(action)
        if "uses" not in found:
            closures = (value for value in action.values() if isinstance(value, Closure))
            found["uses"] = next(closures, None)
        elif is_list(found["uses"]) and len(found["uses"]) > 1:
            found["uses"] = joined(found["uses"][0], "@", found["uses"][1])
        return self._invokable(found)

    def _invokable(self, attributes: Attributes) -> Attributes:
        uses = attributes.get("uses")
        if isinstance(uses, str) and "@" not in uses and "::" not in uses:
            attributes["uses"] = f"{uses}@__invoke"
        return attributes

    def _with_controller(self, uses: str) -> Value:
        controller = self._last("controller")
        if controller is None or "@" in uses or self._is_class(uses.lstrip("\\")):
            return uses
        return joined(controller, "@", uses)

    def in_namespace(self, uses: Value) -> Value:
        """Return an action in the namespace of its group; a qualified action stays as it is."""
        namespace = self._last("namespace")
        within = ("\\", namespace) if isinstance(namespace, str) and namespace else ("\\",)
        if namespace is None or (isinstance(uses, str) and uses.startswith(within)):
            return uses
        return joined(namespace, "\\", uses)

    def _last(self, name: str) -> Value:
        return self._groups[-1].get(name) if self._groups else None


def _attributes(action: Mapping[str | int, Value]) -> Attributes:
    return {key: value for key, value in action.items() if isinstance(key, str)}


def _methods(given: Iterable[str]) -> list[str]:
    found = [one.upper() for one in given]
    return [*found, "HEAD"] if "GET" in found and "HEAD" not in found else found
