"""The units of a PHP file, and the facts that it states without reference to other files.

| kind | symbol | values |
|---|---|---|
| declares | the definition | role, public, abstract, parameters [{name, type}], returns |
| imports | "" | name, alias |
| extends, implements, uses_trait | the class | name |
| calls | the enclosing definition | name: `Class::method`, or the name of a function |
| creates_object | the enclosing definition | name: the class |
| takes | the enclosing definition | name: the class of a closure's parameter |
| defines_setting | the top-level key | name: the keys that lead to it; "" for the array; of: code |
| reads_env | "" | key: an environment variable; setting: the setting that it fills |

A file of translations is also an array: if most of its values are prose, it states no settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import (
    BUILT_IN_TYPES,
    CLASS_ROLES,
    UNION_SEPARATOR,
    ClassLike,
    Method,
    PhpSource,
    list_parameters,
)
from rag_assets.systems.code_memory.languages.php.types import (
    CLASS_NAME_NODES,
    find_class_of_value,
    find_variable_types,
    get_class_of_creation,
)
from rag_assets.systems.code_memory.languages.php.values import (
    CALLS,
    CLOSURES,
    MEMBER_CALLS,
    Chain,
    iter_elements,
)
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    add_rest_units,
    find_end_with_comment,
    find_first_comment,
    get_first_child,
)
from rag_assets.systems.code_memory.symbols.model import Role, Unit

_ROUTERS = frozenset({"$router", "$this->router", "$app->router", "$r"})
_HEAD_NODES = frozenset(
    {"php_tag", "namespace_definition", "namespace_use_declaration", "declare_statement", "comment"}
)
_STATEMENTS = frozenset(
    {"expression_statement", "return_statement", "if_statement", "foreach_statement"}
    | {"for_statement", "while_statement", "do_statement", "switch_statement", "try_statement"}
    | {"echo_statement", "unset_statement", "throw_expression", "case_statement"}
)
_RELATIONS = frozenset(
    {"hasone", "hasmany", "belongsto", "belongstomany", "hasonethrough", "hasmanythrough"}
    | {"morphto", "morphone", "morphmany", "morphtomany", "morphedbymany"}
)


def list_units(source: PhpSource) -> tuple[Unit, ...]:
    """Return the units of a file; together they cover the file."""
    units: list[Unit] = []
    for class_ in source.classes:
        around = source.find_class(class_.node.parent or class_.node)
        if class_.body is not None and (around is None or around is class_):
            units += _iter_units_of_class(source, class_)
    for name, function in source.functions:
        if source.find_class(function.node) is None:
            units.append(_build_unit(source, function.node, "function", name, alone=True))
    units += _iter_units_of_statements(source)
    return add_rest_units(source.text, _extend_first_head(source, _drop_nested_units(units)))


def _iter_units_of_class(source: PhpSource, class_like: ClassLike) -> Iterator[Unit]:
    tree, statement = source.tree, _get_enclosing_statement(class_like.node)
    start, end = tree.start(find_first_comment(statement)), tree.end(statement)
    members = list(_iter_units_of_members(source, class_like))
    head = len(source.text[: members[0].start if members else end].rstrip())
    signature, cuts = (
        _read_signature(source, class_like.node),
        _list_statement_ends(source, class_like.node),
    )
    yield Unit(start, head, "class", class_like.name, signature, cuts=cuts)
    yield from members[:-1]
    for last in members[-1:]:
        is_last = not source.text[last.end : end].strip(" \t\r\n};")
        yield replace(last, end=end) if is_last else last


def _iter_units_of_members(source: PhpSource, class_like: ClassLike) -> Iterator[Unit]:
    is_migration = any(name.rpartition("\\")[2] == "Migration" for name in class_like.parents)
    for method in class_like.methods:
        if is_migration and (statements := [*_iter_schema_statements(source, method)]):
            yield from statements
            continue
        symbol = f"{class_like.name}::{method.name}"
        role: Role = "relation" if _is_relation(source, method) else "method"
        alone = method.public and not (is_migration and method.name.lower() == "down")
        yield _build_unit(source, method.node, role, symbol, alone=alone)


def _iter_schema_statements(source: PhpSource, method: Method) -> Iterator[Unit]:
    """Yield units of the statements that create, alter or drop a table in a migration's `up`."""
    is_up = method.name.lower() == "up" and method.body is not None
    for statement in method.body.named_children if method.body is not None and is_up else ():
        chain = _find_chain_in_statement(source, statement)
        if chain is not None and chain.static and chain.root.rpartition("\\")[2] == "Schema":
            table = source.read_value(chain.calls[-1].get_argument(0))
            name = table if isinstance(table, str) else ""
            yield _build_unit(source, statement, "schema", name, alone=True)


