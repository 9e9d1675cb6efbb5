"""The files of a repository, indexed for the evaluation of routes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.routes.model import LocatedFact, StatementBlock
from rag_assets.systems.code_memory.symbols.model import FileFacts

_FRAMEWORK: Final = "laravel/framework"
_VERSION: Final = re.compile(r"\d{1,3}")


def find_framework_version(files: Iterable[FileFacts]) -> int | None:
    """Return the major version that a manifest requires; None if no manifest states it."""
    for file in files:
        if file.language == "php" or posixpath.basename(file.path) != "composer.json":
            continue
        for fact in file.facts:
            if fact.kind == "depends_on" and fact.values.get("package") == _FRAMEWORK:
                version = _VERSION.search(str(fact.values.get("constraint", "")))
                if version is not None:
                    return int(version[0])
    return None


ROOT: Final = "/@/"
"""Represents the repository's folder in evaluated paths."""

_MAX_ANCESTORS: Final = 200
_TESTS: Final = re.compile(r"(?:^|/)tests?/", re.IGNORECASE)


class LaravelProgram:
    """The files of a repository, indexed for the evaluation of routes.

    Attributes:
        functions: the functions outside classes, by name in lower case.
        version: major version of the framework that its manifest requires; None if it is unknown.
        providers: classes that applications list as providers, in order, by the application's
            folder.
        registered: names that look like provider classes in statements of the repository.
    """

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self.classes: dict[str, LocatedFact] = {}
        self.functions: dict[str, LocatedFact] = {}
        self.paths: set[str] = set()
        self.providers: dict[str, dict[str, None]] = {}
        self.registered: set[str] = set()
        self._methods: dict[str, LocatedFact] = {}
        self._members: dict[tuple[str, str], tuple[str, Any]] = {}
        self._lineages: dict[str, list[str]] = {}
        self._bodies: dict[StatementBlock, list[Fact]] = {}
        self._constants: dict[tuple[str, str], Any] = {}
        self._settings: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        files_ = list(files)
        self._inheritance = Inheritance(file for file in files_ if file.language == "php")
        self.version = find_framework_version(files_)
        for file in files_:
            self.paths.add(file.path)
            if file.language == "php":
                self._add_file(file)
        for facts in self._bodies.values():
            facts.sort(key=lambda fact: fact.start)

    def list_statements(self, body: StatementBlock) -> Sequence[Fact]:
        """Return the statements of a body, in order."""
        return self._bodies.get(body, ())

    def iter_top_level_paths(self) -> Iterator[str]:
        """Yield the paths of files whose top-level statements may create routes."""
        yield from (body.path for body in self._bodies if not body.symbol and not body.block)

    def find_constant(self, owner: str, name: str) -> Any:
        """Return the value of a constant of a class or its ancestors; None if it is unknown."""
        keys = ((ancestor, name) for ancestor in self.list_ancestors(owner))
        return next((self._constants[key] for key in keys if key in self._constants), None)

    def list_ancestors(self, name: str) -> list[str]:
        """Return a class, its traits and parents, nearest first; ancestors may form a circle."""
        if name not in self._lineages:
            ancestors = self._inheritance.iter_ancestors(name)
            self._lineages[name] = [*islice(ancestors, _MAX_ANCESTORS)]
        return self._lineages[name]

    def find_method(self, owner: str, name: str, *, above: bool = False) -> LocatedFact | None:
        """Return a method that may create routes; `above` skips the class itself."""
        for ancestor in self.list_ancestors(owner)[above:]:
            fact = self._inheritance.find_own_method(ancestor, name)
            if fact is not None and ancestor in self.classes:
                return self._methods.get(fact.symbol)
        return None

    def find_property(self, owner: str, name: str) -> tuple[str, Any] | None:
        """Return the file and the value's expression of a property of a class; None if unknown."""
        keys = ((ancestor, name) for ancestor in self.list_ancestors(owner))
        return next((self._members[key] for key in keys if key in self._members), None)

    def compute_lookup_cost(self, name: str) -> int:
        """Return the number of evaluation steps that looking up a setting counts as."""
        files = name.split(".")[:-1]
        return (
            sum(len(settings[1]) for file in files for settings in self._settings.get(file, ()))
            // 10
        )

    def find_setting(self, name: str, near: str) -> tuple[str, Any] | None:
        """Return the file that states a setting, and its value there; None if no file states it.

        The value of a setting with other settings below it is `{"keys": names}`.

        Args:
            name: the dotted name, which starts with the file's name.
            near: path of the file that reads the setting; the nearest folder with settings is used.
        """
        path, values, key = "", None, name
        # A package's setting name starts with the package, then the file.
        while values is None and "." in key:
            file, _, key = key.partition(".")
            prefix = f"{key}."
            candidates = [
                (at, settings)
                for at, settings in self._settings.get(file, ())
                if key in settings or any(setting.startswith(prefix) for setting in settings)
            ]
            if candidates:
                path, values = max(
                    candidates, key=lambda candidate: _count_shared_folders(candidate[0], near)
                )
        if values is None:
            return None
        if key in values:
            return path, values[key]
        names_below = [value[len(key) + 1 :] for value in values if value.startswith(f"{key}.")]
        return path, {
            "keys": list(dict.fromkeys(setting.partition(".")[0] for setting in names_below))
        }

    def find_root(self, path: str) -> str:
        """Return the folder of a file's application: "", or a path with a trailing slash."""
        folder = posixpath.dirname(path)
        while folder:
            if {f"{folder}/bootstrap/app.php", f"{folder}/artisan"} & self.paths:
                return f"{folder}/"
            folder = posixpath.dirname(folder)
        return ""

    def find_file(self, written: str, near: str) -> str | None:
        """Return the path of the file that an evaluated path names; None if it does not exist.

        Args:
            written: the path below ROOT, or relative to the application or to `near`.
            near: path of the file that loads it.
        """
        if written.startswith(ROOT):
            tried = [written.removeprefix(ROOT)]
        else:
            tried = [self.find_root(near) + written, f"{posixpath.dirname(near)}/{written}"]
        paths = (posixpath.normpath("/" + path.lstrip("/")).lstrip("/") for path in tried)
        return next((path for path in paths if path in self.paths), None)

    def _add_file(self, file_facts: FileFacts) -> None:
        for fact in file_facts.facts:
            if fact.kind == "declares" and fact.values.get("role") in {"class", "trait"}:
                self.classes.setdefault(fact.symbol, LocatedFact(file_facts.path, fact))
        for fact in file_facts.facts:
            if fact.kind == "routing":
                self._add_statement(file_facts.path, fact)
            elif fact.kind == "constant":
                self._constants.setdefault((fact.symbol, fact.values["name"]), fact.values["value"])
            elif fact.kind == "configuration":
                name = posixpath.basename(file_facts.path).removesuffix(".php")
                if name in {"app", "providers"}:
                    root = posixpath.dirname(posixpath.dirname(file_facts.path))
                    class_names = self.providers.setdefault(f"{root}/" if root else "", {})
                    class_names.update(dict.fromkeys(fact.values["values"].get("providers", ())))
                self._settings.setdefault(name, []).append((file_facts.path, fact.values["values"]))

    def _add_statement(self, path: str, fact: Fact) -> None:
        values = fact.values
        if fact.symbol:
            self.registered.update(_iter_provider_names(values))
        owner, _, name = fact.symbol.partition("::")
        class_ = self.classes.get(owner)
        is_of_class = class_ is not None and class_.path == path
        if values["op"] == "member":
            if is_of_class:
                self._members[owner, values["name"]] = path, values["value"]
        elif values["op"] == "function":
            if not name:
                self.functions.setdefault(fact.symbol.lower(), LocatedFact(path, fact))
            elif is_of_class:
                self._methods.setdefault(fact.symbol, LocatedFact(path, fact))
        else:
            body = StatementBlock(path, fact.symbol, values["block"])
            self._bodies.setdefault(body, []).append(fact)


