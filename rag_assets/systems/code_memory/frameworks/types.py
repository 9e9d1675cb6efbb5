"""Source types of definitions by the rules of frameworks: bases, annotations, names and folders.

The facts of a file are reduced to *clues* first. Two versions of a file with equal clues lead to
the same source types, in this file and in others.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import (
    Framework,
    TableRules,
    TypeRules,
    load_all_frameworks,
)
from rag_assets.systems.code_memory.frameworks.repository import LAST_PARTS, get_last_part, group
from rag_assets.systems.code_memory.frameworks.statements import (
    ANNOTATION,
    ASSIGNED,
    CALL,
    CLASS,
    FOUND,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.source_types import SourceType, is_test

_STATEMENTS: Final = frozenset({ANNOTATION, CALL, ASSIGNED})
_ALWAYS: Final = frozenset({FOUND, CLASS, "implements"})
CLUE_KINDS: Final = _STATEMENTS | _ALWAYS | {"declares"}
"""Kinds of facts that yield clues."""
_CLASSES: Final = frozenset({"class", "interface", "module", "type"})
_TYPES_OF_FUNCTIONS: Final = frozenset({"controller", "service", "middleware", "job"})
"""Source types that a folder gives to functions that are not private."""
_CALLABLE: Final = frozenset({"function", "method"})
_MAX_ANCESTORS: Final = 40
"""Maximum number of ancestors followed for a class; further ancestors are ignored."""
_MAX_BEFORE: Final = 200
"""Maximum number of definitions before an offset that are examined."""
_MAX_FOLDERS: Final = 3
"""Number of folders above a file whose names may decide, besides the file's own name."""

Clue: TypeAlias = tuple[str, str, str]
"""The kind of a clue, the definition that it is about, and a name: a role, a base, a call."""
_Key: TypeAlias = tuple[str, str]
"""The path and the qualified name of a definition."""
_Types: TypeAlias = dict[_Key, SourceType]


class _Names(NamedTuple):
    """The names that the rules of types of all frameworks of one language look for.

    Attributes:
        has_rules: whether any framework of the language gives types.
    """

    has_rules: bool
    annotations: frozenset[str]
    inside: frozenset[str]
    sets: frozenset[str]
    configurations: frozenset[str]


@lru_cache(maxsize=128)
def _collect_names(language: str, own: str) -> _Names:
    frameworks = [f for f in load_all_frameworks(own) if language in f.languages]
    tables = [table for framework in frameworks for table in framework.tables]
    annotations = chain.from_iterable(map(_list_annotations, frameworks))
    return _Names(
        any(f.types != TypeRules() or f.tables or f.routes for f in frameworks),
        frozenset(annotations),
        frozenset(name for table in tables for name in _list_inside(table)),
        frozenset(name for table in tables for name in table.sets),
        frozenset(name for table in tables for name in table.configurations),
    )


def _list_annotations(framework: Framework) -> list[str]:
    tables = (name for table in framework.tables for name in table.annotations)
    routes = (name for rule in framework.routes for name in rule.annotations)
    return [*framework.types.annotations, *tables, *routes]


def _list_inside(table: TableRules) -> list[str]:
    """Return the calls and variables that only occur in the definition of a model."""
    is_elsewhere = table.configurations or table.entities
    is_field = table.field and not (table.bases or table.annotations)
    return [*(() if is_elsewhere else table.calls), *([table.field] if is_field else [])]


def keep_facts_with_clues(facts: Sequence[Fact], language: str, own: str = "") -> Iterator[Fact]:
    """Yield the facts that yield clues.

    Args:
        own: the tenant's own frameworks; see load_all_frameworks.
    """
    names = _collect_names(language, own)
    if not names.has_rules:
        return
    statements = {
        id(fact) for fact in facts if fact.kind in _STATEMENTS and _find_name(fact, names)
    }
    for fact in facts:
        is_typed = fact.kind == "declares" and _may_have_folder_type(fact)
        if is_typed or fact.kind in _ALWAYS or id(fact) in statements:
            yield fact
        elif fact.kind == "declares" and statements:
            yield fact  # The definition that a statement is about.


def _may_have_folder_type(fact: Fact) -> bool:
    """Return whether a definition is a class, or a function that other files may use."""
    values = fact.values
    is_public = values.get("public", values.get("exported", True))
    return values.get("role") in _CLASSES or (values.get("role") == "function" and is_public)


def _find_name(fact: Fact, names: _Names) -> str:
    """Return the name in a statement that a rule may look for; "" if there is none."""
    name = str(fact.values["name"])
    if fact.kind == ANNOTATION:
        return name if name in names.annotations else ""
    if fact.kind == ASSIGNED and fact.values["value"][0] == "t":
        type_ = str(fact.values["value"][1])
        return type_ if type_.partition("<")[0] in names.sets else ""
    return name if name in names.inside else ""


