"""The interface of a grammar: a language's definitions and name bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import SyntaxTree, is_comment
from rag_assets.systems.code_memory.symbols.model import Role

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class Name:
    """A name, resolved as far as its file allows.

    Attributes:
        name: qualified as the language writes it.
        module: its origin, as the file writes it; "" for the file's own names, and for names that
            no import explains.
    """

    name: str
    module: str = ""

    def values(self) -> dict[str, str]:
        """Return it as values of a fact."""
        return {"name": self.name, "module": self.module} if self.module else {"name": self.name}


@dataclass(frozen=True, slots=True)
class Binding:
    """The target of a name in a scope.

    Attributes:
        target: the function, type or module; for a value, its declared type.
        value: whether it is a value of that type, not the type itself.
    """

    target: Name
    value: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a name, or a group of definitions.

    Attributes:
        node: the whole statement.
        symbol: qualified; "" for a group.
        role: the role of its unit.
        what: the language's word: struct, view, interface.
        body: the node after its signature, which contains its members.
        holds: whether the body has members that may be units of their own.
        exported: whether other files may use it.
        alone: whether its unit stays a chunk of its own.
        parameters: name and type as written, where declared.
        returns: the declared type, as written.
        extends, implements: names as written.
        type: the symbol of the type it is a member of; its own symbol if it is a type.
        fields: declared types of its fields by name.
        locals: other names that it binds within, with their types: a method's receiver.
    """

    node: Node
    symbol: str
    role: Role
    what: str
    body: Node | None = None
    holds: bool = False
    exported: bool = False
    alone: bool = True
    parameters: tuple[tuple[str, str], ...] = ()
    returns: str = ""
    extends: tuple[str, ...] = ()
    implements: tuple[str, ...] = ()
    type: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    locals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A definition with its location.

    Attributes:
        definition: the definition.
        start, end: character offsets, including its comments and attributes.
        parent: index of the definition around it; -1 at the top.
        first: whether it is the first definition in its statement; the others share its offsets.
    """

    definition: Definition
    start: int
    end: int
    parent: int
    first: bool = True


@dataclass(slots=True)
class Scope:
    """Name bindings while the walk is within a function or a type.

    Attributes:
        symbol: the symbol of the innermost definition.
        type: symbol of the type around the walk; "" outside types.
        names: bindings; None hides a name in an outer scope.
        fields: the fields of the type, by name.
    """

    symbol: str = ""
    type: str = ""
    names: dict[str, Binding | None] = field(default_factory=dict)
    fields: dict[str, Binding | None] = field(default_factory=dict)


class Grammar:
    """One language; an instance reads one file.

    Attributes:
        language: its name.
        module, function: Python module, and its function that returns the grammar.
        separator: between a type and its member.
        leading: nodes other than comments that belong to the definition after them.
        lists: nodes with statements or entries as children: text is cut after each child.
        scopes: nodes that bind names of their own.
        own: names of the instance in its methods: this, self.
        own_types: names of the type in its methods: Self.
        implicit: whether a method calls its own type's methods by their names alone.
        package_wide: whether a name that the file does not bind belongs to its package.
        imports_all: whether a type that is neither imported nor defined in the file is built in.
    """

    language: ClassVar[str] = ""
    module: ClassVar[str] = ""
    function: ClassVar[str] = "language"
    separator: ClassVar[str] = "."
    leading: ClassVar[frozenset[str]] = frozenset()
    lists: ClassVar[frozenset[str]] = frozenset()
    scopes: ClassVar[frozenset[str]] = frozenset()
    own: ClassVar[frozenset[str]] = frozenset()
    own_types: ClassVar[frozenset[str]] = frozenset()
    implicit: ClassVar[bool] = False
    package_wide: ClassVar[bool] = False
    imports_all: ClassVar[bool] = False

    def __init__(self, tree: SyntaxTree) -> None:
        self.tree = tree

    def define(self, node: Node, outer: Definition | None) -> Sequence[Definition]:
        """Return the definitions in a statement, if any."""
        raise NotImplementedError

    def inside(self, node: Node) -> Node | None:
        """Return a node with statements on the same level as this statement."""
        return node if node.type == "ERROR" else None

    def belongs(self, node: Node) -> bool:
        """Return whether a statement belongs to the definition after it."""
        return is_comment(node) or node.type in self.leading

    def imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Return the imports of a node, with the names that they bind in the file."""
        return ()

    def declared(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds in the enclosing scope, each with its type or ""."""
        yield from ()

    def called(self, node: Node) -> tuple[list[str], bool] | None:
        """Return the chain of names in a call, and whether it creates an instance."""
        return None

    def type_name(self, written: str) -> str:
        """Return the bare name of a type as it is bound; "" if it is of no use."""
        return written

    def beside(self, name: str) -> str:
        """Return an unbound type name, qualified by the file's package if possible."""
        return name

    def is_type(self, name: str) -> bool:
        """Return whether the form of an unbound name shows that it is a type."""
        return False

    def stated(self, node: Node, scope: Scope) -> Iterable[Fact]:
        """Return facts specific to this language."""
        return ()
