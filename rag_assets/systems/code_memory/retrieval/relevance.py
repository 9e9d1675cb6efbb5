"""Relevance that passes from nodes on to the definitions related to them.

For a question that names definitions, relevance flows from these (`flow_from_names`). More of it
flows along relations that people follow; less flows through a definition that everything is related
to. The method is known as spreading activation (Collins and Loftus, Psychological Review, 1975).

For a question that names none, each definition that the search found passes on a share
(`flow_from_results`). A definition that is reached from several others gets the sum. So definitions
are found that share no word with the question but link definitions that do: the job that a service
dispatches, the policy of a model. The method is known as random walk with restart (Tong, Faloutsos
and Pan, ICDM 2006); here it is limited to a few steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, find_defining_files
from rag_assets.systems.code_memory.retrieval.surroundings import (
    OF_DOCUMENTS,
    Around,
    Surroundings,
    Way,
    specificity,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import MOST_NODES

_WANTED: Final = 2.5
"""Factor for nodes of a type that a question with names asks for."""
_LEAST_REACHED: Final = 0.04
_LEAST_FOLLOWED: Final = 0.12
"""Minimum relevance of a node for its own relations to be followed from names."""
_WIDEST: Final = 20
"""Maximum number of nodes followed in one step from names."""
_MOST_FOLLOWED: Final = (20, 15, 10)
"""Maximum number of nodes, the most relevant ones, followed in each step from search results."""
_KEPT_SHARE: Final = 0.9
"""Share of relevance that a step from search results keeps."""
_LEAST_PASSED: Final = 0.05
"""Minimum relevance to pass on from search results."""


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
        stating: documents that state relations of reached nodes (a decision, a bug, a change by a
            run), with their relevance.
        complete: whether no limit cut the result.
    """

    reached: tuple[Reached, ...] = ()
    stating: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True


def flow_from_names(
    view: View,
    surroundings: Surroundings,
    seeds: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
    *,
    depth: int,
    wanted: Collection[str] = (),
) -> Flow:
    """Return the nodes that relevance reaches from the definitions that a question names.

    Documents that define one of these nodes are not among the documents that state relations.

    Args:
        surroundings: cached surroundings of nodes in this view.
        seeds: relevance of the start nodes.
        nodes: the start nodes.
        depth: maximum number of steps.
        wanted: source types that count more.
    """
    spread = _FromNames(view, surroundings, dict(seeds), dict(nodes))
    frontier = list(seeds)
    for _ in range(depth):
        frontier = spread.step(frontier)
    return spread.flow(frozenset(wanted))


def flow_from_results(
    view: View,
    surroundings: Surroundings,
    seeds: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
) -> Flow:
    """Return the nodes that gain relevance from the results of a search, these results included.

    The path of a node is the one along which most of its relevance came.

    Args:
        surroundings: cached surroundings of nodes in this view.
        seeds: relevance of the definitions that the search found.
        nodes: these definitions.
    """
    spread = _FromResults(view, surroundings, dict(seeds), dict(nodes))
    values = dict(seeds)
    for most in _MOST_FOLLOWED:
        values = spread.step(values, most)
    return spread.flow()


@dataclass(slots=True)
class _Spread:
    """The nodes reached so far, with their paths."""

    view: View
    surroundings: Surroundings
    scores: dict[NodeKey, float]
    nodes: dict[NodeKey, Node]
    paths: dict[NodeKey, tuple[str, ...]] = field(default_factory=dict)
    stating: dict[str, float] = field(default_factory=dict)
    complete: bool = True

    def __post_init__(self) -> None:
        self.paths = {key: (key[1],) for key in self.scores}

    def _surround(
        self, keys: Sequence[NodeKey]
    ) -> tuple[dict[NodeKey, Around], dict[NodeKey, NodeKey]]:
        """Return the surroundings of nodes, and the files whose edges count for these nodes."""
        around, cut = self.surroundings.of(self.view, keys, self.nodes)
        self.complete = self.complete and not cut
        return around, find_defining_files(keys, self.nodes)

    def _note_stating(self, way: Way, score: float) -> None:
        if way.kind in OF_DOCUMENTS:
            self.stating[way.document_id] = max(score, self.stating.get(way.document_id, 0.0))


