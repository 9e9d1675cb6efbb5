"""What a PHP expression says without being run: constants, names of classes, chains of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rag_assets.code.languages.tree import SyntaxTree, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST: Final = 40
_PAIR: Final = 2
_SIMPLE_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "v": "\v"}
_CALLS: Final = frozenset(
    {"member_call_expression", "nullsafe_member_call_expression", "scoped_call_expression"}
)


class Computed:
    """The value of an expression that only running it would tell."""

    def __repr__(self) -> str:
        return "COMPUTED"


COMPUTED: Final = Computed()


class Closure(Computed):
    """A function as a value.

    Attributes:
        node: the function.
    """

    def __init__(self, node: Node) -> None:
        self.node = node


@dataclass(frozen=True, slots=True)
class Expression:
    """A raw piece of SQL as a value: what `DB::raw` gives.

    Attributes:
        sql: its text.
    """

    sql: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a chain.

    Attributes:
        name: of the method; "" when it is computed.
        arguments: nodes of the positional arguments.
        named: nodes of the named arguments.
        node: the whole chain up to and with this call.
    """

    name: str
    arguments: tuple[Node, ...]
    named: Mapping[str, Node]
    node: Node


@dataclass(frozen=True, slots=True)
class Chain:
    """Calls that follow each other: `Schema::connection('a')->create(..)`.

    Attributes:
        base: what the first is called on: a class or an expression.
        static: whether the first is called on a class.
        calls: in order.
    """

    base: Node
    static: bool
    calls: tuple[Call, ...]


