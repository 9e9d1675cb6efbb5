"""Routes that a router of Django REST framework makes of the viewsets registered with it."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from rag_assets.code.frameworks.django.program import Evidence, Module, Place, Program, Unresolved
from rag_assets.code.frameworks.django.views import View

ROUTERS: Final = frozenset(
    {"rest_framework.routers.DefaultRouter", "rest_framework.routers.SimpleRouter"}
)
_MIXINS: Final = {
    "ListModelMixin": "list",
    "CreateModelMixin": "create",
    "RetrieveModelMixin": "retrieve",
    "UpdateModelMixin": "update partial_update",
    "DestroyModelMixin": "destroy",
    "ReadOnlyModelViewSet": "list retrieve",
    "ModelViewSet": "list create retrieve update partial_update destroy",
}
_RULES: Final = frozenset({"routes", "get_urls", "get_routes", "get_lookup_regex"})
_MANAGERS: Final = frozenset({"objects", "_default_manager", "_base_manager", "all_objects"})
_LIST: Final = (("GET", "list"), ("POST", "create"))
_DETAIL: Final = (
    ("GET", "retrieve"),
    ("PUT", "update"),
    ("PATCH", "partial_update"),
    ("DELETE", "destroy"),
)


@dataclass(frozen=True, slots=True)
class RouterRoute:
    """A route of a router.

    Attributes:
        pattern: as the router writes it.
        name: without namespaces.
        view: the viewset with the actions of this route.
        evidence: the registration.
    """

    pattern: str
    name: str
    view: View
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Action:
    """An extra action: a method of a viewset under `@action`."""

    name: str
    detail: bool
    methods: tuple[str, ...]
    path: str
    url_name: str
    more: tuple[tuple[str, str], ...] = ()


def routes_of_router(
    program: Program, place: Place, made: Any, kind: str, lineage: list[str]
) -> Iterator[RouterRoute | Unresolved]:
    """The routes of a router, list first, then extra actions, then detail.

    Args:
        program: the repository.
        place: the variable that holds the router.
        made: the call that made it.
        kind: which router of the framework it is, or extends.
        lineage: the class of the router with its ancestors.
    """
    own = [one for one in lineage if program.place(one) is not None]
    if any(_defines(program, one, _RULES) for one in own):
        yield Unresolved("a router with rules of its own", place.module.evidence(made))
        return
    if any(_defines(program, one, {"__init__"}) for one in own):
        yield Unresolved("a router that may change its rules", place.module.evidence(made))
    slash = "" if made["named"].get("trailing_slash") is False else "/"
    for module, call, under in _registrations(program, place):
        if under:
            yield Unresolved(f"depends on `{under}`", module.evidence(call))
        else:
            yield from _registered(program, module, call, slash)
    if kind.endswith("DefaultRouter") and made["named"].get("include_root_view") is not False:
        root = View(_root_view(program, lineage), (), ("GET",))
        yield RouterRoute("", "api-root", root, place.module.evidence(made))


def _root_view(program: Program, lineage: list[str]) -> str:
    for one in lineage:
        place = program.place(one)
        value = None if place is None else place.module.constant(place.symbol, "APIRootView")
        if place is not None and isinstance(value, dict) and value["of"] == "name":
            return program.absolute(value["name"], place.module)
    return "rest_framework.routers.APIRootView"


def _defines(program: Program, name: str, wanted: Set[str]) -> bool:
    place = program.place(name)
    if place is None:
        return False
    names = {one.values["name"] for one in place.module.assigned.get(place.symbol, ())}
    methods = {
        s.rpartition(".")[2] for s in place.module.declared if s.startswith(f"{place.symbol}.")
    }
    return not wanted.isdisjoint(names | methods)


def _registrations(program: Program, place: Place) -> Iterator[tuple[Module, Any, str]]:
    """The calls of `register` on a router, in its own module first."""
    others = [m for m in program if m is not place.module and m.invoked]
    for module in [place.module, *others]:
        for fact in module.invoked:
            call = fact.values["call"]
            written = call["call"].get("name", "") if isinstance(call["call"], dict) else ""
            if not written.endswith(".register"):
                continue
            router = written.removesuffix(".register")
            name = program.absolute(router, module)
            if place.name in {name, f"{module.name}.{name}"}:
                yield module, call, fact.values["under"]


def _registered(
    program: Program, module: Module, call: Any, slash: str
) -> Iterator[RouterRoute | Unresolved]:
    prefix, viewset = (_argument(call, i, n) for i, n in enumerate(("prefix", "viewset")))
    if not isinstance(prefix, str) or not isinstance(viewset, dict) or viewset["of"] != "name":
        yield Unresolved("a computed registration", module.evidence(call))
        return
    name = program.external(program.absolute(viewset["name"], module))
    set_ = _Viewset(program, name)
    base = _argument(call, 2, "basename") or call["named"].get("base_name") or set_.basename()
    if not isinstance(base, str) or not base:
        yield Unresolved("a registration without a name", module.evidence(call))
        return
    evidence = module.evidence(call)
    for pattern, suffix, actions in set_.routes(prefix, slash):
        methods = tuple(method for method, _ in actions)
        yield RouterRoute(pattern, f"{base}-{suffix}", View(set_.name, actions, methods), evidence)


class _Viewset:
    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self._lineage = program.ancestry(name)
        self.name = self._lineage[0]

    def routes(
        self, prefix: str, slash: str
    ) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...]]]:
        known = self._known()
        extra = self._extra()
        start = f"^{prefix}/" if prefix else "^"
        lookup = self._lookup()
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
        """The lower name of the model of its `queryset`."""
        value = self._attribute("queryset")
        while isinstance(value, dict) and value["of"] in {"call", "attribute"}:
            value = value["call"] if value["of"] == "call" else value["object"]
        if not isinstance(value, dict) or value["of"] != "name":
            return ""
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
        """Extra actions by name, as the framework lists the members of a class."""
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

    def _lookup(self) -> str:
        field = self._text("lookup_url_kwarg") or self._text("lookup_field") or "pk"
        return f"(?P<{field}>{self._text('lookup_value_regex') or '[^/.]+'})"

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
        methods = _argument(value, 0, "methods")
        items = methods.get("items", []) if isinstance(methods, dict) else ["get"]
        path, url = named.get("url_path"), named.get("url_name")
        return _Action(
            name,
            _argument(value, 1, "detail") is True,
            tuple(item.upper() for item in items if isinstance(item, str)),
            path if isinstance(path, str) else name,
            url if isinstance(url, str) else name.replace("_", "-"),
        )
    return None


def _of(one: _Action) -> tuple[tuple[str, str], ...]:
    return (*((method, one.name) for method in one.methods), *one.more)


def _mapped(decorators: list[Any]) -> Iterator[tuple[str, str]]:
    """`@other.mapping.delete`: the action and the method that another method answers."""
    for value in decorators:
        written = value.get("name", "") if isinstance(value, dict) else ""
        owner, mark, verb = written.rpartition(".mapping.")
        if mark:
            yield owner.rpartition(".")[2].lstrip(":"), verb.upper()


def _argument(call: Any, position: int, name: str) -> Any:
    if name in call["named"]:
        return call["named"][name]
    arguments = call["arguments"]
    return arguments[position] if position < len(arguments) else None
