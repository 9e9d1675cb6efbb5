"""Relevance that passes from nodes on to the definitions related to them.

For a question that names definitions, relevance flows from these (`flow_from_names`). More of it
flows along relations that people follow; less flows through a definition that everything is related
to. The method is known as spreading activation (Collins and Loftus, Psychological Review, 1975).

For a question that names none, each definition that the search found passes on a share
(`flow_from_results`). A definition that is reached from several others gets the sum. So definitions
are found that share no word with the question but link definitions that do: the job that a service
dispatches, the policy of a model. The method is known as random walk with restart (Tong, Faloutsos
and Pan, ICDM 2006); here it is limited to a few steps.

Walks start at the topics of questions and lead to the same few nodes: models, base classes, tables.
The ways from a node depend only on the caller's view. So they are computed once for each state of
the relations.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from rag_assets.systems.code_memory.catalog.found_relations import FoundEdge
from rag_assets.systems.code_memory.retrieval.nodes import (
    Node,
    NodeKey,
    find_defining_files,
    find_relation_name,
    get_stating_node,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import MOST_NODES
from rag_assets.systems.code_memory.symbols.names import ENV, FILE, MEMBER, MIDDLEWARE, PACKAGE

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
"""Shares that flow from the source of a relation to its target, and in the opposite direction."""

OF_DOCUMENTS: Final = frozenset({"documents", "decides", "bug_in", "changed_by", "applies_to"})
"""Kinds of relations stated by documents that do not define anything themselves."""

WEAK: Final = frozenset({"imports", "in_group", "depends_on"})
"""Kinds of relations that say little, and that most nodes have."""

_OTHER: Final = (0.4, 0.3)

_UNNAMED: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "makes": (0.7, 0.5),
        "takes": (0.7, 0.4),
        "touches": (0.3, 0.2),
        "returns": (0.4, 0.3),
    }
)
"""Shares along relations that are never shown: a service passed to a method."""


_ONLY_MEMBER: Final = 0.7
"""Share that flows from a class to its only method, since that method is what the class does."""


def compute_share(kind: str, way: int, crowd: float) -> float:
    """Return the share of a node's relevance that flows along one of its relations.

    Args:
        kind: the kind of the relation.
        way: 0 from its source to its target, 1 in the opposite direction.
        crowd: number of the node's relations of this kind and direction, which divide the share; an
            uncertain relation counts as less than one.
    """
    if kind == MEMBER and way == 1 and crowd <= 1:
        return _ONLY_MEMBER
    shares = _UNNAMED.get(kind) or _WEIGHTS.get(kind, _OTHER)
    return shares[way] * _compute_part(crowd)


@functools.lru_cache(maxsize=4_096)
def _compute_part(crowd: float) -> float:
    """Return the part of a share that one relation gets if this many relations divide it."""
    return 1 / (1 + math.log2(max(1.0, crowd)))


_CROWD: Final = 30
"""Number of relations above which a definition counts as related to everything."""
_SHARED: Final = (PACKAGE, ENV, MIDDLEWARE)
_SHARED_CROWD: Final = 2
_LEAST: Final = 0.01
"""Minimum share to pass on along a step, however relevant the node is."""

_MOST_EDGES: Final = 1_000
"""Maximum relations read of a node per direction; a node with more is treated as a dead end."""
_MOST_WAYS: Final = 50_000
"""Maximum number of ways and nodes kept for one state and one set of scopes; about 10 MB."""
_MOST_STATES: Final = 4


@dataclass(frozen=True, slots=True)
class Way:
    """A step from one node to the next.

    Attributes:
        share: the share of the node's relevance that is passed on along this step.
        key, node: the other node.
        kind: the kind of the edge.
        is_named: whether the relation has a user-facing name.
        document_id: the document that states it.
    """

    share: float
    key: NodeKey
    node: Node
    kind: str
    is_named: bool
    document_id: str


class Around(NamedTuple):
    """The surroundings of a node.

    Attributes:
        ways: the ways from the node, greatest shares first.
        size: number of relations in both directions; a lower bound if `is_cut`.
        is_cut: whether the node has too many relations to read, and therefore no ways.
    """

    ways: Sequence[Way]
    size: int
    is_cut: bool


def specificity(name: str, around: Around) -> float:
    """Return the factor for relevance that a node passes on: below 1 if it has many relations.

    A package or a setting is not defined in the repository, and files that name it are otherwise
    unrelated. The factor of such a node is inversely proportional to the number of these files.
    """
    if name.startswith(_SHARED):
        return min(1.0, _SHARED_CROWD / max(1, around.size))
    return math.sqrt(min(1.0, _CROWD / max(1, around.size)))


class _Asked(NamedTuple):
    """A node, and the file whose edges count as edges of the node; None without such a file."""

    key: NodeKey
    file: NodeKey | None


class Surroundings:
    """The surroundings of nodes requested so far, in one state and for one set of scopes."""

    def __init__(self) -> None:
        self._around: dict[_Asked, Around] = {}
        self._kept = 0

    def of(
        self, view: View, keys: Sequence[NodeKey], nodes: Mapping[NodeKey, Node]
    ) -> tuple[dict[NodeKey, Around], bool]:
        """Return the surroundings of nodes, and whether a limit cut some of them.

        Args:
            keys: the keys of the nodes, the most relevant first. Edges of a file count for the
                first of its definitions.
        """
        files = {key: file for file, key in find_defining_files(keys, nodes).items()}
        asked = [_Asked(key, files.get(key)) for key in keys]
        cached = self._around
        known = {one: cached[one] for one in asked if one in cached}
        missing = [one for one in asked if one not in known]
        if missing:
            fresh = _read_surroundings(view, missing, nodes)
            known |= fresh
            self._keep(fresh)
        cut = any(around.is_cut for around in known.values())
        return {one.key: around for one, around in known.items()}, cut

    def _keep(self, fresh: Mapping[_Asked, Around]) -> None:
        count = sum(len(around.ways) + 1 for around in fresh.values())
        if self._kept + count > _MOST_WAYS:
            self._around, self._kept = {}, 0
        if count <= _MOST_WAYS:
            self._around |= fresh
            self._kept += count


class SurroundingsCache:
    """Surroundings in the most recently used states, separately for each set of readable scopes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, Surroundings] = OrderedDict()

    def of(self, *state: Hashable) -> Surroundings:
        """Return the surroundings for a state of a build and for callers with the same scopes."""
        with self._lock:
            found = self._kept.setdefault(state, Surroundings())
            self._kept.move_to_end(state)
            while len(self._kept) > _MOST_STATES:
                self._kept.popitem(last=False)
            return found