def _iter_units_of_statements(source: PhpSource) -> Iterator[Unit]:
    for statement in source.iter_statements():
        if statement.type == "return_statement":
            yield from _iter_units_of_keys(source, statement)
            continue
        chain = _find_chain_in_statement(source, statement)
        if chain is not None and _is_route(source, chain):
            role: Role = "group" if chain.find_call("group") else "route"
            yield _build_unit(source, statement, role, "", alone=role == "group")


def _iter_units_of_keys(source: PhpSource, statement: Node) -> Iterator[Unit]:
    value = get_first_child(statement)
    if value is None or value.type != "array_creation_expression":
        return
    for key, element in iter_elements(value):
        name = source.read_value(key)
        if isinstance(name, str):
            yield _build_unit(source, element.parent or element, "key", name, alone=True)


def _is_route(source: PhpSource, chain: Chain) -> bool:
    if not chain.static:
        return chain.root in _ROUTERS
    name = source.resolve_class_name(chain.root, chain.node)
    return name in {"Illuminate\\Support\\Facades\\Route", "Route"}


def _find_chain_in_statement(source: PhpSource, statement: Node) -> Chain | None:
    if statement.type != "expression_statement" or not statement.named_children:
        return None
    return source.parse_chain(statement.named_children[0])


def _is_relation(source: PhpSource, method: Method) -> bool:
    """Return whether a method defines a relation by calling `$this->hasMany()` or the like."""
    if method.body is None or method.static or method.parameters:
        return False
    tree = source.tree
    return any(
        tree.get_field_text(node, "object") == "$this"
        and tree.get_field_text(node, "name").lower() in _RELATIONS
        for node in tree.find_nodes(MEMBER_CALLS, method.body)
    )


def _build_unit(source: PhpSource, node: Node, role: Role, symbol: str, *, alone: bool) -> Unit:
    tree = source.tree
    has_signature = role in {"method", "relation", "function"}
    return Unit(
        tree.start(find_first_comment(node)),
        find_end_with_comment(source.tree, node),
        role,
        symbol,
        _read_signature(source, node) if has_signature else "",
        alone=alone,
        cuts=_list_statement_ends(source, node),
    )


def _get_enclosing_statement(node: Node) -> Node:
    """Return the statement around an anonymous class; for any other class, the class itself."""
    at = node
    while at.type not in CLASS_ROLES or at.type == "anonymous_class":
        above = at.parent
        if above is None or at.type in _STATEMENTS:
            break
        at = above
    return at


def _read_signature(source: PhpSource, node: Node) -> str:
    """Return the declaration without its body and attributes, in one line."""
    body = node.child_by_field_name("body")
    attributes = node.child_by_field_name("attributes")
    start = source.tree.start(node) if attributes is None else source.tree.end(attributes)
    end = source.tree.end(node) if body is None else source.tree.start(body)
    return " ".join(source.text[start:end].split()).rstrip(";")


def _list_statement_ends(source: PhpSource, node: Node) -> tuple[int, ...]:
    return tuple(sorted({source.tree.end(n) for n in source.tree.find_nodes(_STATEMENTS, node)}))


def _drop_nested_units(units: Iterable[Unit]) -> list[Unit]:
    """Return units without the units that start within another unit."""
    outer: list[Unit] = []
    for unit in sorted(units, key=lambda unit: (unit.start, -unit.end)):
        if not outer or unit.start >= outer[-1].end:
            outer.append(unit)
    return outer


def _extend_first_head(source: PhpSource, units: list[Unit]) -> list[Unit]:
    """Return the units; the head of a first class also has the namespace and imports above it."""
    if not units or units[0].role != "class":
        return units
    first = units[0]
    above = source.tree.root.children
    if any(n.type not in _HEAD_NODES for n in above if source.tree.end(n) <= first.start):
        return units
    start = len(source.text) - len(source.text.lstrip())
    return [replace(first, start=start), *units[1:]]


_OWN_RECEIVERS = frozenset({"$this", "self", "static"})
_DECLARATIONS = frozenset({*CLASS_ROLES, "function_definition"})


