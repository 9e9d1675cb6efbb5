"""URL patterns, read in the order in which Django's resolver tries them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import LOOPS, argument, is_a, items_of, since_last
from rag_assets.systems.code_memory.django.modules import Evidence, Module, Unresolved
from rag_assets.systems.code_memory.django.program import Program
from rag_assets.systems.code_memory.django.registrations import Registrations
from rag_assets.systems.code_memory.django.routers import ROUTERS, routes_of_router
from rag_assets.systems.code_memory.django.routing import Route
from rag_assets.systems.code_memory.django.views import View, is_of_object, view_of


@dataclass(frozen=True, slots=True)
class Suffixes:
    """The suffix that is added to each path in a list.

    Attributes:
        formats: allowed formats; all if empty.
        required: whether paths without a suffix are left out.
    """

    formats: tuple[str, ...] = ()
    required: bool = False

    def added(self, pattern: str, *, regex: bool) -> str:
        """Return a pattern with the suffix added.

        Args:
            pattern: the pattern as in the list.
            regex: whether it is a regular expression.
        """
        start = pattern.rstrip("$").rstrip("/")
        if not regex:
            return f"{start}<{'_'.join(['drf_format_suffix', *self.formats])}:format>"
        one = "|".join(self.formats) or "[a-z0-9]+"
        return rf"{start}\.(?P<format>{f'({one})' if len(self.formats) > 1 else one})/?$"


def suffixes_of(call: Any) -> Suffixes | None:
    """Return the suffixes in a call of `format_suffix_patterns`; None if they are computed."""
    required = argument(call, 1, "suffix_required") or False
    allowed = argument(call, 2, "allowed")
    formats = tuple(items_of(allowed))
    stated = all(isinstance(one, str) for one in formats) and (allowed is None or formats)
    return Suffixes(formats, required) if stated and isinstance(required, bool) else None


_CONVERTED: Final = re.compile(r"<(?:(?P<converter>[^<>:()?]{1,80}):)?(?P<name>[^\W\d]\w{0,80})>")
_GROUP: Final = re.compile(r"\(\?P<(\w{1,80})>")
_MARKS: Final = re.compile(r"\\([-./_ @:])|\\[AZz]|[\^$]")


def template_of(pattern: str) -> str:
    """Return the path template (`invoices/{pk}/`) of a pattern or of a regular expression."""
    found: list[str] = []
    for piece, name, _ in _pieces(pattern):
        found.append(f"{{{name}}}" if name else _plain(piece))
    return "".join(found)


def parameters_of(pattern: str) -> tuple[tuple[str, str], ...]:
    """Return a pattern's parameters in order, each with its converter or regular expression."""
    return tuple((name, kind) for _, name, kind in _pieces(pattern) if name)


def _plain(piece: str) -> str:
    return _MARKS.sub(lambda found: found.group(1) or "", piece)


def _pieces(pattern: str) -> list[tuple[str, str, str]]:
    """Return the texts and parameters of a pattern in order; parameters have a converter."""
    found: list[tuple[str, str, str]] = []
    at = plain = 0
    while at < len(pattern):
        group = _GROUP.match(pattern, at)
        converted = None if group else _CONVERTED.match(pattern, at)
        if group is None and converted is None:
            at += 2 if pattern[at] == "\\" else 1
            continue
        found.append((pattern[plain:at], "", ""))
        if group is not None:
            end = _closed(pattern, at)
            found.append(("", group.group(1), pattern[group.end() : end - 1]))
        elif converted is not None:
            end = converted.end()
            found.append(("", converted["name"], converted["converter"] or "str"))
        at = plain = end
    found.append((pattern[plain:], "", ""))
    return found


def _closed(pattern: str, start: int) -> int:
    """Return the offset after the parenthesis that closes a group."""
    depth, at, within = 0, start, False
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\":
            at += 1
        elif within:
            within = mark != "]"
        elif mark == "[":
            within = True
        elif mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(pattern)


