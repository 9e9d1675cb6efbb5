"""The statements in a repository's files, and the values of names across files."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.statements import (
    ANNOTATION,
    ASSIGNED,
    CALL,
    CLASS,
    FOUND,
    FUNCTION,
    Value,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")

LAST_PARTS: Final = re.compile(r"[.:#/\\]+")
MAX_PREFIXES: Final = 20
"""Maximum number of paths of one router; a router that is mounted several times has several."""
_MAX_STEPS: Final = 8
"""Maximum number of imports followed to find the definition of a name."""
_MAX_STEPS_OF_TEXT: Final = 60
"""Maximum number of names and parts in a text; a text with more is treated as computed."""
_MAX_ENCLOSING: Final = 40
"""Maximum number of statements around an offset; beyond it, the outer statements are dropped."""
_MAX_TEXT_CHARACTERS: Final = 500
"""Maximum number of characters of a text; a longer text is cut off."""
_OPEN_IN_FOLDER: Final = frozenset({"go", "swift"})
"""Languages in which a file sees the definitions of other files in its folder."""


class File:
    """One file with its framework statements, grouped by kind and indexed by position."""

    def __init__(self, file: FileFacts) -> None:
        self.path = file.path
        self.language = file.language
        kinds = group((fact.kind, fact) for fact in file.facts)
        self.calls = kinds.get(CALL, [])
        self.annotations = kinds.get(ANNOTATION, [])
        self.classes = kinds.get(CLASS, [])
        self.functions = kinds.get(FUNCTION, [])
        self.values = [fact for fact in kinds.get(ASSIGNED, ()) if fact.values["value"][0] != "t"]
        self.properties = [
            fact for fact in kinds.get(ASSIGNED, ()) if fact.values["value"][0] == "t"
        ]
        self.declared = [fact for fact in kinds.get("declares", []) if fact.symbol]
        self.imports = kinds.get("imports", [])
        self.exports = kinds.get("exports", [])
        self.frameworks = {name for fact in kinds.get(FOUND, ()) for name in fact.values["names"]}
        self.by_place = {(call.start, call.end): call for call in self.calls}
        self._around: dict[int, tuple[list[int], list[int], list[Fact]]] = {}

    def find_enclosing(self, facts: Sequence[Fact], at: int) -> list[Fact]:
        """Return those facts that enclose an offset, outer facts first; all are of one kind."""
        starts, outer, ordered = self._nest_facts(facts)
        enclosing: list[Fact] = []
        index = bisect_right(starts, at) - 1
        while index >= 0 and len(enclosing) < _MAX_ENCLOSING:
            if ordered[index].end > at:
                enclosing.append(ordered[index])
            index = outer[index]
        return enclosing[::-1]

    def _nest_facts(self, facts: Sequence[Fact]) -> tuple[list[int], list[int], list[Fact]]:
        """Return the starts of the facts, the index of each fact's enclosing fact, and the facts.

        All three are in the order of the text; the results are cached.
        """
        if id(facts) not in self._around:
            ordered = sorted(facts, key=lambda fact: (fact.start, -fact.end))
            outer: list[int] = []
            opened: list[int] = []
            for index, fact in enumerate(ordered):
                while opened and ordered[opened[-1]].end <= fact.start:
                    opened.pop()
                outer.append(opened[-1] if opened else -1)
                opened.append(index)
            self._around[id(facts)] = [fact.start for fact in ordered], outer, ordered
        return self._around[id(facts)]

    def is_in_annotation(self, fact: Fact) -> bool:
        """Return whether a call is written within an annotation."""
        return bool(self.find_enclosing(self.annotations, fact.start))

    def find_call(self, value: Sequence[Any] | None) -> Fact | None:
        """Return the call whose result a value is; None if the value is not a call of this file."""
        if value is None or value[0] != "c":
            return None
        return self.by_place.get((value[1], value[2]))

    def find_assignment(self, name: str, before: int | None = None) -> Fact | None:
        """Return the last assignment to a name before an offset, else the first, else None."""
        known = self._assignments_by_name.get(name, [])
        if not known or before is None:
            return known[0] if known else None
        return known[max(bisect_right([fact.start for fact in known], before) - 1, 0)]

    def find_receiving_variable(self, call: Fact) -> str:
        """Return the variable to which a chain of calls is assigned; "" if there is none."""
        return self._names_of_calls.get(call.start, "")

    @cached_property
    def _assignments_by_name(self) -> Mapping[str, list[Fact]]:
        return group((get_last_part(value.values["name"]), value) for value in self.values)

    @cached_property
    def _names_of_calls(self) -> Mapping[int, str]:
        return {
            value.values["value"][1]: value.values["name"]
            for value in reversed(self.values)
            if value.values["value"][0] == "c"
        }

    @cached_property
    def next_calls(self) -> Mapping[tuple[int, int], Fact]:
        """Return the call that follows a call in a chain, by the place of the earlier one."""
        on = ((call, call.values.get("on", ["?"])) for call in self.calls)
        return {(value[1], value[2]): call for call, value in on if value[0] == "c"}

    @cached_property
    def modules_by_name(self) -> Mapping[str, str]:
        """Return the module of each imported name; in Python and Rust, the name is appended."""
        modules: dict[str, str] = {}
        for fact in self.imports:
            name = "." * int(fact.values.get("level", 0) or 0) + str(fact.values.get("name", ""))
            if alias := fact.values.get("alias"):
                modules[str(alias)] = name
            for pair in fact.values.get("names", ()):
                if len(pair) > 1:
                    modules[str(pair[1])] = name if self.language != "rust" else str(pair[0])
        return modules

    def get_original_name(self, name: str) -> str:
        """Return an imported definition's name in its module: `b` for `import {b as c}`."""
        for fact in self.imports:
            for pair in fact.values.get("names", ()):
                if len(pair) > 1 and str(pair[1]) == name:
                    return get_last_part(str(pair[0]))
        return get_last_part(self.modules_by_name.get(name, name))


