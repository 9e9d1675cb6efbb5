"""The facts that a Python file states without reference to other files.

| kind | symbol | values |
|---|---|---|
| declares | the definition | role, public, decorators [expression] |
| imports | the enclosing definition | name, alias, level, member |
| extends | the class | name: reference |
| calls | the enclosing definition | name: reference; calls of builtins are left out |
| exports | "" | names: the names in `__all__`, if it is written out |
| assigns | the class; "" at top level | name, value: expression, adds: whether it is `+=`, under |
| invokes | "" | call: expression, under |
| written | the symbol of its statement | empty; marks an inner call on its own line |
| defines_setting | "" | name: a constant at top level; of: code |
| configured_by | the definition | key: KEY in `settings.KEY` |
| reads_env | the definition | key: KEY in `os.environ["KEY"]`, `os.getenv("KEY")`, `env("KEY")` |

References are described in `source`, expressions in `expressions`. If a class does not define the
method in `self.method()`, there is one `calls` fact for each base. `under` is the kind of the
compound statement around an assignment or call (`if`, `for`, `try` …), "" if absent. Only files
that mention a framework have the facts assigns, invokes and written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.expressions import (
    build_expression,
    dotted_name,
)
from rag_assets.systems.code_memory.languages.python.scopes import Scopes, nodes_inside
from rag_assets.systems.code_memory.languages.python.source import (
    DEFINITIONS,
    PythonDefinition,
    PythonImport,
    PythonSource,
)
from rag_assets.systems.code_memory.languages.python.units import list_units
from rag_assets.systems.code_memory.languages.tree import code_children
from rag_assets.systems.code_memory.symbols.model import CodeText

if TYPE_CHECKING:
    from tree_sitter import Node

_OWN = frozenset({"self", "cls"})


def _iter_name_facts(source: PythonSource, scopes: Scopes) -> Iterator[Fact]:
    """Yield the definitions, imports, bases and calls of a file, in no particular order."""
    yield from (_import_fact(source, imported, "") for imported in source.imports)
    symbols = frozenset(definition.symbol for definition in source.definitions)
    yield from _call_facts(source, scopes, None, _iter_top_level_nodes(source), symbols)
    for definition in source.definitions:
        values = _declaration_values(source, scopes, definition)
        yield Fact("declares", *_declaration_span(source, definition), definition.symbol, values)
        yield from (_import_fact(source, inner, definition.symbol) for inner in definition.imports)
        if definition.sort == "class":
            for parent in scopes.parents(definition):
                yield Fact(
                    "extends",
                    *_declaration_span(source, definition),
                    definition.symbol,
                    {"name": parent},
                )
        yield from _call_facts(source, scopes, definition, nodes_inside(definition), symbols)


def _declaration_span(source: PythonSource, definition: PythonDefinition) -> tuple[int, int]:
    return source.tree.start(definition.node), source.tree.end(definition.last)


def _import_fact(source: PythonSource, imported: PythonImport, symbol: str) -> Fact:
    values = {
        "name": imported.name,
        "alias": imported.alias,
        "level": imported.level,
        "member": imported.member,
    }
    return source.tree.fact("imports", imported.node, symbol, values)


def _declaration_values(
    source: PythonSource, scopes: Scopes, definition: PythonDefinition
) -> Mapping[str, Any]:
    decorators = [
        build_expression(
            source.tree,
            node.named_children[0] if node.named_children else None,
            lambda name: scopes.reference(name, definition.within),
        )
        for node in definition.decorators
    ]
    return {"role": definition.sort, "public": definition.public, "decorators": decorators}


def _call_facts(
    source: PythonSource,
    scopes: Scopes,
    definition: PythonDefinition | None,
    nodes: Iterator[Node],
    symbols: Collection[str],
) -> Iterator[Fact]:
    seen: set[str] = set()
    for node in nodes:
        called = scopes.called_reference(node, definition) if node.type == "call" else ""
        above = _inherited_methods(source, scopes, definition, node, symbols) if called else ()
        for name in (called, *above):
            if name and name not in seen:
                seen.add(name)
                symbol = "" if definition is None else definition.symbol
                yield source.tree.fact("calls", node, symbol, {"name": name})


def _inherited_methods(
    source: PythonSource,
    scopes: Scopes,
    definition: PythonDefinition | None,
    call: Node,
    symbols: Collection[str],
) -> Iterator[str]:
    """Yield the methods that `self.method()` may inherit; none if the class defines the method."""
    written = dotted_name(source.tree, call.child_by_field_name("function"))
    root, _, method = written.partition(".")
    around = definition
    while around is not None and around.sort != "class":
        around = around.within
    if around is None or root not in _OWN or not method or "." in method:
        return
    if f"{around.symbol}.{method}" not in symbols:
        yield from (f"{parent}.{method}" for parent in scopes.parents(around))


def _iter_top_level_nodes(source: PythonSource) -> Iterator[Node]:
    """Yield the nodes outside definitions."""
    todo = [source.tree.root]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(c for c in reversed(node.named_children) if c.type not in DEFINITIONS)


_MENTIONS_FRAMEWORK = re.compile(
    r"\b(?:django|rest_framework|celery|urlpatterns|app_name|as_view|queryset|http_method_names"
    r"|class Meta|models|migrations|db_table|ForeignKey|AppConfig"
    r"|INSTALLED_APPS|MIDDLEWARE|ROOT_URLCONF|AUTH_USER_MODEL)\b"
)


def _iter_framework_facts(source: PythonSource, scopes: Scopes) -> Iterator[Fact]:
    """Yield the assignments and calls of a file, if the file mentions a framework."""
    if not _MENTIONS_FRAMEWORK.search(source.text):
        return
    yield from _block_facts(source, scopes, None)
    for definition in source.definitions:
        if definition.sort == "class":
            yield from _block_facts(source, scopes, definition)


def _block_facts(
    source: PythonSource, scopes: Scopes, definition: PythonDefinition | None
) -> Iterator[Fact]:
    for statement, under in source.statements(None if definition is None else definition.body):
        if statement.type == "expression_statement" and statement.named_children:
            yield from _iter_statement_facts(
                source, scopes, definition, statement.named_children[0], under
            )


def _iter_statement_facts(
    source: PythonSource,
    scopes: Scopes,
    definition: PythonDefinition | None,
    node: Node,
    under: str,
) -> Iterator[Fact]:
    def reference(name: str) -> str:
        return scopes.reference(name, definition)

    symbol = "" if definition is None else definition.symbol
    if node.type == "call" and definition is None:
        value = build_expression(source.tree, node, reference)
        yield source.tree.fact("invokes", node, symbol, {"call": value, "under": under})
        yield from _iter_inner_calls(source, node, symbol)
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
    value = build_expression(source.tree, value_node, reference)
    adds = node.type == "augmented_assignment"
    for target in targets:
        name = dotted_name(source.tree, target)
        if name:
            values = {"name": name, "value": value, "adds": adds, "under": under}
            yield source.tree.fact("assigns", node, symbol, values)
    yield from _iter_inner_calls(source, node, symbol)


def _iter_inner_calls(source: PythonSource, statement: Node, symbol: str) -> Iterator[Fact]:
    """Yield a fact `written` for each call inside a statement that starts on a line of its own.

    Such calls are routes in a list of routes, or operations in a migration.
    """
    rows = {statement.start_point[0]}
    todo = [statement]
    while todo:
        node = todo.pop()
        if node.type == "call" and node.start_point[0] not in rows:
            rows.add(node.start_point[0])
            yield source.tree.fact("written", node, symbol, {})
        todo.extend(reversed(node.named_children))


_MOST_SETTINGS: Final = 500
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_MENTIONS_SETTINGS: Final = re.compile(r"\b(?:environ|getenv|env|config|settings)\b")
_MODULES: Final = ("settings", "config", "conf")
_GETS: Final = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault"})
_READERS: Final = frozenset({"env", "config"})
"""Conventional names of the functions that read settings in django-environ and decouple."""


def _iter_setting_facts(source: PythonSource, scopes: Scopes) -> Iterator[Fact]:
    """Yield facts for the settings that a file defines and for the settings that it reads."""
    yield from _iter_defined_settings(source)
    if not _MENTIONS_SETTINGS.search(source.text):
        return
    yield from _iter_used_settings(source, scopes, None, _iter_top_level_nodes(source))
    for definition in source.definitions:
        yield from _iter_used_settings(source, scopes, definition, nodes_inside(definition))


def _iter_defined_settings(source: PythonSource) -> Iterator[Fact]:
    seen: set[str] = set()
    for statement, _ in source.statements(None):
        node = next(iter(statement.named_children), None)
        if statement.type != "expression_statement" or node is None or node.type != "assignment":
            continue
        name = source.tree.field(node, "left")
        if _CONSTANT.fullmatch(name) and name not in seen and len(seen) < _MOST_SETTINGS:
            seen.add(name)
            yield source.tree.fact("defines_setting", node, "", {"name": name, "of": "code"})


def _iter_used_settings(
    source: PythonSource, scopes: Scopes, definition: PythonDefinition | None, nodes: Iterator[Node]
) -> Iterator[Fact]:
    symbol = "" if definition is None else definition.symbol
    seen: set[tuple[str, str]] = set()
    for node in nodes:
        setting_use = _read_setting_use(source, scopes, definition, node)
        if setting_use is not None and setting_use not in seen:
            seen.add(setting_use)
            yield source.tree.fact(setting_use[0], node, symbol, {"key": setting_use[1]})


def _read_setting_use(
    source: PythonSource, scopes: Scopes, definition: PythonDefinition | None, node: Node
) -> tuple[str, str] | None:
    if node.type == "attribute":
        owner, _, key = dotted_name(source.tree, node).rpartition(".")
        if (
            owner
            and _CONSTANT.fullmatch(key)
            and _are_settings(scopes.reference(owner, definition))
        ):
            return "configured_by", key
    elif node.type == "subscript":
        owner = dotted_name(source.tree, node.child_by_field_name("value"))
        if owner and scopes.reference(owner, definition) == "os.environ":
            return _read_variable_name(source, node.child_by_field_name("subscript"))
    elif node.type == "call":
        name = dotted_name(source.tree, node.child_by_field_name("function"))
        arguments = node.child_by_field_name("arguments")
        reads = name.partition(".")[0] in _READERS or scopes.reference(name, definition) in _GETS
        if name and reads and arguments is not None and arguments.named_children:
            return _read_variable_name(source, arguments.named_children[0])
    return None


def _are_settings(reference: str) -> bool:
    """Return whether a reference names a settings module, or Django's object `settings`."""
    name = reference.lstrip(".:")
    return reference == "django.conf.settings" or (
        (reference != name or "." in name) and name.rpartition(".")[2] in _MODULES
    )


