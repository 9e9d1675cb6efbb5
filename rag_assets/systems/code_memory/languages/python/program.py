"""The Python code of a repository: its modules, and the targets of the names in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.source import (
    get_module_name,
    resolve_reference,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts

_MAX_STEPS: Final = 30
"""Maximum number of imports or variables followed to find the target of a name."""
_MAX_NAME_PARTS: Final = 60
"""Maximum number of parts of a dotted name."""
_MAX_ANCESTORS: Final = 200
_ROOT_FILES: Final = frozenset({"manage.py", "pyproject.toml", "setup.py", "setup.cfg"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a file that supports a statement, as character offsets; `end` is exclusive."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A part of the code that cannot be resolved without running it, with a short reason."""

    reason: str
    evidence: Evidence


@dataclass(slots=True, eq=False)
class Module:
    """A Python file as a module.

    Attributes:
        package: whether it is an `__init__.py`.
        declared: its definitions, by symbol.
        bases: references of base classes, by the symbol of the class.
        imported: references, by the names that imports at top level bind.
        assigned: assignments in order, by the symbol of the class ("" for top level).
        invoked: calls at top level, in order.
    """

    name: str
    path: str
    package: bool
    declared: dict[str, Fact] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    assigned: dict[str, list[Fact]] = field(default_factory=dict)
    invoked: list[Fact] = field(default_factory=list)

    @classmethod
    def from_facts(cls, file: FileFacts, name: str) -> Module:
        """Return the module with this dotted name from the facts of its file."""
        module = cls(name, file.path, file.path.rpartition("/")[2] == "__init__.py")
        for fact in file.facts:
            if fact.kind == "declares":
                module.declared.setdefault(fact.symbol, fact)
            elif fact.kind == "extends":
                module.bases.setdefault(fact.symbol, []).append(fact.values["name"])
            elif fact.kind == "assigns":
                module.assigned.setdefault(fact.symbol, []).append(fact)
            elif fact.kind == "invokes":
                module.invoked.append(fact)
            elif fact.kind == "imports" and not fact.symbol:
                module._add_import(fact.values)
        return module

    def _add_import(self, values: Mapping[str, Any]) -> None:
        name, alias, level = values["name"], values["alias"], values["level"]
        if alias == "*":
            self.stars.append("." * level + name.removesuffix("*").removesuffix("."))
            return
        plain = not values["member"] and alias == name.partition(".")[0]
        self.imported.setdefault(alias, alias if plain else "." * level + name)

    def list_assignments(self, symbol: str, name: str) -> list[Fact]:
        """Return the assignments to a name in order; `symbol` is the class, "" for top level."""
        return [fact for fact in self.assigned.get(symbol, ()) if fact.values["name"] == name]

    def find_last_value(self, symbol: str, name: str) -> Any:
        """Return the last value that is assigned to a name unconditionally and not by `+=`.

        If there is none, return the last value of any kind; None if the name gets no value.
        """
        facts = self.list_assignments(symbol, name)
        plain = [f for f in facts if not f.values["under"] and not f.values["adds"]] or facts
        return plain[-1].values["value"] if plain else None

    def owns(self, symbol: str) -> bool:
        """Return whether the module itself, not an import, defines or assigns a name."""
        owner, _, name = symbol.rpartition(".")
        is_assigned = symbol not in self.imported and bool(self.list_assignments(owner, name))
        return symbol in self.declared or is_assigned

    def build_evidence(self, expression: Any) -> Evidence:
        """Return the span of an expression; (0, 0) for a literal, whose offsets are not stored."""
        start, end = expression["at"] if isinstance(expression, dict) else (0, 0)
        return Evidence(self.path, start, end)