class RepositoryFiles:
    """The files of one repository to which the rules of one framework apply."""

    def __init__(self, files: Sequence[File]) -> None:
        self.files = files

    @cached_property
    def calls(self) -> Mapping[str, list[tuple[File, Fact]]]:
        """Return all calls, by the name of the called function."""
        return group((call.values["name"], (f, call)) for f in self.files for call in f.calls)

    @cached_property
    def functions(self) -> Mapping[str, list[tuple[File, Fact]]]:
        """Return all functions that the facts include, by name."""
        return group(
            (function.values["name"], (f, function)) for f in self.files for function in f.functions
        )

    def resolve_text(self, file: File, value: Sequence[Any], at: int) -> str | None:
        """Return the string that a value evaluates to; None if it is only known at run time."""
        pending: list[tuple[File, Sequence[Any], int]] = [(file, value, at)]
        parts: list[str] = []
        for _ in range(_MAX_STEPS_OF_TEXT):
            if not pending:
                return "".join(parts)[:_MAX_TEXT_CHARACTERS]
            here, value_part, place = pending.pop()
            if value_part[0] == "s":
                parts.append(str(value_part[1]))
            elif value_part[0] == "+":
                pending += [(here, part, place) for part in reversed(value_part[1])]
            elif value_part[0] == "l" and len(value_part[1]) == 1:
                pending.append((here, value_part[1][0], place))
            elif value_part[0] == "n" and (
                known := self._find_value_of_name(here, str(value_part[1]), place)
            ):
                pending.append(known)
            else:
                return None
        return None

    def _find_value_of_name(
        self, file: File, name: str, at: int
    ) -> tuple[File, Sequence[Any], int] | None:
        """Return the value assigned to a name, with its file and offset; None if it is unknown.

        The name may be assigned in this file, or be a constant of another file.
        """
        last = get_last_part(name)
        assignment = file.find_assignment(last, at)
        if assignment is not None:
            return file, assignment.values["value"], assignment.start
        texts = self._constants.get(last, ())
        # A bare name that is neither imported nor upper-case belongs to its own file only.
        is_known = len(texts) == 1 and (
            last != name or last in file.modules_by_name or last.isupper()
        )
        return (file, ["s", texts[0]], at) if is_known else None

    @cached_property
    def _constants(self) -> Mapping[str, Sequence[str]]:
        """Return all strings assigned to a name or an attribute in any file, by its last part."""
        values = (value.values for file in self.files for value in file.values)
        texts = (
            (assignment["name"], assignment["value"][1])
            for assignment in values
            if assignment["value"][0] == "s"
        )
        texts_by_name = group((get_last_part(name), str(text)) for name, text in texts)
        return {name: tuple(dict.fromkeys(texts)) for name, texts in texts_by_name.items()}

    def find_definitions(self, file: File, name: str) -> list[tuple[File, str]]:
        """Return the files and variables that a name may refer to, following imports.

        The variable "*" stands for any variable of its file.

        Args:
            name: the whole name, including the object of an attribute: `orders.bp`.
        """
        definitions: dict[tuple[str, str], tuple[File, str]] = {}
        pending = [(file, name, 0)]
        seen: set[tuple[str, str]] = set()
        while pending and len(definitions) < _MAX_STEPS:
            here, written_name, depth = pending.pop()
            if (here.path, written_name) in seen:
                continue
            seen.add((here.path, written_name))
            first, _, rest = written_name.partition(".")
            assignment = here.find_assignment(first)
            is_own = assignment is not None and assignment.values["value"][0] == "c" and not rest
            if first not in here.modules_by_name or is_own:
                last = get_last_part(written_name)
                is_known = here.find_assignment(last) is not None
                holder = here if is_known else self._find_in_package(here, last)
                definitions.setdefault((holder.path, last), (holder, last))
            elif depth < _MAX_STEPS:
                last = get_last_part(rest)
                pending += [
                    (target, n, depth + 1) for target, n in self._find_exports(here, first, last)
                ]
        return [*definitions.values()]

    def _find_in_package(self, file: File, name: str) -> File:
        """Return the only file of the package that assigns a name, else this file."""
        folder = posixpath.dirname(file.path), file.language
        package = self._by_folder[folder] if file.language in _OPEN_IN_FOLDER else ()
        known = [other for other in package if other.find_assignment(name) is not None]
        return known[0] if len(known) == 1 else file

    @cached_property
    def _by_folder(self) -> Mapping[tuple[str, str], list[File]]:
        return group(((posixpath.dirname(file.path), file.language), file) for file in self.files)

    def _find_exports(self, file: File, first: str, last: str) -> list[tuple[File, str]]:
        """Return the files and names that an imported name refers to.

        Args:
            first: the name that an import binds.
            last: an attribute of that name; "" if the name itself is meant.
        """
        module = file.modules_by_name[first]
        if file.language != "python":
            name = last or file.get_original_name(first)
            known = self.find_modules(file, module)
            return [
                (definition, name if definition.find_assignment(name) is not None else "*")
                for definition in known
            ]
        owner, _, name = module.rpartition(".")
        if last and (whole := self.find_modules(file, module)):
            return [(module, last) for module in whole]
        level = len(module) - len(module.lstrip("."))
        owner = owner if len(owner) >= level else "." * level
        return [(module, name) for module in self.find_modules(file, owner) if module is not file]

    def find_modules(self, file: File, import_path: str) -> list[File]:
        """Return the files that the path in an import means: usually a single file."""
        folder = posixpath.dirname(file.path)
        if file.language == "python":
            levels = len(import_path) - len(import_path.lstrip("."))
            for _ in range(levels - 1):
                folder = posixpath.dirname(folder)
            place = import_path.lstrip(".").replace(".", "/")
            place = posixpath.join(folder, place).rstrip("/") if levels else place
            is_relative = levels > 0
        else:
            plain = re.sub(r"\.[jt]sx?$", "", import_path)
            is_relative = plain.startswith(".")
            place = posixpath.normpath(posixpath.join(folder, plain)) if is_relative else plain
            place = place if is_relative else place.lstrip("@~/")
        paths = self._by_stem.get(place) or self._by_stem.get(posixpath.join(place, "index"))
        if paths is None and not is_relative and place:
            tail = self._by_last.get(place.rpartition("/")[2], ())
            stems = [stem for stem in tail if stem.endswith((f"/{place}", f"/{place}/index"))]
            paths = self._by_stem[stems[0]] if len(stems) == 1 else None
        return paths or []

    @cached_property
    def _by_stem(self) -> Mapping[str, list[File]]:
        stems = ((posixpath.splitext(file.path)[0], file) for file in self.files)
        return group((stem.removesuffix("/__init__"), file) for stem, file in stems)

    @cached_property
    def _by_last(self) -> Mapping[str, list[str]]:
        """Return the paths of all files without suffix, by their last part; `index` is skipped."""
        return group((s.removesuffix("/index").rpartition("/")[2], s) for s in self._by_stem)


