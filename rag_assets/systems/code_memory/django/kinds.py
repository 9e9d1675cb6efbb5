"""Source types in Django: by a definition's ancestors and decorators, by its use, and by its path.

Framework data (`types` in django.toml) map these to types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.django.urlconf import read_routes
from rag_assets.systems.code_memory.frameworks.definitions import get_framework
from rag_assets.systems.code_memory.languages.python.program import (
    Module,
    PythonProgram,
    find_argument,
    get_written_name,
    is_a,
    list_items,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.source_types import SourceType


def find_source_types(files: Sequence[FileFacts]) -> Mapping[tuple[str, str], SourceType]:
    """Return the source type of each definition that has one, by path and qualified name."""
    program = PythonProgram(files)
    reader = _TypeReader(program)
    types = {
        (module.path, symbol): kind
        for module in program
        for symbol, kind in reader.iter_types(module)
    }
    views = dict.fromkeys(route.view.name for route in read_routes(files).routes if route.view.name)
    used: list[tuple[str, SourceType]] = [(name, "controller") for name in views]
    for name, kind in [*used, *reader.iter_types_by_use()]:
        place = program.find_place_of_name(name)
        if place is not None and place.symbol in place.module.declared:
            key = place.module.path, place.symbol
            if types.get(key) not in {"job", "model"}:
                types[key] = kind
    return {key: kind for key, kind in types.items() if kind != "code"}


class _TypeReader:
    """A reader of the source types of definitions in one repository."""

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        self._data = get_framework("django").types
        self._known: dict[str, SourceType | None] = {}

    def iter_types(self, module: Module) -> Iterator[tuple[str, SourceType]]:
        """Yield the definitions and signals of a module whose text or path shows their type."""
        for symbol, fact in module.declared.items():
            # An inner class such as Meta has its outer class's type.
            if "." not in symbol:
                kind = self._find_type_by_text(module, symbol, fact) or self._find_type_by_folder(
                    module, fact
                )
                if kind is not None:
                    yield symbol, kind
        for fact in module.assigned.get("", ()):
            function = self._program.get_called_name(fact.values["value"], module)
            if (
                function
                and self._find_type_by_bases(self._program.list_ancestry(function)) == "event"
            ):
                yield fact.values["name"], "event"

    def iter_types_by_use(self) -> Iterator[tuple[str, SourceType]]:
        """Yield the definitions in a setting, or in a call as first argument, with their types."""
        for module in self._program:
            for setting, kind in self._data.settings.items():
                for fact in module.list_assignments("", setting):
                    yield from (
                        (string_item, kind)
                        for string_item in _iter_string_items(fact.values["value"])
                    )
            for fact in module.invoked:
                call = fact.values["call"]
                type_ = self._data.calls.get(get_written_name(call).rpartition(".")[2])
                value = find_argument(call, 0, "receiver") if type_ is not None else None
                if type_ is not None and is_a(value, "name"):
                    name = self._program.get_absolute_name(value["name"], module)
                    yield self._program.resolve_name(name), type_

    def _find_type_by_text(self, module: Module, symbol: str, fact: Fact) -> SourceType | None:
        if fact.values["role"] == "class":
            return self._find_type_by_bases(
                self._program.list_ancestry(f"{module.name}.{symbol}")[1:]
            )
        for decorator in fact.values["decorators"]:
            written = get_written_name(decorator)
            name = self._program.resolve_name(self._program.get_absolute_name(written, module))
            if kind := _find_matching_type(name, self._data.annotations):
                return kind
        return None

    def _find_type_by_bases(self, ancestors: Sequence[str]) -> SourceType | None:
        """Return the type of the nearest ancestor from another package that has a type."""
        for ancestor in ancestors:
            if ancestor not in self._known:
                is_outside = self._program.find_place_of_name(ancestor) is None
                self._known[ancestor] = (
                    _find_matching_type(ancestor, self._data.bases) if is_outside else None
                )
            if (kind := self._known[ancestor]) is not None:
                return kind
        return None

    def _find_type_by_folder(self, module: Module, fact: Fact) -> SourceType | None:
        """Return the type of a public definition by the folders and module that contain it."""
        parts = module.name.split(".")
        for folder, kind in self._data.folders.items() if fact.values["public"] else ():
            if folder in parts[-3:] and (kind == "service" or fact.values["role"] == "class"):
                return None if {"management", "commands"} <= {*parts} else kind
        return None


def _find_matching_type(name: str, patterns: Mapping[str, SourceType]) -> SourceType | None:
    """Return the type of the first pattern that matches a name; None if no pattern matches."""
    return next((kind for pattern, kind in patterns.items() if fnmatchcase(name, pattern)), None)


def _iter_string_items(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in list_items(value):
        yield from _iter_string_items(item)
