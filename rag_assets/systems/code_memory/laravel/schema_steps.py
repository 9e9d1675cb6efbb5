"""The actions of a migration in order: branches and loops become steps under conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.schema_blueprint import Blueprint
from rag_assets.systems.code_memory.laravel.schema_guards import Guard, guards_of, negated, one_of
from rag_assets.systems.code_memory.laravel.schema_php import COMPUTED, PhpReader, Scope

if TYPE_CHECKING:
    from tree_sitter import Node

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
        after: the blueprint whose `after` closure ends.
        first: index of the first statement of a body to run.
        unless: the preceding `if` that returns; the step runs if its condition does not hold.
    """

    node: Node | None
    context: Context
    bind: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[Blueprint, Fact] | None = None
    after: Blueprint | None = None
    first: int = 0
    unless: Node | None = None


def returns(node: Node) -> bool:
    """Return whether an `if` statement returns from its function when its condition holds."""
    body = node.child_by_field_name("body")
    if body is None or node.child_by_field_name("alternative") is not None:
        return False
    inner = body.named_children if body.type == "compound_statement" else [body]
    return bool(inner) and inner[-1].type == "return_statement"


def variables(node: Node) -> Iterator[Node]:
    """Yield the variables of a loop's header or of a parameter list."""
    if node.type == "variable_name":
        yield node
        return
    for child in node.named_children:
        if child.type == "variable_name":
            yield child
        elif child.type in {"simple_parameter", "by_ref", "pair"}:
            yield from (c for c in child.named_children if c.type == "variable_name")


def loop(body: Node, over: Any, names: list[str], context: Context) -> list[Step]:
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


def _if(reader: PhpReader, node: Node, context: Context) -> list[Step]:
    found = guards_of(reader, node.child_by_field_name("condition"), context.scope)
    steps = [Step(node.child_by_field_name("body"), context.under(*found))]
    before = negated(found)
    for other in node.children_by_field_name("alternative"):
        own = guards_of(reader, other.child_by_field_name("condition"), context.scope)
        steps.append(Step(other.child_by_field_name("body"), context.under(*before, *own)))
        before = (*before, *negated(own))
    return steps


def _foreach(reader: PhpReader, node: Node, context: Context) -> list[Step]:
    parts = [child for child in node.named_children if child.type != "comment"]
    body = node.child_by_field_name("body")
    if len(parts) < _PAIR or body is None:
        return []
    names = [reader.tree.of(one).lstrip("$&") for one in variables(parts[1])]
    return loop(body, reader.value(parts[0], context.scope), names or [""], context)


def _switch(reader: PhpReader, node: Node, context: Context) -> list[Step]:
    """Return each case, under the condition of its labels and of cases that fall through to it."""
    subject = reader.value(node.child_by_field_name("condition"), context.scope)
    start, cases = reader.tree.start(node), node.child_by_field_name("body")
    labels: list[Any] = []
    every: list[Any] = []
    steps: list[Step] = []
    for case in cases.named_children if cases is not None else ():
        label = case.child_by_field_name("value")
        body = [child for child in case.named_children if label is None or child.id != label.id]
        guard = one_of(subject, every, start, wanted=False)
        if label is not None:
            labels.append(reader.value(label, context.scope))
            every.append(labels[-1])
            guard = one_of(subject, labels, start)
        steps += [Step(child, context.under(guard)) for child in body]
        if body and body[-1].type in _LEAVES:
            labels = []
    return steps


def _match(reader: PhpReader, node: Node, context: Context) -> list[Step]:
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
        guard = one_of(subject, labels or every, start, wanted=bool(labels))
        steps.append(Step(arm.child_by_field_name("return_expression"), context.under(guard)))
    return steps


BRANCHES: Final[Mapping[str, Callable[[PhpReader, Node, Context], list[Step]]]] = {
    "if_statement": _if,
    "foreach_statement": _foreach,
    "switch_statement": _switch,
    "match_expression": _match,
}
"""Functions that read branching statements, by node type; they return the steps in order."""