PATHS: Final = frozenset({"django.urls.path", "django.urls.conf.path"})
REGEXES: Final = frozenset(
    {"django.urls.re_path", "django.urls.conf.re_path", "django.conf.urls.url"}
)
INCLUDES: Final = frozenset(
    {"django.urls.include", "django.urls.conf.include", "django.conf.urls.include"}
)
_TRANSLATED: Final = "django.conf.urls.i18n.i18n_patterns"
_SUFFIXED: Final = "rest_framework.urlpatterns.format_suffix_patterns"
_PASSING: Final = frozenset({"list", "tuple"})
_DEEPEST: Final = 30
_MOST: Final = 50_000


@dataclass(frozen=True, slots=True)
class Prefix:
    """The part of each pattern in a list that comes from the enclosing includes."""

    pattern: str = ""
    namespaces: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    within: tuple[str, ...] = ()
    suffixes: Suffixes | None = None
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class _Own:
    """The part of a pattern that comes from the list entry itself."""

    pattern: str
    regex: bool
    name: str
    view: View
    evidence: tuple[Evidence, ...]


class UrlWalk:
    """Reads the pattern lists of URL configurations one after another.

    Attributes:
        routes: routes found so far.
        unresolved: statements that may add further routes.
        entered: names of the modules whose lists were read.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._registrations: Registrations | None = None
        self.routes: list[Route] = []
        self.unresolved: list[Unresolved] = []
        self.entered: set[str] = set()

    def module(self, module: Module, prefix: Prefix) -> None:
        """Read the `urlpatterns` of a module."""
        self.entered.add(module.name)
        self._variable(module, "urlpatterns", prefix)

    def _variable(self, module: Module, name: str, prefix: Prefix) -> None:
        """Read all statements that add to a list."""
        key = f"{module.name}:{name}"
        if key in prefix.within or len(prefix.within) > _DEEPEST or len(self.routes) > _MOST:
            return
        prefix = replace(prefix, within=(*prefix.within, key))
        held = module.values("", name)
        for fact in since_last(held, name):
            at = Evidence(module.path, fact.start, fact.end)
            inner = self._under(fact.values["under"], at, prefix)
            if inner is not None:
                self._list(fact.values["value"], module, inner, name)
        for fact in module.invoked:
            self._grown(fact, module, name, prefix)

    def _grown(self, fact: Any, module: Module, name: str, prefix: Prefix) -> None:
        """Read `urlpatterns.append(…)` and similar calls."""
        call = fact.values["call"]
        target = call["call"].get("name", "") if isinstance(call["call"], dict) else ""
        if target not in {f"{mark}{name}.{verb}" for mark in ("", ":") for verb in _VERBS}:
            return
        inner = self._under(fact.values["under"], module.evidence(call), prefix)
        if inner is not None and target.endswith(".extend"):
            for value in call["arguments"][:1]:
                self._list(value, module, inner, name)
        elif inner is not None:
            for value in call["arguments"][-1:]:
                self._entry(value, module, inner)

    def _under(self, statement: str, at: Evidence, prefix: Prefix) -> Prefix | None:
        """Return the prefix for patterns under a statement; None in a loop, which computes them."""
        if not statement:
            return prefix
        self._miss(f"depends on `{statement}`", at)
        return None if statement in LOOPS else replace(prefix, conditional=True)

    def _list(self, value: Any, module: Module, prefix: Prefix, own: str = "") -> None:
        """Read a list of patterns, whatever expression it is."""
        kind = value.get("of") if isinstance(value, dict) else ""
        if kind in {"list", "tuple"}:
            for item in value["items"]:
                if isinstance(item, dict) and item["of"] == "spread":
                    self._list(item["value"], module, prefix)
                else:
                    self._entry(item, module, prefix)
        elif kind == "sum":
            for item in value["items"]:
                if not (isinstance(item, dict) and item.get("name", "").lstrip(":") == own):
                    self._list(item, module, prefix)
        elif kind == "name":
            self._named(value, module, prefix)
        elif kind == "call":
            self._made(value, module, prefix)
        else:
            self._miss(_reason(value), module.evidence(value))

    def _named(self, value: Any, module: Module, prefix: Prefix) -> None:
        written = value["name"]
        if written.endswith(".urls") and self._router(written[:-5], value, module, prefix):
            return
        place = self._program.named(written, module)
        if place is None:
            self._miss("a list of another package", module.evidence(value))
        elif place.symbol in {"", "urlpatterns"}:
            self.module(place.module, prefix)
        else:
            self._variable(place.module, place.symbol, prefix)

    def _made(self, value: Any, module: Module, prefix: Prefix) -> None:
        """Read a list of patterns that a call returns."""
        called = self._called(value, module)
        if called == _TRANSLATED:
            default = value["named"].get("prefix_default_language", True)
            inner = replace(prefix, pattern=prefix.pattern + LANGUAGE)
            if default is not True:
                self._miss("the default language may have no prefix", module.evidence(value))
            self._list(
                {"of": "list", "items": value["arguments"], "at": value["at"]}, module, inner
            )
        elif called == _SUFFIXED and value["arguments"] and (added := suffixes_of(value)):
            self._list(value["arguments"][0], module, replace(prefix, suffixes=added))
        elif called in _PASSING and value["arguments"]:
            self._list(value["arguments"][0], module, prefix)
        else:
            self._miss(
                f"a list that a call makes: {called.rpartition('.')[2]}"[:80],
                module.evidence(value),
            )

    def _entry(self, value: Any, module: Module, prefix: Prefix) -> None:
        called = self._called(value, module) if is_a(value, "call") else ""
        if called not in PATHS and called not in REGEXES:
            self._other(value, module, prefix)
            return
        pattern = argument(value, 0, "route" if called in PATHS else "regex")
        pattern = self._text(pattern, module)
        if pattern is None:
            self._miss("a computed path", module.evidence(value))
            return
        target = argument(value, 1, "view")
        inner = replace(
            prefix,
            pattern=prefix.pattern + pattern,
            evidence=(*prefix.evidence, module.evidence(value)),
        )
        if is_a(target, "call") and self._called(target, module) in INCLUDES:
            self._include(target, module, inner)
        elif is_a(target, "tuple") or _admin(target):
            self._included(target, module, inner, None)
        elif self._has_routes(target, module):
            self._miss("the routes of an object", module.evidence(value))
        else:
            name = self._text(argument(value, 3, "name"), module)
            found = view_of(self._program, target, module)
            if not found.name:
                self._miss("a computed view", module.evidence(value))
            self._route(prefix, _Own(pattern, called in REGEXES, name or "", found, inner.evidence))

    def _has_routes(self, target: Any, module: Module) -> bool:
        """Return whether a target is the list of routes of an object, such as an admin site."""
        written = target["name"] if is_a(target, "name") else ""
        return written.endswith(".urls") and is_of_object(self._program, written, module)

    def _route(self, prefix: Prefix, own: _Own) -> None:
        """Add a route; if suffixes are added, also its variant with a format suffix."""
        added = prefix.suffixes
        if added is None or not added.required:
            self._add(prefix, own)
        if added is not None:
            pattern = added.added(own.pattern, regex=own.regex)
            self._add(prefix, replace(own, pattern=pattern), suffixed=not added.required)

    def _add(self, prefix: Prefix, own: _Own, *, suffixed: bool = False) -> None:
        pattern = prefix.pattern + own.pattern
        self.routes.append(
            Route(
                template_of(pattern),
                pattern,
                ":".join([*prefix.namespaces, own.name]) if own.name else "",
                own.view.name,
                own.view.actions,
                own.view.methods,
                parameters_of(pattern),
                own.evidence,
                suffixed,
                prefix.conditional,
                self._handlers(own.view),
            )
        )

    def _handlers(self, view: View) -> dict[str, str]:
        found = {name: self._program.method(view.name, name) for _, name in view.actions}
        return {action: name for action, name in found.items() if name}

    def _other(self, value: Any, module: Module, prefix: Prefix) -> None:
        """Read an entry that is not a call of `path`: a variable, or a call of another function."""
        if is_a(value, "name"):
            place = self._program.named(value["name"], module)
            held = [] if place is None else place.module.values("", place.symbol)
            if place is not None and len(held) == 1 and not held[0].values["under"]:
                key = f"{place.module.name}:{place.symbol}"
                if key not in prefix.within:
                    inner = replace(prefix, within=(*prefix.within, key))
                    self._entry(held[0].values["value"], place.module, inner)
                return
        self._miss(_reason(value), module.evidence(value))

    def _include(self, call: Any, module: Module, prefix: Prefix) -> None:
        namespace = self._text(argument(call, 1, "namespace"), module)
        target = argument(call, 0, "arg")
        self._included(target, module, prefix, namespace)

    def _included(self, target: Any, module: Module, prefix: Prefix, namespace: str | None) -> None:
        app: str | None = None
        if is_a(target, "tuple") and target["items"]:
            items = target["items"]
            app = self._text(items[1], module) if len(items) > 1 else None
            namespace = self._text(items[2], module) if items[2:] else namespace
            target = items[0]
        if _admin(target):
            self._miss("the admin's own routes", module.evidence(target))
            return
        other = self._module_of(target, module)
        if other is not None:
            stated = self._text(other.constant("", "app_name"), other)
            self.module(other, _named(prefix, namespace or app or stated))
            return
        if isinstance(target, str):
            last = prefix.evidence[-1]
            self._miss(f"a module of another package: {target}"[:100], last)
            return
        self._list(target, module, _named(prefix, namespace or app))

    def _module_of(self, target: Any, module: Module) -> Module | None:
        if isinstance(target, str):
            return self._program.module(target)
        if is_a(target, "name") and not target["name"].startswith(":"):
            place = self._program.named(target["name"], module)
            return place.module if place is not None and not place.symbol else None
        return None

    def _router(self, written: str, value: Any, module: Module, prefix: Prefix) -> bool:
        place = self._program.named(written, module)
        if place is None or not place.symbol:
            return False
        made = place.module.constant("", place.symbol)
        if not is_a(made, "call"):
            return False
        lineage = self._program.ancestry(self._called(made, place.module))
        if ROUTERS.isdisjoint(lineage):
            return False
        if self._registrations is None:
            self._registrations = Registrations(self._program)
        held = self._registrations
        for found in routes_of_router(self._program, place, made, lineage, held):
            if isinstance(found, Unresolved):
                self.unresolved.append(found)
                continue
            evidence = (*prefix.evidence, found.evidence)
            suffixes = Suffixes() if found.suffixed else prefix.suffixes
            under = prefix.conditional or found.conditional
            inner = replace(prefix, suffixes=suffixes, conditional=under)
            regex = found.pattern.startswith("^")
            self._route(inner, _Own(found.pattern, regex, found.name, found.view, evidence))
        return True

    def _text(self, value: Any, module: Module) -> str | None:
        """Return a string, which may also be translated, a constant, or a sum of these."""
        if isinstance(value, str):
            return value
        if is_a(value, "call") and value["arguments"]:
            called = self._called(value, module)
            if "gettext" in called.rpartition(".")[2]:
                return self._text(value["arguments"][0], module)
        if is_a(value, "sum"):
            parts = [self._text(one, module) for one in value["items"]]
            return None if None in parts else "".join(one for one in parts if one)
        if is_a(value, "name"):
            place = self._program.named(value["name"], module)
            if place is not None:
                held = place.module.values("", place.symbol)
                sole = held[0].values if len(held) == 1 else {"value": None, "under": ""}
                text = isinstance(sole["value"], str) and not sole["under"]
                return sole["value"] if text else None
        return None

    def _called(self, value: Any, module: Module) -> str:
        call = value["call"]
        if not is_a(call, "name"):
            return ""
        return self._program.external(self._program.absolute(call["name"], module))

    def _miss(self, reason: str, evidence: Evidence) -> None:
        self.unresolved.append(Unresolved(reason, evidence))


LANGUAGE: Final = "<language>/"
"""Represents the prefix of `i18n_patterns`."""

_VERBS = ("append", "extend", "insert")


def _named(prefix: Prefix, namespace: str | None) -> Prefix:
    return replace(prefix, namespaces=(*prefix.namespaces, namespace)) if namespace else prefix


def _admin(value: Any) -> bool:
    return is_a(value, "name") and value["name"].endswith("site.urls")


def _reason(value: Any) -> str:
    if is_a(value, "computed"):
        return f"computed: {value['why']}"
    return (
        f"no pattern that the text states: {value['of']}"
        if isinstance(value, dict)
        else "no pattern"
    )
