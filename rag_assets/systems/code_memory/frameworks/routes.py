"""Routes derived from the statements in a repository's files with the rules of one framework.

A route is left out and reported as unresolved if its path is computed at run time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import (
    Framework,
    PageRules,
    ResourceRules,
    RouteRules,
)
from rag_assets.systems.code_memory.frameworks.repository import (
    LAST_PARTS,
    MAX_PREFIXES,
    File,
    RepositoryFiles,
    get_last_part,
    get_named_text,
    get_named_words,
    iter_strings,
    join_paths,
)
from rag_assets.systems.code_memory.frameworks.routers import (
    RECEIVER,
    RouterPaths,
    get_last_path_part,
)
from rag_assets.systems.code_memory.frameworks.statements import PLACE, Value, find_argument

_MAX_VERBS: Final = 8
"""Maximum number of methods for one path, as in `get(show).post(store)`."""
_MAX_WRAPPERS: Final = 8
"""Maximum number of calls around a handler that are followed; further calls are ignored."""
_MAX_PATH_CHARACTERS: Final = 400
"""Maximum characters of a path; a longer path is cut off."""
_CONSTRUCTOR: Final = re.compile(r"^[Nn]ew(?=[A-Z])")
_VERBS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "ANY"})


@dataclass(slots=True)
class FrameworkRoute:
    """A route, with the fact that states it.

    Attributes:
        handler: the handler's name as written; "" if it has none.
        handler_at: offset of the handler in `file`; -1 if only its name is known.
        wrapped: names in the call that returns the handler, such as `show` in `wrap(show)`; "" is a
            function without a name.
        owner: the type of the object whose method is the handler; "" if unknown.
    """

    methods: tuple[str, ...]
    path: str
    handler: str
    file: File
    fact: Fact
    framework: str
    handler_at: int = -1
    name: str = ""
    wrapped: tuple[str, ...] = ()
    owner: str = ""


@dataclass
class RouteReader:
    """A reader of one framework's routes in the files of one repository.

    Attributes:
        unresolved: file, line and reason of each route with a computed path.
    """

    framework: Framework
    files: Sequence[File]
    unresolved: list[tuple[str, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._repository = RepositoryFiles(self.files)
        self._paths = RouterPaths(self.framework, self._repository)
        resources = self.framework.resources
        self._resources = None if resources is None else _ResourceRoutes(resources, self._paths)

    def iter_routes(self) -> Iterator[FrameworkRoute]:
        """Yield the routes of all files."""
        for file in self.files:
            known = len(self.unresolved)
            routes_of_file = [*self._iter_routes_of_file(file)]
            yield from routes_of_file
            if not routes_of_file and self.framework.routers.is_implicit:
                # Its calls only look like routes, such as `get(order, key)`.
                del self.unresolved[known:]

    def _iter_routes_of_file(self, file: File) -> Iterator[FrameworkRoute]:
        for routes in self.framework.routes:
            if routes.calls:
                yield from self._iter_routes_of_calls(file, routes)
            if routes.annotations:
                yield from self._iter_routes_of_annotations(file, routes)
        if self.framework.resources is not None:
            yield from self._iter_routes_of_resources(file, self.framework.resources)
        for pages in self.framework.pages:
            yield from self._iter_routes_of_pages(file, pages)

    def _iter_routes_of_calls(self, file: File, routes: RouteRules) -> Iterator[FrameworkRoute]:
        for fact in file.calls:
            if fact.values["name"] not in routes.calls or file.is_in_annotation(fact):
                continue
            if routes.within and not self._is_within(file, fact, routes.within):
                continue
            if self._paths.is_in_template(file, fact):
                self._report_computed_path(file, fact)
                continue
            if prefixes := self._paths.list_paths_of_call(file, fact):
                yield from self._iter_routes_of_call(file, fact, routes, prefixes)

    def _iter_routes_of_call(
        self, file: File, fact: Fact, routes: RouteRules, prefixes: Sequence[str | None]
    ) -> Iterator[FrameworkRoute]:
        """Yield the routes that one call defines, one for each prefix of its router."""
        path = self._find_route_path(file, fact, routes)
        if not path and self._has_path_in_chain(file, fact):
            path = ""
        elif path == "" and routes.needs_path:
            return
        stating = self._find_method_call(file, fact, routes)
        methods = self._list_route_methods(routes.calls[fact.values["name"]], routes, stating)
        if routes.has_method_in_path and path:
            first, _, rest = path.partition(" ")
            methods, path = ((first,), rest) if rest and first in _VERBS else (methods, path)
            path = path[path.find("/") :] if "/" in path else path
        if path != "" and len(fact.values["arguments"]) == 1 and routes.handler == "-1":
            return  # A call without a handler reads a setting or a service: `app.get(Orders)`.
        if path is None or None in prefixes:
            self._report_computed_path(file, fact)
            return
        verbs = [*self._iter_chained_methods(file, fact, routes)] if routes.verbs else []
        verbs += self._iter_endpoints(fact, routes) if routes.endpoints else ()
        wrapped = () if verbs else self._list_wrapped_names(file, fact, routes)
        for prefix in prefixes[:MAX_PREFIXES]:
            full = join_paths(join_paths(routes.prefix, str(prefix)), path)
            for verb_methods, handler in verbs or [
                (methods, self._find_handler_name(file, fact, routes))
            ]:
                route = self._build_route(verb_methods, full, handler, (file, fact, -1))
                route.wrapped = wrapped
                route.owner = self._find_owner(file, fact, handler)
                yield route

    def _build_route(
        self, methods: tuple[str, ...], path: str, handler: str, place: tuple[File, Fact, int]
    ) -> FrameworkRoute:
        """Return a route of this framework; a long path is cut.

        Args:
            place: the route's file, the fact that states it, and the offset of its handler.
        """
        file, fact, at = place
        rows, evidence = fact.values.get(PLACE, (0, fact.evidence))
        fact = replace(fact, line_start=fact.line_start + rows, evidence=evidence)
        return FrameworkRoute(
            methods, path[:_MAX_PATH_CHARACTERS], handler, file, fact, self.framework.name, at
        )

    def _is_within(self, file: File, fact: Fact, names: Sequence[str]) -> bool:
        if self._paths.is_in_part(file):
            return True
        around = file.find_enclosing(file.calls, fact.start)
        if any(statement.values["name"] in names for statement in around if statement is not fact):
            return True
        functions = file.find_enclosing(file.functions, fact.start)
        parameters = (
            parameter for function in functions for parameter in function.values["parameters"]
        )
        types = self.framework.routers.types
        return any(name == RECEIVER and type_ in types for name, type_ in parameters)

    def _report_computed_path(self, file: File, fact: Fact) -> None:
        reason = f"the path of a route ({self.framework.name}) is computed"
        line = fact.line_start + fact.values.get(PLACE, (0, ""))[0]
        self.unresolved.append((file.path, line, reason))

    def _has_path_in_chain(self, file: File, fact: Fact) -> bool:
        """Return whether an earlier call in the chain has the path: `route('/x').get(show)`."""
        call: Fact | None = fact
        for _ in range(_MAX_VERBS):
            on = call.values.get("on", ["?"]) if call is not None else ["?"]
            if on[0] != "c":
                return False
            if on[3] in self.framework.routers.nested:
                return True
            call = file.find_call(on)
        return False

    def _find_method_call(self, file: File, fact: Fact, routes: RouteRules) -> Fact | None:
        """Return the call that states the methods of a route: the route itself, or a later one."""
        if not routes.method_call:
            return fact
        call: Fact | None = fact
        for _ in range(_MAX_VERBS):
            call = None if call is None else file.next_calls.get((call.start, call.end))
            if call is not None and call.values["name"] == routes.method_call:
                return call
        return None

    def _list_route_methods(
        self, method: str, routes: RouteRules, fact: Fact | None
    ) -> tuple[str, ...]:
        if method:
            return tuple(method.split("|"))
        if routes.method_call and fact is not None:
            value: Value | None = ["l", fact.values["arguments"]]
        else:
            value = find_argument(fact, routes.method) if routes.method and fact else None
        texts = [value] if value is not None and value[0] in {"s", "n"} else []
        if value is not None and value[0] == "l":
            texts = value[1]
        words = (
            word
            for text in texts
            if text[0] in {"s", "n"}
            for word in LAST_PARTS.split(str(text[1]))[-1].upper().replace(",", " ").split()
        )
        methods = tuple(
            method
            for word in words
            for method in routes.method_names.get(word, word.removeprefix("METHOD")).split("|")
        )
        return tuple(method for method in methods if method in _VERBS) or (
            ("ANY",) if texts else (routes.default,)
        )

    def _find_route_path(self, file: File, fact: Fact, routes: RouteRules) -> str | None:
        """Return the path in a route's call; "" if there is none, None if it is computed."""
        if routes.is_joined:
            is_computed = any(argument[0] not in "sfnc" for argument in fact.values["arguments"])
            return None if is_computed else "/".join(iter_strings(fact.values["arguments"]))
        if "+" in routes.path:
            values = [find_argument(fact, part) or ["?"] for part in routes.path.split("+", 1)]
            parts = [self._repository.resolve_text(file, value, fact.start) for value in values]
            return None if None in parts else join_paths(*map(str, parts))
        value = find_argument(fact, routes.path)
        if value is None or value[0] in {"f", "d"} or (value[0] == "c" and routes.verbs):
            return ""
        return self._repository.resolve_text(file, value, fact.start)

    def _find_handler_name(self, file: File, fact: Fact, routes: RouteRules) -> str:
        """Return the name of a route's handler; "" if the call names none."""
        value = find_argument(fact, routes.handler)
        handlers = self.framework.handlers
        if value is None and handlers == "rails":
            path, resources = find_argument(fact, routes.path), self._resources
            last_part = str(path[-1]) if path else ""
            return "" if resources is None else resources.get_action_in_block(file, fact, last_part)
        if value is not None and value[0] in "l+" and value[1]:
            value = _read_handler_in_list(value[1])
        if value is None or value[0] not in {"n", "s", "c"}:
            return ""
        name = str(value[3] if value[0] == "c" else value[1])
        if handlers == "alias" and value[0] == "n":
            action = fact.values["arguments"][2:3]
            parts = [*self._paths.iter_controller_modules(file, fact), name]
            return "::".join([*parts, *iter_strings(action)])
        if handlers == "rails" and value[0] == "s":
            owner, _, action_name = name.rpartition("#")
            owner = owner or get_named_text(fact, "controller") or ""
            if not owner and self._resources is not None:
                return self._resources.get_action_in_block(file, fact, action_name)
            return f"{_find_controller(self._paths, file, fact, owner)}::{action_name}"
        return name if value[0] != "s" else ""

    def _find_owner(self, file: File, fact: Fact, handler: str) -> str:
        """Return the type of the object whose method is a handler; "" if it is unknown.

        The object is a parameter, the receiver of the method around the route, or a variable to
        which a new object or the result of a function such as `NewOrders` is assigned.
        """
        variable = get_last_part(handler.rpartition(".")[0])
        if not variable:
            return ""
        for function in reversed(file.find_enclosing(file.functions, fact.start)):
            for name, type_ in function.values["parameters"]:
                if name == variable and type_:
                    return get_last_part(type_.lstrip("&*"))
        assignment = file.find_assignment(variable, fact.start)
        value = assignment.values["value"] if assignment is not None else ["?"]
        if value[0] == "n":
            return get_last_part(str(value[1]))
        call = file.find_call(value)
        return _CONSTRUCTOR.sub("", call.values["name"]) if call is not None else ""

    def _list_wrapped_names(self, file: File, fact: Fact, routes: RouteRules) -> tuple[str, ...]:
        """Return the names in the call that returns a route's handler, and in calls within it.

        One of them may be the handler: `show` in `check(log(show))` or in `show.bind(this)`. "" is
        a function without a name.
        """
        value = find_argument(fact, routes.handler)
        if value is not None and value[0] == "l" and value[1]:
            value = value[1][-1]
        names: list[str] = []
        pending = [value] if value is not None and value[0] == "c" else []
        for _ in range(_MAX_WRAPPERS):
            call = file.find_call(pending.pop()) if pending else None
            parts = [*call.values["arguments"], call.values.get("on", ["?"])] if call else []
            names += [str(part[1]) if part[0] == "n" else "" for part in parts if part[0] in "nf"]
            pending += [part for part in parts if part[0] == "c"]
        return tuple(dict.fromkeys(names))

    def _iter_chained_methods(
        self, file: File, fact: Fact, routes: RouteRules
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield methods and handler of each call in an argument: `get(show).post(store)`."""
        value: Sequence[Any] | None = next(
            (argument for argument in fact.values["arguments"] if argument[0] == "c"), None
        )
        methods_and_handlers: list[tuple[tuple[str, ...], str]] = []
        handler = ""
        while (call := file.find_call(value)) is not None and len(
            methods_and_handlers
        ) < _MAX_VERBS:
            handlers = [
                argument for argument in call.values["arguments"] if argument[0] in {"n", "f"}
            ]
            name = handlers[-1][1] if handlers and handlers[-1][0] == "n" else handler
            if (method := routes.verbs.get(call.values["name"])) is not None:
                methods_and_handlers.append((tuple(method.split("|")), name))
            elif handlers:
                handler = name
            value = call.values.get("on")
        yield from reversed(methods_and_handlers)

    def _iter_endpoints(
        self, fact: Fact, routes: RouteRules
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield methods and handler of each map in an argument: `['methods' => 'GET', …]`."""
        value = find_argument(fact, routes.endpoints) or ["?"]
        outer = [value] if value[0] == "d" else value[1] if value[0] == "l" else []
        maps = [m for m in outer if m[0] == "d"]
        maps += [m for entries in maps for m in entries[1].values() if m[0] == "d"]
        for entries in maps:
            handler = entries[1].get(routes.handler)
            if handler is None:
                continue
            stated = replace(fact, values={"arguments": [entries]})
            if handler[0] == "l" and handler[1]:
                handler = _read_handler_in_list(handler[1])
            name = str(handler[1]) if handler[0] in {"n", "s"} else ""
            yield self._list_route_methods("", routes, stated), name

    def _iter_routes_of_annotations(
        self, file: File, routes: RouteRules
    ) -> Iterator[FrameworkRoute]:
        classes = {class_.start for class_ in file.classes}
        for fact in file.annotations:
            values = fact.values
            start = values["target"][0]
            if values["name"] not in routes.annotations:
                continue
            if start in classes:
                yield from self._iter_routes_of_class(file, fact, routes)
                continue
            around = file.find_enclosing(file.classes, start)
            enclosing_classes = [class_fact for class_fact in around if class_fact.start < start]
            methods = self._list_route_methods(routes.annotations[values["name"]], routes, fact)
            handler = values["of"]
            if enclosing_classes:
                handler = f"{enclosing_classes[-1].values['name']}.{handler}"
            prefixes = self._list_prefixes_of_annotation(file, fact, routes, enclosing_classes)
            paths = self._list_paths_in_annotations(file, fact, routes)
            if paths == [""] and routes.needs_path:
                continue
            if prefixes and None in [*paths, *prefixes]:
                self._report_computed_path(file, fact)
                continue
            for prefix, path in product(map(str, prefixes), map(str, paths)):
                full = path if path[:2] == "~/" else join_paths(prefix, path)
                if full == "/" and enclosing_classes:
                    full = f"/{routes.conventional}"
                full = self._insert_names(full.lstrip("~"), enclosing_classes, values["of"])
                route = self._build_route(methods, full, handler, (file, fact, start))
                route.name = get_named_text(fact, routes.name) or ""
                yield route

    def _iter_routes_of_class(
        self, file: File, fact: Fact, routes: RouteRules
    ) -> Iterator[FrameworkRoute]:
        """Yield a route for each HTTP method that an annotated class defines."""
        path = self._find_route_path(file, fact, routes) if not routes.class_prefix else ""
        if not path or "on" not in fact.values:
            return
        prefixes = self._paths.list_paths_of_value(file, fact.values["on"], fact.start)
        start, end = fact.values["target"]
        inside = (definition for definition in file.declared if start < definition.start < end)
        methods = {
            LAST_PARTS.split(definition.symbol)[-1].upper(): definition for definition in inside
        }
        for method, definition in methods.items():
            if method in _VERBS:
                for prefix in filter(None, prefixes):
                    place = file, fact, definition.start
                    yield self._build_route(
                        (method,), join_paths(prefix, path), definition.symbol, place
                    )

    def _list_paths_in_annotations(
        self, file: File, fact: Fact, routes: RouteRules
    ) -> list[str | None]:
        """Return the paths in an annotation or its siblings: "" if absent, None if computed."""
        target = fact.values["target"]
        others = [
            sibling
            for sibling in (file.annotations if routes.path_annotation else ())
            if sibling.values["target"] == target
            and sibling.values["name"] in routes.path_annotation
        ]
        for annotation in (fact, *others):
            value = find_argument(annotation, routes.path)
            texts = value[1] if value is not None and value[0] == "l" else []
            if len(texts) > 1 and not routes.is_joined:
                return [
                    self._repository.resolve_text(file, text, annotation.start) for text in texts
                ]
            path = self._find_route_path(file, annotation, routes)
            if path != "":
                return [path]
        return [""]

    def _list_prefixes_of_annotation(
        self, file: File, fact: Fact, routes: RouteRules, enclosing_classes: Sequence[Fact]
    ) -> list[str | None]:
        """Return the prefixes of an annotated route.

        They come from an annotation of its class, from its router, or from a call that adds the
        annotated function to a router.
        """
        if enclosing_classes and routes.class_prefix:
            return self._list_class_prefixes(file, enclosing_classes[-1], routes)
        if "on" in fact.values:
            return self._paths.list_paths_of_value(file, fact.values["on"], fact.start)
        if routes.is_plain:
            return self._paths.list_paths_of_added_function(file, fact.values["of"]) or [""]
        return [] if self.framework.routers.made_by and not routes.class_prefix else [""]

    def _list_class_prefixes(self, file: File, owner: Fact, routes: RouteRules) -> list[str | None]:
        prefixes: list[str | None] = []
        for annotation in file.annotations:
            if annotation.values["target"][0] != owner.start:
                continue
            if annotation.values["name"] in routes.class_prefix:
                value = find_argument(annotation, "path|value|0")
                if value is not None and value[0] == "d":
                    value = value[1].get("path")
                paths = value[1] if value is not None and value[0] == "l" else [value]
                texts = (
                    ""
                    if prefix_path is None
                    else self._repository.resolve_text(file, prefix_path, owner.start)
                    for prefix_path in paths
                )
                prefixes += texts
        return prefixes[:MAX_PREFIXES] or [""]

    def _insert_names(self, path: str, enclosing_classes: Sequence[Fact], action: str) -> str:
        """Return a path with `[controller]` and `[action]` replaced by their names."""
        name = enclosing_classes[-1].values["name"] if enclosing_classes else ""
        name = name.removesuffix("Controller")
        return path.replace("[controller]", name).replace("[action]", action)

    def _iter_routes_of_resources(
        self, file: File, resources: ResourceRules
    ) -> Iterator[FrameworkRoute]:
        within = [route.within for route in self.framework.routes if route.within]
        for fact in file.calls:
            if fact.values["name"] not in resources.calls or self._resources is None:
                continue
            if within and not any(self._is_within(file, fact, names) for names in within):
                continue
            is_in_template = self._paths.is_in_template(file, fact)
            for methods, path, handler in self._resources.iter_routes(file, fact):
                if path is None or is_in_template:
                    self._report_computed_path(file, fact)
                else:
                    yield self._build_route(methods, path, handler, (file, fact, -1))

    def _iter_routes_of_pages(self, file: File, pages: PageRules) -> Iterator[FrameworkRoute]:
        match = find_page_route(pages, file.path)
        if match is None:
            return
        route = f"/{match['route'] or ''}"
        route = re.sub(pages.drop, "", route) if pages.drop else route
        path = join_paths(pages.prefix, route.removesuffix("/index"))
        names = {**{method: method for method in pages.methods}, **pages.exports}
        for definition in file.declared if names else ():
            if definition.symbol in names and definition.values.get("exported"):
                methods = tuple(names[definition.symbol].split("|"))
                yield self._build_route(
                    methods, path, definition.symbol, (file, definition, definition.start)
                )
        if not names:
            stated = (match.groupdict().get("method") or "").upper()
            methods = (stated,) if stated else (("ANY",) if pages.prefix else ("GET",))
            place = _find_default_export(file)
            yield self._build_route(methods, path, place.symbol, (file, place, place.start))


def _read_handler_in_list(parts: Sequence[Value]) -> Value:
    """Return the handler in a list of functions, or in the parts of a PHP method's name.

    PHP names a method as `[Orders::class, 'show']` or `Orders::class . ':show'`.
    """
    first, last = parts[0], parts[-1]
    if (first[0], last[0]) == ("n", "s"):
        return ["n", f"{str(first[1]).lstrip('$')}::{str(last[1]).lstrip(':')}"]
    return last


def find_page_route(pages: PageRules, path: str) -> re.Match[str] | None:
    """Return the match of a file's path, which states a route; None if the path does not match."""
    return re.search(pages.path, path[-_MAX_PATH_CHARACTERS:])


def _find_default_export(file: File) -> Fact:
    """Return the default export of a file, else another definition in it, else its start."""
    exports = (export.values for export in file.exports if export.values["name"] == "default")
    default = next((export.get("local") for export in exports), None)
    exported = [definition for definition in file.declared if definition.values.get("exported")]
    named_default = [
        definition for definition in file.declared if definition.symbol in {"default", default}
    ]
    return next(
        iter([*named_default, *exported, *file.declared]), Fact("", 0, 0, line_start=1, line_end=1)
    )


class _ResourceRoutes:
    """A reader of calls that define the usual routes of resources: `resources :articles`."""

    def __init__(self, resources: ResourceRules, paths: RouterPaths) -> None:
        self._resources = resources
        self._paths = paths

    def iter_routes(
        self, file: File, fact: Fact
    ) -> Iterator[tuple[tuple[str, ...], str | None, str]]:
        """Yield methods, path and handler of the routes of a call that defines resources.

        The path is None if it is computed at run time.
        """
        resources = self._resources
        kind = resources.calls[fact.values["name"]]
        names = [*iter_strings(fact.values["arguments"])]
        prefix = self._paths.find_path_of_blocks(file, fact)
        if not names or prefix is None:
            yield (), None, ""
            return
        is_shallow = self._is_shallow(file, fact)
        outer = self._paths.find_path_of_blocks(file, fact, with_resources=False) or ""
        actions = self._select_actions(fact, resources, resources.actions[kind])
        own = get_named_text(fact, "path")
        key = get_named_text(fact, "param") or "id"
        for name in names:
            base = join_paths(prefix, own if own is not None else name)
            short = join_paths(outer, own if own is not None else name)
            owner = self._find_controller_name(file, fact, name, kind)
            for action, stated in actions.items():
                method, _, rest = stated.partition(" ")
                is_member = is_shallow and "{id}" in rest
                path = join_paths(short if is_member else base, rest.replace("{id}", f"{{{key}}}"))
                yield tuple(method.split("|")), path, f"{owner}::{action}"

    def _is_shallow(self, file: File, fact: Fact) -> bool:
        """Return whether the resources around a resource are not in the paths of its members."""
        name = self._resources.shallow
        around = file.find_enclosing(file.calls, fact.start) if name else []
        return any(
            call.values.get("named", {}).get(name) == ["n", "true"] or call.values["name"] == name
            for call in (*around, fact)
        )

    def get_action_in_block(self, file: File, fact: Fact, path: str) -> str:
        """Return the handler of a route in a resource's block, `Controller::path`; else ""."""
        for call in reversed(file.find_enclosing(file.calls, fact.start)):
            kind = self._resources.calls.get(call.values["name"])
            value = find_argument(call, "0")
            if kind is not None and value is not None and value[0] == "s":
                return f"{self._find_controller_name(file, call, str(value[1]), kind)}::{path}"
        return ""

    def _select_actions(
        self, fact: Fact, resources: ResourceRules, known: Mapping[str, str]
    ) -> Mapping[str, str]:
        chosen = get_named_words(fact, resources.only)
        dropped = get_named_words(fact, resources.but) or []
        return {
            action: stated
            for action, stated in known.items()
            if (chosen is None or action in chosen) and action not in dropped
        }

    def _find_controller_name(self, file: File, fact: Fact, name: str, kind: str) -> str:
        alias = next(
            (argument[1] for argument in fact.values["arguments"] if argument[0] == "n"), None
        )
        if alias is not None:
            return "::".join([*self._paths.iter_controller_modules(file, fact), str(alias)])
        controller_name = get_named_text(fact, "controller")
        plural = name if kind == "many" or name.endswith("s") else f"{name}s"
        return _find_controller(
            self._paths, file, fact, controller_name or get_last_path_part(plural)
        )


def _find_controller(paths: RouterPaths, file: File, fact: Fact, name: str) -> str:
    """Return the controller class for a short name: `Admin::OrdersController`."""
    spaces = [*paths.iter_controller_modules(file, fact), *name.split("/")]
    words = ([part[:1].upper() + part[1:] for part in space.split("_")] for space in spaces)
    return "::".join(filter(None, map("".join, words))) + "Controller"
