"""The interface of a grammar: how to find a language's definitions and name bindings."""

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
        name: the name, qualified as the language writes it.
        module: the module it comes from, as the file writes it; "" for the file's own names, and
            for names that no import explains.
    """

    name: str
    module: str = ""

    def values(self) -> dict[str, str]:
        """Return name and module in the form of a fact's values."""
        return {"name": self.name, "module": self.module} if self.module else {"name": self.name}


@dataclass(frozen=True, slots=True)
class Binding:
    """The target of a name in a scope.

    Attributes:
        target: the function, type or module; for a value, the value's declared type.
        value: whether the name stands for a value of that type, not for the type itself.
    """

    target: Name
    value: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a name, or a group of definitions.

    Attributes:
        node: the whole statement.
        symbol: the qualified name; "" for a group.
        role: the role of its unit.
        what: the language's keyword for it: struct, view, interface.
        body: the node after its signature, which contains its members.
        holds: whether the body has members that may be units of their own.
        exported: whether other files may use it.
        alone: whether its unit is never joined with others in a chunk.
        parameters: names and types as written, if types are declared.
        returns: the declared return type, as written.
        extends, implements: names of types, as written.
        type: the symbol of the type that it is a member of; its own symbol if it is a type.
        fields: declared types of its fields, by name.
        locals: other names that it binds within itself, with their types, such as a method's
            receiver.
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
    """A definition with its position.

    Attributes:
        definition: the definition.
        start, end: character offsets, including its comments and attributes.
        parent: index of the definition around it; -1 at top level.
        first: whether it is the first definition in its statement; the others share its offsets.
    """

    definition: Definition
    start: int
    end: int
    parent: int
    first: bool = True


@dataclass(slots=True)
class Scope:
    """The name bindings at the current position of a walk within a function or a type.

    Attributes:
        symbol: the symbol of the innermost definition.
        type: symbol of the innermost type; "" outside types.
        names: bindings by name; None hides a name of an outer scope.
        fields: the fields of the type, by name.
    """

    symbol: str = ""
    type: str = ""
    names: dict[str, Binding | None] = field(default_factory=dict)
    fields: dict[str, Binding | None] = field(default_factory=dict)


class Grammar:
    """One language; each instance reads one file.

    Attributes:
        language: its name.
        module, function: Python module, and its function that returns the grammar.
        separator: text between the names of a type and its member.
        leading: types of nodes, besides comments, that belong to the definition after them.
        lists: types of nodes whose children are statements or entries; text may be cut after each.
        scopes: types of nodes that bind names of their own.
        own: names of the instance in its methods: this, self.
        own_types: names of the enclosing type in its methods: Self.
        implicit: whether a method may call other methods of its type without a receiver.
        package_wide: whether a name that the file does not bind belongs to the file's package.
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
        """Return the definitions that a statement makes; empty if there are none."""
        raise NotImplementedError

    def inside(self, node: Node) -> Node | None:
        """Return a nested node whose statements count as being on the level of this statement."""
        return node if node.type == "ERROR" else None

    def belongs(self, node: Node) -> bool:
        """Return whether a statement, such as an attribute, belongs to the definition after it."""
        return is_comment(node) or node.type in self.leading

    def imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Return the imports of a node, each with the names that it binds in the file."""
        return ()

    def declared(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds in the enclosing scope, each with its type or ""."""
        yield from ()

    def called(self, node: Node) -> tuple[list[str], bool] | None:
        """Return the chain of names in a call, and whether the call creates an instance."""
        return None

    def type_name(self, written: str) -> str:
        """Return the bare name of a type, as bindings use it; "" if it cannot be resolved."""
        return written

    def beside(self, name: str) -> str:
        """Return the name of an unbound type, qualified by the file's package if possible."""
        return name

    def is_type(self, name: str) -> bool:
        """Return whether an unbound name looks like the name of a type."""
        return False

    def stated(self, node: Node, scope: Scope) -> Iterable[Fact]:
        """Return the facts of a node that only this language has."""
        return ()
