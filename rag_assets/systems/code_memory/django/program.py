"""The modules of a repository, and the resolution of names in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rag_assets.systems.code_memory.django.modules import Module, read_module
from rag_assets.systems.code_memory.languages.python.source import absolute, module_of
from rag_assets.systems.code_memory.symbols.model import FileFacts

_STEPS: Final = 30
_PARTS: Final = 60
_ANCESTORS: Final = 200
_ROOT_FILES: Final = frozenset({"manage.py", "pyproject.toml", "setup.py", "setup.cfg"})


@dataclass(frozen=True, slots=True)
class Place:
    """A definition or a variable in a module; the symbol "" stands for the module itself."""

    module: Module
    symbol: str

    @property
    def name(self) -> str:
        """Return the absolute dotted name."""
        return f"{self.module.name}.{self.symbol}" if self.symbol else self.module.name


class Program:
    """The Python code of one repository.

    Attributes:
        modules: the modules, by dotted name.

    Args:
        files: the files of the repository; files in other languages only show its roots.
    """

    def __init__(self, files: Iterable[FileFacts]) -> None:
        held = list(files)
        paths = [one.path for one in held]
        packages = {_folder(p) for p in paths if p.rpartition("/")[2] == "__init__.py"}
        roots = {_folder(p) for p in paths if p.rpartition("/")[2] in _ROOT_FILES}
        self.modules: dict[str, Module] = {}
        self._by_path: dict[str, Module] = {}
        for one in held:
            if one.path.endswith(".py"):
                module = read_module(one, module_of(one.path, packages, roots))
                self.modules.setdefault(module.name, module)
                self._by_path[one.path] = module
        self._parents: dict[str, list[str]] = {}
        self._ends = _by_ends(self.modules.values())

    def __iter__(self) -> Iterator[Module]:
        return iter(self._by_path.values())

    @cached_property
    def user_model(self) -> str:
        """Return the label and name of the user model, from settings, or else the default."""
        for module in self:
            value = module.constant("", "AUTH_USER_MODEL")
            if isinstance(value, str):
                return value
        return "auth.User"

    def module(self, name: str) -> Module | None:
        """Return the module with this name, or the only module whose name ends with it."""
        found = self.modules.get(name)
        return found if found is not None or not name else self._ends.get(name)

    def absolute(self, reference: str, module: Module) -> str:
        """Return the absolute name of a reference, namely where the definition itself is.

        Args:
            reference: the reference as in a file's facts.
            module: the module of that file.
        """
        if reference[:1] in {":", "."}:
            return self.canonical(absolute(reference, module.name, package=module.package))
        root = reference.partition(".")[0]
        if root in module.roots():
            return self.canonical(reference)
        for star in module.stars:
            name = f"{absolute(star, module.name, package=module.package)}.{reference}"
            if self.module(name.rpartition(".")[0]) is None or self.place(name) is not None:
                return self.canonical(name)
        return reference

    def named(self, written: str, module: Module) -> Place | None:
        """Return what a name in a module refers to; variables come before packages."""
        root = written.partition(".")[0]
        name = self.absolute(written, module)
        if root not in module.imported and module.owns(root):
            name = f"{module.name}.{name}"
        return self.place(name)

    def canonical(self, name: str) -> str:
        """Return an absolute name as its defining module has it, not as others re-export it."""
        place = self.place(name)
        return name if place is None else place.name

    def place(self, name: str) -> Place | None:
        """Return the definition, variable or module that an absolute name refers to.

        Returns:
            None if it is outside the repository.
        """
        seen: set[str] = set()
        at = name
        while at not in seen and len(seen) < _STEPS:
            seen.add(at)
            module, symbol = self._split(at)
            if module is None:
                return None
            if not symbol or module.owns(symbol):
                return Place(module, symbol)
            passed = self._passed(module, symbol)
            if not passed:
                return None
            at = passed
        return None

    def external(self, name: str) -> str:
        """Return the absolute name outside the repository that a name is re-exported from."""
        at = name
        for _ in range(_STEPS):
            module, symbol = self._split(at)
            passed = self._passed(module, symbol) if module is not None and symbol else ""
            if not passed or passed == at:
                return at
            at = passed
        return at

    def ancestry(self, name: str) -> list[str]:
        """Return a class and its ancestors, nearest first; of outside ancestors, only names."""
        found: list[str] = []
        entered: set[str] = set()
        todo = [(self._defined(name), False)]
        while todo and len(entered) < _ANCESTORS:
            at, left = todo.pop()
            if left:
                found.append(at)
            elif at not in entered:
                entered.add(at)
                todo.append((at, True))
                # A shared ancestor comes after all its subclasses: reverse post-order.
                todo.extend((base, False) for base in self._bases(at))
        # If there are too many, the classes entered last are left out.
        return [*(at for at, left in todo if left), *reversed(found)]

    def method(self, owner: str, name: str) -> str:
        """Return the absolute name of a method in a class, or in its nearest ancestor with it.

        Returns:
            "" if no class in the repository has it, as for methods of a framework's own class.
        """
        for one in self.ancestry(owner):
            place = self.place(one)
            if place is not None and f"{place.symbol}.{name}" in place.module.declared:
                return f"{place.name}.{name}"
        return ""

    def _defined(self, name: str) -> str:
        outside = self.external(name)
        place = self.place(outside)
        return outside if place is None else place.name

    def _bases(self, name: str) -> list[str]:
        if name not in self._parents:
            place = self.place(name)
            held = [] if place is None else place.module.bases.get(place.symbol, [])
            found = [self._base(one, place.module) for one in held if place is not None]
            self._parents[name] = found
        return self._parents[name]

    def _base(self, reference: str, module: Module) -> str:
        return self._defined(self.absolute(reference, module))

    def _passed(self, module: Module, symbol: str) -> str:
        """Return the import that binds a name in a module, with the rest of the name."""
        root, dot, rest = symbol.partition(".")
        if root in module.imported:
            target = absolute(module.imported[root], module.name, package=module.package)
            return f"{target}{dot}{rest}"
        for star in module.stars:
            source = absolute(star, module.name, package=module.package)
            held = self.module(source)
            if held is None or held is module:
                continue
            if held.owns(symbol) or root in held.imported or held.stars:
                return f"{source}.{symbol}"
        return ""

    def _split(self, name: str) -> tuple[Module | None, str]:
        parts = name.split(".")
        if len(parts) > _PARTS:
            return None, ""
        for end in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:end]))
            if module is not None:
                return module, ".".join(parts[end:])
        return None, ""


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _by_ends(modules: Iterable[Module]) -> dict[str, Module]:
    """Return modules by those endings of names that only one module has."""
    found: dict[str, Module | None] = {}
    for one in modules:
        parts = one.name.split(".")
        for start in range(1, min(len(parts), 6)):
            end = ".".join(parts[start:])
            found[end] = None if end in found else one
    return {end: one for end, one in found.items() if one is not None and "." in end}