def _read_variable_name(source: PythonSource, node: Node | None) -> tuple[str, str] | None:
    text = (
        source.tree.node_text(node).strip("\"'")
        if node is not None and node.type == "string"
        else ""
    )
    return ("reads_env", text) if _CONSTANT.fullmatch(text) else None


_ALL: Final = "__all__"
_LISTS: Final = frozenset({"list", "tuple", "expression_list"})
_PLAIN: Final = frozenset({"string_start", "string_content", "string_end", "escape_sequence"})
_MOST_EXPORTED: Final = 2_000


class _ComputedError(Exception):
    """The content of `__all__` is known only at run time."""


def _iter_export_facts(source: PythonSource) -> Iterator[Fact]:
    """Yield the fact `exports` if `__all__` limits what `from module import *` imports.

    If any part of `__all__` is computed, its content is unknown, and there is no fact.
    """
    if _ALL not in source.text:
        return
    names: dict[str, None] = {}
    first: Node | None = None
    try:
        for statement, under in source.statements():
            node = statement.named_children[0] if statement.named_children else None
            if statement.type == "delete_statement" and _ALL in source.tree.node_text(statement):
                return
            if statement.type != "expression_statement" or node is None:
                continue
            added = _find_added_names(source, node)
            if added is None:
                continue
            first = first or node
            if node.type == "assignment" and not under:
                names = {}
            names |= dict.fromkeys(added)
    except _ComputedError:
        return
    if first is not None and len(names) <= _MOST_EXPORTED:
        yield source.tree.fact("exports", first, "", {"names": [*names]})


