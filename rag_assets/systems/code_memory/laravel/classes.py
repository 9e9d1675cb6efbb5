"""Classes of a repository: the methods that they inherit, and their source types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.source_types import SourceType

_INHERITING_KINDS = {"uses_trait": 0, "extends": 1}
"""Kinds of facts that add methods to a class, by precedence: traits come before parents."""


class Inheritance:
    """The classes of a repository, with the parents and traits from which each inherits methods."""

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self._declared: dict[str, Fact] = {}
        self._spelled: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._calls: dict[str, list[Fact]] = defaultdict(list)
        above: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for file in files:
            for fact in file.facts:
                if fact.kind == "declares":
                    self._declared.setdefault(fact.symbol, fact)
                    self._paths.setdefault(fact.symbol, file.path)
                    owner, separator, method = fact.symbol.rpartition("::")
                    key = f"{owner}::{method.lower()}" if separator else fact.symbol
                    self._spelled.setdefault(key, fact.symbol)
                elif fact.kind == "calls" and "::" in str(fact.values["name"]):
                    self._calls[fact.symbol].append(fact)
                elif fact.kind in _INHERITING_KINDS:
                    above[fact.symbol].append(
                        (_INHERITING_KINDS[fact.kind], str(fact.values["name"]))
                    )
        self._above = {name: [parent for _, parent in sorted(of)] for name, of in above.items()}

    def iter_inherited_calls(self, method: str) -> Iterator[tuple[str, Fact]]:
        """Yield the inherited methods that a method calls, each with the fact of the call.

        Calls of methods that the called class itself declares are left out.

        Args:
            method: qualified name of the calling method.
        """
        for fact in self._calls.get(method, ()):
            owner, _, name = str(fact.values["name"]).rpartition("::")
            declaration = self.find_method(owner, name)
            if declaration is not None and not declaration.symbol.startswith(f"{owner}::"):
                yield declaration.symbol, fact

    def iter_called_methods(self, method: str) -> Iterator[str]:
        """Yield the methods that a method calls, as far as its own file shows their classes."""
        return (str(fact.values["name"]) for fact in self._calls.get(method, ()))

    def get_path(self, method: str) -> str:
        """Return the path of the file that declares a method."""
        return self._paths[method]

    def is_declared(self, name: str) -> bool:
        """Return whether the repository declares a class with this name."""
        return name in self._declared

    def iter_ancestors(self, owner: str) -> Iterator[str]:
        """Yield a class, then its traits and parents in lookup order, each once.

        Ancestors may form a circle, and may come from packages.
        """
        seen, pending = {owner}, [owner]
        while pending:
            name = pending.pop()
            yield name
            above = dict.fromkeys(self._above.get(name, ()))
            following = [ancestor for ancestor in above if ancestor not in seen]
            seen.update(following)
            pending += reversed(following)

    def find_method(self, owner: str, name: str) -> Fact | None:
        """Return the declaration of a class's method; None if no class in the repository has it."""
        facts = (self.find_own_method(ancestor, name) for ancestor in self.iter_ancestors(owner))
        return next((fact for fact in facts if fact is not None), None)

    def find_own_method(self, owner: str, name: str) -> Fact | None:
        """Return a method that a class itself declares, ignoring case; None if it declares none."""
        spelled = self._spelled.get(f"{owner}::{name.lower()}")
        return None if spelled is None else self._declared[spelled]


_ILLUMINATE = "Illuminate\\"
_BASES: Mapping[str, SourceType] = {
    f"{_ILLUMINATE}Database\\Eloquent\\Model": "model",
    f"{_ILLUMINATE}Database\\Eloquent\\Relations\\Pivot": "model",
    f"{_ILLUMINATE}Database\\Eloquent\\Relations\\MorphPivot": "model",
    f"{_ILLUMINATE}Foundation\\Auth\\User": "model",
    f"{_ILLUMINATE}Notifications\\DatabaseNotification": "model",
    f"{_ILLUMINATE}Routing\\Controller": "controller",
    f"{_ILLUMINATE}Foundation\\Http\\FormRequest": "request",
    f"{_ILLUMINATE}Http\\Resources\\Json\\JsonResource": "resource",
    f"{_ILLUMINATE}Http\\Resources\\Json\\ResourceCollection": "resource",
    f"{_ILLUMINATE}Database\\Migrations\\Migration": "migration",
}
_UNTYPED_ANCESTORS = (
    f"{_ILLUMINATE}Mail\\Mailable",
    f"{_ILLUMINATE}Notifications\\Notification",
    f"{_ILLUMINATE}Console\\Command",
    f"{_ILLUMINATE}Support\\ServiceProvider",
    f"{_ILLUMINATE}Foundation\\Support\\Providers\\",
    f"{_ILLUMINATE}Foundation\\Http\\Kernel",
    f"{_ILLUMINATE}Foundation\\Console\\Kernel",
    f"{_ILLUMINATE}Foundation\\Exceptions\\Handler",
)
"""Ancestors of classes that get no separate source type, even if their path or use suggests
one."""

