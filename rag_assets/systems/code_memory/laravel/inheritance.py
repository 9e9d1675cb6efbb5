"""Methods that classes inherit from parents and traits, by PHP's lookup rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import FileFacts

_ABOVE = {"uses_trait": 0, "extends": 1}
"""Kinds of facts that add methods to a class, by precedence: traits come before parents."""


class Inheritance:
    """The classes of a repository, and the classes and traits from which each inherits methods.

    Args:
        files: the files of the repository.
    """

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self._declared: dict[str, Fact] = {}
        self._spelled: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._calls: dict[str, list[Fact]] = {}
        above: dict[str, list[tuple[int, str]]] = {}
        for one in files:
            for fact in one.facts:
                if fact.kind == "declares":
                    self._declared.setdefault(fact.symbol, fact)
                    self._paths.setdefault(fact.symbol, one.path)
                    self._spelled.setdefault(_key(fact.symbol), fact.symbol)
                elif fact.kind == "calls" and "::" in str(fact.values["name"]):
                    self._calls.setdefault(fact.symbol, []).append(fact)
                elif fact.kind in _ABOVE:
                    held = _ABOVE[fact.kind], str(fact.values["name"])
                    above.setdefault(fact.symbol, []).append(held)
        self._above = {name: [one for _, one in sorted(held)] for name, held in above.items()}

    def calls(self, method: str) -> Iterator[tuple[str, Fact]]:
        """Yield the inherited methods that a method calls, each with the fact of the call.

        Args:
            method: qualified name of the method; calls that its own file resolves are left out.
        """
        for fact in self._calls.get(method, ()):
            owner, _, name = str(fact.values["name"]).rpartition("::")
            found = self.method(owner, name)
            if found is not None and not found.symbol.startswith(f"{owner}::"):
                yield found.symbol, fact

    def called(self, method: str) -> Iterator[str]:
        """Return the methods that a method calls, as far as the file of the method shows."""
        return (str(fact.values["name"]) for fact in self._calls.get(method, ()))

    def path_of(self, method: str) -> str:
        """Return the path of the file that declares a method."""
        return self._paths[method]

    def is_declared(self, name: str) -> bool:
        """Return whether a class with this name exists."""
        return name in self._declared

    def ancestors(self, owner: str) -> Iterator[str]:
        """Yield a class, then its traits and parents in lookup order, each once.

        Args:
            owner: qualified name of the class; ancestors may form a circle, and may come from
                packages.
        """
        seen, todo = {owner}, [owner]
        while todo:
            name = todo.pop()
            yield name
            new = [one for one in dict.fromkeys(self._above.get(name, ())) if one not in seen]
            seen.update(new)
            todo += reversed(new)

    def method(self, owner: str, name: str) -> Fact | None:
        """Return the declaration of a class's method; None if no class in the repository has it.

        Args:
            owner: qualified name of the class.
            name: the name of the method; case is ignored.
        """
        for one in self.ancestors(owner):
            spelled = self._spelled.get(f"{one}::{name.lower()}")
            if spelled is not None:
                return self._declared[spelled]
        return None


def _key(symbol: str) -> str:
    owner, separator, method = symbol.rpartition("::")
    return f"{owner}::{method.lower()}" if separator else symbol