def _find_added_names(source: PythonSource, node: Node) -> list[str] | None:
    """Return the names that a statement adds to `__all__`; None if it does not change `__all__`.

    Raises:
        _ComputedError: if the added names are known only at run time.
    """
    if node.type == "call":
        return _find_extended_names(source, node)
    if node.type not in {"assignment", "augmented_assignment"}:
        return None
    target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    named = source.tree.node_text(target)
    while value is not None and value.type == "assignment":
        named += " " + source.tree.field(value, "left")
        value = value.child_by_field_name("right")
    if _ALL not in named.split():
        if _ALL in named:  # Assignments such as `__all__[:] = …` or `__all__, other = …`
            raise _ComputedError
        return None
    if value is None:
        return None  # A mere annotation.
    operator = source.tree.field(node, "operator")
    if node.type == "augmented_assignment" and operator != "+=":
        raise _ComputedError
    return _names_in_list(source, value)


def _find_extended_names(source: PythonSource, node: Node) -> list[str] | None:
    """Return the names that `__all__.extend([…])` or `__all__.append("…")` adds; else None.

    Raises:
        _ComputedError: if a call changes `__all__` in any other way.
    """
    function = source.tree.field(node, "function")
    if function.partition(".")[0] != _ALL:
        return None
    arguments = node.child_by_field_name("arguments")
    values = [] if arguments is None else code_children(arguments)
    if len(values) != 1 or function not in {f"{_ALL}.extend", f"{_ALL}.append"}:
        raise _ComputedError
    if function == f"{_ALL}.append":
        return [_string_value(source, values[0])]
    return _names_in_list(source, values[0])