def iter_providers(program: LaravelProgram) -> Iterator[str]:
    """Yield provider classes: listed providers, then the application's, then those in packages.

    A provider of an application is skipped if the application lists other providers of its own and
    no statement names this one: Laravel's skeleton contains such unused providers.
    """
    names = (name for class_names in program.providers.values() for name in class_names)
    positions = {name: index for index, name in enumerate(dict.fromkeys(names))}
    providers = [
        (positions.get(name, len(positions)), not class_.path.startswith("app/"), class_.path, name)
        for name, class_ in program.classes.items()
        if not class_.fact.values.get("abstract") and not is_test(class_.path)
        if any(
            ancestor not in program.classes and ancestor.rpartition("\\")[2].endswith("Provider")
            for ancestor in program.list_ancestors(name)
        )
        if name in positions or name in program.registered or not _is_replaced(program, class_.path)
    ]
    yield from (name for *_, name in sorted(providers))


def _is_replaced(program: LaravelProgram, path: str) -> bool:
    """Return whether the application of an unlisted provider's file lists its own providers."""
    for root, class_names in program.providers.items():
        folder = f"{root}app/"
        classes = (program.classes[name] for name in class_names if name in program.classes)
        if path.startswith(folder) and any(class_.path.startswith(folder) for class_ in classes):
            return True
    return False


def is_test(path: str) -> bool:
    """Return whether a file belongs to tests; providers in tests are not used by applications."""
    return _TESTS.search(path) is not None


def _iter_provider_names(value: Any) -> Iterator[str]:
    """Yield the strings in a statement that end in `Provider`, at any depth."""
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str) and item.endswith("Provider"):
            yield item
        elif isinstance(item, Mapping):
            pending += item.values()
        elif isinstance(item, list):
            pending += item


def _count_shared_folders(first: str, second: str) -> int:
    pairs = zip(first.split("/"), second.split("/"), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(first))
