"""Eloquent models in one PHP file: classes that may be models, and their relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import SyntaxTree, descendants
from rag_assets.systems.code_memory.laravel.schema_classes import PhpClass, php_classes
from rag_assets.systems.code_memory.laravel.schema_php import Call, Chain, PhpReader, Scope
from rag_assets.systems.code_memory.laravel.schema_settings import has_marks

if TYPE_CHECKING:
    from tree_sitter import Node

_MORPHED: Final = (
    "related",
    "name",
    "table",
    "foreignPivotKey",
    "relatedPivotKey",
    "parentKey",
    "relatedKey",
)
_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "hasOne": ("related", "foreignKey", "localKey"),
    "hasMany": ("related", "foreignKey", "localKey"),
    "belongsTo": ("related", "foreignKey", "ownerKey", "relation"),
    "belongsToMany": [
        "related",
        "table",
        "foreignPivotKey",
        "relatedPivotKey",
        "parentKey",
        "relatedKey",
        "relation",
    ],
    "hasOneThrough": ["related", "through", "firstKey", "secondKey", "localKey", "secondLocalKey"],
    "hasManyThrough": ["related", "through", "firstKey", "secondKey", "localKey", "secondLocalKey"],
    "morphTo": ("name", "type", "id", "ownerKey"),
    "morphOne": ("related", "name", "type", "id", "localKey"),
    "morphMany": ("related", "name", "type", "id", "localKey"),
    "morphToMany": [
        "related",
        "name",
        "table",
        "foreignPivotKey",
        "relatedPivotKey",
        "parentKey",
        "relatedKey",
    ],
    "morphedByMany": [
        "related",
        "name",
        "table",
        "foreignPivotKey",
        "relatedPivotKey",
        "parentKey",
        "relatedKey",
    ],
}
RELATIONS: Final = frozenset(_KEYS)
"""Methods of a model that return a relation."""

_STATED: Final = ("table", "connection", "primaryKey", "keyType", "incrementing")
_INNER: Final = frozenset({"anonymous_function", "arrow_function", "anonymous_class"})


def model_facts(tree: SyntaxTree) -> tuple[Fact, ...]:
    """Return the facts of the kinds `eloquent_class` and `relation`.

    Each trait, and each class with a parent, yields an `eloquent_class`. Its values: class, parent,
    traits, trait (whether it is a trait), abstract, and the stated table, connection, primaryKey,
    keyType and incrementing; {"computed": true} represents a value that is not constant. Its
    evidence is the statement of the table, else the head of the class.

    Values of a `relation`: class, name, kind (hasMany ...), arguments by Laravel's names of the
    parameters (related, foreignKey, table, through ...), modifiers: names of the calls that follow,
    and using: the class of the pivot.
    """
    reader = PhpReader(tree)
    facts: list[Fact] = []
    for made in php_classes(reader):
        if made.name and (made.parent or made.kind == "trait"):
            facts.append(_class_fact(reader, made))
            facts += _relations(reader, made)
    return tuple(sorted(facts, key=lambda fact: fact.start))


def _class_fact(reader: PhpReader, made: PhpClass) -> Fact:
    tree = reader.tree
    values: dict[str, Any] = {
        "class": made.name,
        "parent": made.parent,
        "traits": list(made.traits),
        "trait": made.kind == "trait",
        "abstract": any(child.type == "abstract_modifier" for child in made.node.children),
    }
    start, end = tree.start(made.node), tree.end(made.node)
    body = made.node.child_by_field_name("body")
    if body is not None:
        end = start + len(tree.text[start : tree.start(body)].rstrip())
    for name in _STATED:
        value, node = made.properties.get(name, (None, None))
        if node is not None and value is not None:
            values[name] = _json(value)
            if name == "table":
                start, end = tree.start(node), tree.end(node)
    returned = _returned_table(reader, made)
    if returned is not None:
        values["table"] = _json(reader.value(returned, made.scope("getTable")))
        start, end = tree.start(returned), tree.end(returned)
    return Fact("eloquent_class", start, end, made.name, values)


def _returned_table(reader: PhpReader, made: PhpClass) -> Node | None:
    """Return the expression that the class's own method `getTable` returns; None if absent."""
    body = made.methods.get("getTable")
    if body is None:
        return None
    returned = [node for node in body.named_children if node.type == "return_statement"]
    return returned[0].named_children[0] if returned and returned[0].named_children else None


def _relations(reader: PhpReader, made: PhpClass) -> list[Fact]:
    found: list[Fact] = []
    for name, body in made.methods.items():
        scope = made.scope(name)
        for node in descendants(body, into=_INNER):
            if node.type != "member_call_expression":
                continue
            chain = reader.chain(node)
            if chain is None or not _is_relation(reader, chain):
                continue
            if node.parent is not None and node.parent.type == "member_call_expression":
                outer = node.parent.child_by_field_name("object")
                if outer is not None and outer.id == node.id:
                    continue
            found.append(_relation(reader, made, name, chain, scope))
    return found


def _is_relation(reader: PhpReader, chain: Chain) -> bool:
    return (
        not chain.static
        and reader.tree.of(chain.base) == "$this"
        and chain.calls[0].name in RELATIONS
    )


def _relation(reader: PhpReader, made: PhpClass, name: str, chain: Chain, scope: Scope) -> Fact:
    call, *modifiers = chain.calls
    values: dict[str, Any] = {
        "class": made.name,
        "name": name,
        "kind": call.name,
        "arguments": _arguments(reader, call, scope),
        "modifiers": [modifier.name for modifier in modifiers],
    }
    for modifier in modifiers:
        if modifier.name == "using" and modifier.arguments:
            values["using"] = _json(reader.value(modifier.arguments[0], scope))
    last = chain.calls[-1].node
    start, end = reader.tree.start(last), reader.tree.end(last)
    return Fact("relation", start, end, f"{made.name}::{name}", values)


def _arguments(reader: PhpReader, call: Call, scope: Scope) -> dict[str, Any]:
    names = _KEYS[call.name]
    given = {
        key: reader.value(node, scope) for key, node in zip(names, call.arguments, strict=False)
    }
    given.update({key: reader.value(node, scope) for key, node in call.named.items()})
    return {key: _json(value) for key, value in given.items() if value is not None}


def _json(value: Any) -> Any:
    plain = isinstance(value, str | int | bool) and not has_marks(value)
    return value if plain else {"computed": True}
