"""Routes of URL configurations, in the order in which Django's resolver tries them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.django.views import (
    LOOPS,
    DjangoRoute,
    DjangoView,
    RouterReader,
    ViewReader,
)
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
)
from rag_assets.systems.code_memory.symbols.model import FileFacts

_MAX_ROUTES: Final = 50_000
_MAX_DEPTH: Final = 30
"""Maximum depth of nested lists."""
_CLASS: Final = r"\[(?:[^\]\\]|\\.){0,500}\]"
_INNER: Final = rf"\((?:[^()\\\[]|\\.|{_CLASS}){{0,500}}\)"
_NESTED: Final = rf"\((?:[^()\\\[]|\\.|{_CLASS}|{_INNER}){{0,500}}\)"
_PARAMETER: Final = re.compile(
    r"<(?:(?P<converter>[^<>:()?]{1,80}):)?(?P<name>[^\W\d]\w{0,80})>"
    rf"|\(\?P<(?P<group>\w{{1,80}})>(?P<regex>(?:[^()\\\[]|\\.|{_CLASS}|{_NESTED}){{0,500}})\)"
)
_MARKS: Final = re.compile(r"\\([-./_ @:])|\\[AZz]|[\^$]")


def build_path_template(pattern: str) -> str:
    """Return the path template (`invoices/{pk}/`) of a Django pattern or a regular expression."""
    parts, end = [], 0
    for match in _PARAMETER.finditer(pattern):
        parts += [
            _unescape_pattern(pattern[end : match.start()]),
            f"{{{match['name'] or match['group']}}}",
        ]
        end = match.end()
    return "".join([*parts, _unescape_pattern(pattern[end:])])


def list_parameters(pattern: str) -> tuple[tuple[str, str], ...]:
    """Return a pattern's parameters in order, each with its converter or regular expression."""
    return tuple(
        (match["name"], match["converter"] or "str")
        if match["name"]
        else (match["group"], match["regex"])
        for match in _PARAMETER.finditer(pattern)
    )


def _unescape_pattern(piece: str) -> str:
    return _MARKS.sub(lambda match: match.group(1) or "", piece)


@dataclass(frozen=True, slots=True)
class DjangoRoutes:
    """The routes of a repository, and the statements that may add routes but are unresolved."""

    routes: tuple[DjangoRoute, ...]
    unresolved: tuple[Unresolved, ...]


def read_routes(files: Iterable[FileFacts], root: str = "") -> DjangoRoutes:
    """Return the routes of a repository, in the resolver's order.

    Args:
        root: module of the outermost URL configuration; by default the modules that settings name,
            or else the modules that no other module includes.
    """
    program = PythonProgram(files)
    reader = _UrlReader(program)
    for name in [root] if root else _find_root_modules(program):
        reader.read_module(program.modules[name], _Prefix())
    return DjangoRoutes(tuple(reader.routes), tuple(dict.fromkeys(reader.unresolved)))


