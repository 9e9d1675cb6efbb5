"""Describes relations that an answer may lack because they are only known when the code runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.common.formatting import counted
from rag_assets.ingest.sources.model import uri_of
from rag_assets.systems.code_memory.catalog.found_relations import Direction, FoundEdge
from rag_assets.systems.code_memory.derived.model import ROUTES, TABLES, Unresolved
from rag_assets.systems.code_memory.retrieval.nodes import PREFIXES, Node
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.symbols.names import ENDPOINT, FILE, MIDDLEWARE, TABLE

_KINDS: Final = {
    ROUTES: frozenset({"routes_to", "in_group", "guarded_by", "serves", "authorizes", "requests"}),
    TABLES: frozenset({"creates", "alters", "renames", "drops", "references", "maps_to"}),
}
"""Kinds of relations that an unresolved statement about routes, or about tables, may add."""

_TYPES: Final = {
    ROUTES: frozenset(
        {"route", "controller", "controller_method", "middleware", "policy", "api_endpoint"}
    ),
    TABLES: frozenset({"table", "model", "migration"}),
}
"""Types of nodes that such a statement may name, or may belong to."""

_STATING: Final = {ROUTES: frozenset({"route"}), TABLES: frozenset({"table", "migration"})}
"""Types of nodes that such a statement may belong to."""

_MOST_TOLD: Final = 3
_LONGEST: Final = 120
_FACADE: Final = "Illuminate\\Support\\Facades\\Facade"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about relations.

    Attributes:
        name: the name of the start node.
        kinds: the kinds of the relations to follow; empty for all.
        direction: the direction in which to follow them.
    """

    name: str
    kinds: Collection[str]
    direction: Direction


def describe_unresolved(
    question: Question,
    nodes: Sequence[Node],
    unresolved: Mapping[str, Sequence[Unresolved]],
    view: View,
) -> str | None:
    """Describe unresolved statements whose relations an answer may lack; None without any.

    Only statements that the caller may read count. A computed route counts if the answer includes
    routes or their targets, or if no node has the name; the same applies to computed tables. A
    statement about one route or table counts if the answer includes that node.

    Args:
        nodes: the nodes that the answer visited.
        unresolved: unresolved statements, by source.
    """
    found = [
        (uri_of(source, one.path), one)
        for source, told in unresolved.items()
        for one in told
        if _may_affect(one.about, question, [n for n in nodes if n.repository == source], nodes)
    ]
    readable = {one.uri for one in view.files(list({FILE + uri for uri, _ in found}))}
    counts = [(uri, one) for uri, one in found if uri in readable]
    return _describe_statements(counts) if counts else None


def describe_unfollowed_calls(
    question: Question, calls: Collection[FoundEdge], view: View
) -> str | None:
    """Describe calls on the repository's own facades that lead to no definition, or return None.

    The repository itself decides which class such a facade stands for.

    Args:
        calls: calls that the walk read and that lead to no definition.
    """
    if question.kinds and "calls" not in question.kinds:
        return None
    owners = sorted({_class_of(one) for one in calls} - {""})
    if not owners:
        return None
    extends = view.edges(owners, "out", only=("extends",)).edges
    facades = {(one.source, one.stated_of) for one in extends if one.target == _FACADE}
    met = [one for one in calls if (one.source, _class_of(one)) in facades]
    if not met:
        return None
    places = sorted({(one.uri, one.line_start, one.target) for one in met})
    shown = "; ".join(f"{uri}:{line} {name}" for uri, line, name in places[:_MOST_TOLD])
    more = len(places) - _MOST_TOLD
    return (
        f"{counted(len(places), 'call')} on facades not followed: {shown}"
        f"{f' and {more:,} more' if more > 0 else ''}"
    )


def _class_of(call: FoundEdge) -> str:
    return call.target.rpartition("::")[0]


def may_lack_relations(question: Question, nodes: Sequence[Node]) -> bool:
    """Return whether an answer may lack computed relations; if not, do not read the statements."""
    return any(_may_add_relations(about, question, nodes, nodes) for about in (ROUTES, TABLES))


def _may_affect(about: str, question: Question, own: Sequence[Node], nodes: Sequence[Node]) -> bool:
    if about in _KINDS:
        return _may_add_relations(about, question, own, nodes)
    if about:
        of = TABLES if about.startswith(TABLE) else ROUTES
        return _is_requested(of, question) and any(one.name == about for one in own)
    return any(_may_add_relations(one, question, own, nodes) for one in _KINDS)


def _may_add_relations(
    about: str, question: Question, own: Sequence[Node], nodes: Sequence[Node]
) -> bool:
    if not _is_requested(about, question):
        return False
    if not nodes:
        return about == _about_of(question.name)
    types = (_STATING if question.direction == "out" else _TYPES)[about]
    return any(one.source_type in types for one in own)


def _is_requested(about: str, question: Question) -> bool:
    return not question.kinds or not _KINDS[about].isdisjoint(question.kinds)


def _about_of(name: str) -> str:
    """Return ROUTES or TABLES if an unknown name may be a route's or a table's."""
    prefix = next((one for one in PREFIXES if name.startswith(one)), "")
    if prefix == TABLE:
        return TABLES
    return ROUTES if prefix in {"", ENDPOINT, MIDDLEWARE} else ""


def _describe_statements(found: Sequence[tuple[str, Unresolved]]) -> str:
    shown = "; ".join(_places(found[:_MOST_TOLD]))
    more = len(found) - _MOST_TOLD
    return (
        f"{counted(len(found), 'statement')} of routes or tables computed: {shown}"
        f"{f' and {more:,} more' if more > 0 else ''}"
    )


def _places(found: Sequence[tuple[str, Unresolved]]) -> Iterator[str]:
    for uri, one in found:
        yield f"{uri}:{one.line} {one.reason[:_LONGEST]}".rstrip()