@dataclass(slots=True)
class Scope:
    """The names that are known where an expression stands.

    Attributes:
        variables: values by name, without the dollar sign.
        constants: of the class.
        class_name: qualified.
        function: the name of the method.
    """

    variables: dict[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    class_name: str = ""
    function: str = ""


class PhpNames:
    """The namespace and the imports of a file.

    Args:
        tree: of the file.
    """

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self.namespace = ""
        self._imports: dict[str, str] = {}
        stops = frozenset({"class_declaration", "function_definition", "return_statement"})
        for node in descendants(tree.root, into=stops | {"expression_statement"}):
            if node.type == "namespace_definition":
                self.namespace = tree.of(node.child_by_field_name("name"))
            elif node.type == "namespace_use_declaration":
                self._read(node)

    def resolve(self, name: str) -> str:
        """The qualified name of a class, without the first backslash."""
        if name.startswith("\\"):
            return name[1:]
        first, backslash, rest = name.partition("\\")
        imported = self._imports.get(first.lower())
        if imported is not None:
            return imported + backslash + rest
        if first.lower() == "namespace":
            name = rest
        return f"{self.namespace}\\{name}" if self.namespace else name

    def _read(self, node: Node) -> None:
        prefix = next((c for c in node.named_children if c.type == "namespace_name"), None)
        head = f"{self._tree.of(prefix)}\\" if prefix is not None else ""
        for clause in descendants(node):
            if clause.type != "namespace_use_clause" or not clause.named_children:
                continue
            alias = clause.child_by_field_name("alias")
            named = next(c for c in clause.named_children if c.type != "namespace_aliasing_clause")
            name = (head + self._tree.of(named)).lstrip("\\")
            short = self._tree.of(alias) or name.rsplit("\\", 1)[-1]
            self._imports[short.lower()] = name


class PhpReader:
    """Reads values and chains of one file.

    Attributes:
        tree: of the file.
        names: its namespace and imports.
    """

    def __init__(self, tree: SyntaxTree) -> None:
        self.tree = tree
        self.names = PhpNames(tree)

    def chain(self, node: Node) -> Chain | None:
        """The calls that an expression is made of; None if it is no call."""
        calls: list[Call] = []
        at: Node | None = node
        while at is not None and at.type in _CALLS:
            calls.append(self._call(at))
            if at.type == "scoped_call_expression":
                scope = at.child_by_field_name("scope")
                return Chain(scope, True, tuple(reversed(calls))) if scope is not None else None
            at = at.child_by_field_name("object")
            while at is not None and at.type == "parenthesized_expression":
                at = at.named_children[0] if at.named_children else None
        if at is None or not calls:
            return None
        return Chain(at, False, tuple(reversed(calls)))

    def value(self, node: Node | None, scope: Scope, depth: int = 0) -> Any:
        """What an expression is worth: JSON values, Expression, or COMPUTED.

        Args:
            node: an expression; None is null.
            scope: what is known there.
            depth: how many expressions it stands in.
        """
        if node is None:
            return None
        if depth > _DEEPEST:
            return COMPUTED
        reader = self._readers.get(node.type)
        return COMPUTED if reader is None else reader(self, node, scope, depth + 1)

    def class_name(self, node: Node, scope: Scope) -> str:
        """The qualified name of a class that an expression names; "" if it is computed."""
        text = self.tree.of(node)
        if text.lower() in {"self", "static"}:
            return scope.class_name
        if node.type in {"name", "qualified_name", "namespace_name"}:
            return self.names.resolve(text)
        return ""

    def _call(self, node: Node) -> Call:
        name = node.child_by_field_name("name")
        positional: list[Node] = []
        named: dict[str, Node] = {}
        arguments = node.child_by_field_name("arguments")
        for argument in arguments.named_children if arguments is not None else ():
            if argument.type != "argument" or not argument.named_children:
                continue
            label = argument.child_by_field_name("name")
            if label is not None:
                named[self.tree.of(label)] = argument.named_children[-1]
            else:
                positional.append(argument.named_children[0])
        plain = name is not None and name.type == "name"
        return Call(self.tree.of(name) if plain else "", tuple(positional), named, node)

    def _string(self, node: Node, _scope: Scope, _depth: int) -> Any:
        text = self.tree.of(node)
        return text[text.find("'") + 1 : -1].replace("\\'", "'").replace("\\\\", "\\")

    def _encapsed(self, node: Node, scope: Scope, depth: int) -> Any:
        parts: list[str] = []
        for child in node.named_children:
            if child.type == "string_content":
                parts.append(self.tree.of(child))
            elif child.type == "escape_sequence":
                escape = self.tree.of(child)
                parts.append(_SIMPLE_ESCAPES.get(escape[1:], escape[1:]))
            else:
                value = self.value(child, scope, depth)
                if not isinstance(value, str | int):
                    return COMPUTED
                parts.append(str(value))
        return "".join(parts)

    def _heredoc(self, node: Node, _scope: Scope, _depth: int) -> Any:
        body = node.child_by_field_name("value")
        if body is None:
            return ""
        if any(
            c.type not in {"string_content", "nowdoc_string", "escape_sequence"}
            for c in body.named_children
        ):
            return COMPUTED
        return self.tree.of(body).strip("\n")

    def _array(self, node: Node, scope: Scope, depth: int) -> Any:
        keyed: dict[Any, Any] = {}
        for element in node.named_children:
            if element.type != "array_element_initializer":
                continue
            pair = element.named_children
            if not pair or pair[0].type == "variadic_unpacking":
                return COMPUTED
            value = self.value(pair[-1], scope, depth)
            key = self.value(pair[0], scope, depth) if len(pair) > 1 else len(keyed)
            if not isinstance(key, str | int):
                return COMPUTED
            keyed[key] = value
        in_order = list(keyed) == list(range(len(keyed)))
        return list(keyed.values()) if in_order else keyed

    def _constant(self, node: Node, scope: Scope, _depth: int) -> Any:
        parts = node.named_children
        if len(parts) < _PAIR:
            return COMPUTED
        name = self.tree.of(parts[-1])
        owner = self.class_name(parts[0], scope)
        if name == "class":
            return owner or COMPUTED
        return scope.constants.get(name, COMPUTED) if owner == scope.class_name else COMPUTED

    def _binary(self, node: Node, scope: Scope, depth: int) -> Any:
        operator = node.child_by_field_name("operator")
        if operator is None or operator.type != ".":
            return COMPUTED
        left = self.value(node.child_by_field_name("left"), scope, depth)
        right = self.value(node.child_by_field_name("right"), scope, depth)
        if isinstance(left, str | int) and isinstance(right, str | int):
            return f"{left}{right}"
        return COMPUTED

    def _unary(self, node: Node, scope: Scope, depth: int) -> Any:
        value = self.value(node.named_children[-1], scope, depth)
        if isinstance(value, int | float) and self.tree.of(node).startswith("-"):
            return -value
        return COMPUTED

    def _inner(self, node: Node, scope: Scope, depth: int) -> Any:
        return self.value(node.named_children[0] if node.named_children else None, scope, depth)

    def _name(self, node: Node, scope: Scope, _depth: int) -> Any:
        text = self.tree.of(node)
        known = {"__FUNCTION__": scope.function, "__CLASS__": scope.class_name}
        return known.get(text, COMPUTED)

    def _variable(self, node: Node, scope: Scope, _depth: int) -> Any:
        return scope.variables.get(self.tree.of(node).lstrip("$"), COMPUTED)

    def _property(self, node: Node, scope: Scope, _depth: int) -> Any:
        name = self.tree.of(node.child_by_field_name("name"))
        owner = self.tree.of(node.child_by_field_name("object"))
        return scope.variables.get(f"this->{name}", COMPUTED) if owner == "$this" else COMPUTED

    def _subscript(self, node: Node, scope: Scope, depth: int) -> Any:
        parts = node.named_children
        if len(parts) < _PAIR:
            return COMPUTED
        held, key = (self.value(part, scope, depth) for part in parts[:2])
        if isinstance(held, list) and isinstance(key, int) and 0 <= key < len(held):
            return held[key]
        if isinstance(held, dict) and isinstance(key, str | int):
            return held.get(key, COMPUTED)
        return COMPUTED

    def _number(self, node: Node, _scope: Scope, _depth: int) -> Any:
        text = self.tree.of(node).replace("_", "").lower()
        try:
            if node.type == "float":
                return float(text)
            return int(text, 8) if text.isdigit() and text.startswith("0") else int(text, 0)
        except ValueError:
            return COMPUTED

    def _raw(self, node: Node, scope: Scope, depth: int) -> Any:
        chain = self.chain(node)
        if chain is None or not chain.static or chain.calls[-1].name != "raw":
            return COMPUTED
        given = chain.calls[-1].arguments
        sql = self.value(given[0], scope, depth) if given else None
        return Expression(sql) if isinstance(sql, str) else COMPUTED

    def _new(self, node: Node, scope: Scope, depth: int) -> Any:
        name = next((c for c in node.named_children if c.type in {"name", "qualified_name"}), None)
        if name is None or not self.tree.of(name).endswith("Expression"):
            return COMPUTED
        for argument in descendants(node):
            if argument.type == "argument" and argument.named_children:
                sql = self.value(argument.named_children[0], scope, depth)
                return Expression(sql) if isinstance(sql, str) else COMPUTED
        return COMPUTED

    _readers: ClassVar[Mapping[str, Callable[[PhpReader, Node, Scope, int], Any]]] = {
        "anonymous_function": lambda _r, node, _s, _d: Closure(node),
        "arrow_function": lambda _r, node, _s, _d: Closure(node),
        "string": _string,
        "encapsed_string": _encapsed,
        "heredoc": _heredoc,
        "nowdoc": _heredoc,
        "integer": _number,
        "float": _number,
        "boolean": lambda reader, node, _s, _d: reader.tree.of(node).lower() == "true",
        "null": lambda _r, _n, _s, _d: None,
        "array_creation_expression": _array,
        "class_constant_access_expression": _constant,
        "binary_expression": _binary,
        "unary_op_expression": _unary,
        "parenthesized_expression": _inner,
        "name": _name,
        "variable_name": _variable,
        "subscript_expression": _subscript,
        "member_access_expression": _property,
        "scoped_call_expression": _raw,
        "object_creation_expression": _new,
    }
