"""Spread of relevance: from definitions to the definitions related to them.

If a question names definitions, relevance flows from them (`flow_from_names`). More of it flows
along relations that people follow, and less through a definition to which everything is related.
This method is spreading activation (Collins and Loftus, Psychological Review, 1975).

If a question names no definition, each definition in the search results passes on a share of its
relevance (`flow_from_results`). A definition that is reached from several others gets the sum. This
finds definitions that share no word with the question but link definitions that do: the job that a
service dispatches, the policy of a model. This method is random walk with restart (Tong, Faloutsos
and Pan, ICDM 2006), limited to a few steps.

Different questions lead to the same few nodes: models, base classes, tables. The neighbours of a
node depend only on the caller's view, so they are computed once for each state of the relations.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.retrieval.walk import MAX_NODES
from rag_assets.systems.code_memory.symbols.names import ENV, FILE, MEMBER, MIDDLEWARE, PACKAGE
from rag_assets.systems.code_memory.symbols.source_types import SourceType

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

DOCUMENT_RELATIONS: Final = frozenset(
    {"documents", "decides", "bug_in", "changed_by", "applies_to"}
)
"""Kinds of relations stated by documents that contain no definitions."""

WEAK_RELATIONS: Final = frozenset({"imports", "in_group", "depends_on"})
"""Kinds of relations that most nodes have, and that are not followed."""

_DEFAULT_WEIGHTS: Final = (0.4, 0.3)

_UNNAMED_WEIGHTS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "makes": (0.7, 0.5),
        "takes": (0.7, 0.4),
        "touches": (0.3, 0.2),
        "returns": (0.4, 0.3),
    }
)
"""Shares along relations that are never shown, such as a service that a method takes."""


_ONLY_MEMBER_SHARE: Final = 0.7
"""Share that flows from a class to its only method, which does all the work of the class."""


def compute_share(kind: str, end: int, count: float) -> float:
    """Return the share of a node's relevance that flows along one of its relations.

    Args:
        kind: the kind of the relation.
        end: 0 if the node is the source of the relation, 1 if it is the target.
        count: number of the node's relations of this kind and direction, which divide the share; an
            uncertain relation counts as less than 1.
    """
    if kind == MEMBER and end == 1 and count <= 1:
        return _ONLY_MEMBER_SHARE
    shares = _UNNAMED_WEIGHTS.get(kind) or _WEIGHTS.get(kind, _DEFAULT_WEIGHTS)
    return shares[end] * _divide_share(count)


@functools.lru_cache(maxsize=4_096)
def _divide_share(count: float) -> float:
    """Return the factor that reduces a share if a node has `count` equal relations."""
    return 1 / (1 + math.log2(max(1.0, count)))


_CROWD_RELATIONS: Final = 30
"""Number of relations above which a node passes on less relevance."""
_SHARED_PREFIXES: Final = (PACKAGE, ENV, MIDDLEWARE)
_SHARED_CROWD_RELATIONS: Final = 2
_MIN_SHARE: Final = 0.01
"""Minimum share to pass on along a relation, however relevant the node is."""

_MAX_EDGES: Final = 1_000
"""Maximum relations of a node to read per direction; a node with more is not followed."""
_MAX_NEIGHBOURS: Final = 50_000
"""Maximum neighbours and nodes cached for one state and one set of scopes; about 10 MB."""
_MAX_STATES: Final = 4


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node next to another node, and the edge between them.

    Attributes:
        share: the share of the other node's relevance that flows to this node.
        key, node: this neighbour.
        kind: the kind of the edge.
        is_named: whether the relation has a user-facing name.
        document_id: the document that states the edge.
    """

    share: float
    key: NodeKey
    node: Node
    kind: str
    is_named: bool
    document_id: str


class Neighbourhood(NamedTuple):
    """The neighbours of a node.

    Attributes:
        neighbours: the nodes to which relevance flows, those with the greatest shares first.
        size: number of relations in both directions; a lower bound if the node has too many to
            read, and therefore no neighbours.
    """

    neighbours: Sequence[Neighbour]
    size: int


