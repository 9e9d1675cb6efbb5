"""Python files as modules, with their definitions, imports, assignments and calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import FileFacts


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in a repository that supports a statement.

    Attributes:
        path: the path of the file.
        start, end: character offsets in it, half open.
    """

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A statement that reading the text does not resolve.

    Attributes:
        reason: the reason, in a few words.
        evidence: where it is written.
    """

    reason: str
    evidence: Evidence


@dataclass(slots=True, eq=False)
class Module:
    """A Python file as a module.

    Attributes:
        name: the dotted name.
        path: the path of the file.
        package: whether it is an `__init__.py`.
        declared: its definitions, by symbol.
        bases: references of the bases of each class, by the class's symbol.
        imported: references, by the names that imports at top level bind.
        stars: modules imported by `*`.
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

    def values(self, symbol: str, name: str) -> list[Fact]:
        """Return the assignments to a name, in order."""
        return [one for one in self.assigned.get(symbol, ()) if one.values["name"] == name]

    def constant(self, symbol: str, name: str) -> Any:
        """Return the last unconditional value of a name; without one, its last value, else None."""
        held = self.values(symbol, name)
        found = [f for f in held if not f.values["under"] and not f.values["adds"]] or held
        return found[-1].values["value"] if found else None

    def owns(self, symbol: str) -> bool:
        """Return whether the module itself defines or assigns a name."""
        if symbol in self.declared:
            return True
        owner, _, name = symbol.rpartition(".")
        held = self.assigned.get(owner, ())
        return symbol not in self.imported and any(one.values["name"] == name for one in held)

    def roots(self) -> set[str]:
        """Return the first parts of its absolute imports."""
        return {ref.partition(".")[0] for ref in self.imported.values() if ref[:1] != "."}

    def evidence(self, expression: Any) -> Evidence:
        """Return the place of an expression."""
        start, end = expression["at"] if isinstance(expression, dict) else (0, 0)
        return Evidence(self.path, start, end)


def read_module(file: FileFacts, name: str) -> Module:
    """Return a file as a module with this dotted name."""
    module = Module(name, file.path, file.path.rpartition("/")[2] == "__init__.py")
    for fact in file.facts:
        values = fact.values
        if fact.kind == "declares":
            module.declared.setdefault(fact.symbol, fact)
        elif fact.kind == "extends":
            module.bases.setdefault(fact.symbol, []).append(values["name"])
        elif fact.kind == "assigns":
            module.assigned.setdefault(fact.symbol, []).append(fact)
        elif fact.kind == "invokes":
            module.invoked.append(fact)
        elif fact.kind == "imports" and not fact.symbol:
            _import(module, values)
    return module


def _import(module: Module, values: Mapping[str, Any]) -> None:
    name, alias, level = values["name"], values["alias"], values["level"]
    if alias == "*":
        module.stars.append("." * level + name.removesuffix("*").removesuffix("."))
        return
    plain = not values["member"] and alias == name.partition(".")[0]
    module.imported.setdefault(alias, alias if plain else "." * level + name)