_Ended: TypeAlias = tuple[FoundEdge, int, NodeKey]
"""An edge, the index of the node's end (0 if the node states the edge), and the other end."""
_Relation: TypeAlias = tuple[str, bool]
"""The kind of an edge, and whether it has a user-facing name."""
_Among: TypeAlias = tuple[bool, _Relation, int]
"""Whether the edge is inferred, its relation, and the index of the node's end."""


def _read_surroundings(
    view: View, asked: Sequence[_Asked], nodes: Mapping[NodeKey, Node]
) -> dict[_Asked, Around]:
    at: dict[NodeKey, list[_Ended]] = {one.key: [] for one in asked}
    files = {one.file: one.key for one in asked if one.file is not None}
    names = dict.fromkeys(name for _, name in (*at, *files))
    whole = [name for _, name in at]
    found = view.edges([*names], "both", files=whole, without=WEAK, most=_MOST_EDGES)
    if found.cut and len(asked) > 1:
        # The relations of one node leave no room for those of the others.
        half = len(asked) // 2
        return _read_surroundings(view, asked[:half], nodes) | _read_surroundings(
            view, asked[half:], nodes
        )
    for edge in found.edges:
        ends = (edge.source, get_stating_node(edge)), (edge.source, edge.target)
        if ends[0] == ends[1]:
            continue
        for way, end in enumerate(ends):
            is_named = way == 1 or edge.stated_of  # A file's edges about itself do not count.
            key = files.get(end) if is_named and end[1].startswith(FILE) else end
            if key in at:
                at[key].append((edge, way, ends[1 - way]))
    ended = {(one.document_id, one.position): one for edges in at.values() for one, *_ in edges}
    known = view.ends([*ended.values()], nodes)
    return {one: _build_around(at[one.key], known, is_cut=found.cut) for one in asked}


def _build_around(
    edges: Sequence[_Ended], known: Mapping[NodeKey, Node], *, is_cut: bool
) -> Around:
    ways = []
    followed = [one for one in edges if one[2] in known]  # Only ends that the repository defines.
    relations = [_get_relation(edge, known) for edge, *_ in followed]
    crowds = _count_crowds(followed, relations)
    for (edge, way, other), (kind, is_named) in zip(followed, relations, strict=True):
        crowd = crowds[edge.how == "inferred", (kind, is_named), way]
        share = compute_share(kind, way, crowd) * edge.confidence
        if share >= _LEAST:
            found = Way(share, other, known[other], edge.kind, is_named, edge.document_id)
            ways.append((-share, (edge.document_id, edge.position), found))
    ways.sort(key=lambda one: one[:2])
    return Around([way for _, _, way in ways], _MOST_EDGES if is_cut else len(edges), is_cut)


def _count_crowds(
    edges: Sequence[_Ended], relations: Sequence[_Relation]
) -> Mapping[_Among, float]:
    """Return the number of relations that share each relevance, weighted by confidence.

    An inferred relation shares with all relations of its kind and direction. It does not reduce the
    share of relations that are stated.
    """
    crowds: defaultdict[_Among, float] = defaultdict(float)
    for relation, (edge, way, _) in zip(relations, edges, strict=True):
        crowds[True, relation, way] += edge.confidence
        if edge.how != "inferred":
            crowds[False, relation, way] += edge.confidence
    return crowds


def _get_relation(edge: FoundEdge, known: Mapping[NodeKey, Node]) -> _Relation:
    """Return the kind of an edge, and whether it has a user-facing name."""
    if edge.kind == MEMBER:
        return MEMBER, True
    kind = find_relation_name(edge, known)
    return (edge.kind, False) if kind is None else (kind, True)


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
