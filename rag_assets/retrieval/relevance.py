"""Relevance of definitions for a question that names none of them, from what a search found.

Every definition that the search found passes a share of its relevance on to what it is related to,
and this some of it further; what several of them lead to gets the sum. So definitions come up that
have no word of the question but are between those that have: the job that a service dispatches, the
policy of a model. What everything is related to (the model of users) gets less: it tells nothing.
Known as a random walk with restart (Tong, Faloutsos and Pan, ICDM 2006), of a few steps here.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from rag_assets.code.nodes import MEMBER
from rag_assets.code.relations import NAMED
from rag_assets.retrieval.code_nodes import OF_TESTS, Node, NodeKey, relation_of, stated_of
from rag_assets.retrieval.code_view import View
from rag_assets.retrieval.flow import OF_DOCUMENTS, WEAK, Reached, share_of
from rag_assets.storage.catalog.found_relations import FoundEdge

_FOLLOWED: Final = (20, 15, 10)
"""Nodes whose relations are followed in each step, the most relevant."""
_KEPT: Final = 0.9
"""Share of relevance that a step keeps."""
_LEAST: Final = 0.05
"""Share below which none is passed on."""
_CROWDED: Final = 30
"""Relations from which on a node is thought to be related to everything."""

_UNNAMED: Final[Mapping[str, tuple[float, float]]] = {
    "makes": (0.7, 0.5),
    "takes": (0.5, 0.3),
    "touches": (0.3, 0.2),
    "returns": (0.4, 0.3),
}
"""Shares that flow along relations that are told to nobody: a service that a method is given."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """What is related to what a search found.

    Attributes:
        gained: nodes with the relevance that others passed on to them, those that the search found
            among them; the path of each is that along which most of it came.
        stating: documents that state relations of these, with their relevance.
        complete: whether nothing was left out for a limit.
    """

    gained: tuple[Reached, ...] = ()
    stating: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True


def relevance(
    view: View, found: Mapping[NodeKey, float], nodes: Mapping[NodeKey, Node]
) -> Relevance:
    """Pass relevance on along relations.

    Args:
        view: what the caller may read.
        found: relevance of the definitions that a search found.
        nodes: what they are.
    """
    passing = _Passing(view, found, nodes)
    values = dict(found)
    for most in _FOLLOWED:
        values = passing.step(values, most)
        if not values:
            break
    return passing.relevance()


@dataclass(frozen=True, slots=True)
class _Way:
    """A step along an edge: its ends, and the share that flows."""

    start: NodeKey
    end: NodeKey
    share: float
    edge: FoundEdge


class _Passing:
    def __init__(
        self, view: View, found: Mapping[NodeKey, float], nodes: Mapping[NodeKey, Node]
    ) -> None:
        self._view, self._nodes = view, dict(nodes)
        self._paths: dict[NodeKey, tuple[str, ...]] = {key: (key[1],) for key in found}
        self._most: dict[NodeKey, float] = {}
        self._gained: dict[NodeKey, float] = {}
        self._stating: dict[str, float] = {}
        self._followed: dict[NodeKey, float] = {}
        self._complete = True

    def step(self, values: Mapping[NodeKey, float], most: int) -> dict[NodeKey, float]:
        """Pass on what nodes have gained last; returns what others have gained by that."""
        fresh = (key for key in values if key not in self._followed)
        best = sorted(fresh, key=lambda key: (-values[key], key))[:most]
        if not best:
            return {}
        found = self._view.edges_around(best, self._nodes, WEAK)
        self._complete = self._complete and not found.cut
        ends = [_ends(edge) for edge in found.edges]
        crowds = _crowds(found.edges, ends, frozenset(best))
        self._followed |= _tempers(best, crowds)
        passed = {
            key: values[key] * (self._followed[key] if key in self._gained else 1.0) for key in best
        }
        relevant = [
            edge
            for edge, (one, other) in zip(found.edges, ends, strict=True)
            if (one in passed and _may_pass(edge, 0, passed[one], crowds[one, edge.kind, 0]))
            or (other in passed and _may_pass(edge, 1, passed[other], crowds[other, edge.kind, 1]))
        ]
        known = self._view.ends(relevant, self._nodes)
        gains: dict[NodeKey, float] = defaultdict(float)
        for way in _ways(relevant, known, crowds):
            gain = passed.get(way.start, 0.0) * way.share
            if gain < _LEAST:
                continue
            gains[way.end] += gain
            self._note(way, gain)
            self._nodes.setdefault(way.end, known[way.end])
        for key, gain in gains.items():
            self._gained[key] = self._gained.get(key, 0.0) + gain
        return dict(gains)

    def relevance(self) -> Relevance:
        """What was gained."""
        reached = [
            Reached(self._nodes[key], gain * self._followed.get(key, 1.0), self._paths[key])
            for key, gain in self._gained.items()
        ]
        reached.sort(key=lambda one: (-one.score, one.node.name))
        return Relevance(tuple(reached), self._stating, self._complete)

    def _note(self, way: _Way, gain: float) -> None:
        if way.edge.kind in OF_DOCUMENTS:
            held = way.edge.document_id
            self._stating[held] = max(gain, self._stating.get(held, 0.0))
        if gain > self._most.get(way.end, 0.0) and way.end[1] not in self._paths[way.start]:
            self._most[way.end] = gain
            if len(self._paths.get(way.end, ())) != 1:
                self._paths[way.end] = (*self._paths[way.start], way.end[1])


_Crowds = Counter[tuple[NodeKey, str, int]]


def _crowds(
    edges: Sequence[FoundEdge], ends: Sequence[tuple[NodeKey, NodeKey]], frontier: frozenset[NodeKey]
) -> _Crowds:
    """How many edges of a kind there are at each node in each direction."""
    found: _Crowds = Counter()
    for edge, (one, other) in zip(edges, ends, strict=True):
        if one in frontier:
            found[one, edge.kind, 0] += 1
        if other in frontier:
            found[other, edge.kind, 1] += 1
    return found


def _tempers(keys: Sequence[NodeKey], crowds: _Crowds) -> dict[NodeKey, float]:
    """Factors of what nodes gain: less than 1 where everything is related to them."""
    sizes: Counter[NodeKey] = Counter()
    for (key, _, _), count in crowds.items():
        sizes[key] += count
    return {key: math.sqrt(min(1.0, _CROWDED / max(1, sizes[key]))) for key in keys}


def _ends(edge: FoundEdge) -> tuple[NodeKey, NodeKey]:
    return (edge.source, stated_of(edge)), (edge.source, edge.target)


def _may_pass(edge: FoundEdge, way: int, relevance: float, crowd: int) -> bool:
    """Whether enough may flow along an edge, whatever is at its other end."""
    shares = _HIGHEST.get(edge.kind) or _shares(edge.kind)
    return _KEPT * relevance * shares[way] * edge.confidence * _part_of(crowd) >= _LEAST


@functools.cache
def _part_of(crowd: int) -> float:
    """The part of a share that each of so many edges has."""
    return 1 / (1 + math.log2(crowd))


def _shares(kind: str) -> tuple[float, float]:
    return _UNNAMED.get(kind) or share_of(kind)


def _highest() -> dict[str, tuple[float, float]]:
    """The highest shares of each kind of edges under any of the names that it may get."""
    names: dict[str, set[str]] = defaultdict(set)
    for (kind, _), name in NAMED.items():
        names[kind] |= {kind, name}
    for kind in OF_TESTS:
        names[kind] |= {kind, "tests"}
    return {
        kind: (max(_shares(one)[0] for one in of), max(_shares(one)[1] for one in of))
        for kind, of in names.items()
    }


_HIGHEST: Final = MappingProxyType(_highest())


def _ways(
    edges: Sequence[FoundEdge], known: Mapping[NodeKey, Node], crowds: _Crowds
) -> Iterator[_Way]:
    for edge in edges:
        ends = _ends(edge)
        if ends[0] == ends[1] or ends[0] not in known or ends[1] not in known:
            continue
        relation = None if edge.kind == MEMBER else relation_of(edge, known)
        kind = edge.kind if relation is None else relation.kind
        shares = _shares(kind)
        for way, start in enumerate(ends):
            if crowd := crowds[start, edge.kind, way]:
                share = _KEPT * shares[way] * edge.confidence * _part_of(crowd)
                yield _Way(start, ends[1 - way], share, edge)
