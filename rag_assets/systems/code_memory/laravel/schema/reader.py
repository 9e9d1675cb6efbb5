"""Statements on tables in a migration: what `up()` does, read without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import SyntaxTree
from rag_assets.systems.code_memory.laravel.schema.blueprint import Attributes, Blueprint
from rag_assets.systems.code_memory.laravel.schema.conditions import (
    BRANCHES,
    Context,
    Step,
    as_json,
    guards_of,
    is_early_return,
    loop_steps,
    loop_variables,
    negate,
)
from rag_assets.systems.code_memory.laravel.schema.expressions import (
    COMPUTED,
    Call,
    Chain,
    Closure,
    Computed,
    Expression,
    PhpClass,
    PhpReader,
    php_classes,
)
from rag_assets.systems.code_memory.laravel.schema.sql import statements_of
from rag_assets.systems.code_memory.laravel.settings import has_marks
from rag_assets.systems.code_memory.symbols.model import Unit

if TYPE_CHECKING:
    from tree_sitter import Node

_NAMES: Final = (
    "addColumn", "after", "bigIncrements", "bigInteger", "binary", "boolean",
    "cascadeOnDelete", "cascadeOnUpdate", "char", "comment", "computed", "connection",
    "constrained", "create", "date", "dateTime", "datetimes", "dateTimeTz", "decimal",
    "double", "drop", "dropColumn", "dropColumns", "dropConstrainedForeignId",
    "dropConstrainedForeignIdFor", "dropForeign", "dropFullText", "dropIfExists",
    "dropIndex", "dropMorphs", "dropPrimary", "dropRememberToken", "dropSoftDeletes",
    "dropSoftDeletesTz", "dropSpatialIndex", "dropTimestamps", "dropTimestampsTz",
    "dropUnique", "each", "enum", "float", "foreign", "foreignId", "foreignIdFor",
    "foreignUlid", "foreignUuid", "fullText", "geography", "geometry", "geometryCollection",
    "id", "increments", "index", "integer", "integerIncrements", "ipAddress", "json",
    "jsonb", "lineString", "longText", "macAddress", "mediumIncrements", "mediumInteger",
    "mediumText", "morphs", "multiLineString", "multiPoint", "multiPolygon",
    "multiPolygonZ", "noActionOnDelete", "noActionOnUpdate", "nullableMorphs",
    "nullableNumericMorphs", "nullableTimestamps", "nullableUlidMorphs",
    "nullableUuidMorphs", "nullOnDelete", "nullOnUpdate", "numericMorphs", "point",
    "polygon", "primary", "rawIndex", "rememberToken", "removeColumn", "rename",
    "renameColumn", "renameIndex", "restrictOnDelete", "restrictOnUpdate", "set",
    "smallIncrements", "smallInteger", "softDeletes", "softDeletesDatetime",
    "softDeletesTz", "spatialIndex", "statement", "string", "table", "text", "time",
    "timestamp", "timestamps", "timestampsTz", "timestampTz", "timeTz", "tinyIncrements",
    "tinyInteger", "tinyText", "ulid", "ulidMorphs", "unique", "unprepared",
    "unsignedBigInteger", "unsignedDecimal", "unsignedDouble", "unsignedFloat",
    "unsignedInteger", "unsignedMediumInteger", "unsignedSmallInteger",
    "unsignedTinyInteger", "uuid", "uuidMorphs", "vector", "year",
)  # fmt: skip
_LATER: Final = frozenset(
    {"constrained", "create", "table", "rename", "drop", "dropIfExists", "dropColumns", "each"}
    | {name for name in _NAMES if name.endswith(("OnDelete", "OnUpdate"))}
    | {"statement", "unprepared"}
)
"""Methods that may also be called on the result of an earlier call in a chain."""

_WRITTEN: Final[Mapping[str, str]] = {name.lower(): name for name in _NAMES}


def canonical(chain: Chain) -> Chain:
    """Return a chain with method names in Laravel's spelling."""
    calls = []
    for position, call in enumerate(chain.calls):
        name = _WRITTEN.get(call.name.lower(), call.name)
        method = position == 0 or name in _LATER
        calls.append(replace(call, name=name) if method else call)
    return replace(chain, calls=tuple(calls))


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
_MOST_STATEMENTS: Final = 5000
_DEEPEST_CALL: Final = 8