def iter_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the imports, definitions and calls of a file, in no particular order."""
    for scope in source.scopes:
        for imported in scope.used:
            values = {"name": imported.name, "alias": imported.alias}
            yield source.tree.build_fact("imports", imported.node, "", values)
    for declared in source.classes:
        yield from _iter_class_facts(source, declared)
    for name, function in source.functions:
        yield _build_declaration_fact(source, "function", name, function)
        yield from _iter_body_facts(source, function, name, None)
    for statement in source.iter_statements():
        if statement.type not in _DECLARATIONS:
            yield from _iter_call_facts(source, _CallContext(statement, "", {}), _DECLARATIONS)


def _iter_class_facts(source: PhpSource, class_like: ClassLike) -> Iterator[Fact]:
    values = {"role": class_like.role, "public": True, "abstract": class_like.abstract}
    yield source.tree.build_fact("declares", class_like.node, class_like.name, values)
    for kind, names in (
        ("extends", class_like.parents),
        ("implements", class_like.interfaces),
        ("uses_trait", class_like.traits),
    ):
        for name in names:
            yield source.tree.build_fact(kind, class_like.node, class_like.name, {"name": name})
    for method in class_like.methods:
        symbol = f"{class_like.name}::{method.name}"
        yield _build_declaration_fact(source, "method", symbol, method)
        yield from _iter_body_facts(source, method, symbol, class_like)


def _build_declaration_fact(source: PhpSource, role: str, symbol: str, method: Method) -> Fact:
    values = {
        "role": role,
        "public": method.public,
        "parameters": [{"name": p.name, "type": p.type} for p in method.parameters],
        "returns": method.returns,
    }
    return source.tree.build_fact("declares", method.node, symbol, values)


def _iter_body_facts(
    source: PhpSource, method: Method, symbol: str, around: ClassLike | None
) -> Iterator[Fact]:
    if method.body is not None:
        types = find_variable_types(source, method, around)
        yield from _iter_call_facts(source, _CallContext(method.body, symbol, types, around))


@dataclass(frozen=True, slots=True)
class _CallContext:
    """A function body or top-level code, with the names needed to resolve the calls in it.

    Attributes:
        types: class of each variable and property, by its name as written.
    """

    node: Node
    symbol: str
    types: Mapping[str, str]
    around: ClassLike | None = None

    def list_possible_owners(self, method: str) -> tuple[str, ...]:
        """Return the traits and parents that may define a method; empty if the class defines it."""
        if self.around is None or any(own.name == method for own in self.around.methods):
            return ()
        return (*self.around.traits, *self.around.parents)


def _iter_call_facts(
    source: PhpSource, context: _CallContext, into: frozenset[str] = frozenset({"anonymous_class"})
) -> Iterator[Fact]:
    seen: set[tuple[str, str]] = set()
    inner_end = -1
    for node in source.tree.find_nodes(CALLS | CLOSURES | into, context.node):
        if node.start_byte < inner_end:
            continue
        if node.type in into:
            inner_end = node.end_byte
        for kind, name in _list_call_targets(source, node, context):
            if (kind, name) not in seen:
                seen.add((kind, name))
                yield source.tree.build_fact(kind, node, context.symbol, {"name": name})


def _list_call_targets(
    source: PhpSource, node: Node, context: _CallContext
) -> list[tuple[str, str]]:
    """Return the facts of a call, each as its kind and the name of its target.

    A call that may go to an inherited method yields one fact for each class that may define it.
    """
    if node.type in CLOSURES:
        parameters = list_parameters(source.tree, node, source.find_scope(node))
        names = [name for parameter in parameters for name in parameter.type.split(UNION_SEPARATOR)]
        return [("takes", name) for name in names if name and name not in BUILT_IN_TYPES]
    called = _find_called_name(source, node, context)
    if called is None:
        return []
    if UNION_SEPARATOR in called[1]:
        owners, _, method = called[1].rpartition("::")
        return [(called[0], f"{owner}::{method}") for owner in owners.split(UNION_SEPARATOR)]
    receiver = _get_receiver_text(
        source.tree, node.child_by_field_name("object") or node.child_by_field_name("scope")
    )
    method = called[1].rpartition("::")[2]
    above = context.list_possible_owners(method) if receiver in _OWN_RECEIVERS else ()
    return [called, *((called[0], f"{name}::{method}") for name in above)]


def _find_called_name(
    source: PhpSource, node: Node, context: _CallContext
) -> tuple[str, str] | None:
    """Return the fact kind of a call and the name of its target; None if the class is unknown.

    The class in the name may be a union, joined by `|`.
    """
    tree, types = source.tree, context.types
    if node.type == "object_creation_expression":
        created = get_class_of_creation(source, node)
        return ("creates_object", created) if created else None
    if node.type == "function_call_expression":
        function = node.child_by_field_name("function")
        if function is None or function.type not in CLASS_NAME_NODES:
            return None
        return "calls", source.find_scope(node).resolve_function_name(tree.get_node_text(function))
    name = node.child_by_field_name("name")
    if name is None or name.type != "name":
        return None
    owner = ""
    if node.type == "scoped_call_expression":
        scope = node.child_by_field_name("scope")
        if scope is not None and scope.type in CLASS_NAME_NODES:
            owner = source.resolve_class_name(tree.get_node_text(scope), node)
    elif node.type in MEMBER_CALLS:
        receiver = node.child_by_field_name("object")
        owner = types.get(_get_receiver_text(tree, receiver), "") or find_class_of_value(
            source, receiver, context.around
        )
    return ("calls", f"{owner}::{tree.get_node_text(name)}") if owner else None


def _get_receiver_text(tree: SyntaxTree, receiver: Node | None) -> str:
    """Return the receiver of a call as written; "" if it is itself a call."""
    return (
        ""
        if receiver is not None and receiver.type in MEMBER_CALLS
        else tree.get_node_text(receiver)
    )


_MAX_SETTINGS: Final = 1_000
_MAX_ARRAY_DEPTH: Final = 6
_PROSE: Final = re.compile(r"[^\x00-\x7f]|[A-Za-z,.;:!?)] +\S|[A-Z][a-z]+[.!?]?\Z")
_STRINGS: Final = frozenset({"string", "encapsed_string"})
_CALLS: Final = "function_call_expression"


def iter_setting_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield a fact for each setting in the array that a file returns."""
    for statement in source.iter_statements():
        value = get_first_child(statement)
        if statement.type != "return_statement" or value is None:
            continue
        if value.type == "array_creation_expression":
            yield from _iter_array_facts(source, statement, value)


