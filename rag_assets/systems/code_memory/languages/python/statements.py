"""Assignments and calls at top level and in classes, for frameworks.

| kind | symbol | values |
|---|---|---|
| assigns | the class; "" at top level | name, value: expression, adds: whether it is `+=`, under |
| invokes | "" | call: expression, under |
| written | as for its statement | empty; an inner call that starts on a line of its own |

`under` is the compound statement around it (`if`, `for`, `try` …), "" if absent. Only files
that mention a framework have these facts: in other files they would be many and useless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.expressions import dotted_name, expression_of
from rag_assets.systems.code_memory.languages.python.facts import fact
from rag_assets.systems.code_memory.languages.python.scopes import Scopes
from rag_assets.systems.code_memory.languages.python.source import Definition, PythonSource

if TYPE_CHECKING:
    from tree_sitter import Node

_SPEAKS = re.compile(
    r"\b(?:django|rest_framework|celery|urlpatterns|app_name|as_view|queryset|http_method_names"
    r"|class Meta|models|migrations|db_table|ForeignKey|AppConfig"
    r"|INSTALLED_APPS|MIDDLEWARE|ROOT_URLCONF|AUTH_USER_MODEL)\b"
)


def statements_of(source: PythonSource, scopes: Scopes) -> Iterator[Fact]:
    """Yield the assignments and calls of a file, if the file mentions a framework."""
    if not _SPEAKS.search(source.text):
        return
    yield from _of_block(source, scopes, None)
    for one in source.definitions:
        if one.sort == "class":
            yield from _of_block(source, scopes, one)


def _of_block(source: PythonSource, scopes: Scopes, one: Definition | None) -> Iterator[Fact]:
    for statement, under in source.statements(None if one is None else one.body):
        if statement.type == "expression_statement" and statement.named_children:
            yield from _of_statement(source, scopes, one, statement.named_children[0], under)


def _of_statement(
    source: PythonSource, scopes: Scopes, one: Definition | None, node: Node, under: str
) -> Iterator[Fact]:
    def reference(name: str) -> str:
        return scopes.reference(name, one)

    symbol = "" if one is None else one.symbol
    if node.type == "call" and one is None:
        value = expression_of(source.tree, node, reference)
        yield fact(source, "invokes", node, symbol, {"call": value, "under": under})
        yield from _written(source, node, symbol)
    value_node = node.child_by_field_name("right")
    if node.type not in {"assignment", "augmented_assignment"} or value_node is None:
        return
    targets = [node.child_by_field_name("left")]
    while value_node.type == "assignment":
        targets.append(value_node.child_by_field_name("left"))
        right = value_node.child_by_field_name("right")
        if right is None:
            return
        value_node = right
    value = expression_of(source.tree, value_node, reference)
    adds = node.type == "augmented_assignment"
    for target in targets:
        name = dotted_name(source.tree, target)
        if name:
            values = {"name": name, "value": value, "adds": adds, "under": under}
            yield fact(source, "assigns", node, symbol, values)
    yield from _written(source, node, symbol)


def _written(source: PythonSource, statement: Node, symbol: str) -> Iterator[Fact]:
    """Yield the position of each call within a statement: a route, or a change of a table."""
    rows = {statement.start_point[0]}
    todo = [statement]
    while todo:
        node = todo.pop()
        if node.type == "call" and node.start_point[0] not in rows:
            rows.add(node.start_point[0])
            yield fact(source, "written", node, symbol, {})
        todo.extend(reversed(node.named_children))