@dataclass(slots=True)
class _FromNames(_Spread):
    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the relations of these nodes; return the nodes from which to continue."""
        strong = [key for key in frontier if self.scores[key] >= _LEAST_FOLLOWED]
        best = sorted(strong, key=lambda key: -self.scores[key])[:_WIDEST]
        if not best:
            return []
        around, files = self._surround(best)
        new: dict[NodeKey, float] = {}
        new_nodes: dict[NodeKey, Node] = {}
        for start in best:
            # A node that the question names passes on all its relevance, however many relations it
            # has.
            is_named = len(self.paths[start]) == 1
            passed = self.scores[start]
            passed *= 1.0 if is_named else specificity(start[1], around[start])
            for way in around[start].ways:
                if not way.is_named:
                    continue
                score = passed * way.share
                self._note_stating(way, score)
                # Edges of a file on the frontier count for its definition.
                end = files.get(way.key, way.key)
                if end not in self.scores and score > new.get(end, 0.0):
                    new[end], new_nodes[end] = score, way.node
                    self.paths[end] = (*self.paths[start], end[1])
        return self._select_frontier(new, new_nodes)

    def _select_frontier(
        self, new: Mapping[NodeKey, float], new_nodes: Mapping[NodeKey, Node]
    ) -> list[NodeKey]:
        room = MOST_NODES - len(self.scores)
        ordered = sorted(new, key=lambda key: (-new[key], key))
        self.complete = self.complete and len(ordered) <= room
        kept = [key for key in ordered[: max(0, room)] if new[key] >= _LEAST_REACHED]
        for key in kept:
            self.scores[key] = new[key]
            self.nodes[key] = new_nodes[key]
        return kept

    def flow(self, wanted: frozenset[str]) -> Flow:
        """Return the reached nodes, those that the question names first."""
        reached = [
            Reached(
                node,
                self.scores[key] * (_WANTED if node.source_type in wanted else 1.0),
                self.paths[key],
            )
            for key, node in self.nodes.items()
        ]
        reached.sort(key=lambda one: (len(one.path) > 1, -one.score, one.node.name))
        defining = {one.node.document_id for one in reached}
        stating = {id_: s for id_, s in self.stating.items() if id_ not in defining}
        return Flow(tuple(reached), stating, self.complete)


@dataclass(slots=True)
class _FromResults(_Spread):
    gained: dict[NodeKey, float] = field(default_factory=dict)
    followed: dict[NodeKey, float] = field(default_factory=dict)
    greatest: dict[NodeKey, float] = field(default_factory=dict)

    def step(self, values: Mapping[NodeKey, float], most: int) -> dict[NodeKey, float]:
        """Pass on what nodes gained last; return what other nodes gain from it."""
        fresh = (key for key in values if key not in self.followed)
        best = sorted(fresh, key=lambda key: (-values[key], key))[:most]
        if not best:
            return {}
        around, files = self._surround(best)
        gains: dict[NodeKey, float] = defaultdict(float)
        for key in best:
            self.followed[key] = specificity(key[1], around[key])
            tempered = self.followed[key] if key in self.gained else 1.0
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
            self.gained[key] = self.gained.get(key, 0.0) + gain
        return dict(gains)

    def flow(self) -> Flow:
        """Return the nodes that gained relevance."""
        reached = [
            Reached(self.nodes[key], gain * self.followed.get(key, 1.0), self.paths[key])
            for key, gain in self.gained.items()
        ]
        reached.sort(key=lambda one: (-one.score, one.node.name))
        return Flow(tuple(reached), self.stating, self.complete)

    def _remember_path(self, start: NodeKey, end: NodeKey, way: Way, gain: float) -> None:
        self.nodes.setdefault(end, way.node)
        self._note_stating(way, gain)
        if gain > self.greatest.get(end, 0.0) and end[1] not in self.paths[start]:
            self.greatest[end] = gain
            if len(self.paths.get(end, ())) != 1:
                self.paths[end] = (*self.paths[start], end[1])
