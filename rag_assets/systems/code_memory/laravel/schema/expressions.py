"""Static values of expressions in migrations and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from rag_assets.systems.code_memory.languages.php.source import ClassLike, Method, PhpSource
from rag_assets.systems.code_memory.languages.php.values import (
    CLOSURES,
    COMPUTED,
    MAX_DEPTH,
    MEMBER_CALLS,
    Call,
    Chain,
    ClosureValue,
    Constants,
    compute_value,
)
from rag_assets.systems.code_memory.languages.tree import Node
from rag_assets.systems.code_memory.laravel.routes.model import Arguments
from rag_assets.systems.code_memory.laravel.settings import mark_setting, parse_setting_name

_PAIR: Final = 2
_MAX_METHODS: Final = 2_000
"""Maximum number of calls of own methods that are followed to read the values in one file."""


@dataclass(frozen=True, slots=True)
class RawSql:
    """A raw SQL fragment, which is the value of `DB::raw(…)`."""

    sql: str


@dataclass(slots=True)
class NameScope:
    """The names that an expression may use, with their values.

    Attributes:
        variables: values by name, without the dollar sign; properties are named `this->name`.
    """

    owner: ClassLike
    function: str = ""
    variables: dict[str, Any] = field(default_factory=dict)


class ExpressionReader:
    """A reader of the values of one file's expressions."""

    def __init__(self, source: PhpSource) -> None:
        self.source = source
        self.tree = source.tree
        self._left = _MAX_METHODS

    def build_scope(self, owner: ClassLike, function: str) -> NameScope:
        """Return the names with known values at the start of a method."""
        own = NameScope(owner)
        properties = {f"this->{p.name}": self.read_value(p.value, own) for p in owner.properties}
        return NameScope(owner, function, properties)

    def read_value(self, node: Node | None, scope: NameScope, depth: int = MAX_DEPTH) -> Any:
        """Return the value of an expression; COMPUTED if it is known only at run time.

        Settings in strings are represented by marks; see laravel.settings. `depth` is the remaining
        depth of nested expressions.
        """
        if node is None:
            return None
        return compute_value(self.tree, node, self._make_constants(node, scope), depth)

    def read_arguments(self, call: Call, scope: NameScope) -> Arguments:
        """Return the values of the arguments of a call."""
        values = [(item.name, self.read_value(item.value, scope)) for item in call.arguments]
        positional = [value for name, value in values if not name]
        return Arguments(positional, {name: value for name, value in values if name})

    def find_own_method(self, chain: Chain, scope: NameScope) -> Method | None:
        """Return the method of the same class that a chain calls first; None for other chains."""
        own = chain.root.lstrip("$").lower() in {"this", "self", "static"}
        name = chain.calls[0].name
        return next((method for method in scope.owner.methods if own and method.name == name), None)

    def find_returned_value(self, chain: Chain, scope: NameScope) -> tuple[Node, NameScope] | None:
        """Return the expression that an own method returns, and the names known there.

        None if the method does more than return a value, or is not a method of the same class.

        Args:
            chain: a single call of the method.
        """
        method = self.find_own_method(chain, scope)
        if len(chain.calls) > 1 or method is None or method.body is None:
            return None
        statements = [child for child in method.body.named_children if child.type != "comment"]
        if len(statements) != 1 or statements[0].type != "return_statement" or self._left <= 0:
            return None
        self._left -= 1
        variables = scope.variables.items()
        properties = {name: value for name, value in variables if name.startswith("this->")}
        inner_scope = replace(scope, variables=properties, function=method.name)
        return next(((node, inner_scope) for node in statements[0].named_children), None)

    def _make_constants(self, near: Node, scope: NameScope) -> Constants:
        def constant(owner: str, name: str) -> Any:
            if owner != scope.owner.name:
                return COMPUTED
            # Only one reference is followed, since constants may refer to each other in a circle.
            values = (item.value for item in scope.owner.constants if item.name == name)
            expression = next(values, None)
            plain = Constants(class_name)
            return COMPUTED if expression is None else compute_value(self.tree, expression, plain)

        def class_name(written: str) -> str:
            return self.source.resolve_class_name(written, near)

        further = {kind: partial(read, self, scope) for kind, read in _CONTEXT_READERS.items()}
        return Constants(class_name, constant, further)


def _read_binary(reader: ExpressionReader, scope: NameScope, node: Node, depth: int) -> Any:
    if reader.tree.get_field_text(node, "operator") != "??":
        return NotImplemented
    left_value, right = (
        reader.read_value(node.child_by_field_name(side), scope, depth)
        for side in ("left", "right")
    )
    setting = parse_setting_name(left_value)
    if setting is not None and isinstance(right, str | int | None):
        return mark_setting(setting, right)
    return right if left_value is None else left_value


def _read_name(reader: ExpressionReader, scope: NameScope, node: Node, _depth: int) -> Any:
    names = {"__FUNCTION__": scope.function, "__CLASS__": scope.owner.name}
    return names.get(reader.tree.get_node_text(node), COMPUTED)


def _read_variable(reader: ExpressionReader, scope: NameScope, node: Node, _depth: int) -> Any:
    return scope.variables.get(reader.tree.get_node_text(node).lstrip("$"), COMPUTED)


def _read_subscript(reader: ExpressionReader, scope: NameScope, node: Node, depth: int) -> Any:
    parts = node.named_children
    if len(parts) < _PAIR:
        return COMPUTED
    array, key = (reader.read_value(part, scope, depth) for part in parts[:2])
    setting = parse_setting_name(array)
    if setting is not None and isinstance(key, str | int):
        return mark_setting(f"{setting}.{key}")
    if isinstance(array, list) and isinstance(key, int) and 0 <= key < len(array):
        return array[key]
    return array.get(str(key), COMPUTED) if isinstance(array, dict) else COMPUTED


def _read_call(reader: ExpressionReader, scope: NameScope, node: Node, depth: int) -> Any:
    """Return the value of a call: a setting, raw SQL, or the result of an own method."""
    chain = reader.source.parse_chain(node)
    if chain is None:
        return COMPUTED
    last = chain.calls[-1]
    if not chain.root and len(chain.calls) == 1:
        key, default = (reader.read_value(last.get_argument(at), scope, depth) for at in (0, 1))
        is_setting = last.name.lstrip("\\").lower() == "config" and isinstance(key, str)
        is_known = is_setting and isinstance(default, str | int | None)
        return mark_setting(key, default) if is_known else COMPUTED
    if last.name == "raw" and chain.static:
        sql = reader.read_value(last.get_argument(0), scope, depth)
        return RawSql(sql) if isinstance(sql, str) else COMPUTED
    returned = reader.find_returned_value(chain, scope)
    return COMPUTED if returned is None else reader.read_value(*returned, depth)


_CONTEXT_READERS: Final[Mapping[str, Callable[[ExpressionReader, NameScope, Node, int], Any]]] = {
    **dict.fromkeys(CLOSURES, lambda _, __, node, ___: ClosureValue(node)),
    "binary_expression": _read_binary,
    "name": _read_name,
    **dict.fromkeys(("variable_name", "member_access_expression"), _read_variable),
    "subscript_expression": _read_subscript,
    **dict.fromkeys(MEMBER_CALLS, _read_call),
    **dict.fromkeys(("scoped_call_expression", "function_call_expression"), _read_call),
}
"""Functions that read expressions which depend on variables, the class or the settings."""
