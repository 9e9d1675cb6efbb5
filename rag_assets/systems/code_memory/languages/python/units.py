"""Units of a Python file: class heads, methods, relations, functions, settings and migrations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rag_assets.systems.code_memory.languages.python.expressions import get_dotted_name
from rag_assets.systems.code_memory.languages.python.source import PythonDefinition, PythonSource
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    add_rest_units,
    find_end_with_comment,
    find_first_comment,
    get_first_child,
    is_comment,
    iter_descendants,
    list_code_children,
    list_field_children,
)
from rag_assets.systems.code_memory.symbols.model import Role, Unit

MAX_WHOLE_CLASS_CHARACTERS = 2_500
"""Maximum characters of a class that is kept whole, unless its framework requires a split."""

_VIEWS = re.compile(r"(?:View|ViewSet|Viewset|APIView)$")
_RELATIONS = re.compile(
    r"(?:^|\.)(?:\w*ForeignKey|\w*OneToOneField|\w*ManyToManyField|ParentalKey|GenericRelation)$"
)
_OPERATIONS = re.compile(
    r"^(?:migrations\.)?(?:(?:Create|Delete|Rename)Model|(?:Add|Alter|Remove|Rename)Field"
    r"|AlterModelTable|(?:Add|Remove|Rename)Index|(?:Add|Remove)Constraint|RunSQL"
    r"|SeparateDatabaseAndState|Alter(?:Unique|Index)Together)$"
)
_SETTINGS = frozenset({"INSTALLED_APPS", "MIDDLEWARE", "ROOT_URLCONF", "DATABASES", "SECRET_KEY"})
_MAX_LEVELS = 3
_FEW_STATEMENTS = 3


@dataclass(frozen=True, slots=True)
class _ClassPart:
    """A part of a class that is one unit, or a `nested` class with several units."""

    node: Node
    role: Role
    symbol: str
    alone: bool
    nested: PythonDefinition | None = None


def list_units(source: PythonSource) -> tuple[Unit, ...]:
    """Return the units of a file; together they cover the file."""
    units: list[Unit] = []
    for definition in source.outermost:
        units += _iter_definition_units(source, definition, 0)
    units += _iter_statement_units(source)
    return add_rest_units(source.text, _drop_nested_units(units))


def _iter_definition_units(
    source: PythonSource, definition: PythonDefinition, level: int
) -> Iterator[Unit]:
    is_class = definition.sort == "class"
    parts = list(_iter_class_parts(source, definition)) if is_class and level < _MAX_LEVELS else []
    if parts:
        yield from _split_class(source, definition, parts, level)
        return
    node, alone = definition.whole, is_class or definition.public
    role_and_symbol = definition.sort, definition.symbol
    yield _build_unit(source, node, *role_and_symbol, alone=alone, has_signature=definition.node)


def _split_class(
    source: PythonSource, definition: PythonDefinition, parts: list[_ClassPart], level: int
) -> Iterator[Unit]:
    """Yield the units of a class: its head, its parts, and the text between the parts."""
    tree, at = source.tree, source.tree.start(find_first_comment(definition.whole))
    end = find_end_with_comment(tree, definition.whole)
    cuts = _list_statement_ends(source, definition.node)
    is_head = True
    for part in (*parts, None):
        start = end if part is None else tree.start(find_first_comment(part.node))
        if start < at:
            continue
        span = source.text[at:start]
        if span.strip():
            begin, stop = at + len(span) - len(span.lstrip()), at + len(span.rstrip())
            role: Role = "class" if is_head else "rest"
            signature = _read_signature(source, definition.node) if is_head else ""
            inner = tuple(cut for cut in cuts if begin < cut <= stop)
            yield Unit(begin, stop, role, definition.symbol, signature, is_head, inner)
        is_head = False
        if part is not None:
            yield from _iter_units_of_part(source, part, level)
            at = find_end_with_comment(tree, part.node)


def _iter_units_of_part(source: PythonSource, part: _ClassPart, level: int) -> Iterator[Unit]:
    if part.nested is not None:
        yield from _iter_definition_units(source, part.nested, level + 1)
        return
    signed = part.node if part.role == "method" else None
    yield _build_unit(
        source, part.node, part.role, part.symbol, alone=part.alone, has_signature=signed
    )


def _iter_class_parts(source: PythonSource, definition: PythonDefinition) -> Iterator[_ClassPart]:
    """Yield the members of a class that become separate units, in order."""
    by_node = {member.node.id: member for member in definition.members}
    small = _is_small(source, definition)
    for statement, _ in source.iter_statements(definition.body):
        relation = _find_relation(source, definition, statement)
        if relation is not None:
            yield relation
        elif operations := [*_iter_migration_operations(source, definition, statement)]:
            yield from operations
        elif not small:
            node = statement.child_by_field_name("definition") or statement
            member = by_node.get(node.id)
            if member is not None and member.sort == "method":
                yield _ClassPart(member.whole, "method", member.symbol, member.public)
            elif member is not None and member.members:
                yield _ClassPart(member.whole, "class", member.symbol, True, member)


def _is_small(source: PythonSource, definition: PythonDefinition) -> bool:
    if definition.node.end_byte - definition.node.start_byte > MAX_WHOLE_CLASS_CHARACTERS:
        return False
    bases = list_field_children(definition.node, "superclasses")
    names = [
        definition.name,
        *(source.tree.get_node_text(base) for base in bases if base.type != "call"),
    ]
    return not any(_VIEWS.search(name) for name in names)


def _find_relation(
    source: PythonSource, definition: PythonDefinition, statement: Node
) -> _ClassPart | None:
    """Return the part for a field that relates a model to another; None for other statements."""
    node = get_first_child(statement)
    if node is None or node.type != "assignment":
        return None
    value = node.child_by_field_name("right")
    if value is None or value.type != "call":
        return None
    called = get_dotted_name(source.tree, value.child_by_field_name("function"))
    name = source.tree.get_field_text(node, "left")
    if not _RELATIONS.search(called) or not name.isidentifier():
        return None
    return _ClassPart(statement, "relation", f"{definition.symbol}.{name}", True)


def _iter_migration_operations(
    source: PythonSource, definition: PythonDefinition, statement: Node
) -> Iterator[_ClassPart]:
    """Yield the table operations of a Django migration; each symbol is the name of a model."""
    node = get_first_child(statement)
    if definition.name != "Migration" or node is None or node.type != "assignment":
        return
    value = node.child_by_field_name("right")
    is_list = value is not None and value.type == "list"
    if source.tree.get_field_text(node, "left") != "operations":
        return
    for item in value.named_children if value is not None and is_list else []:
        called = get_dotted_name(source.tree, item.child_by_field_name("function"))
        if item.type == "call" and _OPERATIONS.match(called):
            yield _ClassPart(item, "schema", _get_model_name(source, item), True)


def _get_model_name(source: PythonSource, call: Node) -> str:
    arguments_node = call.child_by_field_name("arguments")
    arguments = [] if arguments_node is None else list_code_children(arguments_node)
    arguments_by_name = {
        source.tree.get_field_text(n, "name"): n.child_by_field_name("value")
        for n in arguments
        if n.type == "keyword_argument"
    }
    first = next((n for n in arguments if n.type == "string"), None)
    node = (
        arguments_by_name.get("model_name")
        or first
        or arguments_by_name.get("name")
        or arguments_by_name.get("old_name")
    )
    is_text = node is not None and node.type == "string"
    text = source.tree.get_node_text(node).strip("\"'rRbBuU") if is_text else ""
    return text if text.isidentifier() else ""


def _iter_statement_units(source: PythonSource) -> Iterator[Unit]:
    """Yield units of top-level assignments, such as lists of routes and settings."""
    named_statements = [
        (statement, source.tree.get_field_text(node, "left"))
        for statement, under in source.iter_statements()
        if not under and statement.type == "expression_statement"
        for node in statement.named_children[:1]
        if node.type == "assignment"
    ]
    names = [name for _, name in named_statements]
    is_constant_module = len(names) >= _FEW_STATEMENTS and not source.definitions
    is_settings = not _SETTINGS.isdisjoint(names) or (
        is_constant_module and all(map(str.isupper, names))
    )
    for statement, name in named_statements:
        if name == "urlpatterns":
            yield _build_unit(source, statement, "group", name, alone=True)
        elif is_settings and name.isupper() and name.isidentifier():
            yield _build_unit(source, statement, "key", name, alone=True)


def _build_unit(
    source: PythonSource,
    node: Node,
    role: Role,
    symbol: str,
    *,
    alone: bool,
    has_signature: Node | None = None,
) -> Unit:
    return Unit(
        source.tree.start(find_first_comment(node)),
        find_end_with_comment(source.tree, node),
        role,
        symbol,
        "" if has_signature is None else _read_signature(source, has_signature),
        alone=alone,
        cuts=_list_statement_ends(source, node),
    )


def _read_signature(source: PythonSource, node: Node) -> str:
    """Return the declaration without its body, in one line."""
    definition = node.child_by_field_name("definition") or node
    body = definition.child_by_field_name("body")
    end = source.tree.end(definition) if body is None else source.tree.start(body)
    # A comment may stand between the declaration and its body.
    comment = next((n for n in definition.children if is_comment(n)), None)
    if comment is not None and source.tree.start(comment) < end:
        end = source.tree.start(comment)
    return " ".join(source.text[source.tree.start(definition) : end].split()).rstrip(":")


def _list_statement_ends(source: PythonSource, node: Node) -> tuple[int, ...]:
    """Return the offsets at which text may be cut: ends of statements and of list elements."""
    ends = {source.tree.end(n) for n in iter_descendants(node) if n.type in _STATEMENT_NODES}
    value = next((n for n in iter_descendants(node) if n.type in {"list", "dictionary"}), None)
    if node.type == "expression_statement" and value is not None:
        ends |= {find_end_with_comment(source.tree, child) for child in value.named_children}
    return tuple(sorted(ends))


def _drop_nested_units(units: list[Unit]) -> list[Unit]:
    """Return units without overlaps; a unit within another unit is left out."""
    kept_units: list[Unit] = []
    for unit in sorted(units, key=lambda unit: (unit.start, -unit.end)):
        if not kept_units or unit.start >= kept_units[-1].end:
            kept_units.append(unit)
        elif unit.end > kept_units[-1].end:
            kept_units.append(replace(unit, start=kept_units[-1].end))
    return kept_units


_STATEMENT_NODES = frozenset(
    {"expression_statement", "return_statement", "if_statement", "for_statement"}
    | {"while_statement", "with_statement", "try_statement", "match_statement"}
    | {"raise_statement", "assert_statement", "import_statement", "import_from_statement"}
    | {"delete_statement", "pass_statement", "function_definition", "decorated_definition"}
)
