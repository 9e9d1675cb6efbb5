"""What a grammar says of its language's definitions, and how names are bound in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rag_assets.code.languages.tree import SyntaxTree, is_comment
from rag_assets.code.model import Fact, Role

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class Name:
    """A name as far as its file tells.

    Attributes:
        name: qualified as the language writes it.
        module: that it comes from, as the file writes it; "" for the file's own, and for what no
            import explains.
    """

    name: str
    module: str = ""

    def values(self) -> dict[str, str]:
        """As values of a fact."""
        return {"name": self.name, "module": self.module} if self.module else {"name": self.name}


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for in a scope.

    Attributes:
        target: the function, type or module; of a value, its declared type.
        value: whether it is a value of that type, not the type itself.
    """

    target: Name
    value: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a name, or a group of such.

    Attributes:
        node: the whole statement.
        symbol: qualified; "" for a group.
        role: of its unit.
        what: the language's word: struct, view, interface.
        body: what its signature ends before; where its members stand.
        holds: whether the body has members that may be units of their own.
        exported: whether other files may use it.
        alone: whether its unit stays a chunk of its own.
        parameters: name and type as written, where they are declared.
        returns: the declared type, as written.
        extends, implements: names as written.
        type: the symbol of the type whose member it is; its own, if it is a type.
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
    """A definition with its place.

    Attributes:
        definition: what is defined.
        start, end: character offsets; its comments and attributes are within.
        parent: index of what it stands in; -1 at the top.
        first: whether it is the first that its statement defines; the others share its place.
    """

    definition: Definition
    start: int
    end: int
    parent: int
    first: bool = True


@dataclass(slots=True)
class Scope:
    """Names as they are bound while the walk is within a function or a type.

    Attributes:
        symbol: of the innermost definition.
        type: symbol of the type whose members are walked; "" outside of types.
        names: bindings; None hides a name of an outer scope.
        fields: of the type, by name.
    """

    symbol: str = ""
    type: str = ""
    names: dict[str, Binding | None] = field(default_factory=dict)
    fields: dict[str, Binding | None] = field(default_factory=dict)


class Grammar:
    """One language; an instance reads one file.

    Attributes:
        language: its name.
        module, function: where its grammar is.
        separator: between a type and its member.
        leading: nodes that belong to the definition that they precede, besides comments.
        lists: nodes whose children are statements or entries: text is cut after each.
        scopes: nodes that bind names of their own.
        own: how a method calls its own type's instance: this, self.
        own_types: how a method calls its own type: Self.
        implicit: whether a method calls its own type's methods by their names alone.
        package_wide: whether what nothing in the file binds is of its package, in another file.
        imports_all: whether a type that is neither imported nor of the file is the language's own.
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
        """What a statement defines; nothing, if it defines nothing."""
        raise NotImplementedError

    def inside(self, node: Node) -> Node | None:
        """A node whose statements belong to the level that this statement stands on."""
        return node if node.type == "ERROR" else None

    def belongs(self, node: Node) -> bool:
        """Whether a statement belongs to the definition after it."""
        return is_comment(node) or node.type in self.leading

    def imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """What a node imports, with the names that it binds in the file."""
        return ()

    def declared(self, node: Node) -> Iterator[tuple[str, str]]:
        """Names that a node binds in the scope around it, each with its type as written, or ""."""
        yield from ()

    def called(self, node: Node) -> tuple[list[str], bool] | None:
        """The chain of names that a call calls, and whether it makes an instance."""
        return None

    def type_name(self, written: str) -> str:
        """The name of a type as it is bound, without what is around it; "" for one of no use."""
        return written

    def beside(self, name: str) -> str:
        """A type's name that nothing in the file binds: of the same package, if that shows."""
        return name

    def is_type(self, name: str) -> bool:
        """Whether a name that nothing in the file binds is that of a type, by its form."""
        return False

    def stated(self, node: Node, scope: Scope) -> Iterable[Fact]:
        """Facts of this language alone."""
        return ()
