"""Routes of resources and singletons, as in Laravel's ResourceRegistrar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rag_assets.systems.code_memory.laravel.inflection import singular
from rag_assets.systems.code_memory.laravel.routes.drafts import Context, Draft
from rag_assets.systems.code_memory.laravel.routes.groups import Attributes, joined, listed_of
from rag_assets.systems.code_memory.laravel.routes.router import Router
from rag_assets.systems.code_memory.laravel.routes.values import Unknown, Value, listed, text_of

RESOURCE: Final = ("index", "create", "store", "show", "edit", "update", "destroy")
API_RESOURCE: Final = ("index", "show", "store", "update", "destroy")
SINGLETON: Final = ("show", "edit", "update")
API_SINGLETON: Final = ("store", "show", "update", "destroy")
_VERBS: Final[Mapping[str, Sequence[str]]] = {
    "index": ("GET", "HEAD"),
    "create": ("GET", "HEAD"),
    "store": ("POST",),
    "show": ("GET", "HEAD"),
    "edit": ("GET", "HEAD"),
    "update": ("PUT", "PATCH"),
    "destroy": ("DELETE",),
}
_WITHOUT_FOR: Final = "excluded_middleware_for"
_OF_ONE: Final = frozenset({"show", "edit", "update", "destroy"})


@dataclass(slots=True, eq=False)
class Pending:
    """A resource that is registered when its statement ends.

    Attributes:
        name: the name as stated; may contain dots and slashes.
        controller: its class.
        options: the options of the registrar, by Laravel's names.
        singleton: whether it is a singleton resource.
    """

    name: Value
    controller: Value
    options: Attributes
    singleton: bool = False


@dataclass(slots=True)
class Naming:
    """How resources are named; a provider may change this for all later resources.

    Attributes:
        verbs: words in URIs, such as create and edit.
        parameters: names of parameters, by resource.
        singular: whether parameters are in the singular.
    """

    verbs: dict[str, str] = field(default_factory=lambda: {"create": "create", "edit": "edit"})
    parameters: dict[str, str] = field(default_factory=dict)
    singular: bool = True


class Registrar:
    """Adds the routes of a resource.

    Args:
        router: the router that they are added to.
    """

    def __init__(self, router: Router, naming: Naming) -> None:
        self._router = router
        self._naming = naming

    def register(self, pending: Pending, context: Context) -> list[Draft]:
        """Add the routes of a resource, in Laravel's order.

        Args:
            pending: the resource; its name must be known.
        """
        name = str(pending.name)
        if "/" not in name:
            return list(self._routes(name, pending, context))
        prefix, _, last = name.rpartition("/")
        with self._router.group({"prefix": prefix}):
            return list(self._routes(last, pending, context))

    def _routes(self, name: str, pending: Pending, context: Context) -> Iterator[Draft]:
        options = pending.options
        wildcard = self._wildcard(options)
        for method in _methods(pending):
            below = method in _OF_ONE and not (pending.singleton and method == "show")
            shallow = below and bool(options.get("shallow"))
            own = name.rpartition(".")[2] if shallow else name
            uri = self._uri(own, wildcard)
            if method in _OF_ONE and not pending.singleton:
                uri += f"/{{{wildcard(name.rpartition('.')[2])}}}"
            if method in self._naming.verbs:
                uri += f"/{self._naming.verbs[method]}"
            action: Attributes = {
                "as": _name(own, method, options),
                "uses": joined(pending.controller, "@", method),
                "where": options.get("wheres"),
            }
            action |= _middleware(method, options)
            found = self._router.add(_VERBS[method], uri, action, context)
            _with_fields(found, options)
            yield found

    def _uri(self, name: str, wildcard: Callable[[str], str]) -> str:
        """Return the path of a resource, which includes those of the resources around it."""
        *outer, last = name.split(".")
        uri = "/".join([*(f"{one}/{{{wildcard(one)}}}" for one in outer), last])
        return uri.replace(f"/{{{wildcard(last)}}}", "") if outer else uri

    def _wildcard(self, options: Attributes) -> Callable[[str], str]:
        stated = options.get("parameters")

        def wildcard(name: str) -> str:
            given = text_of(stated.get(name)) if isinstance(stated, dict) else ""
            given = given or self._naming.parameters.get(name)
            in_singular = stated == "singular" or self._naming.singular
            found = given or (singular(name) if in_singular else name)
            return found.replace("-", "_")

        return wildcard


def _methods(pending: Pending) -> list[str]:
    options = pending.options
    defaults: Sequence[str] = SINGLETON if pending.singleton else RESOURCE
    if pending.singleton and options.get("creatable") is not None:
        defaults = (*defaults, "create", "store", "destroy")
    elif pending.singleton and options.get("destroyable") is not None:
        defaults = (*defaults, "destroy")
    found = list(defaults)
    if options.get("only") is not None:
        found = [one for one in found if one in listed(options["only"])]
    if options.get("except") is not None:
        found = [one for one in found if one not in listed(options["except"])]
    return found


def _name(resource: str, method: str, options: Attributes) -> Value:
    names, prefix = options.get("names"), options.get("as")
    name: Value = resource
    if isinstance(names, str):
        name = names
    elif isinstance(names, dict) and names.get(method) is not None:
        return names[method]
    before = "" if prefix is None else joined(prefix, ".")
    found = joined(before, name, ".", method)
    return found if isinstance(found, Unknown) else found.strip(".")


def _middleware(method: str, options: Attributes) -> Attributes:
    """Return the middleware of one method: the resource's, then the method's own."""
    found: Attributes = {}
    own, without = (_by_method(options, key, method) for key in ("middleware_for", _WITHOUT_FOR))
    guards = options.get("middleware") if own is None else own
    freed = listed_of(options.get("excluded_middleware"))
    if without is not None:
        freed = list(dict.fromkeys([*freed, *listed_of(without)]))
    if guards is not None:
        found["middleware"] = guards
    return {**found, "excluded_middleware": freed} if freed else found


def _by_method(options: Attributes, key: str, method: str) -> Value:
    held = options.get(key)
    return held.get(method) if isinstance(held, dict) else None


def _with_fields(draft: Draft, options: Attributes) -> None:
    """Set the columns by which scoped parameters are looked up."""
    fields = options.get("bindingFields")
    if isinstance(fields, dict):
        draft.fields |= {str(key): str(column) for key, column in fields.items()}