def schema_facts(tree: SyntaxTree) -> tuple[Fact, ...]:
    """Return one fact of the kind `schema` for each statement on a table in `up()`.

    Values of a fact:
        action: create, alter, rename or drop; raw for SQL that was not understood.
        table: its name; None if it is computed. to: the new name of a renamed table.
        columns: added or changed (`change`) columns, with Laravel's attributes (`name`, `type`,
            `nullable`, `default` ...); {"raw": sql} is an expression, {"computed": true} unknown.
        commands: indexes, foreign keys, drops and renames, with the same kind of values.
        if_exists: whether a missing table is no error. connection: if one is named.
        guards: conditions under which it runs (see Guard); how: call, or sql.
        order: its position among the statements as they run.
        unread: values that were computed or are not Laravel's.
    """
    reader = PhpReader(tree)
    facts: list[Fact] = []
    for made in php_classes(reader):
        if "up" in made.methods:
            facts += _Run(reader, made).facts()
    return tuple(sorted(facts, key=lambda fact: (fact.start, fact.values["order"])))


def schema_units(facts: tuple[Fact, ...]) -> tuple[Unit, ...]:
    """Return the spans of statements on tables, each once, with the tables they name.

    Args:
        facts: the facts of one file; facts of other kinds are skipped.
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


class _Run:
    """Walks through `up()` of one class with a list of steps, so that any nesting depth works."""

    def __init__(self, reader: PhpReader, made: PhpClass) -> None:
        self._reader = reader
        self._tree = reader.tree
        self._class = made
        self._facts: list[Fact] = []
        self._todo: list[Step] = []
        self._left = _MOST_STATEMENTS

    def facts(self) -> list[Fact]:
        """Return the statements in the order in which they run."""
        scope = self._class.scope("up")
        self._push_block(self._class.methods["up"], Context(scope))
        while self._todo and self._left > 0:
            step = self._todo.pop()
            step.context.scope.variables.update(step.bind)
            if step.ends is not None:
                self._end(*step.ends)
            elif step.after is not None:
                step.after.after(None)
            elif step.node is not None:
                self._left -= 1
                self._step(step)
        return self._facts

    def _push(self, nodes: Sequence[Node], context: Context, *then: Step) -> None:
        self._todo.extend(reversed([*(Step(node, context) for node in nodes), *then]))

    def _push_block(self, node: Node | None, context: Context) -> None:
        if node is not None:
            self._todo.append(Step(node, context))

    def _block(self, node: Node, first: int, context: Context) -> None:
        """Add the statements of a body as steps, starting with a given statement.

        Statements after `if (..) return;` run if the condition does not hold. That condition can be
        read only after all statements before it have run.
        """
        for index, child in enumerate(node.named_children[first:], first):
            if child.type == "if_statement" and is_early_return(child):
                follows = Step(node, context, first=index + 1, unless=child)
                self._push(node.named_children[first : index + 1], context, follows)
                return
        self._push(node.named_children[first:], context)

    def _step(self, step: Step) -> None:
        node, context = step.node, step.context
        if node is None:
            return
        if step.unless is not None:
            condition = step.unless.child_by_field_name("condition")
            found = negate(guards_of(self._reader, condition, context.scope))
            context = replace(context, guards=(*context.guards, *found))
        branches = BRANCHES.get(node.type)
        if branches is not None:
            self._todo.extend(reversed(branches(self._reader, node, context)))
        elif node.type in {"compound_statement", "colon_block"}:
            self._block(node, step.first, context)
        elif node.type in {"expression_statement", "return_statement", "parenthesized_expression"}:
            self._push(node.named_children[:1], context)
        elif node.type == "assignment_expression":
            self._assign(node, context)
        elif node.type.endswith("call_expression"):
            self._call(node, context)
        elif node.type.endswith(("_statement", "_clause", "_block")):
            self._push(node.named_children, context)

    def _assign(self, node: Node, context: Context) -> None:
        left, right = (node.child_by_field_name(name) for name in ("left", "right"))
        if left is None or right is None:
            return
        name = self._tree.of(left).lstrip("$")
        context.scope.variables[name] = self._reader.value(right, context.scope)
        if right.type.endswith("call_expression"):
            self._call(right, context)

    def _call(self, node: Node, context: Context) -> None:
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
        """Return whether the chain is `collect([..])->each(function (..) {..})`."""
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

    def _each(self, chain: Chain, context: Context) -> None:
        function = self._reader.function(chain.base)
        closure = chain.calls[-1].arguments[0]
        body, listed = (closure.child_by_field_name(name) for name in ("body", "parameters"))
        if function is None or body is None:
            return
        over = self._reader.value(function.arguments[0], context.scope)
        names = (
            [] if listed is None else [self._tree.of(n).lstrip("$") for n in loop_variables(listed)]
        )
        # A loop lists the key before the value, a closure the value before the key.
        steps = loop_steps(body, over, [*reversed(names[:2])] or [""], context)
        self._todo.extend(reversed(steps))

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

    def _on_schema(self, chain: Chain, context: Context) -> None:
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
        self._todo.append(Step(None, context, ends=(blueprint, fact)))
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

    def _on_table(self, chain: Chain, blueprint: Blueprint, context: Context) -> None:
        first, *modifiers = chain.calls
        before = len(blueprint.columns), len(blueprint.commands)
        closure = next((node for node in first.arguments if node.type in _CLOSURES), None)
        if first.name == "after" and closure is not None:
            blueprint.after(self._argument(first, 0, "column", context))
            self._todo.append(Step(None, context, after=blueprint))
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

    def _raw(self, call: Call, context: Context) -> None:
        sql = self._argument(call, 0, "query", context)
        text = sql.sql if isinstance(sql, Expression) else sql
        if not isinstance(text, str) or has_marks(text):
            fact = self._fact(call.node, COMPUTED, {"action": "raw", "how": "sql"}, context)
            self._add(fact, {**fact.values, "columns": [], "commands": []})
            return
        for statement in statements_of(text):
            fact = self._fact(call.node, statement.values["table"], {}, context)
            self._add(fact, {**fact.values, **statement.values})

    def _fact(self, node: Node, table: Any, values: Mapping[str, Any], context: Context) -> Fact:
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

    def _enter(self, call: Call, context: Context) -> None:
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

    def _enter_closure(self, node: Node, context: Context, blueprint: Blueprint) -> None:
        parameters = node.child_by_field_name("parameters")
        first = next(loop_variables(parameters), None) if parameters is not None else None
        name = self._tree.of(first).lstrip("$") if first is not None else ""
        tables = {**context.tables, name: blueprint}
        self._push_block(node.child_by_field_name("body"), replace(context, tables=tables))

    def _enter_closures(self, nodes: list[Node], context: Context) -> None:
        for node in reversed(nodes):
            if node.type in _CLOSURES:
                self._push_block(node.child_by_field_name("body"), context)

    def _given(self, call: Call, context: Context) -> tuple[list[Any], dict[str, Any]]:
        positional = [self._reader.value(node, context.scope) for node in call.arguments]
        named = {name: self._reader.value(node, context.scope) for name, node in call.named.items()}
        return positional, named

    def _argument(self, call: Call, position: int, name: str, context: Context) -> Any:
        if position < len(call.arguments):
            return self._reader.value(call.arguments[position], context.scope)
        return self._reader.value(call.named.get(name), context.scope)


def _arguments(node: Node) -> Iterator[Node]:
    arguments = node.child_by_field_name("arguments")
    for argument in arguments.named_children if arguments is not None else ():
        if argument.named_children:
            yield argument.named_children[-1]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as JSON values."""
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
