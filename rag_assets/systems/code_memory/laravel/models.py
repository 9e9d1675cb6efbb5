"""Eloquent models: their tables and relations, in one file and across a repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import ClassLike, Method, PhpSource
from rag_assets.systems.code_memory.languages.tree import get_first_child, iter_descendants
from rag_assets.systems.code_memory.laravel.inflection import (
    class_basename,
    joining_table,
    morph_table,
    table_of_class,
)
from rag_assets.systems.code_memory.laravel.routes.model import LocatedFact
from rag_assets.systems.code_memory.laravel.schema.expressions import (
    ExpressionReader,
    NameScope,
)
from rag_assets.systems.code_memory.laravel.settings import has_marks
from rag_assets.systems.code_memory.symbols.model import FileFacts

How: TypeAlias = Literal["stated", "convention"]

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("hasOne", "hasMany", "belongsTo"), ("related",)),
    "belongsToMany": ("related", "table"),
    **dict.fromkeys(("hasOneThrough", "hasManyThrough"), ("related", "through")),
    "morphTo": (),
    **dict.fromkeys(("morphOne", "morphMany"), ("related", "name")),
    **dict.fromkeys(("morphToMany", "morphedByMany"), ("related", "name", "table")),
}
"""The first parameters of a model's methods that return relations; the others name columns."""

_INNER: Final = frozenset({"anonymous_function", "arrow_function", "anonymous_class"})
_ROLES: Final = frozenset({"class", "trait", "interface"})
_TRAIT: Final = "trait"
_BASES: Final = frozenset({"Model", "Eloquent", "Authenticatable"})
_PIVOTS: Final = frozenset({"Pivot", "MorphPivot"})
_AUTH_USER: Final = "Illuminate\\Foundation\\Auth\\User"


def list_model_facts(source: PhpSource) -> tuple[Fact, ...]:
    """Return the facts of the kinds `eloquent_class` and `relation`.

    Each trait, and each class with a parent, yields an `eloquent_class`. Its values: class, parent,
    traits, trait (whether it is a trait), abstract, and the stated table; {"computed": true}
    represents a value that is not constant. Its evidence is the statement of the table, else the
    head of the class.

    Values of a `relation`: class, name, kind (hasMany ...), and arguments by Laravel's names of the
    parameters (related, table, through, name).
    """
    reader = ExpressionReader(source)
    facts: list[Fact] = []
    for class_ in source.classes:
        if class_.role in _ROLES and (class_.parents or class_.role == _TRAIT):
            facts.append(_build_class_fact(reader, class_))
            for method in class_.methods:
                facts += _iter_relation_facts(reader, class_, method)
    return tuple(sorted(facts, key=lambda fact: fact.start))


def _build_class_fact(reader: ExpressionReader, class_like: ClassLike) -> Fact:
    tree = reader.tree
    values: dict[str, Any] = {
        "class": class_like.name,
        "parent": class_like.parents[0] if class_like.parents else "",
        "traits": list(class_like.traits),
        "trait": class_like.role == _TRAIT,
        "abstract": class_like.abstract,
    }
    table = class_like.find_property("table")
    evidence = table.node if table is not None else None
    value = reader.read_value(table.value, NameScope(class_like)) if table else None
    method = class_like.find_method("getTable")
    body = method.body.named_children if method is not None and method.body is not None else ()
    statement = next((node for node in body if node.type == "return_statement"), None)
    returned = get_first_child(statement) if statement is not None else None
    if returned is not None:
        scope = reader.build_scope(class_like, "getTable")
        evidence, value = returned, reader.read_value(returned, scope)
    if evidence is not None and value is not None:
        values["table"] = _to_json(value)
        return tree.build_fact("eloquent_class", evidence, class_like.name, values)
    start, end = tree.start(class_like.node), tree.end(class_like.node)
    if class_like.body is not None:
        end = start + len(tree.text[start : tree.start(class_like.body)].rstrip())
    return Fact("eloquent_class", start, end, class_like.name, values)


def _iter_relation_facts(
    reader: ExpressionReader, class_like: ClassLike, method: Method
) -> Iterator[Fact]:
    symbol = f"{class_like.name}::{method.name}"
    read_nodes = set[int]()
    for node in iter_descendants(method.body, into=_INNER) if method.body is not None else ():
        chain = reader.source.parse_chain(node) if node.type == "member_call_expression" else None
        if chain is None or node.id in read_nodes:
            continue
        read_nodes.update(call.node.id for call in chain.calls)
        call = chain.calls[0]
        if chain.root != "$this" or call.name not in _PARAMETERS:
            continue
        scope = reader.build_scope(class_like, method.name)
        arguments = {
            name: _to_json(value)
            for position, name in enumerate(_PARAMETERS[call.name])
            if (value := reader.read_value(call.get_argument(position, name), scope)) is not None
        }
        values = {"class": class_like.name, "name": method.name, "kind": call.name}
        yield reader.tree.build_fact(
            "relation", chain.node, symbol, {**values, "arguments": arguments}
        )


def _to_json(value: Any) -> Any:
    plain = isinstance(value, str | int | bool) and not has_marks(value)
    return value if plain else {"computed": True}


@dataclass(frozen=True, slots=True)
class EloquentRelation:
    """A relation of a model.

    Attributes:
        kind: the method that defines it: hasMany, belongsTo …
        related: qualified name of the related class; "" for morphTo, or if it is computed.
    """

    name: str
    kind: str
    related: str
    table: str
    evidence: LocatedFact


