"""Language grammars: the interface of each language's reader, and the search for definitions.

The node types of a single grammar do not belong here; they are in its language's module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    get_first_child,
    is_comment,
)
from rag_assets.systems.code_memory.symbols.model import Role


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """A name, resolved as far as its file allows.

    Attributes:
        name: the name, qualified as the language writes it.
        module: the module it comes from, as the file writes it; "" for the file's own names, and
            for names that no import explains.
    """

    name: str
    module: str = ""

    def build_fact_values(self) -> dict[str, str]:
        """Return this name as the values of a fact: `name`, and `module` unless it is ""."""
        return {"name": self.name, "module": self.module} if self.module else {"name": self.name}


@dataclass(frozen=True, slots=True)
class Binding:
    """The target of a name in a scope.

    Attributes:
        target: the function, type or module; for a value, the value's declared type.
        value: whether the name stands for a value of that type, not for the type itself.
    """

    target: ResolvedName
    value: bool = False


@dataclass(frozen=True, slots=True)
class CodeDefinition:
    """A definition in a file, or a statement that groups several definitions.

    Attributes:
        node: the whole statement.
        symbol: the qualified name; "" for a group.
        what: its kind in the words of its language: struct, view, interface.
        body: the node after its signature, which contains its members.
        has_members: whether the body has members that may be separate units.
        alone: whether its unit is never joined with others in a chunk.
        parameters: name and type of each parameter, as written; empty if no types are declared.
        extends, implements: names of supertypes, as written.
        type: symbol of the type that contains it; its own symbol if it is a type itself.
        locals: name and type of other names bound in its body, such as a method's receiver.
    """

    node: Node
    symbol: str
    role: Role
    what: str
    body: Node | None = None
    has_members: bool = False
    exported: bool = False
    alone: bool = True
    parameters: tuple[tuple[str, str], ...] = ()
    extends: tuple[str, ...] = ()
    implements: tuple[str, ...] = ()
    type: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    locals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedDefinition:
    """A definition with its position.

    Attributes:
        start, end: character offsets, including its comments and attributes.
        parent: index of the definition that contains it; -1 at top level.
        first: whether it is the first definition in its statement. Further definitions of the
            statement have the same offsets.
    """

    definition: CodeDefinition
    start: int
    end: int
    parent: int
    first: bool = True


@dataclass(slots=True)
class BindingScope:
    """The name bindings at the current position of a walk within a function or a type.

    Attributes:
        type: symbol of the innermost type; "" outside types.
        names: bindings by name; None hides a name of an outer scope.
    """

    symbol: str = ""
    type: str = ""
    names: dict[str, Binding | None] = field(default_factory=dict)
    fields: dict[str, Binding | None] = field(default_factory=dict)


class LanguageGrammar:
    """The grammar of one language; each instance reads one file.

    Attributes:
        module, function: Python module, and its function that returns the grammar.
        separator: text between the names of a type and its member.
        leading: types of nodes, besides comments, that belong to the definition after them.
        lists: types of nodes with statements or entries as children; text may be cut after each.
        scopes: types of nodes that bind their own names.
        own: names of the instance in its methods: this, self.
        own_types: names of the enclosing type in its methods: Self.
        members: the node fields with a member's name and with its owner, by type of node.
        roots: types of nodes at which a chain of members starts.
        implicit: whether a method may call other methods of its type without a receiver.
        package_wide: whether a name that the file does not bind belongs to the file's package.
        imports_all: whether files import all types that they do not define, except built-in types.
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
    members: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType({})
    roots: ClassVar[frozenset[str]] = frozenset({"identifier"})
    implicit: ClassVar[bool] = False
    package_wide: ClassVar[bool] = False
    imports_all: ClassVar[bool] = False

    def __init__(self, tree: SyntaxTree) -> None:
        self.tree = tree

    def define(self, node: Node, outer: CodeDefinition | None) -> Sequence[CodeDefinition]:
        """Return the definitions that a node declares; empty if it declares none.

        Args:
            node: a statement, or a member of `outer`.
            outer: the definition that contains the node; None at top level.
        """
        raise NotImplementedError

    def get_nested_level(self, node: Node) -> Node | None:
        """Return the node whose children are read instead of this statement; else None."""
        return node if node.type == "ERROR" else None

    def is_leading(self, node: Node) -> bool:
        """Return whether a statement, such as an attribute, belongs to the definition after it."""
        return is_comment(node) or node.type in self.leading

    def qualify(self, name: str, outer: CodeDefinition | None) -> str:
        """Return the symbol of a name defined within `outer`."""
        return f"{outer.symbol}{self.separator}{name}" if outer and outer.symbol else name

    def define_function(
        self,
        node: Node,
        symbol: str,
        owner: str | None,
        *,
        exported: bool,
        parameters: Iterable[tuple[str, str]],
        what: str = "function",
        body: Node | None = None,
        alone: bool = True,
    ) -> CodeDefinition:
        """Return the definition of a function or a method.

        Args:
            owner: the symbol of the method's type, "" if it has none; None for a function.
            what: the language's word for a function.
            body: its body; by default, the field `body` of the statement.
        """
        return CodeDefinition(
            node,
            symbol,
            "function" if owner is None else "method",
            what if owner is None else "method",
            body or node.child_by_field_name("body"),
            exported=exported,
            alone=alone,
            parameters=tuple(parameters),
            type=owner or "",
        )

    def get_name_chain(self, node: Node | None) -> list[str] | None:
        """Return the names in an expression such as `a.b.c`; None if it starts otherwise."""
        names: list[str] = []
        while node is not None and (member := self.members.get(node.type)) is not None:
            names.append(self.tree.get_field_text(node, member[0]))
            node = node.child_by_field_name(member[1])
            if node is not None and node.type == "non_null_expression":
                node = get_first_child(node)
        if node is None or node.type not in self.roots:
            return None
        return [self.tree.get_node_text(node), *reversed(names)]

    def iter_imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Return the imports of a node, each with the names that it binds in the file."""
        return ()

    def iter_bound_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds in its scope, each with its type or ""."""
        yield from ()

    def get_call_chain(self, node: Node) -> list[str] | None:
        """Return the names in a call or object creation, such as `a.b.c()`; else None."""
        return None

    def get_type_name(self, written_type: str) -> str:
        """Return the bare name of a type from a declaration's text; "" if it cannot be resolved."""
        return written_type

    def qualify_in_package(self, name: str) -> str:
        """Return the name of a type that the file does not bind, with its package if possible."""
        return name

    def is_type(self, name: str) -> bool:
        """Return whether a name that the file does not bind looks like the name of a type."""
        return False

    def iter_extra_facts(self, node: Node, scope: BindingScope) -> Iterable[Fact]:
        """Return facts that only this language has, such as exports or HTTP requests."""
        return ()