def compute_specificity(name: str, neighbourhood: Neighbourhood) -> float:
    """Return the factor for relevance that a node passes on: below 1 if it has many relations.

    The relations of a package or a setting only connect files that are otherwise unrelated, so its
    factor is inversely proportional to their number.
    """
    size = max(1, neighbourhood.size)
    if name.startswith(_SHARED_PREFIXES):
        return min(1.0, _SHARED_CROWD_RELATIONS / size)
    return math.sqrt(min(1.0, _CROWD_RELATIONS / size))


_NodeAndFile: TypeAlias = tuple[NodeKey, NodeKey | None]
"""A node, and the file whose edges count as edges of the node, if there is one."""


class Neighbourhoods:
    """A cache of neighbourhoods for one state of the relations and one set of readable scopes."""

    def __init__(self) -> None:
        self._cache: dict[_NodeAndFile, Neighbourhood] = {}
        self._size = 0

    def read(
        self, view: RelationView, keys: Sequence[NodeKey], nodes: Mapping[NodeKey, Node]
    ) -> dict[NodeKey, Neighbourhood]:
        """Return the neighbourhoods of nodes.

        Args:
            keys: the keys of the nodes, the most relevant first. Edges of a file count for the
                first of its definitions.
            nodes: the nodes with these keys.
        """
        files = {key: file for file, key in find_defining_files(keys, nodes).items()}
        nodes_with_files = [(key, files.get(key)) for key in keys]
        cached = self._cache
        known = {key: cached[key] for key in nodes_with_files if key in cached}
        missing = [key for key in nodes_with_files if key not in known]
        if missing:
            fresh = _read_neighbourhoods(view, missing, nodes)
            known |= fresh
            self._add_to_cache(fresh)
        return {key: neighbourhood for (key, _), neighbourhood in known.items()}

    def _add_to_cache(self, fresh: Mapping[_NodeAndFile, Neighbourhood]) -> None:
        size = sum(len(neighbourhood.neighbours) + 1 for neighbourhood in fresh.values())
        if self._size + size > _MAX_NEIGHBOURS:
            self._cache, self._size = {}, 0
        if size <= _MAX_NEIGHBOURS:
            self._cache |= fresh
            self._size += size


class NeighbourhoodCache:
    """A cache of Neighbourhoods for the most recently used states and sets of readable scopes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_state: OrderedDict[Hashable, Neighbourhoods] = OrderedDict()

    def get(self, *state: Hashable) -> Neighbourhoods:
        """Return the neighbourhoods for a state of the relations and a set of readable scopes.

        Args:
            state: values that together are the key of the cache entry.
        """
        with self._lock:
            neighbourhoods = self._by_state.setdefault(state, Neighbourhoods())
            self._by_state.move_to_end(state)
            while len(self._by_state) > _MAX_STATES:
                self._by_state.popitem(last=False)
            return neighbourhoods


_EdgeAtNode: TypeAlias = tuple[FoundEdge, int, NodeKey]
"""An edge, the index of the node's end (0 if the node states the edge), and the other end."""
_RelationName: TypeAlias = tuple[str, bool]
"""The kind of an edge, and whether it has a user-facing name."""
_CountKey: TypeAlias = tuple[bool, _RelationName, int]
"""Whether the edge is inferred, its relation, and the index of the node's end."""


def _read_neighbourhoods(
    view: RelationView, nodes_with_files: Sequence[_NodeAndFile], nodes: Mapping[NodeKey, Node]
) -> dict[_NodeAndFile, Neighbourhood]:
    edges_at: dict[NodeKey, list[_EdgeAtNode]] = {key: [] for key, _ in nodes_with_files}
    files = {file: key for key, file in nodes_with_files if file is not None}
    names = dict.fromkeys(name for _, name in (*edges_at, *files))
    found_edges = view.find_edges_of_names(
        [*names],
        "both",
        files=[name for _, name in edges_at],
        without=WEAK_RELATIONS,
        most=_MAX_EDGES,
    )
    if found_edges.cut and len(nodes_with_files) > 1:
        # The edges of one node leave no room for the edges of the others.
        half = len(nodes_with_files) // 2
        return _read_neighbourhoods(view, nodes_with_files[:half], nodes) | _read_neighbourhoods(
            view, nodes_with_files[half:], nodes
        )
    for edge in found_edges.edges:
        ends = (edge.source, get_stating_node(edge)), (edge.source, edge.target)
        if ends[0] == ends[1]:
            continue
        for index, end in enumerate(ends):
            is_named = index == 1 or edge.stated_of  # A file's edges about itself do not count.
            key = files.get(end) if is_named and end[1].startswith(FILE) else end
            if key in edges_at:
                edges_at[key].append((edge, index, ends[1 - index]))
    distinct = {
        (edge.document_id, edge.position): edge for edges in edges_at.values() for edge, *_ in edges
    }
    known = view.find_end_nodes([*distinct.values()], nodes)
    return {
        node_and_file: _build_neighbourhood(
            edges_at[node_and_file[0]], known, is_cut=found_edges.cut
        )
        for node_and_file in nodes_with_files
    }


