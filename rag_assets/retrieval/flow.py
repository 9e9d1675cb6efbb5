"""The flow: how much what is related to some definitions has to do with them.

From the definitions that it begins at, relevance flows along relations, more along those that
people follow (a route to its controller, a model to its table) than along others, and less through
a definition that everything is related to. Known as spreading activation (Collins and Loftus,
Psychological Review, 1975).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from rag_assets.code.nodes import MEMBER
from rag_assets.retrieval.code_nodes import Node, NodeKey, relation_of, stated_of
from rag_assets.retrieval.code_view import View
from rag_assets.retrieval.walk import MOST_NODES
from rag_assets.storage.catalog.found_relations import FoundEdge

_OUT, _IN = 0, 1
_Crowds: TypeAlias = Counter[tuple[NodeKey, str, int]]
_WEIGHTS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "routes_to": (1.0, 0.8),
        MEMBER: (0.6, 0.35),
        "validates_with": (0.9, 0.6),
        "responds_with": (0.8, 0.5),
        "uses_model": (0.8, 0.5),
        "maps_to": (1.0, 0.8),
        "queries_table": (0.9, 0.6),
        "creates": (0.7, 0.95),
        "alters": (0.7, 0.9),
        "renames": (0.7, 0.9),
        "drops": (0.7, 0.9),
        "references": (0.3, 0.3),
        "relates_to": (0.6, 0.4),
        "dispatches": (0.9, 0.7),
        "fires": (0.9, 0.7),
        "listens_to": (0.7, 0.95),
        "observes": (0.6, 0.8),
        "authorizes": (0.8, 0.8),
        "guarded_by": (0.6, 0.3),
        "binds": (0.8, 0.5),
        "calls": (0.8, 0.5),
        "serves": (0.8, 0.8),
        "configured_by": (0.7, 0.5),
        "defines_setting": (0.5, 0.9),
        "tests": (0.5, 0.7),
        "documents": (0.5, 0.7),
        "decides": (0.5, 0.8),
        "bug_in": (0.5, 0.9),
        "changed_by": (0.9, 0.5),
        "extends": (0.6, 0.3),
        "implements": (0.6, 0.7),
        "uses_trait": (0.5, 0.2),
    }
)
"""Shares of relevance that flow from what is stated of to what it names, and back."""

OF_DOCUMENTS: Final = frozenset({"documents", "decides", "bug_in", "changed_by", "applies_to"})
"""Relations that documents state, which define nothing themselves."""

WEAK: Final = frozenset({"imports", "in_group", "depends_on"})
"""Relations that tell hardly anything, and that most have."""

_OTHER: Final = (0.4, 0.3)
_HIGHEST: Final = tuple(max(shares[way] for shares in _WEIGHTS.values()) for way in (_OUT, _IN))
"""No relation has a higher share, in either direction."""

_WANTED: Final = 2.5
"""Factor of what a question asks for by its type."""
_LEAST: Final = 0.04
_FOLLOWED: Final = 0.12
"""Relevance from which on a node's own relations are followed."""
_WIDEST: Final = 20
"""Nodes whose relations are followed in one step."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A node, with its relevance.

    Attributes:
        path: names from the node that it was reached from first, that one included.
    """

    node: Node
    score: float
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """What was reached, most relevant first.

    Attributes:
        stating: documents that state relations of what was reached and define none of it (a
            decision, a bug, a change by a run), with their relevance.
        complete: whether nothing was left out for a limit.
    """

    reached: tuple[Reached, ...] = ()
    stating: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True


def flow(
    view: View,
    seeds: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
    *,
    depth: int,
    wanted: Collection[str] = (),
) -> Flow:
    """Follow relations from some nodes.

    Args:
        view: what the caller may read.
        seeds: relevance of the nodes to begin at.
        nodes: what they are.
        depth: steps at most.
        wanted: source types that count more.
    """
    spread = _Spread(view, dict(seeds), dict(nodes), {key: (key[1],) for key in seeds})
    frontier = list(seeds)
    for _ in range(depth):
        if frontier:
            frontier = spread.step(frontier)
    return spread.found(frozenset(wanted))


def share_of(kind: str) -> tuple[float, float]:
    """Shares of relevance that flow along a relation, from what it is stated of, and back."""
    return _WEIGHTS.get(kind, _OTHER)


def _starts(edge: FoundEdge) -> tuple[tuple[NodeKey, int], tuple[NodeKey, int]]:
    return ((edge.source, stated_of(edge)), _OUT), ((edge.source, edge.target), _IN)