_QUEUE_INTERFACE = f"{_ILLUMINATE}Contracts\\Queue\\ShouldQueue"
_TYPES_BY_PATH: tuple[tuple[str, SourceType], ...] = (
    ("Http/Controllers/", "controller"),
    ("Http/Middleware/", "middleware"),
    ("Http/Requests/", "request"),
    ("Http/Resources/", "resource"),
    ("Listeners/", "listener"),
    ("Policies/", "policy"),
    ("Events/", "event"),
    ("Jobs/", "job"),
    ("Services/", "service"),
)
_TYPES_WITH_HANDLE = frozenset({"listener", "controller", "policy", "middleware"})
_TYPES_BY_USE: tuple[tuple[str, str, SourceType], ...] = (
    ("listens_to", "listener", "listener"),
    ("listens_to", "event", "event"),
    ("policy_of", "policy", "policy"),
    ("uses_middleware", "name", "middleware"),
    ("routes_to", "controller", "controller"),
)
"""Kind of a fact, the value in it that names a class, and the source type of that class."""

_TRAIT = "trait"
_ROLES = frozenset({"class", "interface", _TRAIT})
_HANDLE_SUFFIX = "::handle"
_DECIDING = frozenset(
    {"extends", "implements", "dispatches", "binds", *(kind for kind, _, _ in _TYPES_BY_USE)}
)
"""Kinds of facts that are read besides declarations."""
READ_KINDS = _DECIDING | {"declares"}
"""Kinds of facts that find_source_types reads."""


@dataclass(slots=True)
class _Class:
    """A class as its file states it.

    Attributes:
        above: names of its parents, interfaces and traits.
        has_handle: whether it has a method `handle`.
    """

    path: str
    symbol: str
    role: str
    above: list[str] = field(default_factory=list)
    has_handle: bool = False


def select_read_facts(facts: Sequence[Fact]) -> list[object]:
    """Return the part of a file's facts that find_source_types reads, as comparable values."""
    return [
        (fact.kind, fact.symbol, fact.values.get("role"))
        if fact.kind == "declares"
        else (fact.kind, fact.symbol, fact.values)
        for fact in facts
        if is_read_fact(fact)
    ]


def is_read_fact(fact: Fact) -> bool:
    """Return whether find_source_types reads a fact."""
    if fact.kind == "declares":
        return fact.values.get("role") in _ROLES or fact.symbol.endswith(_HANDLE_SUFFIX)
    return fact.kind in _DECIDING


def find_source_types(files: Sequence[FileFacts]) -> dict[tuple[str, str], SourceType]:
    """Return the source type of each class that has one, by path and qualified name.

    A class gets its type from its ancestors, else from how it is used, else from its path. A class
    that extends any other framework class gets no type from its path. Ancestors may form a circle.
    """
    facts = [fact for file in files for fact in file.facts if fact.kind in _DECIDING]
    used: dict[str, SourceType] = {}
    for kind, value, source_type in _TYPES_BY_USE:
        for fact in facts:
            if fact.kind == kind and fact.values.get(value):
                used.setdefault(str(fact.values[value]), source_type)
    dispatched = {str(fact.values["name"]) for fact in facts if fact.kind == "dispatches"}
    bound = {
        str(fact.values[end])
        for fact in facts
        if fact.kind == "binds"
        for end in ("abstract", "concrete")
    }
    classes = _collect_classes(files)
    types: dict[tuple[str, str], SourceType] = {}
    type_: SourceType | None
    for name, class_ in classes.items():
        path_type = next(
            (kind for part, kind in _TYPES_BY_PATH if f"/{part}" in f"/{class_.path}"), None
        )
        if class_.role == _TRAIT:
            # Routes may run methods of traits next to controllers; other traits have no type.
            type_ = path_type if path_type == "controller" else None
        else:
            above = set(_iter_ancestors(name, classes))
            type_ = next((_BASES[base] for base in _BASES if base in above), used.get(name))
            if type_ is None and not any(base.startswith(_UNTYPED_ANCESTORS) for base in above):
                is_job = _QUEUE_INTERFACE in above and path_type not in _TYPES_WITH_HANDLE
                type_ = "job" if is_job else path_type
                if type_ is None and name in dispatched:
                    # A job has a method `handle`; an event only carries data.
                    type_ = "job" if class_.has_handle else "event"
                elif type_ is None and name in bound and class_.role == "class":
                    type_ = "service"
        if type_ is not None:
            types[class_.path, class_.symbol] = type_
    return types


def _collect_classes(files: Sequence[FileFacts]) -> dict[str, _Class]:
    classes: dict[str, _Class] = {}
    for file in files:
        own = {
            fact.symbol: _Class(file.path, fact.symbol, str(fact.values["role"]))
            for fact in file.facts
            if fact.kind == "declares" and fact.values.get("role") in _ROLES
        }
        for fact in file.facts:
            class_ = own.get(fact.symbol.partition("::")[0])
            if class_ is not None and fact.kind in {"extends", "implements"}:
                class_.above.append(str(fact.values["name"]))
            elif class_ is not None and fact.kind == "declares":
                class_.has_handle |= fact.symbol.endswith(_HANDLE_SUFFIX)
        for name, class_ in own.items():
            classes.setdefault(f"{file.path} {name}" if "@" in name else name, class_)
    return classes


def _iter_ancestors(name: str, classes: Mapping[str, _Class]) -> Iterator[str]:
    seen, pending = {name}, [name]
    while pending:
        class_ = classes.get(pending.pop())
        for above in class_.above if class_ is not None else ():
            if above not in seen:
                seen.add(above)
                yield above
                pending.append(above)
