"""The files of a repository as routes are made of them: bodies, classes, settings and paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.code.frameworks.laravel.routes.values import Body
from rag_assets.code.frameworks.laravel.version import framework_version
from rag_assets.code.model import Fact, FileFacts

ROOT: Final = "/@/"
"""What stands for the repository's folder in paths that expressions give."""

_MOST_ANCESTORS: Final = 200
_TESTS: Final = re.compile(r"(?:^|/)tests?/", re.IGNORECASE)


@dataclass(slots=True)
class ClassFacts:
    """A class.

    Attributes:
        path: of its file.
        abstract: as it is declared.
        parents: what it extends.
        traits: what it uses.
        functions: its methods that may make routes, by their names in lower case.
        methods: the names of all of its methods, in lower case.
        members: expressions of properties, by name.
    """

    path: str
    abstract: bool = False
    parents: list[str] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    members: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Function:
    """A function or a method.

    Attributes:
        body: its statements.
        parameters: as JSON.
        fact: its declaration.
    """

    body: Body
    parameters: tuple[Mapping[str, Any], ...]
    fact: Fact


class Program:
    """The repository.

    Attributes:
        classes: by their names.
        functions: outside of classes, by their names in lower case.
        paths: of all files.
        version: of the framework that its manifest asks for, the first number; None if it is not
            known.
        providers: classes that applications list as providers, in order, by their folder.
        registered: what looks like the class of a provider in statements of classes.

    Args:
        files: of the repository: those of PHP, and its manifest.
    """

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self.classes: dict[str, ClassFacts] = {}
        self.functions: dict[str, Function] = {}
        self.paths: set[str] = set()
        self.providers: dict[str, dict[str, None]] = {}
        self.registered: set[str] = set()
        self._lineages: dict[str, list[str]] = {}
        self._bodies: dict[Body, list[Fact]] = {}
        self._constants: dict[tuple[str, str], Any] = {}
        self._settings: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        given = list(files)
        self.version = framework_version(given)
        for one in given:
            self.paths.add(one.path)
            if one.language == "php":
                self._read(one)
        for facts in self._bodies.values():
            facts.sort(key=lambda fact: fact.start)

    def body(self, body: Body) -> Sequence[Fact]:
        """The statements of a body, in order."""
        return self._bodies.get(body, ())

    def top_levels(self) -> Iterator[str]:
        """The paths of files with statements outside of functions that may make routes."""
        yield from (body.path for body in self._bodies if not body.symbol and not body.block)

    def constant(self, owner: str, name: str) -> Any:
        """A constant of a class or of what it inherits; None where it is not known."""
        for one in self.lineage(owner):
            if (one, name) in self._constants:
                return self._constants[one, name]
        return None

    def lineage(self, name: str) -> list[str]:
        """A class, its traits and parents, nearest first; ancestors may form a circle."""
        known = self._lineages.get(name)
        if known is not None:
            return known
        found: dict[str, None] = {}
        todo = [name]
        while todo and len(found) < _MOST_ANCESTORS:
            at = todo.pop()
            if at in found:
                continue
            found[at] = None
            held = self.classes.get(at)
            if held is not None:
                todo += [*held.parents, *reversed(held.traits)]
        return self._lineages.setdefault(name, list(found))

    def method(self, owner: str, name: str, *, above: bool = False) -> Function | None:
        """A method of a class or of what it inherits; None where it makes no routes.

        Args:
            owner: the class.
            name: of the method.
            above: whether the class itself is left out.
        """
        for one in self.lineage(owner)[1 if above else 0 :]:
            held = self.classes.get(one)
            if held is not None and name.lower() in held.methods:
                return held.functions.get(name.lower())
        return None

    def member(self, owner: str, name: str) -> tuple[str, Any] | None:
        """A property of a class or of what it inherits: the class's file and an expression.

        Args:
            owner: the class.
            name: of the property.
        """
        for one in self.lineage(owner):
            held = self.classes.get(one)
            if held is not None and name in held.members:
                return held.path, held.members[name]
        return None

    def settings_in(self, name: str) -> int:
        """How many settings there are among which one of this name is looked for."""
        files = name.split(".")[:-1]
        return sum(len(one[1]) for file in files for one in self._settings.get(file, ())) // 10

    def setting(self, name: str, near: str) -> tuple[str, Any] | None:
        """The file that states a setting and its value there; None if none does.

        Settings that have others below them are `{"keys": names}`.

        Args:
            name: dotted, the file's name first.
            near: path of the file that asks; the nearest folder with settings counts.
        """
        path, values, key = "", None, name
        # A package's settings have its name before that of their file.
        while values is None and "." in key:
            file, _, key = key.partition(".")
            stated = [one for one in self._settings.get(file, ()) if _states(one[1], key)]
            if stated:
                path, values = max(stated, key=lambda one: _shared(one[0], near))
        if values is None:
            return None
        if key in values:
            return path, values[key]
        below = [one[len(key) + 1 :] for one in values if one.startswith(f"{key}.")]
        return path, {"keys": list(dict.fromkeys(one.partition(".")[0] for one in below))}

    def root_of(self, path: str) -> str:
        """The folder of the application that a file belongs to: "" or one that ends in a slash."""
        folder = posixpath.dirname(path)
        while folder:
            if {f"{folder}/bootstrap/app.php", f"{folder}/artisan"} & self.paths:
                return f"{folder}/"
            folder = posixpath.dirname(folder)
        return ""

    def file_of(self, written: str, near: str) -> str | None:
        """The path of a file as an expression gives it; None if there is none.

        Args:
            written: below ROOT, or relative to the application or to the file that asks.
            near: path of the file that asks.
        """
        tried = self._places(written, near)
        return next((path for path in tried if path in self.paths), None)

    def matching(self, pattern: str, near: str) -> list[str]:
        """The paths that a pattern of `glob` finds, in order."""
        for place in self._places(pattern, near):
            parts = place.split("/")
            found = sorted(path for path in self.paths if _matches(path.split("/"), parts))
            if found:
                return found
        return []

    def _places(self, written: str, near: str) -> list[str]:
        if written.startswith(ROOT):
            return [_normal(written[len(ROOT) :])]
        folder = posixpath.dirname(near)
        own = _normal(f"{folder}/{written}" if folder else written)
        return [_normal(self.root_of(near) + written), own]

    def _read(self, one: FileFacts) -> None:
        for fact in one.facts:
            if fact.kind == "declares" and fact.values.get("role") in {"class", "trait"}:
                self.classes.setdefault(
                    fact.symbol, ClassFacts(one.path, bool(fact.values.get("abstract")))
                )
        for fact in one.facts:
            if fact.kind == "routing":
                self._statement(one.path, fact)
            elif fact.kind == "constant":
                self._constants.setdefault((fact.symbol, fact.values["name"]), fact.values["value"])
            elif fact.kind == "configuration":
                name = posixpath.basename(one.path).removesuffix(".php")
                if name in {"app", "providers"}:
                    root = posixpath.dirname(posixpath.dirname(one.path))
                    listed = self.providers.setdefault(f"{root}/" if root else "", {})
                    listed.update(dict.fromkeys(fact.values["values"].get("providers", ())))
                self._settings.setdefault(name, []).append((one.path, fact.values["values"]))
            else:
                self._of_class(one.path, fact)

    def _of_class(self, path: str, fact: Fact) -> None:
        owner, _, name = fact.symbol.partition("::")
        held = self.classes.get(owner)
        if held is None or held.path != path:
            return
        if fact.kind == "declares" and name:
            held.methods.add(name.lower())
        elif fact.kind == "extends":
            held.parents.append(fact.values["name"])
        elif fact.kind == "uses_trait":
            held.traits.append(fact.values["name"])

    def _statement(self, path: str, fact: Fact) -> None:
        values = fact.values
        if fact.symbol:
            self.registered.update(_providers_in(values))
        owner, _, name = fact.symbol.partition("::")
        held = self.classes.get(owner)
        if values["op"] == "member":
            if held is not None and held.path == path:
                held.members[values["name"]] = values["value"]
        elif values["op"] == "function":
            function = Function(Body(path, fact.symbol, 0), tuple(values["parameters"]), fact)
            if not name:
                self.functions.setdefault(fact.symbol.lower(), function)
            elif held is not None and held.path == path:
                held.functions.setdefault(name.lower(), function)
        else:
            body = Body(path, fact.symbol, values["block"])
            self._bodies.setdefault(body, []).append(fact)


def is_test(path: str) -> bool:
    """Whether a file belongs to tests, whose providers no application has."""
    return _TESTS.search(path) is not None


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/")).lstrip("/")


def _matches(folders: Sequence[str], patterns: Sequence[str]) -> bool:
    return len(folders) == len(patterns) and all(map(_matches_name, folders, patterns))


def _matches_name(name: str, pattern: str) -> bool:
    """Whether a name is as a pattern with stars says; each star takes as little as it can."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - at >= len(rest[-1]) and name.endswith(rest[-1])


def _providers_in(value: Any) -> Iterator[str]:
    """What looks like the class of a provider, wherever it is in a statement."""
    todo: list[Any] = [value]
    while todo:
        at = todo.pop()
        if isinstance(at, str) and at.endswith("Provider"):
            yield at
        elif isinstance(at, Mapping):
            todo += at.values()
        elif isinstance(at, list):
            todo += at


def _states(values: Mapping[str, Any], key: str) -> bool:
    return key in values or any(one.startswith(f"{key}.") for one in values)


def _shared(one: str, other: str) -> int:
    """How many folders two paths have in common."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(one))
