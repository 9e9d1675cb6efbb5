"""Relevance of definitions for a question that names none of them, based on search results.

Each definition that the search found passes a share of its relevance on to related definitions, and
these pass on some of it. A definition that is reached from several others gets the sum. So
definitions are found that share no word with the question but link definitions that do: the job
that a service dispatches, the policy of a model. A definition that everything is related to (the
user model) gets less, since it says little. The method is known as random walk with restart (Tong,
Faloutsos and Pan, ICDM 2006); here it is limited to a few steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rag_assets.systems.code_memory.retrieval.flow import Reached
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey
from rag_assets.systems.code_memory.retrieval.shares import OF_DOCUMENTS
from rag_assets.systems.code_memory.retrieval.surroundings import (
    Surroundings,
    Way,
    files_of,
    specificity,
)
from rag_assets.systems.code_memory.retrieval.view import View

_FOLLOWED: Final = (20, 15, 10)
"""Maximum number of nodes, the most relevant ones, that are followed in each step."""
_KEPT: Final = 0.9
"""Share of relevance that a step keeps."""
_LEAST: Final = 0.05
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
    for most in _FOLLOWED:
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
            passed = _KEPT * values[key] * tempered
            for way in around[key].ways:
                gain = passed * way.share
                if gain < _LEAST:
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
