"""Routes that follow from the statements of a repository's files and the data of one framework.

Routers are followed through variables, groups, parameters, blocks and mounts in other files. What
only running the program would tell is kept as unresolved.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from rag_assets.code.framework_data.definitions import (
    FOUND,
    Framework,
    Pages,
    Resources,
    Routes,
)
from rag_assets.code.framework_data.statements import (
    ANNOTATION,
    ASSIGNED,
    CALL,
    CLASS,
    FUNCTION,
)
from rag_assets.code.model import Fact, FileFacts

_DEEPEST: Final = 8
"""Routers that are mounted in, or made by, each other."""
_MOST_AROUND: Final = 40
"""Blocks around a statement that count, inner ones first."""
_MOST_PREFIXES: Final = 20
_VERBS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "ANY"})
LAST_PARTS: Final = re.compile(r"[.:#/\\]+")


@dataclass(slots=True)
class Route:
    """A route with what states it.

    Attributes:
        handler: as it is written; handler_at: where it stands, -1 if elsewhere.
    """

    methods: tuple[str, ...]
    path: str
    handler: str
    file: File
    fact: Fact
    framework: str
    handler_at: int = -1


class File:
    """The statements of one file, by kind and place."""

    def __init__(self, file: FileFacts) -> None:
        self.path = file.path
        self.language = file.language
        kinds: dict[str, list[Fact]] = {}
        for fact in file.facts:
            kinds.setdefault(fact.kind, []).append(fact)
        self.calls = kinds.get(CALL, [])
        self.annotations = kinds.get(ANNOTATION, [])
        self.classes = kinds.get(CLASS, [])
        self.functions = kinds.get(FUNCTION, [])
        self.values = kinds.get(ASSIGNED, [])
        self.declared = [one for one in kinds.get("declares", []) if one.symbol]
        self.imports = kinds.get("imports", [])
        self.frameworks = {name for one in kinds.get(FOUND, ()) for name in one.values["names"]}
        self.by_place = {(one.start, one.end): one for one in self.calls}
        self._starts = [one.start for one in self.calls]

    def around(self, facts: Sequence[Fact], at: int) -> list[Fact]:
        """Return the facts that hold an offset, outer ones first."""
        held = [one for one in facts if one.start <= at < one.end]
        return sorted(held, key=lambda one: (one.start, -one.end))[-_MOST_AROUND:]

    def is_in_annotation(self, fact: Fact) -> bool:
        """Return whether a call is written within an annotation."""
        return any(one.start <= fact.start and fact.end <= one.end for one in self.annotations)

    def value_of(self, name: str, before: int) -> Fact | None:
        """Return the last assignment of a name before an offset, else the first one."""
        known = self._assigned.get(name, [])
        at = bisect_right([one.start for one in known], before) - 1
        return known[max(at, 0)] if known else None

    def name_of(self, call: Fact) -> str:
        """Return the name that a chain of calls, which begins with one, is assigned to."""
        told = ((one.values["name"], one.values["value"]) for one in self.values)
        return next((name for name, v in told if v[0] == "c" and v[1] == call.start), "")

    @cached_property
    def _assigned(self) -> Mapping[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for one in self.values:
            found.setdefault(one.values["name"].rpartition(".")[2], []).append(one)
        return found

    @cached_property
    def imported(self) -> Mapping[str, str]:
        """The modules of imported names."""
        found: dict[str, str] = {}
        for fact in self.imports:
            name = str(fact.values.get("name", ""))
            if alias := fact.values.get("alias"):
                found[str(alias)] = name
            for one in fact.values.get("names", ()):
                if len(one) > 1:
                    found[str(one[1])] = name if self.language != "rust" else str(one[0])
        return found


@dataclass
class Repository:
    """The files of one repository that one framework's data are applied to."""

    framework: Framework
    files: Sequence[File]
    unresolved: list[tuple[str, int, str]] = field(default_factory=list)

    def routes(self) -> Iterator[Route]:
        """Yield the routes of all files."""
        for file in self.files:
            for routes in self.framework.routes:
                if routes.calls:
                    yield from self._called(file, routes)
                if routes.annotations:
                    yield from self._annotated(file, routes)
            if self.framework.resources is not None:
                yield from self._resources(file, self.framework.resources)
            for pages in self.framework.pages:
                yield from self._pages(file, pages)

    def _called(self, file: File, routes: Routes) -> Iterator[Route]:
        for fact in file.calls:
            name = fact.values["name"]
            if name not in routes.calls or file.is_in_annotation(fact):
                continue
            is_elsewhere = routes.within and not self._is_within(file, fact, routes.within)
            prefixes = [] if is_elsewhere else self._receivers(file, fact, routes)
            if prefixes:
                yield from self._stated(file, fact, routes, prefixes)

    def _stated(
        self, file: File, fact: Fact, routes: Routes, prefixes: Sequence[str | None]
    ) -> Iterator[Route]:
        """Yield the routes of one call, once for each prefix of what it is made on."""
        path = self._path(file, fact, routes)
        if not path and self._is_path_in_chain(file, fact):
            path = ""
        elif path == "" and routes.needs_path:
            return
        methods = self._methods(routes.calls[fact.values["name"]], routes, fact)
        if routes.has_method_in_path and path:
            first, _, rest = path.partition(" ")
            methods, path = ((first,), rest) if rest and first in _VERBS else (methods, path)
            path = path[path.find("/") :] if "/" in path else path
        handlers = [*self._verbs(file, fact, routes)] if routes.verbs else []
        if path is None or None in prefixes:
            self._report(file, fact)
            return
        for prefix in filter(lambda one: one is not None, prefixes[:_MOST_PREFIXES]):
            for each, handler in handlers or [(methods, self._handler(file, fact, routes))]:
                full = joined(str(prefix), path)
                yield Route(each, full, handler, file, fact, self.framework.name)

    def _is_within(self, file: File, fact: Fact, names: Sequence[str]) -> bool:
        return any(
            one.values["name"] in names
            for one in file.around(file.calls, fact.start)
            if one != fact
        )

    def _report(self, file: File, fact: Fact) -> None:
        reason = f"the path of a route ({self.framework.name}) is computed"
        self.unresolved.append((file.path, fact.line_start, reason))

    def _is_path_in_chain(self, file: File, fact: Fact) -> bool:
        value = fact.values.get("on", ["?"])
        for _ in range(_DEEPEST):
            if value[0] != "c":
                break
            if value[3] in self.framework.routers.nested:
                return True
            call = file.by_place.get((value[1], value[2]))
            value = call.values.get("on", ["?"]) if call is not None else ["?"]
        return False

    def _methods(self, said: str, routes: Routes, fact: Fact) -> tuple[str, ...]:
        if said:
            return tuple(said.split("|"))
        value = argument(fact, routes.method) if routes.method else None
        texts = [value] if value is not None and value[0] in {"s", "n"} else []
        if value is not None and value[0] == "l":
            texts = value[1]
        told = (LAST_PARTS.split(str(one[1]))[-1].upper() for one in texts if one[0] in {"s", "n"})
        found = tuple(one.removeprefix("METHOD") for one in told)
        return tuple(one for one in found if one in _VERBS) or (("ANY",) if texts else ("GET",))

    def _path(self, file: File, fact: Fact, routes: Routes) -> str | None:
        """Return the path of a route; "" for none, None for one that is computed."""
        if routes.is_joined:
            parts = [one[1] for one in fact.values["arguments"] if one[0] == "s"]
            others = any(one[0] not in "sfnc" for one in fact.values["arguments"])
            return None if others else "/".join(parts)
        value = argument(fact, routes.path)
        if value is None or value[0] in {"f", "d"} or (value[0] == "c" and routes.verbs):
            return ""
        return self._text(file, value, fact.start)

    def _text(self, file: File, value: Sequence[Any], at: int, depth: int = 0) -> str | None:
        if value[0] == "s":
            return str(value[1])
        if value[0] == "l" and len(value[1]) == 1:
            return self._text(file, value[1][0], at, depth + 1)
        if value[0] == "n" and depth < _DEEPEST:
            held = file.value_of(value[1].rpartition(".")[2], at)
            return self._text(file, held.values["value"], at, depth + 1) if held else None
        if value[0] == "+" and depth < _DEEPEST:
            parts = [self._text(file, one, at, depth + 1) for one in value[1]]
            return None if None in parts else "".join(one for one in parts if one)
        return None

    def _handler(self, file: File, fact: Fact, routes: Routes) -> str:
        value = argument(fact, routes.handler)
        if value is None and self.framework.handlers == "rails":
            return self._usual_action(file, fact, routes)
        if value is not None and value[0] == "l" and value[1]:
            value = value[1][-1]
        if value is None or value[0] not in {"n", "s", "c"}:
            return ""
        name = str(value[3] if value[0] == "c" else value[1])
        if self.framework.handlers == "alias" and value[0] == "n":
            action = fact.values["arguments"][2:3]
            return f"{name}::{action[0][1]}" if action and action[0][0] == "s" else name
        if self.framework.handlers == "rails" and "#" in name:
            return _controller(name)
        return name if value[0] != "s" else ""

    def _verbs(
        self, file: File, fact: Fact, routes: Routes
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield methods and handlers of `get(show).post(store)`, which is an argument."""
        value = next((one for one in fact.values["arguments"] if one[0] == "c"), None)
        told: list[tuple[tuple[str, ...], str]] = []
        handler = ""
        while value is not None and value[0] == "c" and len(told) < _DEEPEST:
            call = file.by_place.get((value[1], value[2]))
            if call is None:
                break
            given = [one for one in call.values["arguments"] if one[0] in {"n", "f"}]
            name = given[-1][1] if given and given[-1][0] == "n" else handler
            if (method := routes.verbs.get(call.values["name"])) is not None:
                told.append((tuple(method.split("|")), name))
            elif given:
                handler = name
            value = call.values.get("on")
        yield from reversed(told)

    def _receivers(self, file: File, fact: Fact, routes: Routes) -> list[str | None]:
        """Return the prefixes of what a route is added to; none if that is no router."""
        on = fact.values.get("on")
        if on is None:
            if not self.framework.routers.is_implicit:
                return []
            return [self._block_prefix(file, fact)]
        found = self._prefixes(file, on, fact.start, 0)
        if not found and on[0] == "n":
            return self._in_block(file, fact)
        blocks = self._block_prefix(file, fact)
        return _all_joined(self._held(file, fact), _all_joined(found, [blocks]))

    def _held(self, file: File, fact: Fact, depth: int = 0) -> list[str | None]:
        """Return the prefixes of the router whose call has a router as its argument."""
        holders = self.framework.routers.holders
        around = file.around(file.calls, fact.start) if holders and depth < _DEEPEST else []
        for one in reversed(around):
            on = one.values.get("on", ["?"])
            if one.values["name"] in holders and (on[0] != "c" or on[2] <= fact.start):
                found = self._prefixes(file, on, one.start, depth + 1)
                return _all_joined(self._held(file, one, depth + 1), found)
        return [""]

    def _in_block(self, file: File, fact: Fact) -> list[str | None]:
        """Return the prefixes of the block around a route: of its parameter, which has any name."""
        for one in reversed(file.around(file.calls, fact.start)):
            is_block = one != fact and ["f"] in one.values["arguments"]
            if is_block and one.values["name"] in self.framework.routers.nested:
                return self._of_call(file, one, 0)
        return []

    def _block_prefix(self, file: File, fact: Fact) -> str | None:
        """Return the prefix of the blocks around a call."""
        path: str | None = ""
        resources = self.framework.resources
        for one in file.around(file.calls, fact.start):
            name = one.values["name"]
            if one == fact or path is None or ["f"] not in one.values["arguments"]:
                continue
            if name in self.framework.routers.nested:
                part = self._nested_path(file, one)
                path = None if part is None else joined(path, part)
            elif resources is not None and name in resources.calls:
                held = argument(one, "0")
                text = self._text(file, held, one.start) if held else None
                plain = any(
                    b.values["name"] in resources.blocks
                    and resources.blocks[b.values["name"]] == ""
                    for b in file.around(file.calls, fact.start)
                )
                plain = plain or _named(fact, "on") == "collection"
                is_one = resources.calls[name] == "one"
                single = _singular(text.rpartition("/")[2]) if text else ""
                is_member = any(
                    resources.blocks.get(b.values["name"]) == "id"
                    for b in file.around(file.calls, fact.start)
                )
                is_member = is_member or _named(fact, "on") == "member"
                key = _named(one, "param") or "id"
                key = key if is_member else f"{single}_{key}"
                own = f"{text}" if plain or is_one else f"{text}/{{{key}}}"
                path = None if text is None else joined(path, own)
        return path

    def _nested_path(self, file: File, one: Fact) -> str | None:
        told = argument(one, "path|0")
        if told is None or told[0] in {"f", "n", "d"}:
            named = argument(one, "path")
            return "" if named is None or named[0] == "n" else self._text(file, named, one.start)
        return self._text(file, told, one.start)

    def _prefixes(self, file: File, value: Sequence[Any], at: int, depth: int) -> list[str | None]:
        """Return the prefixes of a router; none if the value is none, as far as it tells."""
        if value[0] == "c" and depth <= _DEEPEST:
            call = file.by_place.get((value[1], value[2]))
            return self._of_call(file, call, depth) if call is not None else []
        if value[0] != "n" or depth > _DEEPEST:
            return []
        name = str(value[1]).rpartition(".")[2]
        passed = self._of_parameter(file, name, at, depth)
        if passed is not None:
            return passed
        held = file.value_of(name, at)
        if held is not None and held.start <= at:
            given = held.values["value"]
            made = file.by_place.get((given[1], given[2])) if given[0] == "c" else None
            if made is not None:
                return self._of_call(file, made, depth, name)
            if given[0] == "n":
                return self._prefixes(file, given, held.start, depth + 1)
        is_router = name in self.framework.routers.called
        return (self._mounted(file, name, depth) or [""]) if is_router else []

    def _of_parameter(self, file: File, name: str, at: int, depth: int) -> list[str | None] | None:
        """Return the prefixes of a router that is a parameter; None if the name is none."""
        types = self.framework.routers.types
        for function in reversed(file.around(file.functions, at)):
            for index, (parameter, type_) in enumerate(function.values["parameters"]):
                if parameter == name and (type_.lstrip("&*") in types or type_ in types):
                    return self._passed(function.values["name"], index, depth) or [""]
        return None

    def _passed(self, function: str, index: int, depth: int) -> list[str | None]:
        found: list[str | None] = []
        for file, call in self._by_name.get(function, ()):
            given = call.values["arguments"]
            if index < len(given) and len(found) < _MOST_PREFIXES:
                prefixes = self._prefixes(file, given[index], call.start, depth + 1)
                block = self._block_prefix(file, call)
                found += [
                    None if p is None or block is None else joined(p, block) for p in prefixes
                ]
        return found

    def _of_call(self, file: File, call: Fact, depth: int, name: str = "") -> list[str | None]:
        routers = self.framework.routers
        called = call.values["name"]
        on = call.values.get("on")
        qualified = f"{on[1]}.{called}" if on and on[0] == "n" else called
        if called in routers.made_by or qualified in routers.made_by:
            told = argument(call, routers.prefix) if routers.prefix else None
            own = self._text(file, told, call.start) if told is not None else ""
            if told is not None and told[0] in {"f", "d"}:
                own = ""
            if own is None:
                return [None]
            name = name or file.name_of(call)
            mounted = self._mounted(file, name, depth, at=call.start) or [""]
            return [None if one is None else joined(one, own) for one in mounted]
        if on is None:
            return []
        outer = self._prefixes(file, on, call.start, depth + 1)
        if called in routers.nested:
            part = self._nested_path(file, call)
            if self.framework.routes and any(one.is_joined for one in self.framework.routes):
                strings = [one[1] for one in call.values["arguments"] if one[0] == "s"]
                part = "/".join(strings)
            return [None if one is None or part is None else joined(one, part) for one in outer]
        return outer

    def _mounted(
        self, file: File, name: str, depth: int, at: int | None = None
    ) -> list[str | None]:
        """Return the prefixes under which a router of a file is mounted."""
        keys = [(file.path, name), (file.path, "*")]
        if at is not None:
            stem = posixpath.splitext(file.path)[0].removesuffix("/mod")
            places = (posixpath.basename(stem), posixpath.basename(posixpath.dirname(file.path)))
            owners = ("", *(f"{place}::" for place in places))
            functions = [one.values["name"] for one in file.around(file.functions, at)]
            keys += [("()", owner + name) for name in functions for owner in owners]
        found: list[str | None] = []
        for key in keys:
            for other, call, path in self._mounts.get(key, ()):
                on = call.values.get("on", ["?"])
                is_own = other is file and on == ["n", name] and key[0] != "()"
                if len(found) >= _MOST_PREFIXES or is_own:
                    continue
                outer = self._prefixes(other, on, call.start, depth + 1) or [""]
                found += [None if p is None or path is None else joined(p, path) for p in outer]
            if found:
                break
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, list[tuple[File, Fact]]]:
        found: dict[str, list[tuple[File, Fact]]] = {}
        for file in self.files:
            for call in file.calls:
                found.setdefault(call.values["name"], []).append((file, call))
        return found

    @cached_property
    def _mounts(self) -> Mapping[tuple[str, str], list[tuple[File, Fact, str | None]]]:
        """Mounts by the file and the name of the router that is mounted."""
        found: dict[tuple[str, str], list[tuple[File, Fact, str | None]]] = {}
        for called, (router, prefix) in self.framework.routers.mounts.items():
            for file, call in self._by_name.get(called, ()):
                value = argument(call, router)
                if value is None or value[0] not in {"n", "c"}:
                    continue
                told = argument(call, prefix) if prefix else None
                path = self._text(file, told, call.start) if told and told[0] in "sn+?" else ""
                if told is not None and told == value:
                    path = ""
                for key in self._targets(file, value):
                    found.setdefault(key, []).append((file, call, path))
        return found

    def _targets(self, file: File, value: Sequence[Any]) -> list[tuple[str, str]]:
        """Return what a mounted router may be: a variable of a file, or what a function returns."""
        if value[0] == "c":
            call = file.by_place.get((value[1], value[2]))
            if value[3] == "require" and call is not None and call.values["arguments"]:
                required = str(call.values["arguments"][0][-1])
                return [(one.path, "*") for one in self._modules(file, required)]
            on = call.values.get("on", ["?"]) if call is not None else ["?"]
            before = f"{LAST_PARTS.split(str(on[1]))[-1]}::" if on[0] == "n" else ""
            return [("()", f"{before}{value[3]}")]
        first, _, rest = str(value[1]).partition(".")
        module = file.imported.get(first)
        if module is None:
            return [(file.path, first)]
        last = rest.rpartition(".")[2]
        if self.framework.languages[0] != "python":
            return [(one.path, last or "*") for one in self._modules(file, module)]
        owner, _, name = module.rpartition(".")
        whole = [(one.path, last) for one in self._modules(file, module)] if last else []
        return whole or [(one.path, name) for one in self._modules(file, owner)]

    def _modules(self, file: File, module: str) -> list[File]:
        module = re.sub(r"\.[jt]sx?$", "", module)
        if module.startswith("."):
            folder = posixpath.dirname(file.path)
            place = posixpath.normpath(posixpath.join(folder, module))
        elif file.language == "python":
            place = module.replace(".", "/")
        else:
            place = module.lstrip("@~/")
        found = self._by_stem.get(place) or self._by_stem.get(posixpath.join(place, "index"))
        if found is None and not module.startswith("."):
            ends = f"/{place}"
            stems = [s for s in self._by_stem if s.endswith((ends, f"{ends}/index"))]
            found = [one for s in stems for one in self._by_stem[s]] if len(stems) == 1 else None
        return found or []

    @cached_property
    def _by_stem(self) -> Mapping[str, list[File]]:
        found: dict[str, list[File]] = {}
        for one in self.files:
            stem = posixpath.splitext(one.path)[0].removesuffix("/__init__")
            found.setdefault(stem, []).append(one)
        return found

    def _annotated(self, file: File, routes: Routes) -> Iterator[Route]:
        for fact in file.annotations:
            values = fact.values
            if values["name"] not in routes.annotations:
                continue
            start = values["target"][0]
            owners = [one for one in file.around(file.classes, start) if one.start < start]
            if any(one.start == start for one in file.classes):
                continue
            told = self._path(file, fact, routes)
            if told == "" and routes.needs_path:
                continue
            prefixes = self._annotated_prefixes(file, fact, routes, owners)
            methods = self._methods(routes.annotations[values["name"]], routes, fact)
            handler = f"{owners[-1].values['name']}.{values['of']}" if owners else values["of"]
            for prefix in prefixes:
                if prefix is None or told is None:
                    self._report(file, fact)
                    break
                path = told if told[:2] == "~/" else joined(prefix, told)
                path = self._tokens(path.lstrip("~"), owners, values["of"])
                yield Route(methods, path, handler, file, fact, self.framework.name, start)

    def _annotated_prefixes(
        self, file: File, fact: Fact, routes: Routes, owners: Sequence[Fact]
    ) -> list[str | None]:
        """Return the prefixes of a route by annotation: of its router, or of its class."""
        if owners and routes.class_prefix:
            return self._class_prefixes(file, owners[-1], routes)
        if "on" in fact.values:
            return self._prefixes(file, fact.values["on"], fact.start, 0)
        if routes.is_plain:
            return self._added(file, fact.values["of"]) or [""]
        return [] if self.framework.routers.made_by and not routes.class_prefix else [""]

    def _added(self, file: File, function: str) -> list[str | None]:
        """Return the prefixes of the routers that a function with annotations is added to."""
        found: list[str | None] = []
        for holder in self.framework.routers.holders:
            for other, call in self._by_name.get(holder, ()):
                given = [one[1] for one in call.values["arguments"] if one[0] == "n"]
                if any(LAST_PARTS.split(str(one))[-1] == function for one in given):
                    on = call.values.get("on", ["?"])
                    own = self._prefixes(other, on, call.start, 1) or [""]
                    found += _all_joined(self._held(other, call), own)
        return found[:_MOST_PREFIXES]

    def _usual_action(self, file: File, fact: Fact, routes: Routes) -> str:
        """Return the action that Rails takes by the path, in the block of a resource."""
        resources = self.framework.resources
        value = argument(fact, routes.path)
        if value is None or resources is None:
            return ""
        for one in reversed(file.around(file.calls, fact.start)):
            kind = resources.calls.get(one.values["name"])
            if kind is not None and one.values["arguments"][0][0] == "s":
                owner = self._resource_owner(file, one, str(one.values["arguments"][0][1]), kind)
                return f"{owner}::{value[-1]}"
        return ""

    def _tokens(self, path: str, owners: Sequence[Fact], action: str) -> str:
        name = owners[-1].values["name"].removesuffix("Controller") if owners else ""
        return path.replace("[controller]", name).replace("[action]", action)

    def _class_prefixes(self, file: File, owner: Fact, routes: Routes) -> list[str | None]:
        found: list[str | None] = []
        for one in file.annotations:
            if one.values["target"][0] == owner.start and one.values["name"] in routes.class_prefix:
                value = argument(one, "path|value|0")
                if value is not None and value[0] == "l":
                    found += [self._text(file, each, owner.start) for each in value[1]]
                elif value is not None and value[0] == "d":
                    held = value[1].get("path")
                    found.append(self._text(file, held, owner.start) if held else "")
                else:
                    found.append("" if value is None else self._text(file, value, owner.start))
        return found or [""]

    def _resources(self, file: File, resources: Resources) -> Iterator[Route]:
        for fact in file.calls:
            kind = resources.calls.get(fact.values["name"])
            if kind is None or not self._is_in_routes(file, fact):
                continue
            names = [one for one in fact.values["arguments"] if one[0] == "s"]
            prefix = self._block_prefix(file, fact)
            if not names or prefix is None:
                self._report(file, fact)
                continue
            chosen = _words(fact, resources.only)
            dropped = _words(fact, resources.but) or []
            path_named = _named(fact, "path")
            for name in names:
                base = joined(prefix, path_named if path_named is not None else name[1])
                owner = self._resource_owner(file, fact, str(name[1]), kind)
                for action, told in resources.actions[kind].items():
                    if (chosen is not None and action not in chosen) or action in dropped:
                        continue
                    method, _, rest = told.partition(" ")
                    path = joined(
                        base, rest.replace("{id}", f"{{{_named(fact, 'param') or 'id'}}}")
                    )
                    handler = f"{owner}::{action}"
                    yield Route(
                        tuple(method.split("|")), path, handler, file, fact, self.framework.name
                    )

    def _is_in_routes(self, file: File, fact: Fact) -> bool:
        within = [one.within for one in self.framework.routes if one.within]
        return not within or any(self._is_within(file, fact, names) for names in within)

    def _resource_owner(self, file: File, fact: Fact, name: str, kind: str) -> str:
        alias = next((one[1] for one in fact.values["arguments"] if one[0] == "n"), None)
        if alias is not None:
            return str(alias)
        named = _named(fact, "controller")
        plural = name if kind == "many" or name.endswith("s") else f"{name}s"
        return _camel(named or plural.rpartition("/")[2]) + "Controller"

    def _pages(self, file: File, pages: Pages) -> Iterator[Route]:
        found = re.search(pages.path, file.path[-400:])
        if found is None:
            return
        route = re.sub(pages.drop, "", f"/{found['route']}") if pages.drop else f"/{found['route']}"
        path = joined(pages.prefix, route.removesuffix("/index"))
        first = next((d for d in file.declared if d.values.get("exported")), None)
        if not pages.methods:
            place = first or next(iter(file.declared), None)
            if place is not None:
                methods = ("ANY",) if pages.prefix else ("GET",)
                name = place.symbol
                yield Route(methods, path, name, file, place, self.framework.name, place.start)
            return
        for one in file.declared:
            if one.symbol in pages.methods:
                yield Route(
                    (one.symbol,), path, one.symbol, file, one, self.framework.name, one.start
                )


def argument(fact: Fact, place: str) -> list[Any] | None:
    """Return the first of the arguments that a rule names: `path|value|0`."""
    given, named = fact.values["arguments"], fact.values.get("named", {})
    for one in place.split("|"):
        if one.lstrip("-").isdigit():
            at = int(one)
            if -len(given) <= at < len(given):
                return list(given[at])
        elif one in {"key", "value_of_key"}:
            pair = next((p for p in named.items() if p[1][0] == "s" and "#" in p[1][1]), None)
            if pair is not None and pair[0] != "to":
                return ["s", pair[0]] if one == "key" else list(pair[1])
        elif one in named:
            return list(named[one])
        elif held := next((v[1][one] for v in given if v[0] == "d" and one in v[1]), None):
            return list(held)
    return None


def _named(fact: Fact, name: str) -> str | None:
    value = fact.values.get("named", {}).get(name)
    return str(value[1]) if value and value[0] == "s" else None


def _words(fact: Fact, name: str) -> list[str] | None:
    value = fact.values.get("named", {}).get(name)
    if value is None:
        return None
    return [str(one[1]) for one in value[1]] if value[0] == "l" else [str(value[-1])]


def joined(before: str, after: str) -> str:
    """Return a path that continues another one."""
    parts = [one for one in (before.strip("/"), after.strip("/")) if one]
    return "/" + "/".join(parts)


def _all_joined(before: Sequence[str | None], after: Sequence[str | None]) -> list[str | None]:
    pairs = ((a, b) for a in before for b in after)
    found = [None if a is None or b is None else joined(a, b) for a, b in pairs]
    return found[:_MOST_PREFIXES]


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _controller(said: str) -> str:
    name, _, action = said.partition("#")
    return f"{_camel(name.rpartition('/')[2])}Controller::{action}"


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name