_INDENT: Final = 400
"""Maximum characters of indentation that count as part of the definition after it."""


def find_definitions(grammar: LanguageGrammar) -> list[PlacedDefinition]:
    """Return all definitions in the order of the text, outer definitions first."""
    found_definitions: list[PlacedDefinition] = []
    pending: list[tuple[Node, int]] = [(grammar.tree.root, -1)]
    while pending:
        level, parent = pending.pop()
        outer = found_definitions[parent].definition if parent >= 0 else None
        for placed in _iter_definitions(grammar, level, parent, outer):
            definition = placed.definition
            if placed.first and definition.has_members and definition.body is not None:
                pending.append((definition.body, len(found_definitions)))
            found_definitions.append(placed)
    return _sort_by_position(found_definitions)


def _iter_definitions(
    grammar: LanguageGrammar, level: Node, parent: int, outer: CodeDefinition | None
) -> Iterator[PlacedDefinition]:
    """Yield the definitions among the statements of one block, each with its leading comments."""
    before: Node | None = None
    lead: Node | None = None
    last: list[PlacedDefinition] = []
    for node in _iter_statements(grammar, level):
        row = node.start_point.row
        apart = before is None or row > _get_last_row(grammar, before) + 1
        if grammar.is_leading(node):
            if before is not None and last and row == _get_last_row(grammar, before):
                last = [_extend_by_comment(grammar, placed, node) for placed in last]
                continue
            lead = node if lead is None or apart else lead
            before = node
            continue
        yield from last
        start = lead if lead is not None and not apart else node
        last = list(_place_definitions(grammar, start, node, parent, outer))
        lead, before = None, node
    yield from last


def _iter_statements(grammar: LanguageGrammar, level: Node) -> Iterator[Node]:
    pending = [iter(level.named_children)]
    while pending:
        node = next(pending[-1], None)
        if node is None:
            pending.pop()
        elif (within := grammar.get_nested_level(node)) is not None:
            pending.append(iter(within.named_children))
        else:
            yield node


def _place_definitions(
    grammar: LanguageGrammar, first: Node, node: Node, parent: int, outer: CodeDefinition | None
) -> Iterator[PlacedDefinition]:
    start = _find_line_start(grammar.tree.text, grammar.tree.start(first))
    end = grammar.tree.end(node)
    text = grammar.tree.text
    while end > start and text[end - 1].isspace():  # Some grammars end a comment after its line.
        end -= 1
    for index, definition in enumerate(grammar.define(node, outer)):
        yield PlacedDefinition(definition, start, end, parent, first=index == 0)


def _extend_by_comment(
    grammar: LanguageGrammar, placed: PlacedDefinition, comment: Node
) -> PlacedDefinition:
    """Return a definition extended by a comment at the end of its last line."""
    text, end = grammar.tree.text, grammar.tree.end(comment)
    while text[end - 1].isspace():
        end -= 1
    return replace(placed, end=end)


def _get_last_row(grammar: LanguageGrammar, node: Node) -> int:
    """Return the row of a node's last character.

    The grammars of some languages end a line comment at the start of the next row.
    """
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _find_line_start(text: str, at: int) -> int:
    """Return the start of an offset's line; the offset itself if text precedes it in the line."""
    low = max(0, at - _INDENT)
    first = text.rfind("\n", low, at) + 1
    if first == 0 and low > 0:
        return at
    return at if text[first:at].strip() else first


def _sort_by_position(placed: list[PlacedDefinition]) -> list[PlacedDefinition]:
    """Return definitions in the order of the text, with parents updated to their new indexes."""
    order = sorted(range(len(placed)), key=lambda index: (placed[index].start, -placed[index].end))
    new = {old: index for index, old in enumerate(order)}
    return [replace(placed[old], parent=new.get(placed[old].parent, -1)) for old in order]
