"""Relations: the symbols and edges that the facts of one file yield, before names are resolved.

A node is a qualified name, or a name with a prefix for its kind: `table:invoices`,
`config:mail.from`, `package:laravel/framework`. Because the type of a class may depend on other
files, an edge stores only the relation that its file states (takes, returns, makes or calls), and
gets its user-facing name at query time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.relations.edge_rules import (
    EVENTS,
    FACT_RULES,
    STYLE_RULES,
    list_edges_of_named_event,
    list_edges_of_query,
)
from rag_assets.systems.code_memory.relations.reexports import find_reexports
from rag_assets.systems.code_memory.symbols.model import USES
from rag_assets.systems.code_memory.symbols.names import (
    ABILITY,
    ASKS,
    ELSEWHERE,
    ENV,
    HANDS_ON,
    MEMBER,
    OWN_SETTING_PREFIX,
    get_short_name,
)
from rag_assets.systems.code_memory.symbols.naming import NameStyle

How: TypeAlias = Literal["stated", "convention", "inferred", "scip"]
"""How an edge is known: from the text, a framework's convention, inference, or a SCIP index."""

_CONFIDENCE: Final[Mapping[How, float]] = {
    "stated": 1.0,
    "convention": 0.9,
    "inferred": 0.6,
    "scip": 1.0,
}
_DEFINITION_KINDS: Final = frozenset({"declares", "operation"})
"""Kinds of facts that are definitions."""

_KINDS_WITHOUT_EDGES: Final = frozenset({"changed_in"})
"""Kinds of statements in derived documents that yield no edges, because the files yield them."""

_CONVENTION_KINDS: Final = frozenset({ASKS})
"""Kinds of edges to names that follow from a convention of the framework."""

_BUILT_IN: Final = frozenset({"", "self", "static", "parent"})


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition in a file.

    Attributes:
        line_start, line_end: first and last line in the file, counted from 1.
        content_hash: the content hash of its embedded text; None if it has no separate chunk.
        called: the search key that replaces its short name; "" if absent.
    """

    name: str
    role: str
    public: bool
    line_start: int
    line_end: int
    content_hash: str | None = None
    called: str = ""

    @property
    def short(self) -> str:
        """Return the search key of the name: `called`, or the lower-case name without namespace."""
        return self.called or get_short_name(self.name)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation that a file states, before its names are resolved.

    Attributes:
        source: the node that the relation starts from; "" for the file itself.
        line_start, line_end: first and last line of the evidence, counted from 1.
        evidence: the text of the evidence, with credentials masked.
        path: the path of the file with the evidence; None if it is the file that states the edge.
    """

    kind: str
    source: str
    target: str
    how: How
    confidence: float
    line_start: int
    line_end: int
    evidence: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Relations:
    """The symbols and edges of one file.

    Attributes:
        names: the index of the names in the file, see symbols.model; "" if absent.
    """

    symbols: tuple[Symbol, ...]
    edges: tuple[Edge, ...]
    names: str = ""


EDGE_NAMES: Final[Mapping[tuple[str, str], str]] = {
    ("takes", "request"): "validates_with",
    ("takes", "model"): "uses_model",
    ("touches", "model"): "uses_model",
    ("makes", "model"): "uses_model",
    ("returns", "model"): "uses_model",
    ("touches", "resource"): "responds_with",
    ("makes", "resource"): "responds_with",
    ("makes", "job"): "dispatches",
    ("makes", "event"): "fires",
    ("returns", "resource"): "responds_with",
    ("dispatches", "event"): "fires",
    ("fires", "job"): "dispatches",
    (ASKS, "policy"): "authorizes",
}
"""User-facing name of an edge, by its kind and the source type of its target."""

_GLOBAL_TARGET_KINDS: Final = frozenset(
    {"applies_to", "changed_by", "depends_on", "mentions", "operation", "queries_table", "states"}
)
"""Kinds of facts whose targets have the same name in every repository."""

_SUPERTYPES: Final = frozenset({"extends", "implements", "uses_trait"})
"""Kinds of facts that yield edges in files of any language; see SCOPED in symbols.naming."""

UNNAMED_KINDS: Final = frozenset(
    {"takes", "returns", "makes", "touches", ASKS, MEMBER, HANDS_ON, ELSEWHERE}
)
"""Kinds of edges that are never shown under their own name."""


