"""Conditions of a migration's statements, and the order in which branches and loops run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.calls import Call, Chain
from rag_assets.systems.code_memory.languages.php.values import COMPUTED, Computed
from rag_assets.systems.code_memory.laravel.schema.blueprint import Blueprint
from rag_assets.systems.code_memory.laravel.schema.expressions import ExpressionReader, Scope, Test
from rag_assets.systems.code_memory.laravel.settings import has_marks

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
    reader: ExpressionReader, node: Node | None, scope: Scope, depth: int = 0
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


def is_among(value: Any, values: Sequence[Any], at: int, *, wanted: bool = True) -> Guard:
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


def negate(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """Return conditions that all hold if at least one of the given conditions does not hold."""
    if any(guard.kind == "other" for guard in guards):
        return (OTHER,)
    if len(guards) == 1:
        return (replace(guards[0], wanted=not guards[0].wanted),)
    lists = tuple((replace(guard, wanted=not guard.wanted),) for guard in guards)
    return (Guard("any", lists=lists),) if guards else ()


def _operator(reader: ExpressionReader, node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return reader.tree.of(operator).lower() if node.type == "binary_expression" else ""


def _either(reader: ExpressionReader, node: Node, scope: Scope, wanted: bool, depth: int) -> Guard:
    lists = []
    for name in ("left", "right"):
        found = (
            ()
            if depth > _DEEPEST
            else guards_of(reader, node.child_by_field_name(name), scope, depth + 1)
        )
        if not found or any(guard.kind == "other" for guard in found):
            return OTHER
        lists.append(found if wanted else negate(found))
    return Guard("any", lists=tuple(lists))


def _tests(
    reader: ExpressionReader, node: Node, scope: Scope, wanted: bool, depth: int
) -> tuple[Guard, ...]:
    """Return the conditions in an expression that has no logical operator."""
    if depth > _DEEPEST:
        return (OTHER,)
    start, operator = reader.tree.start(node), _operator(reader, node)
    if operator in _EQUAL:
        names = ("left", "right")
        left, right = (reader.value(node.child_by_field_name(name), scope) for name in names)
        return (is_among(left, [right], start, wanted=wanted is _EQUAL[operator]),)
    chain = reader.source.chain(node)
    found = () if chain is None else _of_call(reader, chain, scope, start, depth)
    if not found:
        found = _of_value(reader, node, scope, start, depth)
    return found if wanted else negate(found)


def _of_call(
    reader: ExpressionReader, chain: Chain, scope: Scope, start: int, depth: int
) -> tuple[Guard, ...]:
    """Return the conditions in a call of one of the class's own methods, or of the schema."""
    last = chain.calls[-1]
    if not chain.root and last.name.lstrip("\\").lower() == "in_array":
        value, items = (reader.value(last.argument(at), scope) for at in (0, 1))
        return (is_among(value, items, start) if isinstance(items, list) else OTHER,)
    returned = reader.returned(chain, scope)
    if returned is not None:
        return guards_of(reader, *returned, depth + 1)
    return _of_schema(reader, last, scope, start)


def _of_value(
    reader: ExpressionReader, node: Node, scope: Scope, start: int, depth: int
) -> tuple[Guard, ...]:
    """Return the condition that a value is truthy; a variable may itself hold a condition."""
    value = reader.value(node, scope)
    if isinstance(value, Test) and value.node.id != node.id:
        return guards_of(reader, value.node, value.scope, depth + 1)
    return (Guard("set", at=start, value=value) if _is_plain(value) else OTHER,)


def _of_schema(reader: ExpressionReader, call: Call, scope: Scope, start: int) -> tuple[Guard, ...]:
    """Return the conditions that a table, a column or several columns exist."""
    lowered = call.name.lower()
    if lowered not in {"hastable", "hascolumn", "hascolumns"} or not call.arguments:
        return ()
    table, *given = reader.values(call, scope)[0]
    columns = given[0] if given and isinstance(given[0], list) else given[:1]
    if not isinstance(table, str) or not all(isinstance(one, str) for one in columns):
        return (OTHER,)
    if lowered == "hastable":
        return (Guard("table", table, at=start),)
    return tuple(Guard("column", table, one, at=start) for one in columns) or (OTHER,)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | None) and not isinstance(value, Computed)


_LEAVES: Final = frozenset({"break_statement", "return_statement", "continue_statement"})
_MOST_TURNS: Final = 5_000
_PAIR: Final = 2
"""Number of parts of a loop's header: the iterated value, and its variables."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a statement.

    Attributes:
        scope: the names that are known at the statement, with their values.
        tables: blueprints, by the name of their variable.
        guards: conditions under which the statement runs.
        outside: number of guards that hold for the whole statement on a table.
        depth: number of enclosing method calls.
    """

    scope: Scope
    tables: Mapping[str, Blueprint] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    outside: int = 0
    depth: int = 0

    def under(self, *guards: Guard) -> Context:
        """Return the same context with further conditions."""
        return replace(self, guards=(*self.guards, *guards))


