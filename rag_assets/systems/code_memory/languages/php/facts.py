"""The facts that a PHP file states without reference to other files.

| kind | symbol | values |
|---|---|---|
| declares | the definition | role, public, abstract, parameters [{name, type}], returns |
| imports | "" | name, alias, of (class, function, const) |
| extends, implements, uses_trait | the class | name |
| calls | the enclosing definition | name: `Class::method`, or a function's |
| creates_object | the enclosing definition | name: the class |
| takes | the enclosing definition | name: the class of a closure's parameter |
| defines_setting | the top-level key | name: the keys that lead to it; "" for the array; of: code |
| reads_env | "" | key, setting: the setting takes its value from an environment variable |

Translations are arrays, too: a file in which most values are prose states no settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import (
    NO_CLASSES,
    OR,
    ClassLike,
    Method,
    PhpSource,
    list_parameters,
)
from rag_assets.systems.code_memory.languages.php.types import (
    NAMED,
    class_of_creation,
    class_of_value,
    find_variable_types,
)
from rag_assets.systems.code_memory.languages.php.values import (
    CALLS,
    CLOSURES,
    MEMBER_CALLS,
    elements,
)
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_OWN = frozenset({"$this", "self", "static"})


def list_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the facts of a file, in no particular order."""
    for scope in source.scopes:
        for one in scope.used:
            values = {"name": one.name, "alias": one.alias, "of": one.kind}
            yield source.tree.fact("imports", one.node, "", values)
    for declared in source.classes:
        yield from _class_facts(source, declared)
    for name, function in source.functions:
        yield _declaration_fact(source, "function", name, function)
        yield from _body_facts(source, function, name, None)
    yield from _top_level_facts(source)


def _class_facts(source: PhpSource, one: ClassLike) -> Iterator[Fact]:
    values = {"role": one.role, "public": True, "abstract": one.abstract}
    yield source.tree.fact("declares", one.node, one.name, values)
    for kind, names in (
        ("extends", one.parents),
        ("implements", one.interfaces),
        ("uses_trait", one.traits),
    ):
        for name in names:
            yield source.tree.fact(kind, one.node, one.name, {"name": name})
    for method in one.methods:
        symbol = f"{one.name}::{method.name}"
        yield _declaration_fact(source, "method", symbol, method)
        yield from _body_facts(source, method, symbol, one)


def _declaration_fact(source: PhpSource, role: str, symbol: str, method: Method) -> Fact:
    values = {
        "role": role,
        "public": method.public,
        "abstract": method.abstract,
        "parameters": [{"name": p.name, "type": p.type} for p in method.parameters],
        "returns": method.returns,
    }
    return source.tree.fact("declares", method.node, symbol, values)


def _body_facts(
    source: PhpSource, method: Method, symbol: str, around: ClassLike | None
) -> Iterator[Fact]:
    if method.body is not None:
        types = find_variable_types(source, method, around)
        yield from _facts_of_calls(source, _Body(method.body, symbol, types, around))


def _top_level_facts(source: PhpSource) -> Iterator[Fact]:
    declarations = {"class_declaration", "interface_declaration", "trait_declaration"}
    declarations |= {"enum_declaration", "function_definition", "anonymous_class"}
    into = frozenset(declarations)
    for statement in source.statements():
        if statement.type not in into:
            yield from _facts_of_calls(source, _Body(statement, "", {}), into)


@dataclass(frozen=True, slots=True)
class _Body:
    """A body with its symbol and class, and the classes of the expressions in the body."""

    node: Node
    symbol: str
    types: Mapping[str, str]
    around: ClassLike | None = None

    def possible_owners(self, method: str) -> tuple[str, ...]:
        """Return the traits and parents that may define a method; empty if the class defines it."""
        if self.around is None or any(one.name == method for one in self.around.methods):
            return ()
        return (*self.around.traits, *self.around.parents)


def _facts_of_calls(
    source: PhpSource, body: _Body, into: frozenset[str] = frozenset({"anonymous_class"})
) -> Iterator[Fact]:
    seen: set[tuple[str, str]] = set()
    inner_end = -1
    for node in source.tree.nodes(CALLS | CLOSURES | into, body.node):
        if node.start_byte < inner_end:
            continue
        if node.type in into:
            inner_end = node.end_byte
        for kind, name in _call_facts(source, node, body):
            if (kind, name) not in seen:
                seen.add((kind, name))
                yield source.tree.fact(kind, node, body.symbol, {"name": name})