def _build_neighbourhood(
    edges: Sequence[_EdgeAtNode], known: Mapping[NodeKey, Node], *, is_cut: bool
) -> Neighbourhood:
    ordered = []
    followed = [
        edge for edge in edges if edge[2] in known
    ]  # Only ends that the repository defines.
    relations = [_get_relation_name(edge, known) for edge, *_ in followed]
    counts = _count_relations(followed, relations)
    for (edge, index, other), (kind, is_named) in zip(followed, relations, strict=True):
        count = counts[edge.how == "inferred", (kind, is_named), index]
        share = compute_share(kind, index, count) * edge.confidence
        if share >= _MIN_SHARE:
            node = _infer_type(known[other], edge.kind, index)
            neighbour = Neighbour(share, other, node, edge.kind, is_named, edge.document_id)
            ordered.append((-share, (edge.document_id, edge.position), neighbour))
    ordered.sort(key=lambda neighbour: neighbour[:2])
    size = _MAX_EDGES if is_cut else len(edges)
    return Neighbourhood([neighbour for _, _, neighbour in ordered], size)


_TYPES_OF_ENDS: Final[Mapping[tuple[str, int], SourceType]] = {
    ("routes_to", 1): "controller",
    ("maps_to", 0): "model",
}
"""Source type of a definition that has no other, by a relation and the index of its end."""


def _infer_type(node: Node, kind: str, index: int) -> Node:
    """Return a neighbour with the source type that its relation shows, unless it has a type.

    Args:
        kind: the kind of the relation.
        index: the index of the other end, as in compute_share.
    """
    type_ = _TYPES_OF_ENDS.get((kind, 1 - index)) if node.source_type == "code" else None
    return node if type_ is None else replace(node, source_type=type_)


def _count_relations(
    edges: Sequence[_EdgeAtNode], relations: Sequence[_RelationName]
) -> Mapping[_CountKey, float]:
    """Return the number of a node's relations of each kind and direction, weighted by confidence.

    The first part of a key states whether inferred relations are counted, too. An inferred relation
    shares relevance with all relations of its kind and direction, but a stated relation shares it
    only with other stated relations.
    """
    counts: defaultdict[_CountKey, float] = defaultdict(float)
    for relation, (edge, index, _) in zip(relations, edges, strict=True):
        counts[True, relation, index] += edge.confidence
        if edge.how != "inferred":
            counts[False, relation, index] += edge.confidence
    return counts


def _get_relation_name(edge: FoundEdge, known: Mapping[NodeKey, Node]) -> _RelationName:
    """Return the kind of an edge, and whether it has a user-facing name."""
    if edge.kind == MEMBER:
        return MEMBER, True
    kind = find_relation_name(edge, known)
    return (edge.kind, False) if kind is None else (kind, True)


_WANTED_FACTOR: Final = 2.5
"""Factor for nodes of a type that a question with names asks for."""
_MIN_REACHED_RELEVANCE: Final = 0.04
"""Minimum relevance of a node that is reached from names."""
_MIN_FOLLOWED_RELEVANCE: Final = 0.12
"""Minimum relevance of a node whose relations are followed from names."""
_MAX_FOLLOWED_FROM_NAMES: Final = 20
"""Maximum number of nodes whose relations are followed in each step from names."""
_MAX_FOLLOWED_FROM_RESULTS: Final = (20, 15, 10)
"""Maximum number of nodes whose relations are followed in each step from search results."""
_KEPT_SHARE: Final = 0.9
"""Share of relevance that a step from search results keeps."""
_MIN_PASSED_RELEVANCE: Final = 0.05
"""Minimum relevance to pass on from search results."""