def build_relations(
    facts: Iterable[Fact],
    hashes: Mapping[str, str] = MappingProxyType({}),
    *,
    names: NameStyle = "qualified",
) -> Relations:
    """Return the symbols and edges of one file; each edge occurs once.

    Args:
        hashes: content hashes of the embedded definitions, by name.
        names: how names in the file are qualified; for "none", only edges to supertypes and to
            targets with the same name in every repository are returned.
    """
    symbols: dict[tuple[str, int, str], Symbol] = {}
    edges: dict[tuple[str | int, ...], Edge] = {}
    facts = [*facts]
    for fact in facts:
        if fact.kind == "defines_setting" and (setting := _find_setting(fact, hashes)):
            symbols.setdefault((setting.name, setting.line_start, setting.called), setting)
        if fact.kind == "defines_ability":
            ability = _build_ability(fact)
            symbols.setdefault((ability.name, ability.line_start, ability.called), ability)
        if fact.kind in _DEFINITION_KINDS and fact.symbol:
            public = bool(fact.values.get("public", fact.values.get("exported", True)))
            role = str(fact.values.get("role", fact.kind))
            lines = fact.line_start, fact.line_end
            content_hash = hashes.get(fact.symbol)
            for called in fact.values.get("called", ("",)):
                symbol = Symbol(fact.symbol, role, public, *lines, content_hash, called)
                symbols.setdefault((fact.symbol, lines[0], called), symbol)
        is_stated = names != "none" or fact.kind in _GLOBAL_TARGET_KINDS | _SUPERTYPES
        for edge in _iter_edges(fact, names) if is_stated else ():
            # An edge from a SCIP index is kept for each line, as each may have other candidates.
            line = (edge.line_start,) if edge.how == "scip" else ()
            edges.setdefault((edge.kind, edge.source, edge.target, *line), edge)
    for fact, name, target in find_reexports(facts, names):
        edge = _build_edge(fact, HANDS_ON, name, target)
        edges.setdefault((edge.kind, edge.source, edge.target), edge)
    index = next((str(fact.values["names"]) for fact in facts if fact.kind == USES), "")
    return Relations(tuple(symbols.values()), tuple(edges.values()), index)


def _iter_edges(fact: Fact, names: NameStyle) -> Iterator[Edge]:
    if fact.kind == "states" and fact.values["kind"] not in _KINDS_WITHOUT_EDGES:
        yield _build_edge_of_derived_document(fact)
    rule = FACT_RULES.get(fact.kind)
    if fact.kind == "queries_table" and names != "qualified":
        rule = partial(list_edges_of_query, names=names)
    elif fact.kind in EVENTS and names in STYLE_RULES:
        rule = list_edges_of_named_event
    elif names in STYLE_RULES and fact.kind not in _GLOBAL_TARGET_KINDS:
        rule = STYLE_RULES[names]
    for kind, source, target in rule(fact) if rule is not None else ():
        if target and target not in _BUILT_IN:
            yield _build_edge(fact, kind, source, target)


def _build_edge(fact: Fact, kind: str, source: str, target: str) -> Edge:
    declaration = fact.evidence.partition("{")[0].rstrip() if fact.kind == "declares" else ""
    lines = fact.line_start, fact.line_end
    how: How = "convention" if kind in _CONVENTION_KINDS else "stated"
    return Edge(kind, source, target, how, _CONFIDENCE[how], *lines, declaration or fact.evidence)


def _build_ability(fact: Fact) -> Symbol:
    """Return the symbol of an ability that a gate defines; its search key is its full name."""
    name, lines = str(fact.values["ability"]), (fact.line_start, fact.line_end)
    return Symbol(ABILITY + name, "ability", True, *lines, called=name.lower())


def _find_setting(fact: Fact, hashes: Mapping[str, str]) -> Symbol | None:
    name, lines = str(fact.values["name"]), (fact.line_start, fact.line_end)
    prefix = {"code": OWN_SETTING_PREFIX, "environment": ENV}.get(str(fact.values.get("of")))
    if prefix is None:
        return None
    key = f"setting {name.lower()}".rstrip()
    return Symbol(prefix + name, "key", True, *lines, hashes.get(fact.symbol), key)


def _build_edge_of_derived_document(fact: Fact) -> Edge:
    """Return the edge that a derived document states; the evidence is in a different file."""
    values = fact.values
    how: How = values["how"]
    first, last = values["lines"]
    return Edge(
        kind=values["kind"],
        source=values["source"],
        target=values["target"],
        how=how,
        confidence=_CONFIDENCE[how],
        line_start=first,
        line_end=last,
        evidence=values["evidence"],
        path=values["path"],
    )