def _call_facts(source: PhpSource, node: Node, body: _Body) -> list[tuple[str, str]]:
    """Return the facts of a call; an inherited method yields one fact for each possible class."""
    if node.type in CLOSURES:
        taken = [one.type for one in list_parameters(source.tree, node, source.find_scope(node))]
        types = [name for one in taken for name in one.split(OR)]
        return [("takes", name) for name in types if name and name not in NO_CLASSES]
    called = _called_name(source, node, body)
    if called is None:
        return []
    if OR in called[1]:
        owners, _, method = called[1].rpartition("::")
        return [(called[0], f"{owner}::{method}") for owner in owners.split(OR)]
    receiver = _receiver_text(
        source.tree, node.child_by_field_name("object") or node.child_by_field_name("scope")
    )
    method = called[1].rpartition("::")[2]
    above = body.possible_owners(method) if receiver in _OWN else ()
    return [called, *((called[0], f"{name}::{method}") for name in above)]


def _called_name(source: PhpSource, node: Node, body: _Body) -> tuple[str, str] | None:
    """Return the kind and the name of a call; the class in the name may be a union."""
    tree, types = source.tree, body.types
    if node.type == "object_creation_expression":
        created = class_of_creation(source, node)
        return ("creates_object", created) if created else None
    if node.type == "function_call_expression":
        function = node.child_by_field_name("function")
        if function is None or function.type not in NAMED:
            return None
        return "calls", source.find_scope(node).function_name(tree.of(function))
    name = node.child_by_field_name("name")
    if name is None or name.type != "name":
        return None
    owner = ""
    if node.type == "scoped_call_expression":
        scope = node.child_by_field_name("scope")
        if scope is not None and scope.type in NAMED:
            owner = source.class_name(tree.of(scope), node)
    elif node.type in MEMBER_CALLS:
        receiver = node.child_by_field_name("object")
        owner = types.get(_receiver_text(tree, receiver), "") or class_of_value(
            source, receiver, body.around
        )
    return ("calls", f"{owner}::{tree.of(name)}") if owner else None


def _receiver_text(tree: SyntaxTree, receiver: Node | None) -> str:
    """Return the receiver of a call as written; "" if it is itself a call, to avoid repetition."""
    return "" if receiver is not None and receiver.type in MEMBER_CALLS else tree.of(receiver)


_MOST: Final = 1_000
_DEEPEST: Final = 6
_WORDS: Final = re.compile(r"[^\x00-\x7f]|[A-Za-z,.;:!?)] +\S|[A-Z][a-z]+[.!?]?\Z")
_STRINGS: Final = frozenset({"string", "encapsed_string"})
_CALLS: Final = "function_call_expression"


def key_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the settings in the array that a file returns."""
    for statement in source.statements():
        value = next(iter(statement.named_children), None)
        if statement.type != "return_statement" or value is None:
            continue
        if value.type == "array_creation_expression":
            yield from _array_facts(source, statement, value)


def _array_facts(source: PhpSource, statement: Node, array: Node) -> Iterator[Fact]:
    keys = list(_array_keys(source, array))
    if not keys or _are_mostly_prose(source, keys):
        return
    yield source.tree.fact("defines_setting", statement, "", {"name": "", "of": "code"})
    for path, value in keys:
        name, element = ".".join(path), value.parent or value
        values = {"name": name, "of": "code"}
        yield source.tree.fact("defines_setting", element, path[0], values)
        for variable in _environment_variables(source, value):
            values = {"key": variable, "setting": name}
            yield source.tree.fact("reads_env", element, "", values)


def _array_keys(source: PhpSource, array: Node) -> Iterator[tuple[tuple[str, ...], Node]]:
    todo: list[tuple[Node, tuple[str, ...]]] = [(array, ())]
    found = 0
    while todo:
        node, above = todo.pop()
        for key, value in elements(node):
            name = source.value(key)
            if not isinstance(name, str) or not name or found >= _MOST:
                continue
            found += 1
            path = (*above, name)
            yield path, value
            if value.type == "array_creation_expression" and len(path) < _DEEPEST:
                todo.append((value, path))


def _are_mostly_prose(source: PhpSource, keys: Sequence[tuple[tuple[str, ...], Node]]) -> bool:
    """Return whether most values are prose, as in translation files."""
    values = [value for _, value in keys if value.type != "array_creation_expression"]
    words = [
        node
        for node in values
        if node.type in _STRINGS and _WORDS.search(source.tree.of(node).strip("'\""))
    ]
    return len(words) * 2 > len(values)


def _environment_variables(source: PhpSource, value: Node) -> Iterator[str]:
    """Yield the environment variables that a value reads, without those in nested arrays."""
    if value.type == "array_creation_expression":
        return
    for node in source.tree.nodes(frozenset({_CALLS}), value):
        if source.tree.field(node, "function").lower() != "env":
            continue
        chain = source.chain(node)
        name = None if chain is None else source.value(chain.calls[0].argument(0))
        if isinstance(name, str) and name:
            yield name