@dataclass(frozen=True, slots=True)
class Step:
    """A pending action: statements to run, a variable to bind, or a blueprint to complete.

    Attributes:
        node: a statement or an expression; None for a step without syntax.
        context: the context of the node.
        bind: values of variables to set first.
        ends: the complete blueprint, with the fact it becomes.
        first: index of the first statement of a body to run.
        unless: the preceding `if` that returns; the step runs if its condition does not hold.
    """

    node: Node | None
    context: Context
    bind: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[Blueprint, Fact] | None = None
    first: int = 0
    unless: Node | None = None


def is_early_return(node: Node) -> bool:
    """Return whether an `if` statement returns from its function when its condition holds."""
    body = node.child_by_field_name("body")
    if body is None or node.child_by_field_name("alternative") is not None:
        return False
    inner = body.named_children if body.type == "compound_statement" else [body]
    return bool(inner) and inner[-1].type == "return_statement"


def loop_variables(node: Node) -> Iterator[Node]:
    """Yield the variables of a loop's header, or the parameters of a closure."""
    node = node.child_by_field_name("parameters") or node
    if node.type == "variable_name":
        yield node
        return
    for child in node.named_children:
        if child.type == "variable_name":
            yield child
        elif child.type in {"simple_parameter", "by_ref", "pair"}:
            yield from (c for c in child.named_children if c.type == "variable_name")


def loop_steps(body: Node | None, over: Any, names: list[str], context: Context) -> list[Step]:
    """Return one step per item; the last name is the value's, a name before it the key's.

    Args:
        body: the body of the loop.
        over: the items; anything that is not an array counts as one unknown item.
        names: the names of its variables.
    """
    items: list[tuple[Any, Any]] = [(COMPUTED, COMPUTED)]
    if isinstance(over, list):
        items = list(enumerate(over))
    elif isinstance(over, dict):
        items = list(over.items())
    steps: list[Step] = []
    for key, value in items[:_MOST_TURNS]:
        given = (value,) if len(names) == 1 else (key, value)
        steps.append(Step(None, context, dict(zip(names, given, strict=False))))
        steps.append(Step(body, context))
    return steps


def _if(reader: ExpressionReader, node: Node, context: Context) -> list[Step]:
    found = guards_of(reader, node.child_by_field_name("condition"), context.scope)
    steps = [Step(node.child_by_field_name("body"), context.under(*found))]
    before = negate(found)
    for other in node.children_by_field_name("alternative"):
        own = guards_of(reader, other.child_by_field_name("condition"), context.scope)
        steps.append(Step(other.child_by_field_name("body"), context.under(*before, *own)))
        before = (*before, *negate(own))
    return steps


def _foreach(reader: ExpressionReader, node: Node, context: Context) -> list[Step]:
    parts = [child for child in node.named_children if child.type != "comment"]
    body = node.child_by_field_name("body")
    if len(parts) < _PAIR or body is None:
        return []
    names = [reader.tree.of(one).lstrip("$&") for one in loop_variables(parts[1])]
    return loop_steps(body, reader.value(parts[0], context.scope), names or [""], context)


def _switch(reader: ExpressionReader, node: Node, context: Context) -> list[Step]:
    """Return each case, under the condition of its labels and of cases that fall through to it."""
    subject = reader.value(node.child_by_field_name("condition"), context.scope)
    start, cases = reader.tree.start(node), node.child_by_field_name("body")
    labels: list[Any] = []
    every: list[Any] = []
    steps: list[Step] = []
    for case in cases.named_children if cases is not None else ():
        label = case.child_by_field_name("value")
        body = [child for child in case.named_children if label is None or child.id != label.id]
        guard = is_among(subject, every, start, wanted=False)
        if label is not None:
            labels.append(reader.value(label, context.scope))
            every.append(labels[-1])
            guard = is_among(subject, labels, start)
        steps += [Step(child, context.under(guard)) for child in body]
        if body and body[-1].type in _LEAVES:
            labels = []
    return steps


def _match(reader: ExpressionReader, node: Node, context: Context) -> list[Step]:
    """Return each arm, with the condition that one of its labels matches."""
    subject = reader.value(node.child_by_field_name("condition"), context.scope)
    start, arms = reader.tree.start(node), node.child_by_field_name("body")
    every: list[Any] = []
    steps: list[Step] = []
    for arm in arms.named_children if arms is not None else ():
        listed = arm.child_by_field_name("conditional_expressions")
        nodes = listed.named_children if listed is not None else ()
        labels = [reader.value(label, context.scope) for label in nodes]
        every += labels
        guard = is_among(subject, labels or every, start, wanted=bool(labels))
        steps.append(Step(arm.child_by_field_name("return_expression"), context.under(guard)))
    return steps


BRANCHES: Final[Mapping[str, Callable[[ExpressionReader, Node, Context], list[Step]]]] = {
    "if_statement": _if,
    "foreach_statement": _foreach,
    "switch_statement": _switch,
    "match_expression": _match,
}
"""Functions that read branching statements, by node type; they return the steps in order."""