@dataclass(frozen=True, slots=True)
class ReachedNode:
    """A node with its relevance.

    Attributes:
        path: the names on the path to it, from the start node to its own name.
    """

    node: Node
    score: float
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """The result of spreading relevance.

    Attributes:
        nodes: the reached nodes, the most relevant first.
        stating_documents: relevance of documents that state relations of these nodes (a decision, a
            bug, a change by a run), by document id.
    """

    nodes: tuple[ReachedNode, ...] = ()
    stating_documents: Mapping[str, float] = field(default_factory=dict)


def flow_from_names(
    view: RelationView,
    neighbourhoods: Neighbourhoods,
    seeds: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
    *,
    depth: int,
    wanted: Collection[str] = (),
) -> Flow:
    """Return the nodes that relevance reaches from the definitions that a question names.

    The result's stating_documents leave out documents that define one of these nodes.

    Args:
        neighbourhoods: cached neighbourhoods in this view.
        seeds: relevance of the start nodes.
        nodes: the start nodes.
        depth: maximum number of steps.
        wanted: source types whose nodes get a higher score.
    """
    spread = _SpreadFromNames(view, neighbourhoods, dict(seeds), dict(nodes))
    frontier = list(seeds)
    for _ in range(depth):
        frontier = spread.step(frontier)
    return spread.build_flow(frozenset(wanted))


def flow_from_results(
    view: RelationView,
    neighbourhoods: Neighbourhoods,
    seeds: Mapping[NodeKey, float],
    nodes: Mapping[NodeKey, Node],
) -> Flow:
    """Return the nodes that gain relevance from search results, including results themselves.

    The path of a node is the path along which it gained most.

    Args:
        neighbourhoods: cached neighbourhoods in this view.
        seeds: relevance of the definitions in the search results.
        nodes: these definitions.
    """
    spread = _SpreadFromResults(view, neighbourhoods, dict(seeds), dict(nodes))
    values = dict(seeds)
    for most in _MAX_FOLLOWED_FROM_RESULTS:
        values = spread.step(values, most)
    return spread.build_flow()


@dataclass(slots=True)
class _Spread:
    """The state of a spread of relevance: the nodes reached so far, with scores and paths."""

    view: RelationView
    neighbourhoods: Neighbourhoods
    scores: dict[NodeKey, float]
    nodes: dict[NodeKey, Node]
    paths: dict[NodeKey, tuple[str, ...]] = field(default_factory=dict)
    stating_documents: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paths = {key: (key[1],) for key in self.scores}

    def _read_neighbourhoods_of(
        self, keys: Sequence[NodeKey]
    ) -> tuple[dict[NodeKey, Neighbourhood], dict[NodeKey, NodeKey]]:
        """Return the neighbourhoods of nodes and, by file, the node for which its edges count."""
        fresh = self.neighbourhoods.read(self.view, keys, self.nodes)
        return fresh, find_defining_files(keys, self.nodes)

    def _record_stating_document(self, neighbour: Neighbour, score: float) -> None:
        if neighbour.kind in DOCUMENT_RELATIONS:
            former = self.stating_documents.get(neighbour.document_id, 0.0)
            self.stating_documents[neighbour.document_id] = max(score, former)


