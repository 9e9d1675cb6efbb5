"""Relevance that passes from nodes on to the definitions related to them.

For a question that names definitions, relevance flows from these (`flow`). More of it flows along
relations that people follow; less flows through a definition that everything is related to. The
method is known as spreading activation (Collins and Loftus, Psychological Review, 1975).

For a question that names none, each definition that the search found passes on a share
(`relevance`). A definition that is reached from several others gets the sum. So definitions are
found that share no word with the question but link definitions that do: the job that a service
dispatches, the policy of a model. The method is known as random walk with restart (Tong, Faloutsos
and Pan, ICDM 2006); here it is limited to a few steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey
from rag_assets.systems.code_memory.retrieval.surroundings import (
    OF_DOCUMENTS,
    Surroundings,
    Way,
    files_of,
    specificity,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import MOST_NODES

_WANTED: Final = 2.5
"""Factor for nodes of a type that the question asks for."""
_LEAST_REACHED: Final = 0.04
_LEAST_FOLLOWED: Final = 0.12
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
        strong = [key for key in frontier if self._scores[key] >= _LEAST_FOLLOWED]
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
        kept = [key for key in ordered[: max(0, room)] if new[key] >= _LEAST_REACHED]
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


_MOST_FOLLOWED: Final = (20, 15, 10)
"""Maximum number of nodes, the most relevant ones, that are followed in each step."""
_KEPT_SHARE: Final = 0.9
"""Share of relevance that a step keeps."""
_LEAST_PASSED: Final = 0.05
"""Minimum relevance to pass on."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Definitions related to the search results.

    Attributes:
        gained: nodes with the relevance that was passed on to them, including nodes that the search
            found; the path of a node is the one along which most of its relevance came.
        stating: documents that state relations of these nodes, with their relevance.
        complete: whether no limit cut the result.
    """

    gained: tuple[Reached, ...] = ()
    stating: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True


def relevance(
    view: View,
    surroundings: Surroundings,
    found: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
) -> Relevance:
    """Pass relevance on along relations.

    Args:
        surroundings: cached surroundings of nodes in this view.
        found: relevance of the definitions that a search found.
        nodes: these definitions.
    """
    passing = _Passing(view, surroundings, found, nodes)
    values = dict(found)
    for most in _MOST_FOLLOWED:
        values = passing.step(values, most)
        if not values:
            break
    return passing.relevance()


class _Passing:
    def __init__(
        self,
        view: View,
        surroundings: Surroundings,
        found: Mapping[NodeKey, float],
        nodes: Mapping[NodeKey, Node],
    ) -> None:
        self._view, self._surroundings, self._nodes = view, surroundings, dict(nodes)
        self._paths: dict[NodeKey, tuple[str, ...]] = {key: (key[1],) for key in found}
        self._most: dict[NodeKey, float] = {}
        self._gained: dict[NodeKey, float] = {}
        self._stating: dict[str, float] = {}
        self._followed: dict[NodeKey, float] = {}
        self._complete = True

    def step(self, values: Mapping[NodeKey, float], most: int) -> dict[NodeKey, float]:
        """Pass on what nodes gained last; return what other nodes gain from it."""
        fresh = (key for key in values if key not in self._followed)
        best = sorted(fresh, key=lambda key: (-values[key], key))[:most]
        if not best:
            return {}
        around, cut = self._surroundings.of(self._view, best, self._nodes)
        self._complete = self._complete and not cut
        files = files_of(best, self._nodes)
        gains: dict[NodeKey, float] = defaultdict(float)
        for key in best:
            self._followed[key] = specificity(key[1], around[key])
            tempered = self._followed[key] if key in self._gained else 1.0
            passed = _KEPT_SHARE * values[key] * tempered
            for way in around[key].ways:
                gain = passed * way.share
                if gain < _LEAST_PASSED:
                    break
                # Edges of a followed file count for its definition.
                end = files.get(way.key, way.key)
                if end != key:
                    gains[end] += gain
                    self._remember_path(key, end, way, gain)
        for key, gain in gains.items():
            self._gained[key] = self._gained.get(key, 0.0) + gain
        return dict(gains)

    def relevance(self) -> Relevance:
        """Return the relevance that nodes gained."""
        reached = [
            Reached(self._nodes[key], gain * self._followed.get(key, 1.0), self._paths[key])
            for key, gain in self._gained.items()
        ]
        reached.sort(key=lambda one: (-one.score, one.node.name))
        return Relevance(tuple(reached), self._stating, self._complete)

    def _remember_path(self, start: NodeKey, end: NodeKey, way: Way, gain: float) -> None:
        self._nodes.setdefault(end, way.node)
        if way.kind in OF_DOCUMENTS:
            self._stating[way.document_id] = max(gain, self._stating.get(way.document_id, 0.0))
        if gain > self._most.get(end, 0.0) and end[1] not in self._paths[start]:
            self._most[end] = gain
            if len(self._paths.get(end, ())) != 1:
                self._paths[end] = (*self._paths[start], end[1])