def _find_root_modules(program: PythonProgram) -> list[str]:
    stated_modules = [
        name for name in program.iter_assigned_texts("ROOT_URLCONF") if name in program.modules
    ]
    if stated_modules:
        return [*dict.fromkeys(stated_modules)]
    lists = [module for module in program if module.list_assignments("", "urlpatterns")]
    included: set[str] = set()
    for module in lists:
        reader = _UrlReader(program)
        reader.read_module(module, _Prefix())
        included |= reader.entered - {module.name}
    return [module.name for module in lists if module.name not in included]


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The prefix that the enclosing `include()` calls add to each route in a list of patterns.

    Attributes:
        pattern: the pattern before the route's own.
        within: the enclosing lists, by module and variable.
    """

    pattern: str = ""
    namespaces: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    within: tuple[str, ...] = ()
    conditional: bool = False

    def add(self, pattern: str, evidence: Evidence) -> _Prefix:
        """Return the prefix with the pattern of one more statement."""
        return replace(self, pattern=self.pattern + pattern, evidence=(*self.evidence, evidence))

    def add_namespace(self, name: str | None) -> _Prefix:
        """Return the prefix with one more namespace, if there is one."""
        return replace(self, namespaces=(*self.namespaces, name)) if name else self


class _UrlReader:
    """A reader of the lists of patterns in URL configurations."""

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        self._views = ViewReader(program)
        self._data = get_framework("django").views
        self.routes: list[DjangoRoute] = []
        self.unresolved: list[Unresolved] = []
        self.entered: set[str] = set()

    @cached_property
    def _routers(self) -> RouterReader:
        return RouterReader(self._program)

    def read_module(self, module: Module, prefix: _Prefix) -> None:
        """Read the routes in the variable `urlpatterns` of a module."""
        self.entered.add(module.name)
        self._read_variable(module, "urlpatterns", prefix)

    def _read_variable(self, module: Module, name: str, prefix: _Prefix) -> None:
        """Read the routes in all statements that assign or add to a list of patterns."""
        key = f"{module.name}:{name}"
        is_full = len(prefix.within) > _MAX_DEPTH or len(self.routes) > _MAX_ROUTES
        if key in prefix.within or is_full:
            return
        prefix = replace(prefix, within=(*prefix.within, key))
        for fact in module.list_assignments("", name):
            inner = self._find_statement_prefix(fact, module, prefix)
            if inner is not None:
                self._read_patterns(fact.values["value"], module, inner)
        for fact in module.invoked:
            owner, _, verb = get_written_name(fact.values["call"]).lstrip(":").rpartition(".")
            if owner == name and verb in {"append", "extend", "insert"}:
                inner = self._find_statement_prefix(fact, module, prefix)
                arguments = fact.values["call"]["arguments"]
                if inner is not None and arguments:
                    self._read_patterns(arguments[-1], module, inner)

    def _find_statement_prefix(self, fact: Fact, module: Module, prefix: _Prefix) -> _Prefix | None:
        """Return the prefix for the patterns in a statement; None if a loop creates them."""
        statement = fact.values["under"]
        if not statement:
            return prefix
        self._report_unresolved(
            f"depends on `{statement}`", Evidence(module.path, fact.start, fact.end)
        )
        return None if statement in LOOPS else replace(prefix, conditional=True)

    def _read_patterns(self, value: Any, module: Module, prefix: _Prefix) -> None:
        """Read the routes in an expression: a pattern, or a list of patterns."""
        kind = value.get("of") if isinstance(value, dict) else ""
        if kind in {"list", "tuple", "sum"}:
            for item in value["items"]:
                self._read_patterns(item, module, prefix)
        elif kind == "spread":
            self._read_patterns(value["value"], module, prefix)
        elif kind == "name":
            self._read_name(value, module, prefix)
        elif kind == "call":
            self._read_call(value, module, prefix)
        else:
            why = f"computed: {value['why']}" if kind == "computed" else "no pattern"
            self._report_unresolved(why, module.build_evidence(value))

    def _read_name(self, value: Any, module: Module, prefix: _Prefix) -> None:
        written = value["name"]
        owner = self._program.find_place(written.removesuffix(".urls"), module)
        if written.endswith(".urls") and owner is not None and owner.symbol:
            if self._routers.is_router(owner):
                self._read_router(owner, prefix)
            else:
                self._report_unresolved(
                    "routes that an object returns", module.build_evidence(value)
                )
            return
        place = self._program.find_place(written, module)
        if place is None:
            self._report_unresolved("a list in a different package", module.build_evidence(value))
        elif place.symbol in {"", "urlpatterns"}:
            self.read_module(place.module, prefix)
        else:
            self._read_variable(place.module, place.symbol, prefix)

    def _read_call(self, value: Any, module: Module, prefix: _Prefix) -> None:
        """Read the route that a call creates, or the patterns that a call wraps."""
        function = self._program.get_called_name(value, module)
        if function in self._data.paths:
            self._read_path(value, module, prefix)
        elif function in self._data.lists:
            inner = replace(prefix, pattern=prefix.pattern + self._data.lists[function])
            for item in value["arguments"]:
                self._read_patterns(item, module, inner)
        else:
            reason = f"a list that a function returns: {function.rpartition('.')[2]}"
            self._report_unresolved(reason[:100], module.build_evidence(value))

    def _read_path(self, call: Any, module: Module, prefix: _Prefix) -> None:
        """Read the route in a call of `path` or of a similar function."""
        pattern = self._find_string_value(find_argument(call, 0, "route"), module)
        evidence, target = module.build_evidence(call), find_argument(call, 1, "view")
        if pattern is None:
            self._report_unresolved("a computed path", evidence)
            return
        inner = prefix.add(pattern, evidence)
        if self._program.get_called_name(target, module) in self._data.includes:
            namespace = self._find_string_value(find_argument(target, 1, "namespace"), module)
            self._read_included(find_argument(target, 0, "arg"), module, inner, namespace)
        elif is_a(target, "tuple") or get_written_name(target).endswith(".urls"):
            self._read_included(target, module, inner)
        else:
            view = self._views.build_view(target, module)
            if not view.name:
                self._report_unresolved("a computed view", evidence)
            self._add_route(
                inner, self._find_string_value(find_argument(call, 3, "name"), module), view
            )

    def _read_included(
        self, target: Any, module: Module, prefix: _Prefix, namespace: str | None = None
    ) -> None:
        """Read the argument of `include`: a module or list, maybe in a tuple with a namespace."""
        app: str | None = None
        if is_a(target, "tuple") and target["items"]:
            target, *names = target["items"]
            app, *instance = [self._find_string_value(name, module) for name in names] or [None]
            namespace = instance[0] if instance else namespace
        other = self._find_included_module(target, module)
        if is_a(target, "name") and target["name"].endswith("site.urls"):
            self._report_unresolved("the admin's own routes", module.build_evidence(target))
        elif other is not None:
            stated_app = self._find_string_value(other.find_last_value("", "app_name"), other)
            self.read_module(other, prefix.add_namespace(namespace or app or stated_app))
        elif isinstance(target, str):
            reason = f"a module in a different package: {target}"
            self._report_unresolved(reason[:100], prefix.evidence[-1])
        else:
            self._read_patterns(target, module, prefix.add_namespace(namespace or app))

    def _find_included_module(self, target: Any, module: Module) -> Module | None:
        if isinstance(target, str):
            return self._program.modules.get(target)
        if is_a(target, "name") and not target["name"].startswith(":"):
            place = self._program.find_place(target["name"], module)
            return place.module if place is not None and not place.symbol else None
        return None

    def _read_router(self, router: PythonName, prefix: _Prefix) -> None:
        for route in self._routers.iter_routes(router):
            if isinstance(route, Unresolved):
                self.unresolved.append(route)
            else:
                inner = replace(prefix, conditional=prefix.conditional or route.conditional)
                self._add_route(inner.add(route.pattern, *route.evidence), route.name, route.view)

    def _add_route(self, prefix: _Prefix, name: str | None, view: DjangoView) -> None:
        full = ":".join([*prefix.namespaces, name]) if name else ""
        route = DjangoRoute(prefix.pattern, full, view, prefix.evidence, prefix.conditional)
        self.routes.append(route)

    def _find_string_value(self, value: Any, module: Module) -> str | None:
        """Return the string value of a literal, a constant or a sum of these; None if unknown."""
        if is_a(value, "sum"):
            parts = [self._find_string_value(item, module) for item in value["items"]]
            return None if None in parts else "".join(part for part in parts if part)
        if is_a(value, "name"):
            place = self._program.find_place(value["name"], module)
            assignments = [] if place is None else place.module.list_assignments("", place.symbol)
            is_constant = len(assignments) == 1 and not assignments[0].values["under"]
            value = assignments[0].values["value"] if is_constant else None
        return value if isinstance(value, str) else None

    def _report_unresolved(self, reason: str, evidence: Evidence) -> None:
        self.unresolved.append(Unresolved(reason, evidence))
