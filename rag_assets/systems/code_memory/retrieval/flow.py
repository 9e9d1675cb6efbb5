"""The flow: passes relevance from start nodes on to the definitions related to them.

Relevance flows along relations. More of it flows along relations that people follow (a route to its
controller, a model to its table). Less flows through a definition that everything is related to.
The method is known as spreading activation (Collins and Loftus, Psychological Review, 1975).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey
from rag_assets.systems.code_memory.retrieval.shares import OF_DOCUMENTS
from rag_assets.systems.code_memory.retrieval.surroundings import (
    Surroundings,
    files_of,
    specificity,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import MOST_NODES

_WANTED: Final = 2.5
"""Factor for nodes of a type that the question asks for."""
_LEAST: Final = 0.04
_FOLLOWED: Final = 0.12
"""Minimum relevance of a node for its own relations to be followed."""
_WIDEST: Final = 20
"""Maximum number of nodes followed in one step."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A node, with its relevance.

    Attributes:
        path: names from the start node through which it was reached, including that start node.
    """

    node: Node
    score: float
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """The reached nodes, the most relevant first.

    Attributes:
        stating: documents that state relations of reached nodes but define none of them (a
            decision, a bug, a change by a run), with their relevance.
        complete: whether no limit cut the result.
    """

    reached: tuple[Reached, ...] = ()
    stating: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True


def flow(
    view: View,
    surroundings: Surroundings,
    seeds: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
    *,
    depth: int,
    wanted: Collection[str] = (),
) -> Flow:
    """Return the nodes that relevance reaches along relations from the start nodes.

    Args:
        surroundings: cached surroundings of nodes in this view.
        seeds: relevance of the start nodes.
        nodes: the start nodes.
        depth: maximum number of steps.
        wanted: source types that count more.
    """
    spread = _Spread(view, surroundings, dict(seeds), dict(nodes))
    frontier = list(seeds)
    for _ in range(depth):
        if frontier:
            frontier = spread.step(frontier)
    return spread.found(frozenset(wanted))


class _Spread:
    """Stores the relevance of nodes and updates it step by step."""

    def __init__(
        self,
        view: View,
        surroundings: Surroundings,
        scores: dict[NodeKey, float],
        nodes: dict[NodeKey, Node],
    ) -> None:
        self._view, self._surroundings = view, surroundings
        self._scores, self._nodes = scores, nodes
        self._paths: dict[NodeKey, tuple[str, ...]] = {key: (key[1],) for key in scores}
        self._stating: dict[str, float] = {}
        self._complete = True

    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the relations of these nodes; return the nodes from which to continue."""
        strong = [key for key in frontier if self._scores[key] >= _FOLLOWED]
        best = sorted(strong, key=lambda key: -self._scores[key])[:_WIDEST]
        if not best:
            return []
        around, cut = self._surroundings.of(self._view, best, self._nodes)
        self._complete = self._complete and not cut
        files = files_of(best, self._nodes)
        new: dict[NodeKey, float] = {}
        met: dict[NodeKey, Node] = {}
        for start in best:
            # A node that the question names passes on all its relevance, however many relations it
            # has.
            is_named = len(self._paths[start]) == 1
            passed = self._scores[start]
            passed *= 1.0 if is_named else specificity(start[1], around[start])
            for way in around[start].ways:
                if not way.is_named:
                    continue
                score = passed * way.share
                if way.kind in OF_DOCUMENTS:
                    held = way.document_id
                    self._stating[held] = max(score, self._stating.get(held, 0.0))
                # Edges of a file on the frontier count for its definition.
                end = files.get(way.key, way.key)
                if end not in self._scores and score > new.get(end, 0.0):
                    new[end], met[end] = score, way.node
                    self._paths[end] = (*self._paths[start], end[1])
        return self._select_frontier(new, met)

    def _select_frontier(
        self, new: Mapping[NodeKey, float], met: Mapping[NodeKey, Node]
    ) -> list[NodeKey]:
        room = MOST_NODES - len(self._scores)
        ordered = sorted(new, key=lambda key: (-new[key], key))
        self._complete = self._complete and len(ordered) <= room
        kept = [key for key in ordered[: max(0, room)] if new[key] >= _LEAST]
        for key in kept:
            self._scores[key] = new[key]
            self._nodes[key] = met[key]
        return kept

    def found(self, wanted: frozenset[str]) -> Flow:
        """Return the reached nodes, most relevant first."""
        reached = [
            Reached(
                node,
                self._scores[key] * (_WANTED if node.source_type in wanted else 1.0),
                self._paths[key],
            )
            for key, node in self._nodes.items()
        ]
        # Nodes that the question names come before all related nodes.
        reached.sort(key=lambda one: (len(one.path) > 1, -one.score, one.node.name))
        defining = {one.node.document_id for one in reached}
        stating = {id_: s for id_, s in self._stating.items() if id_ not in defining}
        return Flow(tuple(reached), stating, self._complete)
