"""Finds the places in a file that may concern routes, before anything is read in detail."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.php.source import ClassLike, PhpSource
from rag_assets.systems.code_memory.languages.php.values import MEMBER_CALLS
from rag_assets.systems.code_memory.laravel.routes.expressions import LOADS

if TYPE_CHECKING:
    from tree_sitter import Node

FACADES: Final = frozenset({"Route", "Illuminate\\Support\\Facades\\Route"})
ROUTER_TYPES: Final = frozenset(
    {
        "Illuminate\\Routing\\Router",
        "Illuminate\\Routing\\RouteRegistrar",
        "Illuminate\\Contracts\\Routing\\Registrar",
        "Laravel\\Lumen\\Routing\\Router",
        "Router",
    }
)
ROUTE_TYPE: Final = "Illuminate\\Routing\\Route"
VERBS: Final = frozenset({"get", "post", "put", "patch", "delete", "options"})
RESOURCES: Final = frozenset(
    {"resource", "resources", "apiresource", "apiresources", "singleton", "singletons"}
    | {"apisingleton", "apisingletons", "softdeletableresources"}
)
ATTRIBUTES: Final = frozenset(
    {"as", "name", "prefix", "middleware", "withoutmiddleware", "controller", "domain"}
    | {"namespace", "where", "scopebindings", "withoutscopedbindings", "can", "missing"}
)
SETTINGS: Final = frozenset(
    {"pattern", "patterns", "resourceverbs", "resourceparameters", "singularresourceparameters"}
)
CONSTRAINTS: Final = frozenset(
    {"wherealpha", "wherealphanumeric", "wherenumber", "whereuuid", "whereulid", "wherein"}
)
DIRECT: Final = frozenset({"match", "any", "fallback", "redirect", "permanentredirect", "view"})
GUARDING: Final = frozenset(
    {"aliasmiddleware", "middlewaregroup", "pushmiddlewaretogroup", "prependmiddlewaretogroup"}
)
"""Router calls that define middleware names, in lower case."""

ROUTING: Final = (
    VERBS
    | RESOURCES
    | ATTRIBUTES
    | SETTINGS
    | CONSTRAINTS
    | DIRECT
    | {"group", "macro", "addroute"}
    | GUARDING
)
"""Router calls that create routes, in lower case."""

_LOADERS = frozenset(
    {"loadroutesfrom", "withrouting", "loadroutesusing", "hasroute", "hasroutes"}
    | {"withmiddleware", "withbroadcasting"}
)
_CONFIGURES = frozenset(
    {"alias", "web", "api", "group", "appendtogroup", "prependtogroup", "removefromgroup"}
    | {"replaceingroup", "statefulapi", "throttleapi", "authenticatesessions"}
)
_CONFIGURATION = "Illuminate\\Foundation\\Configuration\\Middleware"
_ROUTERS = frozenset(
    {"$router", "$route", "$r", "$this->router", "$app->router", "$this->app->router"}
    | {"$app['router']", "$this->app['router']", "app('router')", "app()->router"}
)
_OTHERS = frozenset(
    {
        "currentroutename",
        "current",
        "has",
        "is",
        "getroutes",
        "currentrouteaction",
        "currentrouteuses",
    }
    | {
        "getcurrentroute",
        "input",
        "dispatch",
        "bind",
        "model",
    }
    | {"uses", "currentroutenamed", "getroutesbyname", "hasmacro", "matched", "substitutebindings"}
)
"""Router calls for other purposes, in lower case."""

_LONGEST = 40
_WORDS: Final = (
    "withMiddleware",
    *("Route::", "Route;", "outer", "outes", "Provider", "macro", "$r->", "$route->", "Route as"),
    *("require ", "require(", "require_once", "include ", "include(", "include_once", "{Route"),
    *("Route,", "Route}"),
)
"""If a text has such a place, it contains one of these words; most texts contain none of them."""

_TELLING = LOADS | MEMBER_CALLS | {"simple_parameter", "scoped_call_expression"}
_NAMES = frozenset({"name", "qualified_name", "relative_name"})


class Marks:
    """Positions in a file of calls that may create routes, or may load files that do."""

    def __init__(self, source: PhpSource) -> None:
        self._source = source
        self._routers: set[str] = set()
        self._configurations: set[str] = set()
        self._starts: list[int] = []
        self._macro_ends = 0
        if not any(word in source.text for word in _WORDS):
            return
        self._starts = [
            node.start_byte for node in source.tree.nodes(_TELLING) if self._tells(node)
        ]

    def __bool__(self) -> bool:
        classes = self._source.classes
        return bool(self._starts) or any(is_provider(one) or is_kernel(one) for one in classes)

    def within(self, node: Node) -> bool:
        """Return whether a node contains such a position."""
        at = bisect_left(self._starts, node.start_byte)
        return at < len(self._starts) and self._starts[at] < node.end_byte

    def _tells(self, node: Node) -> bool:
        if node.type in LOADS:
            return True
        if node.type == "simple_parameter":
            self._typed(node)
            return False
        if node.type == "scoped_call_expression":
            return self._static(node)
        return self._member(node)

    def _typed(self, parameter: Node) -> None:
        """Record a parameter with a router type; its name means a router throughout the file."""
        written = self._source.tree.of(parameter.child_by_field_name("type")).lstrip("?")
        named = self._source.class_name(written, parameter) if written else ""
        if named in ROUTER_TYPES:
            self._routers.add(self._source.tree.of(parameter.child_by_field_name("name")))
        elif named == _CONFIGURATION:
            self._configurations.add(self._source.tree.of(parameter.child_by_field_name("name")))

    def _static(self, node: Node) -> bool:
        name = self._source.tree.of(node.child_by_field_name("name")).lower()
        scope = node.child_by_field_name("scope")
        if scope is None or scope.type not in _NAMES:
            return False
        owner = self._source.class_name(self._source.tree.of(scope), node)
        if owner in FACADES:
            self._macro_ends = node.end_byte if name == "macro" else self._macro_ends
            return name not in _OTHERS
        if name == "macro" and (owner in ROUTER_TYPES or owner == ROUTE_TYPE):
            self._macro_ends = node.end_byte
            return True
        return name in {"routes", "userroutes"} or (name == "route" and owner.endswith("Volt"))

    def _member(self, node: Node) -> bool:
        tree = self._source.tree
        name = tree.of(node.child_by_field_name("name")).lower()
        if name in _LOADERS:
            return True
        if name in _CONFIGURES and self._configurations:
            return tree.of(node.child_by_field_name("object")) in self._configurations
        if name not in ROUTING and name != "routes":
            return False
        held = node.child_by_field_name("object")
        # A longer text is a chain, whose start is examined separately.
        short = held is not None and held.end_byte - held.start_byte <= _LONGEST
        written = tree.of(held) if short else ""
        if name == "routes":
            return written == "$this"
        if written == "$this":  # In the body of a router macro, `$this` is the router.
            return node.start_byte < self._macro_ends
        return written.replace('"', "'") in _ROUTERS or written in self._routers


def is_kernel(one: ClassLike) -> bool:
    """Return whether a class seems to extend a kernel, which defines names of middleware."""
    return any(parent.endswith("Kernel") for parent in one.parents)


def is_provider(one: ClassLike) -> bool:
    """Return whether a class seems to extend a service provider."""
    return any(parent.rpartition("\\")[2].endswith("Provider") for parent in one.parents)