def _crowds(edges: Sequence[FoundEdge], frontier: frozenset[NodeKey]) -> _Crowds:
    """How many edges of a kind there are at each node in each direction."""
    ends = ((start, edge.kind, way) for edge in edges for start, way in _starts(edge))
    return Counter(end for end in ends if end[0] in frontier)


class _Spread:
    """Relevance of nodes, from step to step."""

    def __init__(
        self,
        view: View,
        scores: dict[NodeKey, float],
        nodes: dict[NodeKey, Node],
        paths: dict[NodeKey, tuple[str, ...]],
    ) -> None:
        self._view, self._scores, self._nodes, self._paths = view, scores, nodes, paths
        self._stating: dict[str, float] = {}
        self._complete = True

    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the relations of some nodes; returns those to go on from."""
        strong = [key for key in frontier if self._scores[key] >= _FOLLOWED]
        best = sorted(strong, key=lambda key: -self._scores[key])[:_WIDEST]
        if not best:
            return []
        found = self._view.edges_at(best, self._nodes, "both", without=WEAK)
        self._complete = self._complete and not found.cut
        crowds = _crowds(found.edges, frozenset(best))
        relevant = self._relevant(found.edges, crowds)
        known = self._view.ends(relevant, self._nodes)
        ways = self._ways(relevant, known, frozenset(best))
        new: dict[NodeKey, float] = {}
        for start, end, kind, way, edge in ways:
            share = share_of(kind)[way] / (1 + math.log2(crowds[start, edge.kind, way]))
            score = self._scores[start] * share * edge.confidence
            if kind in OF_DOCUMENTS:
                held = edge.document_id
                self._stating[held] = max(score, self._stating.get(held, 0.0))
            if end in self._scores:
                continue
            if score > new.get(end, 0.0):
                new[end] = score
                self._paths[end] = (*self._paths[start], end[1])
        room = MOST_NODES - len(self._scores)
        kept = sorted(new, key=lambda key: (-new[key], key))
        self._complete = self._complete and len(kept) <= room
        kept = [key for key in kept[: max(0, room)] if new[key] >= _LEAST]
        for key in kept:
            self._scores[key] = new[key]
            self._nodes[key] = known[key]
        return kept

    def _relevant(self, edges: Sequence[FoundEdge], crowds: _Crowds) -> list[FoundEdge]:
        """The edges along which enough may flow: what the others lead to need not be looked up."""

        def most(edge: FoundEdge) -> float:
            return max(
                (
                    self._scores.get(start, 0.0) * _HIGHEST[way] / (1 + math.log2(count))
                    for start, way in _starts(edge)
                    if (count := crowds[start, edge.kind, way])
                ),
                default=0.0,
            )

        return [
            edge
            for edge in edges
            if edge.kind in OF_DOCUMENTS or most(edge) * edge.confidence >= _LEAST
        ]

    def found(self, wanted: frozenset[str]) -> Flow:
        """What was reached, most relevant first."""
        reached = [
            Reached(
                node,
                self._scores[key] * (_WANTED if node.source_type in wanted else 1.0),
                self._paths[key],
            )
            for key, node in self._nodes.items()
        ]
        # What was named comes before all that is related to it.
        reached.sort(key=lambda one: (len(one.path) > 1, -one.score, one.node.name))
        defining = {one.node.document_id for one in reached}
        stating = {id_: s for id_, s in self._stating.items() if id_ not in defining}
        return Flow(tuple(reached), stating, self._complete)

    @staticmethod
    def _ways(
        edges: Sequence[FoundEdge], known: Mapping[NodeKey, Node], frontier: frozenset[NodeKey]
    ) -> list[tuple[NodeKey, NodeKey, str, int, FoundEdge]]:
        """Steps along edges from nodes: their two ends, the relation, and its direction."""
        found = []
        for edge in edges:
            relation = relation_of(edge, known)
            if edge.kind == MEMBER:
                ends, kind = (edge.stated_of, edge.target), MEMBER
            elif relation is not None:
                ends, kind = (relation.source, relation.target), relation.kind
            else:
                continue
            first, last = ((edge.source, end) for end in ends)
            if first not in known or last not in known:
                continue
            if first in frontier:
                found.append((first, last, kind, _OUT, edge))
            if last in frontier:
                found.append((last, first, kind, _IN, edge))
        return found