@dataclass(frozen=True, slots=True)
class EloquentModel:
    """An Eloquent model.

    Attributes:
        table: its table; "" for an abstract class, or if it is computed.
        how: "stated" if the class or an ancestor states the table, else "convention".
        relations: its own relations, then the inherited ones.
    """

    name: str
    table: str
    how: How
    abstract: bool
    relations: tuple[EloquentRelation, ...]
    evidence: LocatedFact


def resolve_models(files: Iterable[FileFacts]) -> Mapping[str, EloquentModel]:
    """Return the models by qualified name; of two with the same name, the first by path."""
    world = _ModelClasses(sorted(files, key=lambda file: file.path))
    names = [name for name in sorted(world.classes) if world.is_model(name)]
    return {name: world.build_model(name) for name in names}


def may_be_model(fact: Fact) -> bool:
    """Return whether a fact is a class whose parent may be a base class of models.

    The parent counts only if no file of the repository declares it.
    """
    return fact.kind == "eloquent_class" and _is_base(fact.values["parent"])


def _is_base(name: str) -> bool:
    """Return whether the name of an external class shows that it is a base class of models."""
    return class_basename(name) in _BASES | _PIVOTS or name == _AUTH_USER or "\\Models\\" in name


class _ModelClasses:
    """The classes of a repository, with their facts about tables and relations."""

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self.classes: dict[str, LocatedFact] = {}
        # A class without a parent is not a model, but it is not a framework class either.
        self.declared: set[str] = set()
        self._relations: dict[str, list[LocatedFact]] = {}
        for file in files:
            for fact in file.facts:
                if fact.kind == "declares":
                    self.declared.add(fact.symbol)
                elif fact.kind == "eloquent_class":
                    self.classes.setdefault(fact.values["class"], LocatedFact(file.path, fact))
                elif fact.kind == "relation":
                    relations = self._relations.setdefault(fact.values["class"], [])
                    relations.append(LocatedFact(file.path, fact))

    def list_ancestors(self, name: str) -> list[str]:
        """Return a class and its parents, nearest first; the last may be outside the repository."""
        ancestors: list[str] = []
        while name and name not in ancestors:
            ancestors.append(name)
            class_ = self.classes.get(name)
            name = class_.fact.values["parent"] if class_ is not None else ""
        return ancestors

    def is_model(self, name: str) -> bool:
        """Return whether a class descends from Eloquent's Model."""
        if self.classes[name].fact.values["trait"]:
            return False
        last = self.list_ancestors(name)[-1]
        return last not in self.classes and last not in self.declared and _is_base(last)

    def build_model(self, name: str) -> EloquentModel:
        """Return a model with its table and relations."""
        table_statement, declaration = self._find_stated_table(name), self.classes[name]
        abstract = bool(declaration.fact.values["abstract"])
        table = self._find_table(name) if table_statement is not None or not abstract else ""
        how: How = "stated" if table_statement is not None else "convention"
        return EloquentModel(
            name, table, how, abstract, self._list_relations(name), table_statement or declaration
        )

    def _find_table(self, name: str) -> str:
        """Return the table of a class: stated, or by convention; "" if known only at run time."""
        statement = self._find_stated_table(name)
        if statement is None:
            pivot = class_basename(self.list_ancestors(name)[-1]) in _PIVOTS
            return table_of_class(name, pivot=pivot)
        table = statement.fact.values["table"]
        return table if isinstance(table, str) else ""

    def _find_stated_table(self, name: str) -> LocatedFact | None:
        """Return the nearest class or trait that states the table; None if none does."""
        evidences = (self.classes[holder] for holder in self._list_member_holders(name))
        return next((evidence for evidence in evidences if "table" in evidence.fact.values), None)

    def _list_member_holders(self, name: str) -> list[str]:
        """Return the classes and traits whose members a class inherits, nearest first."""
        holders: list[str] = []
        for holder in self.list_ancestors(name):
            pending = [holder]
            while pending:
                current = pending.pop(0)
                if current in self.classes and current not in holders:
                    holders.append(current)
                    pending += self.classes[current].fact.values["traits"]
        return holders

    def _list_relations(self, name: str) -> tuple[EloquentRelation, ...]:
        relations: dict[tuple[str, int], EloquentRelation] = {}
        names: set[str] = set()
        for holder in self._list_member_holders(name):
            for evidence in self._relations.get(holder, ()):
                if evidence.fact.values["name"] not in names:
                    relation = self._build_relation(name, holder, evidence)
                    relations[relation.name, evidence.fact.start] = relation
            names |= {relation for relation, _ in relations}
        return tuple(relations.values())

    def _build_relation(self, name: str, holder: str, evidence: LocatedFact) -> EloquentRelation:
        values = evidence.fact.values
        arguments = {key: v for key, v in values["arguments"].items() if isinstance(v, str)}
        related = name if arguments.get("related") == holder else arguments.get("related", "")
        related = related.lstrip("\\")
        kind, table = values["kind"], arguments.get("table", "")
        if table in self.classes:
            table = self._find_table(table)
        elif not table and kind == "belongsToMany" and related:
            table = joining_table(name, related)
        elif not table and kind in {"morphToMany", "morphedByMany"} and arguments.get("name"):
            table = morph_table(arguments["name"])
        return EloquentRelation(values["name"], kind, related, table, evidence)
