"""The paths of routers, followed through variables, imports, groups, blocks and mounts."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import Framework, ResourceRules
from rag_assets.systems.code_memory.frameworks.repository import (
    LAST_PARTS,
    MAX_PREFIXES,
    File,
    RepositoryFiles,
    combine_paths,
    get_last_part,
    get_named_text,
    iter_strings,
    join_paths,
)
from rag_assets.systems.code_memory.frameworks.statements import find_argument
from rag_assets.systems.code_memory.symbols.names import fold_name

_MAX_DEPTH: Final = 8
"""Maximum depth of routers that are mounted in, passed to, or created by each other."""
_MAX_CHAIN_CALLS: Final = 200
"""Maximum number of calls in one chain; a longer chain is not treated as a router."""
_MAX_FACTORIES: Final = 100
"""Maximum number of functions with one name that create a router; with more, none is chosen."""
_NO_CALL: Final = ["?"]
_COMPUTED: Final = ("?", "?")
"""Key for all mounted routers that are computed at run time."""


class RouterPaths:
    """A finder of the paths of routers, according to the rules of one framework.

    The methods return a list of paths: empty if the value is not a router, with several paths if
    the router is mounted several times. None in it is a path that is computed at run time.
    """

    def __init__(self, framework: Framework, repository: RepositoryFiles) -> None:
        self._framework = framework
        self._routers = framework.routers
        self._repository = repository
        self._known: dict[tuple[str, str, int], list[str | None]] = {}
        """Known paths, by file, name and position; the list is empty while the paths are being
        computed."""
        self._paths_of_parts: dict[str, str | None] = {}
        self._loaders: dict[str, tuple[File, Fact] | None] = {}
        self._makers: dict[str, list[int]] = {}
        self._factories: dict[tuple[str, str], list[tuple[File, Fact]]] = {}

    def list_paths_of_call(self, file: File, fact: Fact) -> list[str | None]:
        """Return the paths of the router on which a call is made."""
        on = fact.values.get("on")
        if on is None:
            outer = self._find_paths_of_parameter(file, RECEIVER, fact.start, 0) or [""]
            inside = [self.find_path_of_blocks(file, fact)]
            return combine_paths(outer, inside) if self._routers.is_implicit else []
        paths = self.list_paths_of_value(file, on, fact.start)
        if not paths and on[0] == "n":
            return self._list_paths_of_block_parameter(file, fact)
        inner = combine_paths(paths, [self.find_path_of_blocks(file, fact)])
        return combine_paths(self.list_paths_of_holders(file, fact), inner)

    def list_paths_of_value(
        self, file: File, value: Sequence[Any], at: int, depth: int = 0
    ) -> list[str | None]:
        """Return the paths of the router that a value evaluates to."""
        if depth > _MAX_DEPTH:
            return []
        if (call := file.find_call(value)) is not None:
            return self._list_paths_of_chain(file, call, depth)
        return self._list_paths_of_name(file, str(value[1]), at, depth) if value[0] == "n" else []

    def list_paths_of_holders(self, file: File, fact: Fact, depth: int = 0) -> list[str | None]:
        """Return the paths of the router to which an enclosing call adds this fact, else [""]."""
        holders = self._routers.holders
        around = (
            file.find_enclosing(file.calls, fact.start) if holders and depth < _MAX_DEPTH else []
        )
        for call in reversed(around):
            on = call.values.get("on", _NO_CALL)
            if call.values["name"] in holders and (on[0] != "c" or on[2] <= fact.start):
                paths = self.list_paths_of_value(file, on, call.start, depth + 1)
                return combine_paths(self.list_paths_of_holders(file, call, depth + 1), paths)
        return [""]

    def list_paths_of_added_function(self, file: File, function: str) -> list[str | None]:
        """Return the paths of the routers to which any call adds an annotated function of a file.

        A name counts for this file if it names the file's module, or has no module and is written
        in the file. If there is none, a name counts that may be imported or in an inner module.
        """
        added = self._added_functions.get(function, ())
        modules = _list_modules(file.path)
        exact, possible = [], []
        for place in added:
            module, is_here = _get_module(place[3]), place[2] is file
            if module in modules or (is_here and not module):
                exact.append(place)
            elif is_here or not module:
                possible.append(place)
        paths: list[str | None] = []
        for holder, call, _, _ in exact or possible:
            router = self.list_paths_of_value(
                holder, call.values.get("on", _NO_CALL), call.start, 1
            )
            outer = combine_paths(self.list_paths_of_holders(holder, call), router or [""])
            paths += combine_paths(outer, [self._find_prefix_of_holder(holder, call)])
        return [*dict.fromkeys(paths)][:MAX_PREFIXES]

    @cached_property
    def _added_functions(self) -> Mapping[str, list[tuple[File, Fact, File, str]]]:
        """Return the functions that calls add to routers, by the last part of their name.

        Each has the file and fact of the call, the file in which the name is written, and the name.
        """
        added: dict[str, list[tuple[File, Fact, File, str]]] = {}
        for holder in self._routers.holders:
            for file, call in self._repository.calls.get(holder, ()):
                for written_in, name in self._iter_added_names(file, call):
                    last = LAST_PARTS.split(name)[-1]
                    added.setdefault(last, []).append((file, call, written_in, name))
        return added

    def _iter_added_names(self, file: File, call: Fact) -> Iterator[tuple[File, str]]:
        """Yield the functions in the arguments of a call, each with the file that names it."""
        for argument in call.values["arguments"]:
            if argument[0] == "n":
                yield file, str(argument[1])
            listed = file.find_call(argument)
            if listed is None or not self._routers.lists:
                continue
            if listed.values["name"] in self._routers.lists:
                yield from _iter_names(file, listed)
            else:
                yield from self._iter_returned_names(file, listed)

    def _iter_returned_names(self, file: File, call: Fact) -> Iterator[tuple[File, str]]:
        """Yield the functions in lists within the function that a call calls: `users::routes()`."""
        on = call.values.get("on", _NO_CALL)
        module = get_last_part(str(on[1])) if on[0] == "n" else ""
        for other, function in self._repository.functions.get(call.values["name"], ()):
            if other.language != file.language or (
                module not in _list_modules(other.path) if module else other is not file
            ):
                continue
            for listed in other.calls:
                is_inside = function.start <= listed.start < function.end
                if is_inside and listed.values["name"] in self._routers.lists:
                    yield from _iter_names(other, listed)

    def _find_prefix_of_holder(self, file: File, call: Fact) -> str | None:
        if not self._routers.holder_prefix:
            return ""
        value = find_argument(call, self._routers.holder_prefix)
        return "" if value is None else self._repository.resolve_text(file, value, call.start)

    def find_path_of_blocks(
        self, file: File, fact: Fact, *, with_resources: bool = True
    ) -> str | None:
        """Return the joined prefixes of the blocks around a call; None if any is computed."""
        loader = self._find_loader(file)
        path = self._find_path_of_loader(file, *loader) if loader is not None else ""
        if path is None:
            return None
        resources = self._framework.resources if with_resources else None
        for call in file.find_enclosing(file.calls, fact.start):
            name, part = call.values["name"], ""
            if call is fact or ["f"] not in call.values["arguments"]:
                continue
            known: str | None = part
            if name in self._routers.nested:
                known = self._find_nested_path(file, call)
            elif resources is not None and name in resources.calls:
                known = self._find_resource_path(file, resources, call, fact)
            if known is None:
                return None
            path = join_paths(path, known)
        return path

    def _find_loader(self, file: File) -> tuple[File, Fact] | None:
        """Return the call that loads a part of the routes, as in `draw(:admin)`, with its file."""
        if not self._routers.parts:
            return None
        if file.path not in self._loaders:
            self._loaders[file.path] = self._search_loader(file)
        return self._loaders[file.path]

    def _search_loader(self, file: File) -> tuple[File, Fact] | None:
        match = re.search(self._routers.parts, file.path)
        if match is None:
            return None
        names = {name for route in self._framework.routes for name in route.within}
        calls = (place for name in names for place in self._repository.calls.get(name, ()))
        return next(
            (
                (other, call)
                for other, call in calls
                if other is not file and ["s", match["name"]] in call.values["arguments"]
            ),
            None,
        )

    def _find_path_of_loader(self, file: File, other: File, call: Fact) -> str | None:
        if file.path not in self._paths_of_parts:
            self._paths_of_parts[file.path] = ""  # for parts that load each other
            self._paths_of_parts[file.path] = self.find_path_of_blocks(other, call)
        return self._paths_of_parts[file.path]

    def is_in_part(self, file: File) -> bool:
        """Return whether a file is a part of the routes that a call in another file loads."""
        return self._find_loader(file) is not None

    def is_in_template(self, file: File, fact: Fact) -> bool:
        """Return whether a call is in a block whose routes exist only where its name is used."""
        around = file.find_enclosing(file.calls, fact.start) if self._routers.templates else []
        return any(call.values["name"] in self._routers.templates for call in around)

    def iter_controller_modules(self, file: File, fact: Fact, depth: int = 0) -> Iterator[str]:
        """Yield the controller modules named by the blocks around a call, outer blocks first."""
        loader = self._find_loader(file) if depth < _MAX_DEPTH else None
        if loader is not None:
            yield from self.iter_controller_modules(*loader, depth + 1)
        for call in file.find_enclosing(file.calls, fact.start):
            if call is not fact and call.values["name"] in self._routers.nested:
                if self._framework.handlers == "alias":
                    names = [a[1] for a in call.values["arguments"][1:2] if a[0] == "n"]
                else:
                    is_space = call.values["name"] == "namespace"
                    text = get_named_text(call, "module")
                    names = [text] if text else [*iter_strings(call.values["arguments"][:1])]
                    names = names if text or is_space else []
                yield from map(str, names)

    def _find_resource_path(
        self, file: File, resources: ResourceRules, resource: Fact, fact: Fact
    ) -> str | None:
        """Return the prefix of a route in a resource's block: `articles/{article_id}`."""
        value = find_argument(resource, "0")
        text = self._repository.resolve_text(file, value, resource.start) if value else None
        if text is None:
            return None
        around = [call for call in file.find_enclosing(file.calls, fact.start) if call is not fact]
        inside = around[around.index(resource) + 1 :]
        # A block within a nested resource belongs to that resource.
        direct = [*takewhile(lambda call: call.values["name"] not in resources.calls, inside)]
        kinds = {resources.blocks.get(call.values["name"]) for call in direct}
        on = get_named_text(fact, "on") if len(direct) == len(inside) else None
        if "" in kinds or on == "collection" or resources.calls[resource.values["name"]] == "one":
            return text
        key = get_named_text(resource, "param") or "id"
        is_member = "id" in kinds or on == "member"
        return (
            f"{text}/{{{key if is_member else f'{singularize(get_last_path_part(text))}_{key}'}}}"
        )

    def _find_nested_path(self, file: File, call: Fact) -> str | None:
        """Return the path prefix that a call adds to the routes in its block."""
        if any(route.is_joined for route in self._framework.routes):
            return "/".join(iter_strings(call.values["arguments"]))
        value = find_argument(call, "path|0")
        if value is None or value[0] in {"f", "d"}:
            return ""
        if value[0] == "n" and self._framework.handlers == "alias":
            path_argument = find_argument(call, "path")
            return (
                ""
                if path_argument is None
                else self._repository.resolve_text(file, path_argument, call.start)
            )
        return self._repository.resolve_text(file, value, call.start)

    def _list_paths_of_block_parameter(self, file: File, fact: Fact) -> list[str | None]:
        """Return the paths of the routing block around a route.

        Used if the route is added to the block's parameter, which may have any name.
        """
        for call in reversed(file.find_enclosing(file.calls, fact.start)):
            is_block = call is not fact and ["f"] in call.values["arguments"]
            if is_block and call.values["name"] in self._routers.nested:
                return self._list_paths_of_chain(file, call, 0)
        return []

    def _list_paths_of_chain(
        self, file: File, call: Fact, depth: int, name: str = ""
    ) -> list[str | None]:
        """Return the paths of the router that a chain of calls returns.

        Args:
            call: the last call of the chain.
            name: the variable that receives the result.
        """
        path: str | None = ""
        for _ in range(_MAX_CHAIN_CALLS):
            on = call.values.get("on")
            if self._is_maker(call):
                return combine_paths(self._list_paths_of_maker(file, call, depth, name), [path])
            if call.values["name"] in self._routers.nested and on is not None:
                part = self._find_nested_path(file, call)
                path = None if path is None or part is None else join_paths(part, path)
            before = file.find_call(on)
            if before is None:
                paths = self._list_paths_of_factory(file, call, depth)
                if not paths and on is not None:
                    paths = self.list_paths_of_value(file, on, call.start, depth)
                return combine_paths(paths, [path])
            call = before
        return []

    def _is_maker(self, call: Fact) -> bool:
        on, called = call.values.get("on"), call.values["name"]
        qualified = f"{on[1]}.{called}" if on and on[0] == "n" else called
        return called in self._routers.made_by or qualified in self._routers.made_by

    def _list_paths_of_maker(
        self, file: File, call: Fact, depth: int, name: str
    ) -> list[str | None]:
        """Return the paths of a router that a call creates: its prefix below each mount path.

        A router that is made for another one, as `Api(blueprint)`, has the paths of that one.
        """
        around = find_argument(call, "0")
        if around is not None and around[0] == "n" and depth < _MAX_DEPTH:
            outer = self.list_paths_of_value(file, around, call.start, depth + 1)
            if outer:
                return outer
        value = find_argument(call, self._routers.prefix) if self._routers.prefix else None
        own: str | None = ""
        if value is not None and value[0] not in {"f", "d"}:
            own = self._repository.resolve_text(file, value, call.start)
        variable = name or file.find_receiving_variable(call)
        mounted = self._list_paths_of_mounts(file, variable, depth, at=call.start)
        is_root = call.values["name"] in self._routers.roots or not self._routers.roots
        # A mount with a computed path and a computed router may mount any router.
        is_outside = is_root or _COMPUTED not in self._mounts_by_router
        return combine_paths(mounted or ["" if is_outside else None], [own])

    def _list_paths_of_factory(self, file: File, call: Fact, depth: int) -> list[str | None]:
        """Return the paths of the router that a function in the repository creates and returns."""
        on = call.values.get("on")
        if depth >= _MAX_DEPTH or (on is not None and on[0] != "n"):
            return []
        owner = get_last_part(str(on[1])) if on else ""
        for other, function in self._repository.functions.get(call.values["name"], ()):
            places = {*posixpath.splitext(other.path)[0].split("/")[-2:]}
            if other.language != file.language or (owner and owner not in places):
                continue
            for created_by in other.calls:
                if function.start <= created_by.start < function.end and self._is_maker(created_by):
                    return self._list_paths_of_chain(other, created_by, depth + 1)
        return []

    def _list_paths_of_name(self, file: File, name: str, at: int, depth: int) -> list[str | None]:
        last = get_last_part(name)
        passed = self._find_paths_of_parameter(file, last, at, depth)
        if passed is not None:
            return passed
        assignment = file.find_assignment(last, at)
        if assignment is not None and assignment.start <= at:
            value = assignment.values["value"]
            if file.find_call(value) is not None:
                return self._list_paths_of_assignment(file, assignment, depth)
            if value[0] == "n" and get_last_part(str(value[1])) != last:
                return self.list_paths_of_value(file, value, assignment.start, depth + 1)
        for other, variable in self._repository.find_definitions(file, name):
            assignment = other.find_assignment(variable) if other is not file else None
            if assignment is not None and other.find_call(assignment.values["value"]) is not None:
                return self._list_paths_of_assignment(other, assignment, depth + 1)
        if last not in self._routers.called:
            return []
        key = file.path, last, -1
        if key not in self._known:
            self._known[key] = []
            self._known[key] = self._list_paths_of_mounts(file, last, depth)
        return self._known[key] or [""]

    def _list_paths_of_assignment(
        self, file: File, assignment: Fact, depth: int
    ) -> list[str | None]:
        """Return the paths of the router in an assignment; a router mounted in itself adds none."""
        key = file.path, "", assignment.start
        if key not in self._known:
            self._known[key] = []
            call = file.find_call(assignment.values["value"])
            if call is not None:
                name = get_last_part(assignment.values["name"])
                self._known[key] = self._list_paths_of_chain(file, call, depth, name)
        return self._known[key]

    def _find_paths_of_parameter(
        self, file: File, name: str, at: int, depth: int
    ) -> list[str | None] | None:
        """Return the paths of routers passed as a parameter; None for any other name."""
        for function in reversed(file.find_enclosing(file.functions, at)):
            parameters_of_objects = [
                parameter
                for parameter in function.values["parameters"]
                if parameter[0] not in _OBJECTS
            ]
            receiver = [
                (-1, *parameter) for parameter in parameters_of_objects if parameter[0] == RECEIVER
            ]
            others = [parameter for parameter in parameters_of_objects if parameter[0] != RECEIVER]
            parameters = [*receiver, *((at, *parameter) for at, parameter in enumerate(others))]
            for index, parameter, type_ in parameters:
                if parameter == name and type_.lstrip("&*") in self._routers.types:
                    key = file.path, f"{name}()", function.start
                    if key not in self._known:
                        self._known[key] = []
                        paths = self._list_paths_of_passed_routers(file, function, index, depth)
                        is_root = type_.lstrip("&*") in self._routers.root_types
                        self._known[key] = [
                            path for path in paths if path is not None or not is_root
                        ]
                    return self._known[key] or [""]
        return None

    def _list_paths_of_passed_routers(
        self, holder: File, function: Fact, index: int, depth: int
    ) -> list[str | None]:
        """Return the paths of the routers that calls of a function pass as its argument `index`.

        For -1, it is the router on which the function is called: `users()` in `route("/api") {}`.
        """
        paths: list[str | None] = []
        is_unknown = False
        package = posixpath.basename(posixpath.dirname(holder.path))
        for file, call in self._repository.calls.get(function.values["name"], ()):
            arguments, on = call.values["arguments"], call.values.get("on", _NO_CALL)
            is_import = on[0] == "n" and str(on[1]) in self._packages
            if holder.language == "go" and is_import and package not in {on[1], ""}:
                continue  # The function of another package has the same name.
            if index < 0 and len(paths) < MAX_PREFIXES and depth < _MAX_DEPTH:
                paths += self.list_paths_of_call(file, call)
            elif 0 <= index < len(arguments) and len(paths) < MAX_PREFIXES:
                own = self.list_paths_of_value(file, arguments[index], call.start, depth + 1)
                paths += combine_paths(own, [self.find_path_of_blocks(file, call)])
                is_unknown = is_unknown or (not own and arguments[index][0] in {"n", "c"})
        return [*dict.fromkeys(paths)][:MAX_PREFIXES] or ([None] if is_unknown else [])

    @cached_property
    def _packages(self) -> set[str]:
        """Return the names of all folders with files."""
        return {posixpath.basename(posixpath.dirname(o.path)) for o in self._repository.files}

    def _list_paths_of_mounts(
        self, file: File, name: str, depth: int, at: int | None = None
    ) -> list[str | None]:
        """Return the paths under which a router of a file is mounted.

        Args:
            name: the router's variable.
            at: an offset in the function that creates the router; callers of that function may
                mount it.
        """
        keys = [(file.path, name), (file.path, "*")]
        if at is not None:
            stem = posixpath.splitext(file.path)[0].removesuffix("/mod")
            places = (posixpath.basename(stem), posixpath.basename(posixpath.dirname(file.path)))
            owners = ("", *(f"{place}::" for place in places))
            around = file.find_enclosing(file.functions, at)
            keys += [(f"(){file.path}", str(function.start)) for function in around]
            functions = [function.values["name"] for function in around]
            keys += [("()", owner + function) for function in functions for owner in owners]
        paths: list[str | None] = []
        for key in keys:
            for other, call, path in self._mounts_by_router.get(key, ()):
                on = call.values.get("on", _NO_CALL)
                is_own = other is file and on == ["n", name] and key[0][:2] != "()"
                if len(paths) >= MAX_PREFIXES or is_own:
                    continue
                outer = self.list_paths_of_value(other, on, call.start, depth + 1) or [""]
                paths += combine_paths(outer, [path])
            if paths:
                break
        return paths[:MAX_PREFIXES]

    @cached_property
    def _mounts_by_router(self) -> Mapping[tuple[str, str], list[tuple[File, Fact, str | None]]]:
        """Return the calls that mount a router, each with its file and prefix, by that router.

        A key is (file, variable), (file, "*") for any variable of that file, ("()", function) for
        the result of a function, the same with its file and offset (see _find_factory), or
        _COMPUTED.
        """
        mounts: dict[tuple[str, str], list[tuple[File, Fact, str | None]]] = {}
        for called, (router, prefix) in self._routers.mounts.items():
            for file, call in self._repository.calls.get(called, ()):
                value = find_argument(call, router)
                if value is None or value[0] not in {"n", "c"}:
                    continue
                prefix_argument = find_argument(call, prefix) if prefix else None
                path: str | None = ""
                if (
                    prefix_argument is not None
                    and prefix_argument != value
                    and prefix_argument[0] in "sn+?"
                ):
                    path = self._repository.resolve_text(file, prefix_argument, call.start)
                keys = self._list_mount_keys(file, value)
                if (
                    path is None
                    and value[0] == "n"
                    and file.find_assignment(get_last_part(value[1])) is None
                ):
                    keys = [key for key in keys if key[0] != file.path] or [_COMPUTED]
                for key in keys:
                    mounts.setdefault(key, []).append((file, call, path))
        return mounts

    def _find_factory(self, file: File, call: Fact) -> tuple[File, Fact] | None:
        """Return the method that creates the router that a call on an object returns; else None.

        Of several methods with this name, the nearest is returned: its type or its package is named
        like the object, or like the function that creates the object.
        """
        on = call.values.get("on", _NO_CALL)
        candidates = self._list_factories(call.values["name"], file.language)
        if on[0] != "n" or not 0 < len(candidates) <= _MAX_FACTORIES:
            return None
        variable = get_last_part(str(on[1]))
        assignment = file.find_assignment(variable, call.start)
        made_by = file.find_call(assignment.values["value"]) if assignment is not None else None
        maker_on = made_by.values.get("on", _NO_CALL) if made_by is not None else _NO_CALL
        words = [variable, *([made_by.values["name"]] if made_by is not None else [])]
        package = str(maker_on[1]) if maker_on[0] == "n" else str(on[1])
        folder = posixpath.dirname(file.path)

        def rate(other: File, function: Fact) -> tuple[bool, bool, bool]:
            around = other.find_enclosing(other.classes, function.start)
            enclosing_name = around[-1].values["name"] if around else ""
            owner = fold_name(function.values.get("owner", enclosing_name))
            names = [singularize(fold_name(word).removeprefix("new")) for word in words]
            is_named = any(name and (name in owner or owner in name) for name in names if owner)
            places = posixpath.splitext(other.path)[0].split("/")[-2:]
            is_of_package = package in places
            is_near = posixpath.dirname(other.path) == folder and maker_on[0] != "n"
            return is_of_package, is_near, is_named

        rated = [(rate(*candidate), candidate) for candidate in candidates]
        best = max(rating for rating, _ in rated)
        best_candidates = [
            candidate for rating, candidate in rated if rating == best and any(rating)
        ]
        return best_candidates[0] if len(best_candidates) == 1 else None

    def _list_factories(self, name: str, language: str) -> list[tuple[File, Fact]]:
        """Return the functions with a name that create a router."""
        if (name, language) not in self._factories:
            self._factories[name, language] = [
                (file, function)
                for file, function in self._repository.functions.get(name, ())
                if file.language == language and self._creates_router(file, function)
            ]
        return self._factories[name, language]

    def _creates_router(self, file: File, function: Fact) -> bool:
        if file.path not in self._makers:
            makers = (call.start for call in file.calls if self._is_maker(call))
            self._makers[file.path] = sorted(makers)
        starts = self._makers[file.path]
        return bisect_left(starts, function.start) < bisect_left(starts, function.end)

    def _list_mount_keys(self, file: File, value: Sequence[Any]) -> list[tuple[str, str]]:
        """Return the keys that a mounted router has in _mounts_by_router."""
        if value[0] == "n":
            return [(o.path, n) for o, n in self._repository.find_definitions(file, str(value[1]))]
        call = file.find_call(value)
        if value[3] == "require" and call is not None and call.values["arguments"]:
            required = str(call.values["arguments"][0][-1])
            return [(module.path, "*") for module in self._repository.find_modules(file, required)]
        on = call.values.get("on", _NO_CALL) if call is not None else _NO_CALL
        if call is not None and (factory := self._find_factory(file, call)) is not None:
            return [(f"(){factory[0].path}", str(factory[1].start))]
        before = f"{LAST_PARTS.split(str(on[1]))[-1]}::" if on[0] == "n" else ""
        return [("()", f"{before}{value[3]}")]


def _iter_names(file: File, call: Fact) -> Iterator[tuple[File, str]]:
    for argument in call.values["arguments"]:
        if argument[0] == "n":
            yield file, str(argument[1])


def _list_modules(path: str) -> set[str]:
    """Return the names of a file's module and of the module around it."""
    return {*posixpath.splitext(path)[0].removesuffix("/mod").split("/")[-2:]}


def _get_module(name: str) -> str:
    """Return the module in the name of a function, such as `users` in `crate::users::list`."""
    parts = [part for part in LAST_PARTS.split(name) if part not in {"crate", "self", "super"}]
    return parts[-2] if len(parts) > 1 else ""


_OBJECTS: Final = frozenset({"self", "cls", "&self", "&mutself"})
RECEIVER: Final = "this"
"""Name of the parameter that stands for the receiver of an extension function in Kotlin."""


def get_last_path_part(path: str) -> str:
    """Return the part of a path after its last slash."""
    return path.rpartition("/")[2]


def singularize(name: str) -> str:
    """Return the singular of a regular English plural."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name