@dataclass(frozen=True, slots=True)
class PythonName:
    """The target of a name: a definition or variable in a module, or a module (symbol "")."""

    module: Module
    symbol: str

    @property
    def name(self) -> str:
        """Return the absolute dotted name."""
        return f"{self.module.name}.{self.symbol}" if self.symbol else self.module.name

    @property
    def value(self) -> Any:
        """Return the value assigned to a variable; None for a definition or a module."""
        owner, _, name = self.symbol.rpartition(".")
        return (
            None
            if self.symbol in self.module.declared
            else self.module.find_last_value(owner, name)
        )

    def defines(self, name: str) -> bool:
        """Return whether the body of this class defines a method with this name."""
        return f"{self.symbol}.{name}" in self.module.declared

    @property
    def members(self) -> dict[str, Fact]:
        """Return the definitions in a class, by name."""
        head = f"{self.symbol}."
        declared = self.module.declared.items()
        return {key.removeprefix(head): fact for key, fact in declared if key.startswith(head)}


class PythonProgram:
    """The Python code of one repository.

    Attributes:
        modules: the modules, by dotted name.

    Args:
        files: the files of the repository; files in other languages only mark its roots.
    """

    def __init__(self, files: Iterable[FileFacts]) -> None:
        files = list(files)
        paths = [file.path.rpartition("/") for file in files]
        packages = {folder for folder, _, name in paths if name == "__init__.py"}
        roots = {folder for folder, _, name in paths if name in _ROOT_FILES}
        self.modules: dict[str, Module] = {}
        self._all: list[Module] = []
        for file in files:
            if file.path.endswith(".py"):
                module = Module.from_facts(file, get_module_name(file.path, packages, roots))
                self.modules.setdefault(module.name, module)
                self._all.append(module)
        self._parents: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Module]:
        return iter(self._all)

    def iter_assigned_texts(self, name: str) -> Iterator[str]:
        """Yield the strings that any module assigns to a name at top level, such as a setting."""
        values = (module.find_last_value("", name) for module in self)
        return (value for value in values if isinstance(value, str))

    def get_absolute_name(self, reference: str, module: Module) -> str:
        """Return the absolute name of a reference's target in the module that defines it."""
        root, name = reference.partition(".")[0], reference
        if reference[:1] in {":", "."}:
            name = resolve_reference(reference, module.name, package=module.package)
        elif all(root != imported.partition(".")[0] for imported in module.imported.values()):
            for star in module.stars:
                source = resolve_reference(star, module.name, package=module.package)
                name = f"{source}.{reference}"
                if (
                    name.rpartition(".")[0] not in self.modules
                    or self.find_place_of_name(name) is not None
                ):
                    break
            else:
                return reference
        place = self.find_place_of_name(name)
        return name if place is None else place.name

    def find_place(self, written: str, module: Module) -> PythonName | None:
        """Return the target of a reference in a module; None if it is outside the repository.

        If a variable of the module and a package have the same name, the variable is the target.
        """
        root = written.partition(".")[0]
        name = self.get_absolute_name(written, module)
        if root not in module.imported and module.owns(root):
            name = f"{module.name}.{name}"
        return self.find_place_of_name(name)

    def follow(self, written: str, module: Module) -> tuple[str, PythonName | None]:
        """Return the absolute name of a reference's target, and the target if it is known.

        Variables that are only another name for their value are followed. The target is None
        outside the repository.
        """
        for _ in range(_MAX_STEPS):
            place = self.find_place(written, module)
            value = None if place is None else place.value
            if place is None or not is_a(value, "name"):
                break
            written, module = value["name"], place.module
        return (self.get_absolute_name(written, module) if place is None else place.name), place

    def get_called_name(self, call: Any, module: Module) -> str:
        """Return the absolute name of a called function or class; "" if it is not static."""
        name = call["call"] if is_a(call, "call") else None
        return (
            self.resolve_name(self.get_absolute_name(name["name"], module))
            if is_a(name, "name")
            else ""
        )

    def find_place_of_name(self, name: str) -> PythonName | None:
        """Return the target of an absolute name; None if it is outside the repository."""
        return self._resolve(name)[1]

    def resolve_name(self, name: str) -> str:
        """Return the name that a definition has in the module that defines it, given any name.

        A name that leads out of the repository is followed as far as possible.
        """
        last, place = self._resolve(name)
        return last if place is None else place.name

    def _resolve(self, name: str) -> tuple[str, PythonName | None]:
        """Follow imports from a name; return the last name, and its target in the repository."""
        seen: set[str] = set()
        at = name
        while at not in seen and len(seen) < _MAX_STEPS:
            seen.add(at)
            module, symbol = self._split_module_name(at)
            if module is not None and (not symbol or module.owns(symbol)):
                return at, PythonName(module, symbol)
            passed = self._follow_import(module, symbol) if module is not None else ""
            if not passed:
                break
            at = passed
        return at, None

    def list_ancestry(self, name: str) -> list[str]:
        """Return the names of a class and all its ancestors, nearest first."""
        ancestry: list[str] = []
        entered: set[str] = set()
        pending = [(self.resolve_name(name), False)]
        while pending and len(entered) < _MAX_ANCESTORS:
            at, is_entered = pending.pop()
            if is_entered:
                ancestry.append(at)
            elif at not in entered:
                entered.add(at)
                pending.append((at, True))
                # A shared ancestor comes after all its subclasses: reverse post-order.
                pending.extend((base, False) for base in self._resolve_bases(at))
        # Beyond _MAX_ANCESTORS, the classes entered last are left out.
        return [*(at for at, is_entered in pending if is_entered), *reversed(ancestry)]

    def iter_lineage(self, name: str) -> Iterator[PythonName]:
        """Yield a class and its ancestors within the repository, nearest first."""
        places = (self.find_place_of_name(ancestor) for ancestor in self.list_ancestry(name))
        return (place for place in places if place is not None)

    def find_attribute_value(self, name: str, attribute: str) -> Any:
        """Return the value that a class, or else its nearest ancestor, assigns to an attribute."""
        for place in self.iter_lineage(name):
            if place.module.list_assignments(place.symbol, attribute):
                return place.module.find_last_value(place.symbol, attribute)
        return None

    def _resolve_bases(self, name: str) -> list[str]:
        if name not in self._parents:
            place = self.find_place_of_name(name)
            self._parents[name] = (
                []
                if place is None
                else [
                    self.resolve_name(self.get_absolute_name(base, place.module))
                    for base in place.module.bases.get(place.symbol, ())
                ]
            )
        return self._parents[name]

    def _follow_import(self, module: Module, symbol: str) -> str:
        """Return the name to which an import in the module binds a symbol; "" if none does."""
        root, dot, rest = symbol.partition(".")
        if root in module.imported:
            target = resolve_reference(module.imported[root], module.name, package=module.package)
            return f"{target}{dot}{rest}"
        for star in module.stars:
            source = resolve_reference(star, module.name, package=module.package)
            other = self.modules.get(source)
            if other is None or other is module:
                continue
            if other.owns(symbol) or root in other.imported or other.stars:
                return f"{source}.{symbol}"
        return ""

    def _split_module_name(self, name: str) -> tuple[Module | None, str]:
        parts = name.split(".")
        for end in range(len(parts), 0, -1) if len(parts) <= _MAX_NAME_PARTS else ():
            module = self.modules.get(".".join(parts[:end]))
            if module is not None:
                return module, ".".join(parts[end:])
        return None, ""


def is_a(value: Any, kind: str) -> TypeGuard[dict[str, Any]]:
    """Return whether an expression is of a kind of `expressions`, such as call or name."""
    return isinstance(value, dict) and value.get("of") == kind


def get_written_name(value: Any) -> str:
    """Return the name in a name expression, or the name of the function in a call; else ""."""
    called = value["call"] if is_a(value, "call") else value
    return str(called["name"]) if is_a(called, "name") else ""


def find_argument(call: Any, position: int, name: str) -> Any:
    """Return an argument of a call by its name, else by its position; None if it is missing."""
    if name in call["named"]:
        return call["named"][name]
    arguments = call["arguments"]
    return arguments[position] if position < len(arguments) else None


def list_items(value: Any) -> list[Any]:
    """Return the items of a list, tuple or set, or the operands of a sum; else an empty list."""
    is_list = isinstance(value, dict) and value["of"] != "dict"
    return list(value.get("items", ())) if is_list else []
