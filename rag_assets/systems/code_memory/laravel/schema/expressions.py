"""Expressions and classes in migrations and models: their values, as far as known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.languages.php.names import scopes_of
from rag_assets.systems.code_memory.languages.php.values import (
    COMPUTED,
    Closure,
    Computed,
    Constants,
    value_of,
)
from rag_assets.systems.code_memory.languages.tree import SyntaxTree, descendants
from rag_assets.systems.code_memory.laravel.settings import DRIVER, mark_setting, setting_name

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["COMPUTED", "Closure", "Computed"]

_PAIR: Final = 2
_CALLS: Final = frozenset(
    {"member_call_expression", "nullsafe_member_call_expression", "scoped_call_expression"}
)
_TESTS: Final = frozenset(
    {"===", "!==", "==", "!=", "<>", "&&", "||", "and", "or", "<", ">", "<=", ">="}
)
_MOST_METHODS: Final = 2_000
"""Maximum number of calls of own methods that are followed to read the values in one file."""


class Test(Computed):
    """A condition that is used as a value.

    Attributes:
        node: the expression.
        scope: the names that are known at the expression.
    """

    def __init__(self, node: Node, scope: Scope) -> None:
        self.node = node
        self.scope = scope


@dataclass(frozen=True, slots=True)
class Expression:
    """A raw SQL fragment as a value: the result of `DB::raw`.

    Attributes:
        sql: its text.
    """

    sql: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a chain.

    Attributes:
        name: the name of the method; "" if it is computed.
        arguments: nodes of the positional arguments.
        named: nodes of the named arguments.
        node: the part of the chain from its start to the end of this call.
    """

    name: str
    arguments: tuple[Node, ...]
    named: Mapping[str, Node]
    node: Node


@dataclass(frozen=True, slots=True)
class Chain:
    """Consecutive calls: `Schema::connection('a')->create(..)`.

    Attributes:
        base: the receiver of the first call: a class or an expression.
        static: whether the first call is a static call of a class.
        calls: the calls, in order.
    """

    base: Node
    static: bool
    calls: tuple[Call, ...]


