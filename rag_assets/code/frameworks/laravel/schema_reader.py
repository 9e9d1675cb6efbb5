"""Statements on tables in a migration: what `up()` would do, read without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rag_assets.code.frameworks.laravel.schema_blueprint import Attributes, Blueprint, canonical
from rag_assets.code.frameworks.laravel.schema_classes import PhpClass, php_classes
from rag_assets.code.frameworks.laravel.schema_guards import (
    Guard,
    as_json,
    guards_of,
    negated,
    one_of,
)
from rag_assets.code.frameworks.laravel.schema_php import (
    COMPUTED,
    Call,
    Chain,
    Closure,
    Computed,
    Expression,
    PhpReader,
    Scope,
)
from rag_assets.code.frameworks.laravel.schema_settings import has_marks
from rag_assets.code.frameworks.laravel.schema_sql import statements_of
from rag_assets.code.languages.tree import SyntaxTree
from rag_assets.code.model import Fact, Unit

if TYPE_CHECKING:
    from tree_sitter import Node

_CLOSURES: Final = frozenset({"anonymous_function", "arrow_function"})
_RAW: Final = frozenset({"statement", "unprepared"})
_ACTIONS: Final = {
    "create": "create",
    "table": "alter",
    "rename": "rename",
    "drop": "drop",
    "dropIfExists": "drop",
    "dropColumns": "alter",
}
_LEAVES: Final = frozenset({"break_statement", "return_statement", "continue_statement"})
_MOST_STATEMENTS: Final = 5000
_DEEPEST_CALL: Final = 8
_PAIR: Final = 2
"""Parts of a loop: what it goes over, and its variables."""


def schema_facts(tree: SyntaxTree) -> tuple[Fact, ...]:
    """One fact of the kind `schema` for each statement on a table in `up()`.

    Values of a fact:
        action: create, alter, rename or drop; raw for SQL that was not understood.
        table: its name; None if it is computed. to: the new name of a renamed one.
        columns: those it adds or changes (`change`), with Laravel's attributes (`name`, `type`,
            `nullable`, `default` ...); {"raw": sql} is an expression, {"computed": true} unknown.
        commands: indexes, foreign keys, drops and renames, likewise.
        if_exists: whether a missing table is no error. connection: if one is named.
        guards: conditions under which it runs (see Guard); how: call, or sql.
        order: its place among the statements as they run.
        unread: what was computed or is not Laravel's.

    Args:
        tree: of a PHP file.
    """
    reader = PhpReader(tree)
    facts: list[Fact] = []
    for made in php_classes(reader):
        if "up" in made.methods:
            facts += _Run(reader, made).facts()
    return tuple(sorted(facts, key=lambda fact: (fact.start, fact.values["order"])))


def schema_units(facts: tuple[Fact, ...]) -> tuple[Unit, ...]:
    """The spans of statements on tables, each once, with the tables they name.

    Args:
        facts: of one file; other kinds are passed over.
    """
    tables: dict[tuple[int, int], list[str]] = {}
    for fact in facts:
        if fact.kind == "schema" and fact.values["action"] != "ran":
            named = tables.setdefault((fact.start, fact.end), [])
            table = fact.values["table"]
            if isinstance(table, str) and table and table not in named:
                named.append(table)
    units: list[Unit] = []
    for (start, end), named in sorted(tables.items()):
        if not units or start >= units[-1].end:
            units.append(Unit(start, end, "schema", ", ".join(named)))
    return tuple(units)


@dataclass(frozen=True, slots=True)
class _Context:
    """Where a statement stands.

    Attributes:
        scope: what its names are worth.
        tables: blueprints by the name of their variable.
        guards: conditions under which it runs.
        outside: how many of them hold for the whole statement on a table.
        depth: how many methods were entered.
    """

    scope: Scope
    tables: Mapping[str, Blueprint] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    outside: int = 0
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """Something to do later: statements to run, a variable to bind, or a blueprint to end.

    Attributes:
        node: a statement or an expression; None for a step that is no syntax.
        context: where it stands.
        bind: values of variables to set first.
        ends: the blueprint that is complete, with the fact it becomes.
        after: the blueprint whose `after` ends.
    """

    node: Node | None
    context: _Context
    bind: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[Blueprint, Fact] | None = None
    after: Blueprint | None = None


class _Run:
    """Walks `up()` of one class with a list of steps, so that no nesting is too deep."""

    def __init__(self, reader: PhpReader, made: PhpClass) -> None:
        self._reader = reader
        self._tree = reader.tree
        self._class = made
        self._facts: list[Fact] = []
        self._todo: list[_Step] = []
        self._left = _MOST_STATEMENTS

    def facts(self) -> list[Fact]:
        """The statements in the order in which they run."""
        scope = self._class.scope("up")
        self._push_block(self._class.methods["up"], _Context(scope))
        while self._todo and self._left > 0:
            step = self._todo.pop()
            step.context.scope.variables.update(step.bind)
            if step.ends is not None:
                self._end(*step.ends)
            elif step.after is not None:
                step.after.after(None)
            elif step.node is not None:
                self._left -= 1
                self._step(step.node, step.context)
        return self._facts

    def _push(self, nodes: list[Node], context: _Context) -> None:
        self._todo.extend(_Step(node, context) for node in reversed(nodes))

    def _push_block(self, node: Node | None, context: _Context) -> None:
        """Run a body; what follows `if (..) return;` runs where that does not hold."""
        if node is None:
            return
        if node.type not in {"compound_statement", "colon_block"}:
            self._push([node], context)
            return
        steps: list[_Step] = []
        for child in node.named_children:
            steps.append(_Step(child, context))
            if child.type == "if_statement" and _only_returns(child):
                found = guards_of(
                    self._reader, child.child_by_field_name("condition"), context.scope
                )
                context = replace(context, guards=(*context.guards, *negated(found)))
        self._todo.extend(reversed(steps))

    def _step(self, node: Node, context: _Context) -> None:
        if node.type == "if_statement":
            self._if(node, context)
        elif node.type == "foreach_statement":
            self._foreach(node, context)
        elif node.type == "switch_statement":
            self._switch(node, context)
        elif node.type == "match_expression":
            self._match(node, context)
        elif node.type in {"expression_statement", "return_statement", "parenthesized_expression"}:
            self._push(node.named_children[:1], context)
        elif node.type == "assignment_expression":
            self._assign(node, context)
        elif node.type in {"compound_statement", "colon_block"}:
            self._push_block(node, context)
        elif node.type.endswith("call_expression"):
            self._call(node, context)
        elif node.type.endswith(("_statement", "_clause", "_block")):
            self._push(list(node.named_children), context)

    def _if(self, node: Node, context: _Context) -> None:
        found = guards_of(self._reader, node.child_by_field_name("condition"), context.scope)
        steps = [(node.child_by_field_name("body"), found)]
        before = negated(found)
        for other in node.children_by_field_name("alternative"):
            own = guards_of(self._reader, other.child_by_field_name("condition"), context.scope)
            steps.append((other.child_by_field_name("body"), (*before, *own)))
            before = (*before, *negated(own))
        for body, guards in reversed(steps):
            self._push_block(body, replace(context, guards=(*context.guards, *guards)))

    def _foreach(self, node: Node, context: _Context) -> None:
        parts = [child for child in node.named_children if child.type != "comment"]
        body = node.child_by_field_name("body")
        if len(parts) < _PAIR or body is None:
            return
        over = self._reader.value(parts[0], context.scope)
        names = [self._tree.of(n).lstrip("$&") for n in _variables(parts[1])]
        self._loop(body, over, names, context)

    def _loop(self, body: Node, over: Any, names: list[str], context: _Context) -> None:
        """Run a body for each item; the last name is the value's, one before it the key's."""
        items: list[tuple[Any, Any]] = [(COMPUTED, COMPUTED)]
        if isinstance(over, list):
            items = list(enumerate(over))
        elif isinstance(over, dict):
            items = list(over.items())
        for key, value in reversed(items[:_MOST_STATEMENTS]):
            given = (value,) if len(names) == 1 else (key, value)
            self._todo.append(_Step(body, context))
            self._todo.append(_Step(None, context, dict(zip(names, given, strict=False))))

    def _switch(self, node: Node, context: _Context) -> None:
        """Each case under the condition of its labels, with those that fall through to it."""
        subject = self._reader.value(node.child_by_field_name("condition"), context.scope)
        cases = node.child_by_field_name("body")
        labels: list[Any] = []
        every: list[Any] = []
        steps: list[tuple[Node, _Context]] = []
        for case in cases.named_children if cases is not None else ():
            label = case.child_by_field_name("value")
            if label is not None:
                labels.append(self._reader.value(label, context.scope))
                every.append(labels[-1])
            body = [c for c in case.named_children if label is None or c.id != label.id]
            start = self._tree.start(node)
            guard = (
                one_of(subject, labels, start)
                if label is not None
                else one_of(subject, every, start, wanted=False)
            )
            inner = replace(context, guards=(*context.guards, guard))
            steps += [(child, inner) for child in body]
            if body and body[-1].type in _LEAVES:
                labels = []
        self._todo.extend(_Step(child, inner) for child, inner in reversed(steps))

    def _match(self, node: Node, context: _Context) -> None:
        """Each arm under the condition of its labels."""
        subject = self._reader.value(node.child_by_field_name("condition"), context.scope)
        arms = node.child_by_field_name("body")
        every: list[Any] = []
        steps: list[_Step] = []
        start = self._tree.start(node)
        for arm in arms.named_children if arms is not None else ():
            listed = arm.child_by_field_name("conditional_expressions")
            result = arm.child_by_field_name("return_expression")
            labels = [
                self._reader.value(label, context.scope)
                for label in (listed.named_children if listed is not None else ())
            ]
            every += labels
            guard = one_of(subject, labels or every, start, wanted=bool(labels))
            steps.append(_Step(result, replace(context, guards=(*context.guards, guard))))
        self._todo.extend(reversed(steps))

    def _assign(self, node: Node, context: _Context) -> None:
        left, right = (node.child_by_field_name(name) for name in ("left", "right"))
        if left is None or right is None:
            return
        name = self._tree.of(left).lstrip("$")
        context.scope.variables[name] = self._reader.value(right, context.scope)
        if right.type.endswith("call_expression"):
            self._call(right, context)

    def _call(self, node: Node, context: _Context) -> None:
        chain = self._reader.chain(node)
        if chain is None:
            self._enter_closures(list(_arguments(node)), context)
            return
        chain = canonical(chain)
        base = self._tree.of(chain.base).lstrip("$")
        if not chain.static and base in context.tables:
            self._on_table(chain, context.tables[base], context)
        elif self._is_schema(chain, base):
            self._on_schema(chain, context)
        elif chain.static and base.rsplit("\\", 1)[-1] == "DB" and chain.calls[-1].name in _RAW:
            self._raw(chain.calls[-1], context)
        elif base in {"this", "self", "static"} and chain.calls[0].name in self._class.methods:
            self._enter(chain.calls[0], context)
        elif self._is_each(chain):
            self._each(chain, context)
        else:
            self._enter_closures([node for call in chain.calls for node in call.arguments], context)

    def _is_each(self, chain: Chain) -> bool:
        """Whether it is `collect([..])->each(function (..) {..})`."""
        function = self._reader.function(chain.base)
        last = chain.calls[-1]
        return (
            function is not None
            and function.name.lstrip("\\") == "collect"
            and len(chain.calls) == 1
            and last.name == "each"
            and bool(last.arguments and function.arguments)
            and last.arguments[0].type in _CLOSURES
        )

    def _each(self, chain: Chain, context: _Context) -> None:
        function = self._reader.function(chain.base)
        closure = chain.calls[-1].arguments[0]
        body, listed = (closure.child_by_field_name(name) for name in ("body", "parameters"))
        if function is None or body is None:
            return
        over = self._reader.value(function.arguments[0], context.scope)
        names = [] if listed is None else [self._tree.of(n).lstrip("$") for n in _variables(listed)]
        # A loop names the key first, a closure the value.
        self._loop(body, over, [*reversed(names[:_PAIR])] or [""], context)

    def _is_schema(self, chain: Chain, base: str) -> bool:
        last = chain.calls[-1]
        if last.name not in _ACTIONS:
            return False
        if chain.static and base.rsplit("\\", 1)[-1] == "Schema":
            return True
        closure = last.arguments[-1].type in _CLOSURES if last.arguments else False
        return (
            base.lower().endswith("schema")
            or any(call.name == "getSchemaBuilder" for call in chain.calls)
            or (closure and last.name in {"create", "table"} and base != "Route")
        )

    def _on_schema(self, chain: Chain, context: _Context) -> None:
        call = chain.calls[-1]
        table = self._argument(call, 0, "table" if call.name != "rename" else "from", context)
        values: dict[str, Any] = {"action": _ACTIONS[call.name]}
        if len(chain.calls) > 1 and chain.calls[0].name == "connection":
            values["connection"] = self._argument(chain.calls[0], 0, "name", context)
        if call.name == "rename":
            values["to"] = self._argument(call, 1, "to", context)
        if call.name == "dropIfExists":
            values["if_exists"] = True
        blueprint = Blueprint(table if isinstance(table, str) else "")
        fact = self._fact(call.node, table, values, context)
        if call.name == "dropColumns":
            dropped = [self._reader.value(node, context.scope) for node in call.arguments[1:]]
            blueprint.call("dropColumn", dropped, {})
        self._todo.append(_Step(None, context, ends=(blueprint, fact)))
        given = [self._reader.value(node, context.scope) for node in call.arguments]
        closure = next((value.node for value in given if isinstance(value, Closure)), None)
        if closure is not None:
            inner = replace(context, outside=len(context.guards))
            self._enter_closure(closure, inner, blueprint)
        elif values["action"] == "create" or call.name == "table":
            blueprint.unread.append("the definition of the table")

    def _end(self, blueprint: Blueprint, fact: Fact) -> None:
        blueprint.finish()
        values = dict(fact.values)
        values["columns"] = [_plain(column) for column in blueprint.columns]
        values["commands"] = [_plain(command) for command in blueprint.commands]
        values["unread"] = [*values["unread"], *blueprint.unread]
        renamed = next((c for c in blueprint.commands if c["name"] == "rename"), None)
        if renamed is not None and isinstance(renamed["to"], str):
            values["to"] = as_json(renamed["to"])
        self._add(fact, values)

    def _on_table(self, chain: Chain, blueprint: Blueprint, context: _Context) -> None:
        first, *modifiers = chain.calls
        before = len(blueprint.columns), len(blueprint.commands)
        closure = next((node for node in first.arguments if node.type in _CLOSURES), None)
        if first.name == "after" and closure is not None:
            blueprint.after(self._argument(first, 0, "column", context))
            self._todo.append(_Step(None, context, after=blueprint))
            self._enter_closure(closure, context, blueprint)
            return
        target = blueprint.call(first.name, *self._given(first, context))
        for call in modifiers:
            if target is not None:
                target = blueprint.modify(target, call.name, *self._given(call, context))
        guards = [guard.as_value() for guard in context.guards[context.outside :]]
        if guards:
            made: list[Attributes] = blueprint.columns[before[0] :]
            for attributes in (*made, *blueprint.commands[before[1] :]):
                attributes["guards"] = guards

    def _raw(self, call: Call, context: _Context) -> None:
        sql = self._argument(call, 0, "query", context)
        text = sql.sql if isinstance(sql, Expression) else sql
        if not isinstance(text, str) or has_marks(text):
            fact = self._fact(call.node, COMPUTED, {"action": "raw", "how": "sql"}, context)
            self._add(fact, {**fact.values, "columns": [], "commands": []})
            return
        for statement in statements_of(text):
            fact = self._fact(call.node, statement.values["table"], {}, context)
            self._add(fact, {**fact.values, **statement.values})

    def _fact(self, node: Node, table: Any, values: Mapping[str, Any], context: _Context) -> Fact:
        known = {
            "table": as_json(table) if isinstance(table, str) else None,
            "guards": [guard.as_value() for guard in context.guards],
            "how": "call",
            "unread": [] if isinstance(table, str) or table is None else ["the name of the table"],
            **_plain(values),
        }
        symbol = f"{self._class.name}::up"
        return Fact("schema", self._tree.start(node), self._tree.end(node), symbol, known)

    def _add(self, fact: Fact, values: Mapping[str, Any]) -> None:
        self._facts.append(replace(fact, values={**values, "order": len(self._facts)}))

    def _enter(self, call: Call, context: _Context) -> None:
        if context.depth >= _DEEPEST_CALL:
            return
        scope = self._class.scope(call.name)
        tables: dict[str, Blueprint] = {}
        for name, node in zip(self._class.parameters(call.name), call.arguments, strict=False):
            given = self._tree.of(node).lstrip("$")
            if given in context.tables:
                tables[name] = context.tables[given]
            scope.variables[name] = self._reader.value(node, context.scope)
        inner = replace(context, scope=scope, tables=tables, depth=context.depth + 1)
        self._push_block(self._class.methods[call.name], inner)

    def _enter_closure(self, node: Node, context: _Context, blueprint: Blueprint) -> None:
        parameters = node.child_by_field_name("parameters")
        first = next(_variables(parameters), None) if parameters is not None else None
        name = self._tree.of(first).lstrip("$") if first is not None else ""
        tables = {**context.tables, name: blueprint}
        self._push_block(node.child_by_field_name("body"), replace(context, tables=tables))

    def _enter_closures(self, nodes: list[Node], context: _Context) -> None:
        for node in reversed(nodes):
            if node.type in _CLOSURES:
                self._push_block(node.child_by_field_name("body"), context)

    def _given(self, call: Call, context: _Context) -> tuple[list[Any], dict[str, Any]]:
        positional = [self._reader.value(node, context.scope) for node in call.arguments]
        named = {name: self._reader.value(node, context.scope) for name, node in call.named.items()}
        return positional, named

    def _argument(self, call: Call, position: int, name: str, context: _Context) -> Any:
        if position < len(call.arguments):
            return self._reader.value(call.arguments[position], context.scope)
        return self._reader.value(call.named.get(name), context.scope)


def _only_returns(node: Node) -> bool:
    body = node.child_by_field_name("body")
    if body is None or node.child_by_field_name("alternative") is not None:
        return False
    inner = body.named_children if body.type == "compound_statement" else [body]
    return bool(inner) and inner[-1].type == "return_statement"


def _variables(node: Node) -> Iterator[Node]:
    """The variables that a loop or a list of parameters names."""
    if node.type == "variable_name":
        yield node
        return
    for child in node.named_children:
        if child.type == "variable_name":
            yield child
        elif child.type in {"simple_parameter", "by_ref"}:
            yield from (c for c in child.named_children if c.type == "variable_name")


def _arguments(node: Node) -> Iterator[Node]:
    arguments = node.child_by_field_name("arguments")
    for argument in arguments.named_children if arguments is not None else ():
        if argument.named_children:
            yield argument.named_children[-1]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as JSON values."""
    return {key: _json(value) for key, value in values.items()}


def _json(value: Any) -> Any:
    if isinstance(value, Expression):
        return {"computed": True} if has_marks(value.sql) else {"raw": value.sql}
    if isinstance(value, Computed):
        return {"computed": True}
    if isinstance(value, list):
        return [
            _json(item) if isinstance(item, Expression | Computed | str) else item for item in value
        ]
    return as_json(value)
