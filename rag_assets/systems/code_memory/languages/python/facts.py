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
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.expressions import (
    build_expression,
    get_dotted_name,
)
from rag_assets.systems.code_memory.languages.python.scopes import Scopes, iter_nodes_inside
from rag_assets.systems.code_memory.languages.python.source import (
    DEFINITIONS,
    PythonDefinition,
    PythonImport,
    PythonSource,
)
from rag_assets.systems.code_memory.languages.python.units import list_units
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    get_first_child,
    list_code_children,
    list_field_children,
)
from rag_assets.systems.code_memory.symbols.model import CodeText, sort_facts

_OWN_RECEIVERS = frozenset({"self", "cls"})
_MENTIONS_FRAMEWORK = re.compile(
    r"\b(?:django|rest_framework|celery|urlpatterns|app_name|as_view|queryset|http_method_names"
    r"|class Meta|models|migrations|db_table|ForeignKey|AppConfig"
    r"|INSTALLED_APPS|MIDDLEWARE|ROOT_URLCONF|AUTH_USER_MODEL)\b"
)
_MAX_SETTINGS: Final = 500
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_MENTIONS_SETTINGS: Final = re.compile(r"\b(?:environ|getenv|env|config|settings)\b")
_MODULES: Final = ("settings", "config", "conf")
_READING_CALLS: Final = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault"})
_READERS: Final = frozenset({"env", "config"})
"""Conventional names of the functions that read settings in django-environ and decouple."""

_Around: TypeAlias = PythonDefinition | None
"""The definition around some code; None at top level."""


