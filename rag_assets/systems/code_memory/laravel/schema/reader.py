"""The reader of a migration's statements on tables: what `up()` does, without running it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import ClassLike, Method, PhpSource
from rag_assets.systems.code_memory.languages.php.values import (
    CLOSURES,
    COMPUTED,
    Call,
    Chain,
    ClosureValue,
    Computed,
)
from rag_assets.systems.code_memory.languages.tree import Node
from rag_assets.systems.code_memory.laravel.routes.model import Arguments
from rag_assets.systems.code_memory.laravel.schema.blueprint import Blueprint
from rag_assets.systems.code_memory.laravel.schema.expressions import (
    ExpressionReader,
    NameScope,
    RawSql,
)
from rag_assets.systems.code_memory.laravel.settings import has_marks

_RAW: Final = frozenset({"statement", "unprepared"})
_SQL: Final = re.compile(
    r"\b(?P<action>CREATE|ALTER|DROP|RENAME)\s+(?:[a-z]+\s+)?TABLE\s+(?:(?:IF|NOT|EXISTS|ONLY)\s+)*"
    r"(?P<table>[\w.`\"\[\]]+)",
    re.IGNORECASE,
)
_ACTIONS: Final = {
    "create": "create",
    "table": "alter",
    "rename": "rename",
    "drop": "drop",
    "dropifexists": "drop",
    "dropcolumns": "alter",
}
"""Actions on tables, by the method of the schema in lower case."""

_BRANCHING: Final = frozenset({"if_statement", "switch_statement", "match_expression"})
_NESTING: Final = ("_statement", "_clause", "_block", "match_expression")
"""Ends of the types of nodes that contain statements."""

_MAX_STATEMENTS: Final = 5000
_MAX_LOOP_TURNS: Final = 5000
_MAX_CALL_DEPTH: Final = 8


@dataclass(frozen=True, slots=True)
class _Context:
    """The context of a statement.

    Attributes:
        tables: blueprints, by the name of their variable.
        depth: number of own methods entered on the way to it.
    """

    scope: NameScope
    tables: Mapping[str, Blueprint] = field(default_factory=dict)
    conditional: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """A pending action: a statement to read, variables to set, or a blueprint to complete.

    Attributes:
        bind: values of variables to set first.
        ends: a blueprint whose calls have all been read, with the fact that it becomes.
    """

    node: Node | None
    context: _Context
    bind: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[Blueprint, Fact] | None = None


def list_schema_facts(source: PhpSource) -> tuple[Fact, ...]:
    """Return one fact of the kind `schema` for each statement on a table in `up()`.

    Values of a fact:
        action: create, alter, rename or drop; raw for computed SQL.
        table: its name; None if it is computed. to: the new name of a renamed table.
        columns: added or changed (`change`) columns, with Laravel's attributes (`name`, `type`,
            `nullable`, `default` ...); {"raw": sql} is an expression, {"computed": true} unknown.
        commands: indexes, foreign keys, drops and renames, with the same kind of values.
        conditional: whether it runs under a condition. how: `call`, or `sql` for an SQL string.
        order: its position among the statements in running order.
        unread: what was not read: computed values, methods that Laravel does not have, and all but
            the table of an SQL statement.
    """
    reader = ExpressionReader(source)
    facts: list[Fact] = []
    for class_ in source.classes:
        method = class_.find_method("up")
        if method is not None and method.body is not None:
            facts += _MigrationWalk(reader, class_).list_facts(method)
    return tuple(sorted(facts, key=lambda fact: (fact.start, fact.values["order"])))


class _MigrationWalk:
    """A walk through `up()` of one class, without recursion, at any nesting depth."""

    def __init__(self, reader: ExpressionReader, owner: ClassLike) -> None:
        self._reader = reader
        self._tree = reader.tree
        self._owner = owner
        self._facts: list[Fact] = []
        self._todo: list[_Step] = []
        self._left = _MAX_STATEMENTS

    def list_facts(self, method: Method) -> list[Fact]:
        """Return the facts of a method's statements, in the order in which they run."""
        self._push_block(method.body, _Context(self._reader.build_scope(self._owner, method.name)))
        while self._todo and self._left > 0:
            step = self._todo.pop()
            step.context.scope.variables.update(step.bind)
            if step.ends is not None:
                self._finish_blueprint(*step.ends)
            elif step.node is not None:
                self._left -= 1
                self._take_step(step.node, step.context)
        return self._facts

    def _push(self, nodes: Sequence[Node], context: _Context) -> None:
        self._todo.extend(_Step(node, context) for node in reversed(nodes))

    def _push_block(self, node: Node | None, context: _Context) -> None:
        if node is not None:
            self._todo.append(_Step(node, context))

    def _push_statements(self, node: Node, context: _Context) -> None:
        """Queue the statements of a body; those after `if (..) return;` count as conditional."""
        steps: list[_Step] = []
        for child in node.named_children:
            steps.append(_Step(child, context))
            if child.type == "if_statement" and _is_guard_clause(child):
                context = replace(context, conditional=True)
        self._todo.extend(reversed(steps))

    def _take_step(self, node: Node, context: _Context) -> None:
        if node.type in _BRANCHING:
            context = replace(context, conditional=True)
        if node.type in {"compound_statement", "colon_block"}:
            self._push_statements(node, context)
        elif node.type == "foreach_statement":
            self._push_foreach(node, context)
        elif node.type in {"expression_statement", "return_statement", "parenthesized_expression"}:
            self._push(node.named_children[:1], context)
        elif node.type == "assignment_expression":
            self._set_variable(node, context)
        elif node.type.endswith("call_expression"):
            self._read_call(node, context)
        elif node.type in {"match_conditional_expression", "match_default_expression"}:
            self._push_block(node.child_by_field_name("return_expression"), context)
        elif node.type.endswith(_NESTING):
            condition = node.child_by_field_name("condition")
            self._push([child for child in node.named_children if child != condition], context)

    def _set_variable(self, node: Node, context: _Context) -> None:
        left_side, right = (node.child_by_field_name(name) for name in ("left", "right"))
        if left_side is None or right is None:
            return
        name = self._tree.get_node_text(left_side).lstrip("$")
        context.scope.variables[name] = self._reader.read_value(right, context.scope)
        if right.type.endswith("call_expression"):
            self._read_call(right, context)

    def _read_call(self, node: Node, context: _Context) -> None:
        chain = self._reader.source.parse_chain(node)
        if chain is None:
            return
        root, last = chain.root.lstrip("$"), chain.calls[-1]
        own = self._reader.find_own_method(chain, context.scope)
        if not chain.static and root in context.tables:
            self._read_table_call(chain, context.tables[root], context)
        elif self._is_schema_call(chain, root):
            self._read_schema_call(chain, context)
        elif chain.static and root.rpartition("\\")[2] == "DB" and last.name.lower() in _RAW:
            self._read_raw_sql(last, context)
        elif own is not None and own.body is not None:
            self._enter_method(own, chain.calls[0], context)
        elif _is_each(chain):
            self._push_each(chain, context)
        else:
            values = [argument.value for call in chain.calls for argument in call.arguments]
            for closure in reversed([value for value in values if value.type in CLOSURES]):
                self._push_block(closure.child_by_field_name("body"), context)

    def _push_each(self, chain: Chain, context: _Context) -> None:
        over = self._reader.read_value(chain.calls[0].get_argument(0), context.scope)
        closure = chain.calls[1].arguments[0].value
        names = [
            self._tree.get_node_text(node).lstrip("$") for node in _iter_declared_variables(closure)
        ]
        # A loop lists the key before the value, a closure the value before the key.
        self._push_loop(closure.child_by_field_name("body"), over, [*reversed(names[:2])], context)

    def _push_foreach(self, node: Node, context: _Context) -> None:
        body = node.child_by_field_name("body")
        parts = [
            named_child
            for named_child in node.named_children
            if named_child.type != "comment" and named_child != body
        ]
        if len(parts) > 1:
            variables = _iter_declared_variables(parts[1])
            names = [self._tree.get_node_text(variable).lstrip("$&") for variable in variables]
            self._push_loop(body, self._read_value(parts[0], context), names, context)

    def _push_loop(
        self, body: Node | None, over: Any, names: Sequence[str], context: _Context
    ) -> None:
        """Queue the body of a loop once for each item.

        Args:
            over: the items; anything that is not an array counts as one unknown item.
            names: the variables of the loop: the value's, or the key's and the value's.
        """
        items: list[tuple[Any, Any]] = [(COMPUTED, COMPUTED)]
        if isinstance(over, list):
            items = list(enumerate(over))
        elif isinstance(over, dict):
            items = list(over.items())
        steps = []
        for key, value in items[:_MAX_LOOP_TURNS]:
            bind = dict(zip(reversed(names), (value, key), strict=False))
            steps.append(_Step(body, context, bind))
        self._todo.extend(reversed(steps))

    def _is_schema_call(self, chain: Chain, root: str) -> bool:
        last = chain.calls[-1]
        if last.name.lower() not in _ACTIONS:
            return False
        closure = last.arguments[-1].value.type in CLOSURES if last.arguments else False
        return (
            root.lower().endswith("schema")
            or any(call.name == "getSchemaBuilder" for call in chain.calls)
            or (closure and last.name.lower() in {"create", "table"} and root != "Route")
        )

    def _read_schema_call(self, chain: Chain, context: _Context) -> None:
        call = chain.calls[-1]
        name = call.name.lower()
        table = self._read_value(
            call.get_argument(0, "from" if name == "rename" else "table"), context
        )
        values: dict[str, Any] = {"action": _ACTIONS[name]}
        if name == "rename":
            values["to"] = self._read_value(call.get_argument(1, "to"), context)
        blueprint = Blueprint(table if isinstance(table, str) else "")
        fact = self._build_fact(call.node, table, values, context)
        arguments = self._reader.read_arguments(call, context.scope)
        if name == "dropcolumns":
            blueprint.call("dropColumn", Arguments(arguments.positional[1:]))
        self._todo.append(_Step(None, context, ends=(blueprint, fact)))
        closures = (value.node for value in arguments.all if isinstance(value, ClosureValue))
        closure = next(closures, None)
        if closure is not None:
            self._enter_closure(closure, context, blueprint)
        elif name in {"create", "table"}:
            blueprint.unread.append("the definition of the table")

    def _finish_blueprint(self, blueprint: Blueprint, fact: Fact) -> None:
        blueprint.finish()
        values = dict(fact.values)
        values["columns"] = [_to_plain_values(column) for column in blueprint.columns]
        values["commands"] = [_to_plain_values(command) for command in blueprint.commands]
        values["unread"] = [*values["unread"], *blueprint.unread]
        values["conditional"] |= blueprint.conditional
        renamed = next((c for c in blueprint.commands if c["name"] == "rename"), None)
        if renamed is not None and isinstance(renamed["to"], str):
            values["to"] = _mark_asked_text(renamed["to"])
        self._add_fact(replace(fact, values=values))

    def _read_table_call(self, chain: Chain, blueprint: Blueprint, context: _Context) -> None:
        first, *modifiers = chain.calls
        closure = next((a.value for a in first.arguments if a.value.type in CLOSURES), None)
        if first.name.lower() == "after" and closure is not None:
            self._enter_closure(closure, context, blueprint)
            return
        target = blueprint.call(first.name, self._reader.read_arguments(first, context.scope))
        for call in modifiers:
            if target is not None:
                arguments = self._reader.read_arguments(call, context.scope)
                target = blueprint.modify(target, call.name, arguments)
        blueprint.conditional |= context.conditional

    def _read_raw_sql(self, call: Call, context: _Context) -> None:
        """Add the fact of an SQL statement: only its table is read, so its columns are unread."""
        sql = self._read_value(call.get_argument(0, "query"), context)
        text = sql.sql if isinstance(sql, RawSql) else sql
        common: dict[str, Any] = {"how": "sql", "columns": [], "commands": []}
        if not isinstance(text, str) or has_marks(text):
            values = {"action": "raw", **common}
            self._add_fact(self._build_fact(call.node, COMPUTED, values, context))
            return
        for match in _SQL.finditer(text):
            table = re.sub(r"[`\"\[\]]", "", match["table"]).rpartition(".")[2]
            drops = match["action"].upper() == "DROP"
            values = {"action": "drop" if drops else "alter", **common, "unread": ["SQL"]}
            self._add_fact(self._build_fact(call.node, table, values, context))

    def _build_fact(
        self, node: Node, table: Any, values: Mapping[str, Any], context: _Context
    ) -> Fact:
        all_values = {
            "table": _mark_asked_text(table) if isinstance(table, str) else None,
            "conditional": context.conditional,
            "how": "call",
            "unread": [] if isinstance(table, str) or table is None else ["the name of the table"],
            **_to_plain_values(values),
        }
        symbol = f"{self._owner.name}::up"
        return self._tree.build_fact("schema", node, symbol, all_values)

    def _add_fact(self, fact: Fact) -> None:
        values = {**fact.values, "order": len(self._facts)}
        self._facts.append(replace(fact, values=values))

    def _enter_method(self, method: Method, call: Call, context: _Context) -> None:
        if context.depth >= _MAX_CALL_DEPTH:
            return
        scope = self._reader.build_scope(self._owner, method.name)
        tables: dict[str, Blueprint] = {}
        for parameter, argument in zip(method.parameters, call.arguments, strict=False):
            variable = self._tree.get_node_text(argument.value).lstrip("$")
            if variable in context.tables:
                tables[parameter.name] = context.tables[variable]
            scope.variables[parameter.name] = self._read_value(argument.value, context)
        inner = replace(context, scope=scope, tables=tables, depth=context.depth + 1)
        self._push_block(method.body, inner)

    def _enter_closure(self, node: Node, context: _Context, blueprint: Blueprint) -> None:
        name = self._tree.get_node_text(next(_iter_declared_variables(node), None)).lstrip("$")
        tables = {**context.tables, name: blueprint}
        self._push_block(node.child_by_field_name("body"), replace(context, tables=tables))

    def _read_value(self, node: Node | None, context: _Context) -> Any:
        return self._reader.read_value(node, context.scope)


