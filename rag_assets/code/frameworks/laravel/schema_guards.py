"""Conditions of a migration's statements: whether a table or a column is there, and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rag_assets.code.frameworks.laravel.schema_php import PhpReader, Scope

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which a statement runs.

    Attributes:
        kind: table or column, for whether it exists; other for what only running would tell.
        table, column: their names.
        wanted: whether it must exist, or must not.
        at: character offset of the condition: it is asked once, before what it guards changes it.
    """

    kind: Literal["table", "column", "other"]
    table: str = ""
    column: str = ""
    wanted: bool = True
    at: int = -1

    def as_value(self) -> dict[str, Any]:
        """The condition as JSON values."""
        return {
            "kind": self.kind,
            "table": self.table,
            "column": self.column,
            "wanted": self.wanted,
            "at": self.at,
        }


OTHER = Guard("other")


def guards_of(reader: PhpReader, node: Node | None, scope: Scope) -> tuple[Guard, ...]:
    """The conditions that an expression joins by `and`; one `other` if it is anything else.

    Args:
        reader: of the file.
        node: the expression; None is no condition.
        scope: what is known there.
    """
    found: list[Guard] = []
    todo = [(node, True)] if node is not None else []
    while todo:
        at, wanted = todo.pop()
        if at.type == "parenthesized_expression" and at.named_children:
            todo.append((at.named_children[0], wanted))
        elif at.type == "unary_op_expression" and reader.tree.of(at).startswith("!"):
            todo.append((at.named_children[-1], not wanted))
        elif at.type == "binary_expression" and wanted and _operator(at) in {"&&", "and"}:
            sides = (at.child_by_field_name("right"), at.child_by_field_name("left"))
            todo.extend((side, True) for side in sides if side is not None)
        else:
            found.append(_test(reader, at, scope, wanted))
    return tuple(found)


def negated(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """The conditions under which not all of some hold."""
    if len(guards) == 1 and guards[0].kind != "other":
        return (replace(guards[0], wanted=not guards[0].wanted),)
    return (OTHER,) if guards else ()


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return operator.type if operator is not None else ""


def _test(reader: PhpReader, node: Node, scope: Scope, wanted: bool) -> Guard:
    chain = reader.chain(node)
    if chain is None:
        return OTHER
    call = chain.calls[-1]
    given = [reader.value(argument, scope) for argument in call.arguments]
    if not given or not all(isinstance(value, str) for value in given):
        return OTHER
    if call.name == "hasTable":
        return Guard("table", given[0], "", wanted, reader.tree.start(node))
    if call.name == "hasColumn" and len(given) > 1:
        return Guard("column", given[0], given[1], wanted, reader.tree.start(node))
    return OTHER