def list_clues(facts: Sequence[Fact], language: str, own: str = "") -> list[Clue]:
    """Return the clues in a file's facts."""
    names = _collect_names(language, own)
    if not names.has_rules:
        return []
    definitions = _Definitions(facts)
    clues: list[Clue] = [
        ("declared", fact.symbol, str(fact.values.get("role")))
        for fact in definitions.ordered
        if _may_have_folder_type(fact)
    ]
    for fact in facts:
        if fact.kind == FOUND:
            clues += (("framework", "", str(name)) for name in fact.values["names"])
        elif fact.kind == CLASS:
            symbol = definitions.find(str(fact.values["name"]), fact.start)
            bases = [str(base) for base in fact.values["bases"] if base]
            clues += (("base", symbol, base) for base in bases if symbol)
            if names.configurations & {*bases}:
                clues += (("model", "", str(t)) for t in fact.values.get("type_arguments", ()))
        elif fact.kind == "implements":
            clues.append(("base", fact.symbol, str(fact.values["name"]).removeprefix("scoped:")))
        elif fact.kind in _STATEMENTS and (name := _find_name(fact, names)):
            clues += _iter_clues_of_statement(fact, name, definitions)
    return [*dict.fromkeys(clues)]


def _iter_clues_of_statement(fact: Fact, name: str, definitions: _Definitions) -> Iterator[Clue]:
    if fact.kind == ANNOTATION:
        if symbol := definitions.find(str(fact.values["of"]), fact.values["target"][0]):
            yield "annotated", symbol, name
    elif fact.kind == ASSIGNED and fact.values["value"][0] == "t":
        yield "model", "", name.partition("<")[2].rstrip(">?")
    elif symbol := definitions.find_around(fact.start):
        yield "inside", symbol, name


