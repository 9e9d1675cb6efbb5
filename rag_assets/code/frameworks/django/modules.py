"""Files of Python as modules: what they define, import, assign and call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_assets.code.model import Fact, FileFacts


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a repository says something.

    Attributes:
        path: of the file.
        start, end: character offsets in it, half open.
    """

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Something that the text alone does not tell.

    Attributes:
        reason: why, in a few words.
        evidence: where it is written.
    """

    reason: str
    evidence: Evidence


@dataclass(slots=True, eq=False)
class Module:
    """A file of Python as a module.

    Attributes:
        name: dotted.
        path: of the file.
        package: whether it is an `__init__.py`.
        declared: its definitions by symbol.
        bases: references of a class's bases, by its symbol.
        imported: references by the names that imports at top level bind.
        stars: modules of which everything is imported.
        assigned: assignments by the symbol of the class ("" for top level), in order.
        invoked: calls at top level, in order.
        calls: what is called where.
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
        """The assignments to a name, in order."""
        return [one for one in self.assigned.get(symbol, ()) if one.values["name"] == name]

    def constant(self, symbol: str, name: str) -> Any:
        """The last value of a name that depends on nothing; None where it has none."""
        held = self.values(symbol, name)
        found = [f for f in held if not f.values["under"] and not f.values["adds"]] or held
        return found[-1].values["value"] if found else None

    def owns(self, symbol: str) -> bool:
        """Whether it defines or assigns a name itself."""
        if symbol in self.declared:
            return True
        owner, _, name = symbol.rpartition(".")
        held = self.assigned.get(owner, ())
        return symbol not in self.imported and any(one.values["name"] == name for one in held)

    def roots(self) -> set[str]:
        """The first names of what it imports by absolute names."""
        return {ref.partition(".")[0] for ref in self.imported.values() if ref[:1] != "."}

    def evidence(self, expression: Any) -> Evidence:
        """Where an expression is written."""
        start, end = expression["at"] if isinstance(expression, dict) else (0, 0)
        return Evidence(self.path, start, end)


def read_module(file: FileFacts, name: str) -> Module:
    """A file as a module of this dotted name."""
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
