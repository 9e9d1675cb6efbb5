"""Viewsets of Django REST framework: the routes that a router creates for a viewset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import argument
from rag_assets.systems.code_memory.django.program import Program

_MIXINS: Final = {
    "ListModelMixin": "list",
    "CreateModelMixin": "create",
    "RetrieveModelMixin": "retrieve",
    "UpdateModelMixin": "update partial_update",
    "DestroyModelMixin": "destroy",
    "ReadOnlyModelViewSet": "list retrieve",
    "ModelViewSet": "list create retrieve update partial_update destroy",
}
_MANAGERS: Final = frozenset({"objects", "_default_manager", "_base_manager", "all_objects"})
_LIST: Final = (("GET", "list"), ("POST", "create"))
_DETAIL: Final = (
    ("GET", "retrieve"),
    ("PUT", "update"),
    ("PATCH", "partial_update"),
    ("DELETE", "destroy"),
)


@dataclass(frozen=True, slots=True)
class _Action:
    """An extra action: a method of a viewset under `@action`."""

    name: str
    detail: bool
    methods: tuple[str, ...]
    path: str
    url_name: str
    more: tuple[tuple[str, str], ...] = ()


class Viewset:
    """A viewset.

    Attributes:
        name: absolute name of its class.

    Args:
        name: absolute name of its class.
    """

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self._lineage = program.ancestry(name)
        self.name = self._lineage[0]

    def routes(
        self, prefix: str, slash: str
    ) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...]]]:
        """Yield pattern, name suffix and actions of each route: list, extra actions, then detail.

        Args:
            prefix: the prefix under which the viewset is registered.
            slash: the end of a path; "" if absent.
        """
        known = self._known()
        extra = self._extra()
        start = f"^{prefix}/" if prefix else "^"
        lookup = self.lookup()
        listed = tuple((method, name) for method, name in _LIST if name in known)
        end = f"{slash}$"
        if listed:
            yield (f"^{prefix}{end}" if prefix else "^$"), "list", listed
        for one in extra:
            if not one.detail:
                yield f"{start}{one.path}{end}", one.url_name, _of(one)
        detail = tuple((method, name) for method, name in _DETAIL if name in known)
        if detail:
            yield f"{start}{lookup}{end}", "detail", detail
        for one in extra:
            if one.detail:
                yield f"{start}{lookup}/{one.path}{end}", one.url_name, _of(one)

    def basename(self) -> str:
        """Return the default base name of routes: the lower-case model name in its `queryset`."""
        value = self._attribute("queryset")
        while isinstance(value, dict) and value["of"] in {"call", "attribute"}:
            value = value["call"] if value["of"] == "call" else value["object"]
        if not isinstance(value, dict) or value["of"] != "name":
            return ""
        if value["name"].endswith("get_user_model"):
            return self._program.user_model.rpartition(".")[2].lower()
        written = value["name"].split(".")
        at = next((index for index, part in enumerate(written) if part in _MANAGERS), 0)
        return written[at - 1].lstrip(":").lower() if at else ""

    def _known(self) -> set[str]:
        known: set[str] = set()
        for one in self._lineage:
            place = self._program.place(one)
            if place is None:
                known |= set(_MIXINS.get(one.rpartition(".")[2], "").split())
            else:
                head = f"{place.symbol}."
                known |= {s[len(head) :] for s in place.module.declared if s.startswith(head)}
        return known

    def _extra(self) -> list[_Action]:
        """Return the extra actions, in the order in which the framework lists class members."""
        found: dict[str, _Action] = {}
        for one in reversed(self._lineage):
            place = self._program.place(one)
            for symbol, fact in [] if place is None else place.module.declared.items():
                owner, _, name = symbol.rpartition(".")
                if place is None or owner != place.symbol:
                    continue
                action = _action(name, fact.values["decorators"])
                found.pop(name, None)
                if action is not None:
                    found[name] = action
                for of, verb in _mapped(fact.values["decorators"]):
                    if of in found:
                        more = (*found[of].more, (verb, name))
                        found[of] = replace(found[of], more=more)
        return [found[name] for name in sorted(found)]

    def lookup(self, before: str = "") -> str:
        """Return an object's key as a regular expression; `before` precedes the key's name."""
        field = self._text("lookup_url_kwarg") or self._text("lookup_field") or "pk"
        return f"(?P<{before}{field}>{self.key()})"

    def key(self) -> str:
        """Return the regular expression that matches a key, without the group's name."""
        return self._text("lookup_value_regex") or "[^/.]+"

    def _text(self, name: str) -> str:
        value = self._attribute(name)
        return value if isinstance(value, str) else ""

    def _attribute(self, name: str) -> Any:
        for one in self._lineage:
            place = self._program.place(one)
            if place is not None and place.module.values(place.symbol, name):
                return place.module.constant(place.symbol, name)
        return None


def _action(name: str, decorators: list[Any]) -> _Action | None:
    for value in decorators:
        if not isinstance(value, dict) or value["of"] != "call":
            continue
        called = value["call"].get("name", "") if isinstance(value["call"], dict) else ""
        if not called.endswith("action"):
            continue
        named = value["named"]
        methods = argument(value, 0, "methods")
        items = methods.get("items", []) if isinstance(methods, dict) else ["get"]
        path, url = named.get("url_path"), named.get("url_name")
        return _Action(
            name,
            argument(value, 1, "detail") is True,
            tuple(item.upper() for item in items if isinstance(item, str)),
            path if isinstance(path, str) else name,
            url if isinstance(url, str) else name.replace("_", "-"),
        )
    return None


def _of(one: _Action) -> tuple[tuple[str, str], ...]:
    return (*((method, one.name) for method in one.methods), *one.more)


def _mapped(decorators: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield method and action of `@other.mapping.delete`: it adds an HTTP method to an action."""
    for value in decorators:
        written = value.get("name", "") if isinstance(value, dict) else ""
        owner, mark, verb = written.rpartition(".mapping.")
        if mark:
            yield owner.rpartition(".")[2].lstrip(":"), verb.upper()