class _Definitions:
    """The definitions of one file, by their place."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        declared = (fact for fact in facts if fact.kind == "declares" and fact.symbol)
        self.ordered = sorted(declared, key=lambda fact: (fact.start, -fact.end))
        self._by_name = group((_get_short_name(fact.symbol), fact) for fact in self.ordered)
        self._outer = [f for f in self.ordered if f.values.get("role") not in _CALLABLE]

    def find(self, name: str, at: int) -> str:
        """Return the innermost definition with this short name at an offset; "" if none."""
        return _find_innermost(self._by_name.get(name, ()), at)

    def find_around(self, at: int) -> str:
        """Return the innermost definition around an offset, functions excepted; "" if none."""
        return _find_innermost(self._outer, at)


def _find_innermost(ordered: Sequence[Fact], at: int) -> str:
    end = bisect_right(ordered, at, key=lambda fact: fact.start)
    before = reversed(ordered[max(0, end - _MAX_BEFORE) : end])
    return next((fact.symbol for fact in before if at < fact.end), "")


def _get_owner(symbol: str) -> str:
    """Return the name of the definition around another; "" if there is none."""
    ends = [match.start() for match in LAST_PARTS.finditer(symbol)]
    return symbol[: ends[-1]] if ends else ""


def _get_short_name(symbol: str) -> str:
    return LAST_PARTS.split(symbol)[-1]


def find_types(files: Sequence[FileFacts], own: str = "") -> _Types:
    """Return the source type of each definition that the frameworks' rules give one.

    A definition gets its type from its ancestors, its annotations or its table, else from its name,
    else from its folder.

    Args:
        files: the files of one repository, with at least the facts of keep_facts_with_clues.
        own: the tenant's own frameworks; see load_all_frameworks.
    """
    read = [
        _TypedFile(file.path, file.language, list_clues(file.facts, file.language, own))
        for file in files
        if not is_test(file.path)
    ]
    certain: _Types = {}
    likely: _Types = {}
    for framework in load_all_frameworks(own):
        own_files = [file for file in read if file.language in framework.languages]
        used = {name for file in own_files for name in file.select("framework", "")}
        if not framework.markers or framework.name in used:
            reader = _TypeReader(framework, own_files)
            certain = reader.find_certain_types() | certain
            likely = reader.find_likely_types() | likely
    return {key: type_ for key, type_ in (likely | certain).items() if type_ != "code"}


class _TypedFile:
    """A file with its clues."""

    def __init__(self, path: str, language: str, clues: Sequence[Clue]) -> None:
        self.path = path
        self.language = language
        self._clues = group(((kind, symbol), name) for kind, symbol, name in clues)
        self.roles = {symbol: name for kind, symbol, name in clues if kind == "declared"}
        classes = [symbol for symbol, role in self.roles.items() if role in _CLASSES]
        self.namespaces = {_get_owner(symbol) for symbol in classes}
        self.annotated = [(s, name) for kind, s, name in clues if kind == "annotated"]
        self.inside = [(s, name) for kind, s, name in clues if kind == "inside"]
        self.models = self.select("model", "")

    def select(self, kind: str, symbol: str) -> Sequence[str]:
        """Return the names in the clues of a kind about a definition."""
        return self._clues.get((kind, symbol), ())


class _TypeReader:
    """A reader of the source types that one framework's rules give to definitions."""

    def __init__(self, framework: Framework, files: Sequence[_TypedFile]) -> None:
        self._files = files
        self._rules = framework.types
        self._tables = framework.tables
        self._routes = {name for rule in framework.routes for name in rule.annotations}
        self._marks: Mapping[str, SourceType] = {
            **{name: "model" for table in framework.tables for name in table.annotations},
            **framework.types.annotations,
        }
        self._inside = {name for table in framework.tables for name in _list_inside(table)}
        self._classes = group(
            (_get_short_name(symbol), (file, symbol))
            for file in files
            for symbol, role in file.roles.items()
            if role in _CLASSES
        )

    def find_certain_types(self) -> _Types:
        """Return the types that ancestors, annotations and tables show."""
        types: _Types = {}
        for file in self._files:
            for symbol, type_ in self._iter_certain_types(file):
                types.setdefault((file.path, symbol), type_)
        for file in self._files if any(t.sets or t.configurations for t in self._tables) else ():
            for model in file.models:
                if (found := self._find_nearest_class(file, model)) is not None:
                    types.setdefault((found[0].path, found[1]), "model")
        return types

    def _iter_certain_types(self, file: _TypedFile) -> Iterator[tuple[str, SourceType]]:
        for symbol in file.roles:
            if (by_base := self._find_type_by_bases(file, symbol)) is not None:
                yield symbol, by_base
        for symbol, name in file.annotated:
            if (type_ := self._marks.get(name)) is not None:
                yield symbol, type_
            elif name in self._routes:
                yield _find_owner(file, symbol), "controller"
        yield from ((symbol, "model") for symbol, name in file.inside if name in self._inside)

    def find_likely_types(self) -> _Types:
        """Return the types that names of classes, folders and files suggest."""
        types: _Types = {}
        for file in self._files:
            by_folder = self._find_type_by_folder(file.path)
            for symbol, role in file.roles.items():
                name = _get_short_name(symbol) if role in _CLASSES else ""
                type_ = _find_type(name, self._rules.names)
                if type_ is None and _takes_type_of_folder(file, symbol, by_folder):
                    type_ = by_folder
                if type_ is not None:
                    types[file.path, symbol] = type_
        return types

    def _find_type_by_bases(self, file: _TypedFile, symbol: str) -> SourceType | None:
        """Return the type of the nearest ancestor that a rule names; None if there is none."""
        tables = [table for table in self._tables if not _is_embedded(table, symbol)]
        pending, seen = [(file, symbol, tables)], {(file.path, symbol)}
        while pending and len(seen) < _MAX_ANCESTORS:
            here, class_, tables = pending.pop(0)
            bases = here.select("base", class_)
            for base in bases:
                if any(base in table.bases for table in tables):
                    return "model"
                if type_ := _find_type(base, self._rules.bases):
                    return type_
            for parent, name in filter(None, (self._find_nearest_class(here, b) for b in bases)):
                # If classes embed others, only those pass on their table.
                passing = [t for t in tables if not t.embedded or _is_embedded(t, name)]
                if (parent.path, name) not in seen:
                    seen.add((parent.path, name))
                    pending.append((parent, name, passing))
        return None

    def _find_nearest_class(self, file: _TypedFile, name: str) -> tuple[_TypedFile, str] | None:
        """Return the class with a name whose path has most in common with a file's."""
        known = self._classes.get(_get_short_name(name), ())
        known = [class_ for class_ in known if class_[0].language == file.language]

        def count_shared(class_: tuple[_TypedFile, str]) -> int:
            return len(posixpath.commonprefix([file.path, class_[0].path]))

        return max(known, key=count_shared, default=None)

    def _find_type_by_folder(self, path: str) -> SourceType | None:
        *folders, stem = posixpath.splitext(path.lower())[0].split("/")
        places = {*folders[-_MAX_FOLDERS:], *stem.split(".")}
        return next((t for name, t in self._rules.folders.items() if name in places), None)


def _find_type(name: str, patterns: Mapping[str, SourceType]) -> SourceType | None:
    """Return the type of the first pattern that a name, or its last part, matches."""
    last = get_last_part(name.replace("\\", "."))
    return next(
        (t for p, t in patterns.items() if fnmatchcase(name, p) or fnmatchcase(last, p)), None
    )


def _find_owner(file: _TypedFile, symbol: str) -> str:
    """Return the class of a method; the definition itself if it has none."""
    owner = _get_owner(symbol)
    return owner if file.roles.get(owner) in _CLASSES else symbol


def _takes_type_of_folder(file: _TypedFile, symbol: str, type_: SourceType | None) -> bool:
    """Return whether a folder's type is one for a definition outside classes."""
    if file.roles[symbol] in _CLASSES:
        return symbol not in file.namespaces
    return type_ in _TYPES_OF_FUNCTIONS and _find_owner(file, symbol) == symbol


def _is_embedded(table: TableRules, symbol: str) -> bool:
    """Return whether a class only gives its columns to the classes that embed it."""
    return bool(table.embedded and re.search(table.embedded, _get_short_name(symbol)))