def _names_in_list(source: PythonSource, node: Node) -> list[str]:
    """Return the strings in a list literal, or in a sum of list literals."""
    names: list[str] = []
    todo = [node]
    while todo:
        at = todo.pop()
        parts = code_children(at)
        if at.type in _LISTS:
            names += [_string_value(source, part) for part in parts]
        elif at.type == "parenthesized_expression" or _is_sum(source, at):
            todo += reversed(parts)
        else:
            raise _ComputedError
    return names


def _is_sum(source: PythonSource, node: Node) -> bool:
    operator = node.child_by_field_name("operator")
    return node.type == "binary_operator" and source.tree.node_text(operator) == "+"


def _string_value(source: PythonSource, node: Node) -> str:
    if node.type not in {"string", "concatenated_string"}:
        raise _ComputedError
    parts = [node] if node.type == "string" else node.named_children
    tokens = [token for part in parts if part.type == "string" for token in part.named_children]
    if any(token.type not in _PLAIN for token in tokens):
        raise _ComputedError
    return "".join(
        source.tree.node_text(token) for token in tokens if token.type == "string_content"
    )


def read(text: str) -> CodeText:
    """Return the units and facts of a Python file."""
    source = PythonSource(text)
    scopes = Scopes(source)
    notes = ("parts of the file could not be parsed as Python",) if source.tree.has_errors else ()
    facts = [
        *_iter_name_facts(source, scopes),
        *_iter_framework_facts(source, scopes),
        *_iter_setting_facts(source, scopes),
        *_iter_export_facts(source),
    ]
    facts.sort(key=lambda fact: (fact.start, fact.end))
    return CodeText(list_units(source), tuple(facts), notes)
