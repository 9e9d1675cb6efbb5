"""Eloquent models: their tables and relations, in one file and across a repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import SyntaxTree, descendants
from rag_assets.systems.code_memory.laravel.inflection import (
    class_basename,
    joining_table,
    morph_table,
    snake,
    table_of_class,
)
from rag_assets.systems.code_memory.laravel.schema.expressions import (
    Call,
    Chain,
    PhpClass,
    PhpReader,
    Scope,
    php_classes,
)
from rag_assets.systems.code_memory.laravel.settings import has_marks
from rag_assets.systems.code_memory.symbols.model import FileFacts

if TYPE_CHECKING:
    from tree_sitter import Node

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


How: TypeAlias = Literal["stated", "convention"]

_BASES: Final = frozenset({"Model", "Eloquent", "Authenticatable"})
_PIVOTS: Final = frozenset({"Pivot", "MorphPivot"})
_AUTH_USER: Final = "Illuminate\\Foundation\\Auth\\User"
_ONES: Final = frozenset({"hasOne", "hasMany"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place that supports a statement.

    Attributes:
        path: the path of the file.
        fact: a fact of the kind `eloquent_class` or `relation`.
    """

    path: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a model.

    Attributes:
        name: the name of the method.
        kind: hasMany, belongsTo, morphToMany and so on.
        related: qualified name of the related class; "" for morphTo, or if it is computed.
        table: the pivot table; "" if absent.
        keys: columns by Laravel's parameter names (foreignKey, ownerKey, type, id ...).
        through: the class in between, for hasManyThrough and hasOneThrough.
        morph: the name of a polymorphic relation.
        using: the class of the pivot.
        modifiers: names of the calls that follow: ofMany, withPivot.
        evidence: the call.
        complete: whether no part of it was computed.
    """

    name: str
    kind: str
    related: str
    table: str
    keys: Mapping[str, str]
    through: str
    morph: str
    using: str
    modifiers: tuple[str, ...]
    evidence: Evidence
    complete: bool


@dataclass(frozen=True, slots=True)
class Model:
    """A model.

    Attributes:
        name: qualified name of the class.
        table: its table; "" for an abstract class, or if it is computed.
        how: whether the table is stated, by the class or by a parent, or follows from the class's
            name.
        connection, primary_key: the values as stated; "" and "id" by default.
        pivot: whether it is a pivot class.
        abstract: whether the class is abstract and therefore has no records.
        relations: its own relations, then those of its traits and parents.
        evidence: the statement that determines the table.
        complete: whether the table is known.
    """

    name: str
    table: str
    how: How
    connection: str
    primary_key: str
    pivot: bool
    abstract: bool
    relations: tuple[Relation, ...]
    evidence: Evidence
    complete: bool


def resolve_models(files: Iterable[FileFacts]) -> Mapping[str, Model]:
    """Return the models of a repository by qualified name.

    Args:
        files: the files, in any order; if two classes share a name, the first by path counts.
    """
    world = _World(sorted(files, key=lambda file: file.path))
    names = [name for name in sorted(world.classes) if world.is_model(name)]
    return {name: world.model(name) for name in names}


def may_be_model(fact: Fact) -> bool:
    """Return whether a fact is a class whose parent may be a base class of models.

    The parent counts only if no file of the repository declares it.
    """
    return fact.kind == "eloquent_class" and _is_base(fact.values["parent"])


def _is_base(name: str) -> bool:
    """Return whether a class outside the repository is a base class of models."""
    return class_basename(name) in _BASES | _PIVOTS or name == _AUTH_USER or "\\Models\\" in name


class _World:
    """The classes of a repository, with their statements."""

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self.classes: dict[str, Evidence] = {}
        # A class without a parent is not a model, but it is not a framework class either.
        self.declared: set[str] = set()
        self._relations: dict[str, list[Evidence]] = {}
        for file in files:
            for fact in file.facts:
                if fact.kind == "declares":
                    self.declared.add(fact.symbol)
                elif fact.kind == "eloquent_class":
                    self.classes.setdefault(fact.values["class"], Evidence(file.path, fact))
                elif fact.kind == "relation":
                    held = self._relations.setdefault(fact.values["class"], [])
                    held.append(Evidence(file.path, fact))

    def lineage(self, name: str) -> list[str]:
        """Return a class and its parents, nearest first, including an outside parent."""
        found: list[str] = []
        while name and name not in found:
            found.append(name)
            known = self.classes.get(name)
            name = known.fact.values["parent"] if known is not None else ""
        return found

    def is_model(self, name: str) -> bool:
        """Return whether a class descends from Eloquent's Model."""
        if self.classes[name].fact.values["trait"]:
            return False
        last = self.lineage(name)[-1]
        return last not in self.classes and last not in self.declared and _is_base(last)

    def model(self, name: str) -> Model:
        """Return a model with everything that is known about it."""
        table, evidence = self._stated(name, "table")
        own = self.classes[name]
        abstract = bool(own.fact.values["abstract"])
        how: How = "stated" if table is not None else "convention"
        if table is None:
            table = "" if abstract else table_of_class(name, pivot=self._is_pivot(name))
        connection, _ = self._stated(name, "connection")
        return Model(
            name,
            table if isinstance(table, str) else "",
            how,
            connection if isinstance(connection, str) else "",
            self.primary_key(name),
            self._is_pivot(name),
            abstract,
            self._all_relations(name),
            evidence or own,
            isinstance(table, str) and (abstract or bool(table)),
        )

    def primary_key(self, name: str) -> str:
        """Return the column that identifies a record of a model."""
        stated, _ = self._stated(name, "primaryKey")
        return stated if isinstance(stated, str) else "id"

    def _is_pivot(self, name: str) -> bool:
        return class_basename(self.lineage(name)[-1]) in _PIVOTS

    def _stated(self, name: str, key: str) -> tuple[Any, Evidence | None]:
        """Return the value that the nearest class or trait states, with its evidence."""
        for holder in self._holders(name):
            known = self.classes[holder]
            if key in known.fact.values:
                return known.fact.values[key], known
        return None, None

    def _holders(self, name: str) -> list[str]:
        """Return the classes and traits whose members a class inherits, nearest first."""
        found: list[str] = []
        for holder in self.lineage(name):
            todo = [holder]
            while todo:
                at = todo.pop(0)
                if at in self.classes and at not in found:
                    found.append(at)
                    todo += self.classes[at].fact.values["traits"]
        return found

    def _all_relations(self, name: str) -> tuple[Relation, ...]:
        found: dict[tuple[str, int], Relation] = {}
        named: set[str] = set()
        for holder in self._holders(name):
            evidences = self._relations.get(holder, [])
            fresh = [e for e in evidences if e.fact.values["name"] not in named]
            for evidence in fresh:
                relation = self._relation(name, holder, evidence)
                found[relation.name, evidence.fact.start] = relation
            named |= {evidence.fact.values["name"] for evidence in fresh}
        return tuple(found.values())

    def _relation(self, name: str, holder: str, evidence: Evidence) -> Relation:
        values = evidence.fact.values
        given = {key: v for key, v in values["arguments"].items() if isinstance(v, str)}
        for key in ("related", "through"):
            if given.get(key) == holder:
                given[key] = name
        computed = len(given) < len(values["arguments"]) or isinstance(values.get("using"), dict)
        related = given.get("related", "").lstrip("\\")
        using = values.get("using")
        using = using if isinstance(using, str) else ""
        keys = self._keys(name, values["name"], values["kind"], given)
        return Relation(
            values["name"],
            values["kind"],
            related,
            self._pivot_table(name, values["kind"], related, given),
            keys,
            given.get("through", ""),
            self._morph(values["name"], values["kind"], given),
            using,
            tuple(values["modifiers"]),
            evidence,
            not computed and (bool(related) or values["kind"] == "morphTo"),
        )

    def _pivot_table(self, name: str, kind: str, related: str, given: Mapping[str, str]) -> str:
        table = given.get("table", "")
        if table in self.classes:
            return self.model_table(table)
        if table:
            return table
        if kind == "belongsToMany" and related:
            return joining_table(name, related)
        if kind in {"morphToMany", "morphedByMany"} and given.get("name"):
            return morph_table(given["name"])
        return ""

    def model_table(self, name: str) -> str:
        """Return the table of a class; "" if it is computed."""
        stated, _ = self._stated(name, "table")
        if stated is None:
            return table_of_class(name, pivot=self._is_pivot(name))
        return stated if isinstance(stated, str) else ""

    def _morph(self, method: str, kind: str, given: Mapping[str, str]) -> str:
        if kind == "morphTo":
            return snake(given.get("name") or method)
        return given.get("name", "") if kind.startswith("morph") else ""

    def _foreign_key(self, name: str) -> str:
        return f"{snake(class_basename(name))}_{self.primary_key(name)}"

    def _keys(
        self, name: str, method: str, kind: str, given: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the columns of a relation, as stated or by Laravel's convention."""
        related = given.get("related", "").lstrip("\\")
        through = given.get("through", "")
        morph = self._morph(method, kind, given)
        keys: dict[str, str] = {}
        if kind in _ONES:
            keys = {"foreignKey": self._foreign_key(name), "localKey": self.primary_key(name)}
        elif kind == "belongsTo" and related:
            owner = self.primary_key(related)
            keys = {"foreignKey": f"{snake(method)}_{owner}", "ownerKey": owner}
        elif kind == "belongsToMany" and related:
            keys = {
                "foreignPivotKey": self._foreign_key(name),
                "relatedPivotKey": self._foreign_key(related),
            }
        elif kind.endswith("Through") and through:
            keys = {
                "firstKey": self._foreign_key(name),
                "secondKey": self._foreign_key(through),
                "localKey": self.primary_key(name),
                "secondLocalKey": self.primary_key(through),
            }
        elif kind in {"morphTo", "morphOne", "morphMany"} and morph:
            keys = {"type": f"{morph}_type", "id": f"{morph}_id"}
        elif kind == "morphToMany" and morph and related:
            other = self._foreign_key(related)
            keys = {"foreignPivotKey": f"{morph}_id", "relatedPivotKey": other}
        elif kind == "morphedByMany" and morph:
            keys = {"foreignPivotKey": self._foreign_key(name), "relatedPivotKey": f"{morph}_id"}
        stated = {k: v for k, v in given.items() if k not in {"related", "table", "through"}}
        stated.pop("name", None)
        stated.pop("relation", None)
        return {**keys, **stated}