def _iter_array_facts(source: PhpSource, statement: Node, array: Node) -> Iterator[Fact]:
    keys = list(_iter_array_keys(source, array))
    if not keys or _are_mostly_prose(source, keys):
        return
    yield source.tree.build_fact("defines_setting", statement, "", {"name": "", "of": "code"})
    for path, value in keys:
        name, element = ".".join(path), value.parent or value
        values = {"name": name, "of": "code"}
        yield source.tree.build_fact("defines_setting", element, path[0], values)
        for variable in _iter_environment_variables(source, value):
            values = {"key": variable, "setting": name}
            yield source.tree.build_fact("reads_env", element, "", values)


def _iter_array_keys(source: PhpSource, array: Node) -> Iterator[tuple[tuple[str, ...], Node]]:
    pending: list[tuple[Node, tuple[str, ...]]] = [(array, ())]
    count = 0
    while pending:
        node, above = pending.pop()
        for key, value in iter_elements(node):
            name = source.read_value(key)
            if not isinstance(name, str) or not name or count >= _MAX_SETTINGS:
                continue
            count += 1
            path = (*above, name)
            yield path, value
            if value.type == "array_creation_expression" and len(path) < _MAX_ARRAY_DEPTH:
                pending.append((value, path))


def _are_mostly_prose(source: PhpSource, keys: Sequence[tuple[tuple[str, ...], Node]]) -> bool:
    """Return whether most values of an array are prose, as in translation files."""
    values = [value for _, value in keys if value.type != "array_creation_expression"]
    prose_count = sum(
        node.type in _STRINGS
        and _PROSE.search(source.tree.get_node_text(node).strip("'\"")) is not None
        for node in values
    )
    return prose_count * 2 > len(values)


def _iter_environment_variables(source: PhpSource, value: Node) -> Iterator[str]:
    """Yield the environment variables that a value reads by `env()`; none for an array."""
    if value.type == "array_creation_expression":
        return
    for node in source.tree.find_nodes(frozenset({_CALLS}), value):
        if source.tree.get_field_text(node, "function").lower() != "env":
            continue
        chain = source.parse_chain(node)
        name = None if chain is None else source.read_value(chain.calls[0].get_argument(0))
        if isinstance(name, str) and name:
            yield name