@dataclass(slots=True)
class Scope:
    """The names that are known at an expression.

    Attributes:
        variables: values by name, without the dollar sign.
        constants: the constants of the class.
        class_name: the qualified name of the class.
        function: the name of the method.
        methods: bodies of the class's methods, by name.
    """

    variables: dict[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    class_name: str = ""
    function: str = ""
    methods: Mapping[str, Node] = field(default_factory=dict)


class PhpReader:
    """Reads values and chains of one file.

    Attributes:
        tree: the tree of the file.
        names: its namespace and imports.
    """

    def __init__(self, tree: SyntaxTree) -> None:
        self.tree = tree
        # A file has one namespace, because classes are autoloaded by name.
        self.names = max(scopes_of(tree), key=lambda scope: bool(scope.namespace))
        self._left = _MOST_METHODS

    def chain(self, node: Node) -> Chain | None:
        """Return the calls in an expression; None if it is not a call."""
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

    def value(self, node: Node | None, scope: Scope) -> Any:
        """Return an expression's value: JSON values, texts with marks, Expression, or Computed.

        Args:
            node: an expression; None stands for null.
            scope: the names that are known at the expression.
        """
        return value_of(self.tree, node, self._constants(scope))

    def class_name(self, node: Node, scope: Scope) -> str:
        """Return the qualified name of the class that an expression names; "" if it is computed."""
        return self._named(self.tree.of(node), scope) if node.type in _NAMES else ""

    def function(self, node: Node) -> Call | None:
        """Return the call of a function; None for anything else."""
        if node.type != "function_call_expression":
            return None
        return self._call(node, "function")

    def returned(self, chain: Chain, scope: Scope) -> tuple[Node, Scope] | None:
        """Return the result of an own method that only returns a value; None for other methods.

        Args:
            chain: a single call of the method.
            scope: the names that are known at the call.
        """
        base = self.tree.of(chain.base).lstrip("$").lower()
        body = scope.methods.get(chain.calls[0].name)
        if len(chain.calls) > 1 or base not in {"this", "self", "static"} or body is None:
            return None
        inner = [child for child in body.named_children if child.type != "comment"]
        if len(inner) != 1 or inner[0].type != "return_statement" or self._left <= 0:
            return None
        self._left -= 1
        kept = {key: held for key, held in scope.variables.items() if key.startswith("this->")}
        given = replace(scope, variables=kept, function=chain.calls[0].name)
        return next(((node, given) for node in inner[0].named_children), None)

    def _named(self, text: str, scope: Scope) -> str:
        return (
            scope.class_name if text.lower() in {"self", "static"} else self.names.class_name(text)
        )

    def _constants(self, scope: Scope) -> Constants:
        def constant(owner: str, name: str) -> Any:
            return scope.constants.get(name, COMPUTED) if owner == scope.class_name else COMPUTED

        further = {kind: partial(read, self, scope) for kind, read in _FURTHER.items()}
        return Constants(lambda text: self._named(text, scope), constant, further)

    def inner(self, node: Node | None, scope: Scope, depth: int) -> Any:
        """Return the value of an expression that is part of another expression."""
        return value_of(self.tree, node, self._constants(scope), depth)

    def _call(self, node: Node, called: str = "name") -> Call:
        name = node.child_by_field_name(called)
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
        plain = name is not None and name.type in _NAMES
        return Call(self.tree.of(name) if plain else "", tuple(positional), named, node)


_NAMES: Final = frozenset({"name", "qualified_name", "namespace_name", "relative_scope"})


def _binary(reader: PhpReader, scope: Scope, node: Node, depth: int) -> Any:
    operator = node.child_by_field_name("operator")
    kind = "" if operator is None else reader.tree.of(operator).lower()
    if kind in _TESTS:
        return Test(node, scope)
    if kind == "??":
        left = reader.inner(node.child_by_field_name("left"), scope, depth)
        right = reader.inner(node.child_by_field_name("right"), scope, depth)
        setting = setting_name(left)
        if setting is not None and isinstance(right, str | int | None):
            return mark_setting(setting, right)
        return right if left is None else left
    return NotImplemented


def _unary(reader: PhpReader, scope: Scope, node: Node, _depth: int) -> Any:
    return Test(node, scope) if reader.tree.of(node).startswith("!") else NotImplemented


def _name(reader: PhpReader, scope: Scope, node: Node, _depth: int) -> Any:
    known = {"__FUNCTION__": scope.function, "__CLASS__": scope.class_name}
    return known.get(reader.tree.of(node), COMPUTED)


def _variable(reader: PhpReader, scope: Scope, node: Node, _depth: int) -> Any:
    return scope.variables.get(reader.tree.of(node).lstrip("$"), COMPUTED)


def _property(reader: PhpReader, scope: Scope, node: Node, _depth: int) -> Any:
    name = reader.tree.of(node.child_by_field_name("name"))
    owner = reader.tree.of(node.child_by_field_name("object"))
    return scope.variables.get(f"this->{name}", COMPUTED) if owner == "$this" else COMPUTED


def _subscript(reader: PhpReader, scope: Scope, node: Node, depth: int) -> Any:
    parts = node.named_children
    if len(parts) < _PAIR:
        return COMPUTED
    held, key = (reader.inner(part, scope, depth) for part in parts[:2])
    setting = setting_name(held)
    if setting is not None and isinstance(key, str | int):
        return mark_setting(f"{setting}.{key}")
    if isinstance(held, list) and isinstance(key, int) and 0 <= key < len(held):
        return held[key]
    return held.get(str(key), COMPUTED) if isinstance(held, dict) else COMPUTED


def _function(reader: PhpReader, scope: Scope, node: Node, depth: int) -> Any:
    """Return the value of a call of `config`; of `env` only if it names the connection."""
    call = reader.function(node)
    name = "" if call is None else call.name.lstrip("\\").lower()
    if call is None or name not in {"config", "env"} or not call.arguments:
        return COMPUTED
    key, default = (
        reader.inner(one, scope, depth) for one in (*call.arguments[:_PAIR], None)[:_PAIR]
    )
    if not isinstance(key, str) or not isinstance(default, str | int | None):
        return COMPUTED
    if name == "env":
        return mark_setting("database.default", default) if key == "DB_CONNECTION" else COMPUTED
    return mark_setting(key, default)


def _called(reader: PhpReader, scope: Scope, node: Node, depth: int) -> Any:
    """Return raw SQL, the database driver, or the result of one of the class's own methods."""
    chain = reader.chain(node)
    if chain is None:
        return COMPUTED
    last = chain.calls[-1]
    if last.name == "raw" and chain.static:
        sql = reader.inner(last.arguments[0], scope, depth) if last.arguments else None
        return Expression(sql) if isinstance(sql, str) else COMPUTED
    if _asks_driver(reader, last):
        return DRIVER
    if last.name == "getDefaultConnection":
        return mark_setting("database.default")
    returned = reader.returned(chain, scope)
    return COMPUTED if returned is None else reader.inner(*returned, depth)


def _asks_driver(reader: PhpReader, call: Call) -> bool:
    given = reader.tree.of(call.arguments[0]) if call.arguments else ""
    return (
        call.name == "getDriverName"
        or (call.name == "getAttribute" and given.endswith("::ATTR_DRIVER_NAME"))
        or (call.name == "getConfig" and given.strip("'\"") == "driver")
    )


def _new(reader: PhpReader, scope: Scope, node: Node, depth: int) -> Any:
    name = next((c for c in node.named_children if c.type in {"name", "qualified_name"}), None)
    if name is None or not reader.tree.of(name).endswith("Expression"):
        return COMPUTED
    for argument in descendants(node):
        if argument.type == "argument" and argument.named_children:
            sql = reader.inner(argument.named_children[0], scope, depth)
            return Expression(sql) if isinstance(sql, str) else COMPUTED
    return COMPUTED


def _closure(_reader: PhpReader, _scope: Scope, node: Node, _depth: int) -> Any:
    return Closure(node)


_FURTHER: Final[Mapping[str, Callable[[PhpReader, Scope, Node, int], Any]]] = {
    "anonymous_function": _closure,
    "arrow_function": _closure,
    "binary_expression": _binary,
    "unary_op_expression": _unary,
    "name": _name,
    "variable_name": _variable,
    "subscript_expression": _subscript,
    "member_access_expression": _property,
    "member_call_expression": _called,
    "nullsafe_member_call_expression": _called,
    "scoped_call_expression": _called,
    "function_call_expression": _function,
    "object_creation_expression": _new,
}
"""Functions that read expressions which depend on variables, the class or the settings."""


_CLASSES: Final = frozenset(
    {"class_declaration", "anonymous_class", "trait_declaration", "interface_declaration"}
)


@dataclass(frozen=True, slots=True)
class PhpClass:
    """A class, a trait, or an anonymous class.

    Attributes:
        node: its declaration.
        name: the qualified name; "class@" and the line for an anonymous class.
        parent: qualified name of the class it extends; "" if it extends none.
        interfaces, traits: their qualified names.
        methods: bodies, by name; declarations: the methods themselves.
        constants: values, by name.
        properties: values by name, each with the node that states it.
        kind: class, trait or interface.
    """

    node: Node
    name: str
    parent: str
    traits: tuple[str, ...]
    methods: Mapping[str, Node]
    declarations: Mapping[str, Node]
    constants: Mapping[str, Any]
    properties: Mapping[str, tuple[Any, Node]]
    kind: str
    reader: PhpReader

    def scope(self, method: str) -> Scope:
        """Return the names that are known at the start of a method."""
        known = {f"this->{name}": value for name, (value, _) in self.properties.items()}
        return Scope(known, self.constants, self.name, method, self.methods)

    def parameters(self, method: str) -> tuple[str, ...]:
        """Return the names of a method's parameters, without the dollar sign."""
        listed = self.declarations[method].child_by_field_name("parameters")
        names = []
        for parameter in listed.named_children if listed is not None else ():
            name = parameter.child_by_field_name("name")
            if name is not None:
                names.append(self.reader.tree.of(name).lstrip("$"))
        return tuple(names)


def php_classes(reader: PhpReader) -> Iterator[PhpClass]:
    """Yield the classes and traits of a file, in order."""
    for node in reader.tree.nodes(_CLASSES):
        yield _read(reader, node)


def _read(reader: PhpReader, node: Node) -> PhpClass:
    tree = reader.tree
    stated = node.child_by_field_name("name")
    name = f"class@{node.start_point.row + 1}"
    space = reader.names.namespace
    if stated is not None:
        name = f"{space}\\{tree.of(stated)}" if space else tree.of(stated)
    base = next((c for c in node.children if c.type == "base_clause"), None)
    parents = [reader.names.class_name(tree.of(c)) for c in base.named_children] if base else []
    body = node.child_by_field_name("body")
    members = body.named_children if body is not None else []
    scope = Scope(class_name=name)
    constants = _constants(reader, members, scope)
    scope = Scope(constants=constants, class_name=name)
    declarations = {
        tree.of(member.child_by_field_name("name")): member
        for member in members
        if member.type == "method_declaration"
    }
    bodies = {key: method.child_by_field_name("body") for key, method in declarations.items()}
    return PhpClass(
        node,
        name,
        parents[0] if parents else "",
        tuple(
            reader.names.class_name(tree.of(used))
            for member in members
            if member.type == "use_declaration"
            for used in member.named_children
            if used.type in {"name", "qualified_name"}
        ),
        {key: method for key, method in bodies.items() if method is not None},
        declarations,
        constants,
        _properties(reader, members, scope),
        node.type.split("_", 1)[0] if node.type != "anonymous_class" else "class",
        reader,
    )


def _constants(reader: PhpReader, members: list[Node], scope: Scope) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in members:
        for element in member.named_children if member.type == "const_declaration" else ():
            if element.type == "const_element" and len(element.named_children) > 1:
                key, value = element.named_children[0], element.named_children[-1]
                found[reader.tree.of(key)] = reader.value(value, scope)
    return found


def _properties(
    reader: PhpReader, members: list[Node], scope: Scope
) -> dict[str, tuple[Any, Node]]:
    found: dict[str, tuple[Any, Node]] = {}
    for member in members:
        for element in member.named_children if member.type == "property_declaration" else ():
            if element.type == "property_element":
                value = element.child_by_field_name("default_value")
                name = reader.tree.of(element.child_by_field_name("name")).lstrip("$")
                found[name] = (reader.value(value, scope), member)
    return found