def group(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Return the second items of pairs, by the first."""
    groups: dict[_Key, list[_Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def get_last_part(name: str) -> str:
    """Return the last part of a name: `bp` for `orders.bp`."""
    return name.rpartition(".")[2].rpartition("::")[2]


def get_named_text(fact: Fact, name: str) -> str | None:
    """Return the string value of a named argument; None if it is absent."""
    value = fact.values.get("named", {}).get(name)
    return str(value[1]) if value and value[0] == "s" else None


def get_named_words(fact: Fact, name: str) -> list[str] | None:
    """Return the words in a named argument (a word or a list); None if the argument is absent."""
    value = fact.values.get("named", {}).get(name)
    if value is None:
        return None
    return [str(word[-1]) for word in value[1]] if value[0] == "l" else [str(value[-1])]


def join_paths(before: str, after: str) -> str:
    """Return the path `before/after` with a leading slash, and without doubled slashes."""
    return "/" + "/".join(filter(None, (before.strip("/"), after.strip("/"))))


def combine_paths(before: Sequence[str | None], after: Sequence[str | None]) -> list[str | None]:
    """Return a limited number of combinations of a prefix and a path; None is a computed path."""
    pairs = ((prefix, other) for prefix in before for other in after)
    combined = dict.fromkeys(
        None if prefix is None or other is None else join_paths(prefix, other)
        for prefix, other in pairs
    )
    return [*combined][:MAX_PREFIXES]


def iter_strings(values: Sequence[Value]) -> Iterator[str]:
    """Return the strings among values; values of other kinds are skipped."""
    return (str(value[1]) for value in values if value[0] == "s")