class _FactReader:
    """A reader of the names, statements and settings of one Python file."""

    def __init__(self, source: PythonSource) -> None:
        self._source, self._tree, self._scopes = source, source.tree, Scopes(source)
        self._symbols = frozenset(definition.symbol for definition in source.definitions)

    def iter_facts(self) -> Iterator[Fact]:
        """Yield the facts of a file, in no particular order."""
        yield from self._iter_name_facts()
        if _MENTIONS_FRAMEWORK.search(self._source.text):
            classes = (
                definition for definition in self._source.definitions if definition.sort == "class"
            )
            for around in (None, *classes):
                yield from self._iter_statement_facts(around)
        yield from self._iter_defined_settings()
        if _MENTIONS_SETTINGS.search(self._source.text):
            for around in (None, *self._source.definitions):
                yield from self._iter_used_settings(around)

    def _iter_nodes(self, around: _Around) -> Iterator[Node]:
        return _iter_top_level_nodes(self._source) if around is None else iter_nodes_inside(around)

    def _iter_name_facts(self) -> Iterator[Fact]:
        yield from (self._build_import_fact(imported, "") for imported in self._source.imports)
        yield from self._iter_call_facts(None)
        for definition in self._source.definitions:
            symbol = definition.symbol
            span = self._tree.start(definition.node), self._tree.end(definition.last)
            decorators = [
                self._build_expression(get_first_child(node), definition.within)
                for node in definition.decorators
            ]
            values = {"role": definition.sort, "public": definition.public}
            yield Fact("declares", *span, symbol, {**values, "decorators": decorators})
            yield from (self._build_import_fact(inner, symbol) for inner in definition.imports)
            if definition.sort == "class":
                for parent in self._scopes.iter_base_references(definition):
                    yield Fact("extends", *span, symbol, {"name": parent})
            yield from self._iter_call_facts(definition)

    def _build_import_fact(self, imported: PythonImport, symbol: str) -> Fact:
        names = "name", "alias", "level", "member"
        values = {name: getattr(imported, name) for name in names}
        return self._tree.build_fact("imports", imported.node, symbol, values)

    def _build_expression(self, node: Node | None, around: _Around) -> Any:
        return build_expression(self._tree, node, lambda n: self._scopes.find_reference(n, around))

    def _iter_call_facts(self, around: _Around) -> Iterator[Fact]:
        seen: set[str] = set()
        for node in self._iter_nodes(around):
            called = self._scopes.find_called_reference(node, around) if node.type == "call" else ""
            above = self._iter_inherited_methods(around, node) if called else ()
            for name in (called, *above):
                if name and name not in seen:
                    seen.add(name)
                    symbol = "" if around is None else around.symbol
                    yield self._tree.build_fact("calls", node, symbol, {"name": name})

    def _iter_inherited_methods(self, around: _Around, call: Node) -> Iterator[str]:
        """Yield inherited methods that `self.method()` may call; none if the class defines it."""
        written_name = get_dotted_name(self._tree, call.child_by_field_name("function"))
        root, _, method = written_name.partition(".")
        while around is not None and around.sort != "class":
            around = around.within
        if around is None or root not in _OWN_RECEIVERS or not method or "." in method:
            return
        if f"{around.symbol}.{method}" not in self._symbols:
            yield from (
                f"{parent}.{method}" for parent in self._scopes.iter_base_references(around)
            )

    def _iter_statement_facts(self, around: _Around) -> Iterator[Fact]:
        symbol = "" if around is None else around.symbol
        for statement, under in self._source.iter_statements(
            None if around is None else around.body
        ):
            node = get_first_child(statement)
            if statement.type != "expression_statement" or node is None:
                continue
            if node.type == "call" and around is None:
                values = {"call": self._build_expression(node, around), "under": under}
                yield self._tree.build_fact("invokes", node, symbol, values)
                yield from self._iter_inner_calls(node, symbol)
            targets, value = [], node.child_by_field_name("right")
            is_assigned = node.type in {"assignment", "augmented_assignment"}
            at: Node | None = node
            while at is not None and is_assigned:
                targets.append(at.child_by_field_name("left"))
                value = at.child_by_field_name("right")
                at = value if value is not None and value.type == "assignment" else None
            if value is None or not is_assigned:
                continue
            values = {"value": self._build_expression(value, around)}
            values |= {"adds": node.type == "augmented_assignment", "under": under}
            for name in filter(None, (get_dotted_name(self._tree, target) for target in targets)):
                yield self._tree.build_fact("assigns", node, symbol, {"name": name, **values})
            yield from self._iter_inner_calls(node, symbol)

    def _iter_inner_calls(self, statement: Node, symbol: str) -> Iterator[Fact]:
        """Yield a fact `written` for each call inside a statement that starts on its own line.

        Such calls are routes in a list of routes, or operations in a migration.
        """
        rows = {statement.start_point[0]}
        pending = [statement]
        while pending:
            node = pending.pop()
            if node.type == "call" and node.start_point[0] not in rows:
                rows.add(node.start_point[0])
                yield self._tree.build_fact("written", node, symbol, {})
            pending.extend(reversed(node.named_children))

    def _iter_defined_settings(self) -> Iterator[Fact]:
        seen: set[str] = set()
        for statement, _ in self._source.iter_statements(None):
            node = get_first_child(statement)
            if statement.type == "expression_statement" and node and node.type == "assignment":
                name = self._tree.get_field_text(node, "left")
                if _CONSTANT.fullmatch(name) and name not in seen and len(seen) < _MAX_SETTINGS:
                    seen.add(name)
                    values = {"name": name, "of": "code"}
                    yield self._tree.build_fact("defines_setting", node, "", values)

    def _iter_used_settings(self, around: _Around) -> Iterator[Fact]:
        seen: set[tuple[str, str]] = set()
        for node in self._iter_nodes(around):
            use = self._read_setting_use(node, around)
            if use is not None and use not in seen:
                seen.add(use)
                symbol = "" if around is None else around.symbol
                yield self._tree.build_fact(use[0], node, symbol, {"key": use[1]})

    def _read_setting_use(self, node: Node, around: _Around) -> tuple[str, str] | None:
        """Return the kind of fact and the key that a node reads: a setting or a variable."""
        key_node: Node | None = None
        if node.type == "attribute":
            owner, _, key = get_dotted_name(self._tree, node).rpartition(".")
            is_setting = owner and _CONSTANT.fullmatch(key)
            if is_setting and _are_settings(self._scopes.find_reference(owner, around)):
                return "configured_by", key
        elif node.type == "subscript":
            owner = get_dotted_name(self._tree, node.child_by_field_name("value"))
            if owner and self._scopes.find_reference(owner, around) == "os.environ":
                key_node = node.child_by_field_name("subscript")
        elif node.type == "call":
            name = get_dotted_name(self._tree, node.child_by_field_name("function"))
            is_conventional = name.partition(".")[0] in _READERS
            if name and (
                is_conventional or self._scopes.find_reference(name, around) in _READING_CALLS
            ):
                key_node = next(iter(list_field_children(node, "arguments")), None)
        is_text = key_node is not None and key_node.type == "string"
        text = self._tree.get_node_text(key_node).strip("\"'") if is_text else ""
        return ("reads_env", text) if _CONSTANT.fullmatch(text) else None