def _is_each(chain: Chain) -> bool:
    """Return whether the chain is `collect([..])->each(function (..) {..})`."""
    names = [call.name.lstrip("\\") for call in chain.calls]
    arguments = chain.calls[-1].arguments
    return names == ["collect", "each"] and bool(arguments) and arguments[0].value.type in CLOSURES


def _is_guard_clause(node: Node) -> bool:
    """Return whether an `if` statement returns from its function when its condition holds."""
    body = node.child_by_field_name("body")
    if body is None or node.child_by_field_name("alternative") is not None:
        return False
    inner = body.named_children if body.type == "compound_statement" else [body]
    return bool(inner) and inner[-1].type == "return_statement"


def _iter_declared_variables(node: Node) -> Iterator[Node]:
    """Yield the variables that a loop's header or a closure's parameters declare."""
    node = node.child_by_field_name("parameters") or node
    if node.type == "variable_name":
        yield node
        return
    for child in node.named_children:
        if child.type == "variable_name":
            yield child
        elif child.type in {"simple_parameter", "by_ref", "pair"}:
            yield from (c for c in child.named_children if c.type == "variable_name")


def _mark_asked_text(value: Any) -> Any:
    """Return `{"asked": text}` for a string with marks of settings; any other value unchanged."""
    return {"asked": value} if has_marks(value) else value


def _to_plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _to_json(value) for key, value in values.items()}


def _to_json(value: Any) -> Any:
    if isinstance(value, RawSql):
        return {"computed": True} if has_marks(value.sql) else {"raw": value.sql}
    if isinstance(value, Computed):
        return {"computed": True}
    if isinstance(value, list):
        return [
            _to_json(item) if isinstance(item, RawSql | Computed | str) else item for item in value
        ]
    return _mark_asked_text(value)
