"""Conditions of a migration's statements: tables, columns, the driver, settings, and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rag_assets.systems.code_memory.laravel.schema_php import (
    Chain,
    Computed,
    PhpReader,
    Scope,
    Test,
)
from rag_assets.systems.code_memory.laravel.schema_settings import has_marks

if TYPE_CHECKING:
    from tree_sitter import Node

_EQUAL = {"===": True, "==": True, "!==": False, "!=": False, "<>": False}
_AND = frozenset({"&&", "and"})
_OR = frozenset({"||", "or"})
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which a statement runs.

    Attributes:
        kind: table or column: whether it exists; equal: whether a value is among others; set:
            whether a value is truthy; any: whether all conditions in one of several lists hold;
            other: known only at run time.
        table, column: names of the table and the column.
        wanted: whether the condition must hold (true), or must not hold (false).
        at: character offset of the condition; it is evaluated once, before the guarded statements
            run.
        value: the value that is compared, or must be truthy.
        values: the values that it is compared with.
        lists: lists of conditions.
    """

    kind: Literal["table", "column", "equal", "set", "any", "other"]
    table: str = ""
    column: str = ""
    wanted: bool = True
    at: int = -1
    value: Any = None
    values: tuple[Any, ...] = ()
    lists: tuple[tuple[Guard, ...], ...] = ()

    def as_value(self) -> dict[str, Any]:
        """Return the condition as JSON values."""
        made: dict[str, Any] = {
            "kind": self.kind,
            "table": as_json(self.table),
            "column": as_json(self.column),
            "wanted": self.wanted,
            "at": self.at,
        }
        if self.kind in {"equal", "set"}:
            made["value"] = as_json(self.value)
            made["values"] = [as_json(one) for one in self.values]
        if self.kind == "any":
            made["lists"] = [[one.as_value() for one in listed] for listed in self.lists]
        return made


OTHER = Guard("other")


def as_json(value: Any) -> Any:
    """Return a text as facts store it: `{"asked": text}` if it has marks of settings."""
    return {"asked": value} if has_marks(value) else value


def guards_of(
    reader: PhpReader, node: Node | None, scope: Scope, depth: int = 0
) -> tuple[Guard, ...]:
    """Return the conditions that all hold if an expression is true.

    Args:
        node: the expression; None for no condition.
        scope: the names that are known at the expression.
        depth: number of method calls and variables that led to the expression.
    """
    found: list[Guard] = []
    todo = [(node, True)] if node is not None else []
    while todo:
        at, wanted = todo.pop()
        operator = _operator(reader, at)
        if at.type == "parenthesized_expression" and at.named_children:
            todo.append((at.named_children[0], wanted))
        elif at.type == "unary_op_expression" and reader.tree.of(at).startswith("!"):
            todo.append((at.named_children[-1], not wanted))
        elif operator in (_AND if wanted else _OR):
            sides = (at.child_by_field_name("right"), at.child_by_field_name("left"))
            todo.extend((side, wanted) for side in sides if side is not None)
        elif operator in (_OR if wanted else _AND):
            found.append(_either(reader, at, scope, wanted, depth))
        else:
            found += _tests(reader, at, scope, wanted, depth)
    return tuple(found)


def one_of(value: Any, values: Sequence[Any], at: int, *, wanted: bool = True) -> Guard:
    """Return the condition that a value is among others, or that it is not.

    Args:
        value: value of one expression.
        values: values of other expressions.
        at: offset of the condition.
        wanted: whether it must be among them.
    """
    known = all(_is_plain(one) for one in (value, *values))
    if not known:
        return OTHER
    return Guard("equal", wanted=wanted, at=at, value=value, values=tuple(values))


def negated(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """Return conditions that all hold if at least one of the given conditions does not hold."""
    if any(guard.kind == "other" for guard in guards):
        return (OTHER,)
    if len(guards) == 1:
        return (replace(guards[0], wanted=not guards[0].wanted),)
    lists = tuple((replace(guard, wanted=not guard.wanted),) for guard in guards)
    return (Guard("any", lists=lists),) if guards else ()


def _operator(reader: PhpReader, node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return reader.tree.of(operator).lower() if node.type == "binary_expression" else ""


def _either(reader: PhpReader, node: Node, scope: Scope, wanted: bool, depth: int) -> Guard:
    lists = []
    for name in ("left", "right"):
        found = (
            ()
            if depth > _DEEPEST
            else guards_of(reader, node.child_by_field_name(name), scope, depth + 1)
        )
        if not found or any(guard.kind == "other" for guard in found):
            return OTHER
        lists.append(found if wanted else negated(found))
    return Guard("any", lists=tuple(lists))


def _tests(
    reader: PhpReader, node: Node, scope: Scope, wanted: bool, depth: int
) -> tuple[Guard, ...]:
    """Return the conditions in an expression that has no logical operator."""
    if depth > _DEEPEST:
        return (OTHER,)
    start, operator = reader.tree.start(node), _operator(reader, node)
    if operator in _EQUAL:
        names = ("left", "right")
        left, right = (reader.value(node.child_by_field_name(name), scope) for name in names)
        return (one_of(left, [right], start, wanted=wanted is _EQUAL[operator]),)
    chain, function = reader.chain(node), reader.function(node)
    found: tuple[Guard, ...] = ()
    if chain is not None:
        found = _of_call(reader, chain, scope, start, depth)
    elif function is not None and function.name.lstrip("\\").lower() == "in_array":
        value, listed, *_ = (
            *(reader.value(argument, scope) for argument in function.arguments),
            None,
            None,
        )
        found = (one_of(value, listed, start) if isinstance(listed, list) else OTHER,)
    if not found:
        found = _of_value(reader, node, scope, start, depth)
    return found if wanted else negated(found)


def _of_call(
    reader: PhpReader, chain: Chain, scope: Scope, start: int, depth: int
) -> tuple[Guard, ...]:
    """Return the conditions in a call of one of the class's own methods, or of the schema."""
    returned = reader.returned(chain, scope)
    if returned is not None:
        return guards_of(reader, *returned, depth + 1)
    return _of_schema(reader, chain.calls[-1].name, chain.calls[-1].arguments, scope, start)


def _of_value(
    reader: PhpReader, node: Node, scope: Scope, start: int, depth: int
) -> tuple[Guard, ...]:
    """Return the condition that a value is truthy; a variable may itself hold a condition."""
    value = reader.value(node, scope)
    if isinstance(value, Test) and value.node.id != node.id:
        return guards_of(reader, value.node, value.scope, depth + 1)
    return (Guard("set", at=start, value=value) if _is_plain(value) else OTHER,)


def _of_schema(
    reader: PhpReader, name: str, arguments: Sequence[Node], scope: Scope, start: int
) -> tuple[Guard, ...]:
    """Return the conditions that a table, a column or several columns exist."""
    lowered = name.lower()
    if lowered not in {"hastable", "hascolumn", "hascolumns"} or not arguments:
        return ()
    table, *given = (reader.value(argument, scope) for argument in arguments)
    columns = given[0] if given and isinstance(given[0], list) else given[:1]
    if not isinstance(table, str) or not all(isinstance(one, str) for one in columns):
        return (OTHER,)
    if lowered == "hastable":
        return (Guard("table", table, at=start),)
    return tuple(Guard("column", table, one, at=start) for one in columns) or (OTHER,)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | None) and not isinstance(value, Computed)