def _iter_top_level_nodes(source: PythonSource) -> Iterator[Node]:
    pending = [source.tree.root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(c for c in reversed(node.named_children) if c.type not in DEFINITIONS)


def _are_settings(reference: str) -> bool:
    """Return whether a reference names a settings module, or Django's object `settings`."""
    name = reference.lstrip(".:")
    return reference == "django.conf.settings" or (
        (reference != name or "." in name) and name.rpartition(".")[2] in _MODULES
    )


_ALL: Final = "__all__"
_LISTS: Final = frozenset({"list", "tuple", "expression_list"})
_PLAIN_STRING_PARTS: Final = frozenset(
    {"string_start", "string_content", "string_end", "escape_sequence"}
)
_MAX_EXPORTED: Final = 2_000


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
        for statement, under in source.iter_statements():
            node = get_first_child(statement)
            if statement.type == "delete_statement" and _ALL in source.tree.get_node_text(
                statement
            ):
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
    if first is not None and len(names) <= _MAX_EXPORTED:
        yield source.tree.build_fact("exports", first, "", {"names": [*names]})


def _find_added_names(source: PythonSource, node: Node) -> list[str] | None:
    """Return the names that a statement adds to `__all__`; None if it does not change `__all__`.

    Raises:
        _ComputedError: if the added names are known only at run time.
    """
    if node.type == "call":
        return _find_extended_names(source, node)
    if node.type not in {"assignment", "augmented_assignment"}:
        return None
    target_name, value = source.tree.get_field_text(node, "left"), node.child_by_field_name("right")
    while value is not None and value.type == "assignment":
        target_name += " " + source.tree.get_field_text(value, "left")
        value = value.child_by_field_name("right")
    if _ALL not in target_name or (value is None and _ALL in target_name.split()):
        return None  # A mere annotation adds no names.
    is_other = _ALL not in target_name.split()  # `__all__[:] = …` or `__all__, other = …`
    operator = source.tree.get_field_text(node, "operator")
    if value is None or is_other or (node.type != "assignment" and operator != "+="):
        raise _ComputedError
    return _read_names_in_list(source, value)


def _find_extended_names(source: PythonSource, node: Node) -> list[str] | None:
    """Return the names that `__all__.extend([…])` or `__all__.append("…")` adds; else None.

    Raises:
        _ComputedError: if a call changes `__all__` in any other way.
    """
    owner, _, method = source.tree.get_field_text(node, "function").partition(".")
    if owner != _ALL:
        return None
    arguments = node.child_by_field_name("arguments")
    values = [] if arguments is None else list_code_children(arguments)
    if len(values) != 1 or method not in {"extend", "append"}:
        raise _ComputedError
    is_one = method == "append"
    return (
        [_get_string_value(source, values[0])] if is_one else _read_names_in_list(source, values[0])
    )


def _read_names_in_list(source: PythonSource, node: Node) -> list[str]:
    names: list[str] = []
    pending = [node]
    while pending:
        at = pending.pop()
        parts = list_code_children(at)
        is_sum = at.type == "binary_operator" and source.tree.get_field_text(at, "operator") == "+"
        if at.type in _LISTS:
            names += [_get_string_value(source, part) for part in parts]
        elif is_sum or at.type == "parenthesized_expression":
            pending += reversed(parts)
        else:
            raise _ComputedError
    return names


def _get_string_value(source: PythonSource, node: Node) -> str:
    parts = node.named_children if node.type == "concatenated_string" else [node]
    strings = [part for part in parts if part.type == "string"]
    tokens = [token for string in strings for token in string.named_children]
    is_string = node.type in {"string", "concatenated_string"}
    if not is_string or any(token.type not in _PLAIN_STRING_PARTS for token in tokens):
        raise _ComputedError
    contents = (token for token in tokens if token.type == "string_content")
    return "".join(map(source.tree.get_node_text, contents))


def read(text: str) -> CodeText:
    """Return the units and facts of a Python file."""
    source = PythonSource(text)
    notes = ("parts of the file could not be parsed as Python",) if source.tree.has_errors else ()
    facts = sort_facts([*_FactReader(source).iter_facts(), *_iter_export_facts(source)])
    return CodeText(list_units(source), facts, notes)