@dataclass(slots=True)
class _SpreadFromNames(_Spread):
    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the relations of the most relevant nodes in `frontier`; return the new nodes."""
        strong = [key for key in frontier if self.scores[key] >= _MIN_FOLLOWED_RELEVANCE]
        best = sorted(strong, key=lambda key: -self.scores[key])[:_MAX_FOLLOWED_FROM_NAMES]
        if not best:
            return []
        neighbourhoods, files = self._read_neighbourhoods_of(best)
        new: dict[NodeKey, float] = {}
        new_nodes: dict[NodeKey, Node] = {}
        for start in best:
            # A node that the question names passes on all its relevance, however many relations it
            # has.
            is_named = len(self.paths[start]) == 1
            passed = self.scores[start]
            passed *= 1.0 if is_named else compute_specificity(start[1], neighbourhoods[start])
            for neighbour in neighbourhoods[start].neighbours:
                if not neighbour.is_named:
                    continue
                score = passed * neighbour.share
                self._record_stating_document(neighbour, score)
                # Edges of a file on the frontier count for its definition.
                end = files.get(neighbour.key, neighbour.key)
                if end not in self.scores and score > new.get(end, 0.0):
                    new[end], new_nodes[end] = score, neighbour.node
                    self.paths[end] = (*self.paths[start], end[1])
        return self._select_frontier(new, new_nodes)

    def _select_frontier(
        self, new: Mapping[NodeKey, float], new_nodes: Mapping[NodeKey, Node]
    ) -> list[NodeKey]:
        room = MAX_NODES - len(self.scores)
        ordered = sorted(new, key=lambda key: (-new[key], key))
        kept_keys = [key for key in ordered[: max(0, room)] if new[key] >= _MIN_REACHED_RELEVANCE]
        for key in kept_keys:
            self.scores[key] = new[key]
            self.nodes[key] = new_nodes[key]
        return kept_keys

    def build_flow(self, wanted: frozenset[str]) -> Flow:
        """Return the reached nodes; nodes that the question names come first."""
        nodes = [
            ReachedNode(
                node,
                self.scores[key] * (_WANTED_FACTOR if node.source_type in wanted else 1.0),
                self.paths[key],
            )
            for key, node in self.nodes.items()
        ]
        nodes.sort(key=lambda reached: (len(reached.path) > 1, -reached.score, reached.node.name))
        defining = {reached.node.document_id for reached in nodes}
        stating = {id_: s for id_, s in self.stating_documents.items() if id_ not in defining}
        return Flow(tuple(nodes), stating)


@dataclass(slots=True)
class _SpreadFromResults(_Spread):
    gained: dict[NodeKey, float] = field(default_factory=dict)
    followed: dict[NodeKey, float] = field(default_factory=dict)
    greatest: dict[NodeKey, float] = field(default_factory=dict)

    def step(self, values: Mapping[NodeKey, float], most: int) -> dict[NodeKey, float]:
        """Pass relevance on from the nodes that gained most in the last step.

        Args:
            values: relevance that each node gained in the last step.
            most: maximum number of nodes that pass on relevance.

        Returns:
            relevance that each node gained in this step.
        """
        fresh = (key for key in values if key not in self.followed)
        best = sorted(fresh, key=lambda key: (-values[key], key))[:most]
        if not best:
            return {}
        neighbourhoods, files = self._read_neighbourhoods_of(best)
        gains: dict[NodeKey, float] = defaultdict(float)
        for key in best:
            self.followed[key] = compute_specificity(key[1], neighbourhoods[key])
            factor = self.followed[key] if key in self.gained else 1.0
            passed = _KEPT_SHARE * values[key] * factor
            for neighbour in neighbourhoods[key].neighbours:
                gain = passed * neighbour.share
                if gain < _MIN_PASSED_RELEVANCE:
                    break
                # Edges of a followed file count for its definition.
                end = files.get(neighbour.key, neighbour.key)
                if end != key:
                    gains[end] += gain
                    self._remember_path(key, end, neighbour, gain)
        for key, gain in gains.items():
            self.gained[key] = self.gained.get(key, 0.0) + gain
        return dict(gains)

    def build_flow(self) -> Flow:
        """Return the nodes that gained relevance, the most relevant first."""
        nodes = [
            ReachedNode(self.nodes[key], gain * self.followed.get(key, 1.0), self.paths[key])
            for key, gain in self.gained.items()
        ]
        nodes.sort(key=lambda reached: (-reached.score, reached.node.name))
        return Flow(tuple(nodes), self.stating_documents)

    def _remember_path(
        self, start: NodeKey, end: NodeKey, neighbour: Neighbour, gain: float
    ) -> None:
        self.nodes.setdefault(end, neighbour.node)
        self._record_stating_document(neighbour, gain)
        if gain > self.greatest.get(end, 0.0) and end[1] not in self.paths[start]:
            self.greatest[end] = gain
            if len(self.paths.get(end, ())) != 1:
                self.paths[end] = (*self.paths[start], end[1])
