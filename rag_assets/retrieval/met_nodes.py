"""What walks met at the nodes of a graph, for callers who may read the same documents.

Walks begin at what questions are about, and lead to the same few nodes: models, base classes,
tables. What a node's edges mean is worked out once in a state of the relations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from rag_assets.retrieval.code_nodes import NodeKey, stated_of
from rag_assets.storage.catalog.found_relations import FoundEdge, FoundEdges, FoundSymbol

_MOST: Final = 20_000
"""Edges, and definitions, that are kept for one state and one set of scopes; about 10 MB."""
_MOST_KEPT: Final = 4


class Asked(NamedTuple):
    """A node whose edges are asked for.

    Attributes:
        is_whole: whether what a file states outside of its definitions is asked for, too.
        without: kinds of edges that are not asked for.
    """

    key: NodeKey
    is_whole: bool
    without: frozenset[str]


_EdgesOf: TypeAlias = Callable[[Sequence[Asked]], FoundEdges]
_DefinitionsOf: TypeAlias = Callable[[Sequence[str]], Sequence[FoundSymbol]]


@dataclass(slots=True)
class MetNodes:
    """What was met at nodes: all edges at a node, and all definitions of a name."""

    _edges: dict[Asked, Sequence[FoundEdge]] = field(default_factory=dict)
    _definitions: dict[str, Sequence[FoundSymbol]] = field(default_factory=dict)
    _edges_kept: int = 0
    _definitions_kept: int = 0

    def edges(self, nodes: Collection[Asked], read: _EdgesOf) -> FoundEdges:
        """The edges at nodes, each once.

        Args:
            nodes: at most those of one step of a walk.
            read: reads the edges at nodes that were not met before.
        """
        held = self._edges
        known = {node: held[node] for node in nodes if node in held}
        missing = [node for node in nodes if node not in known]
        cut = False
        if missing:
            found = read(missing)
            cut = found.cut
            fresh = _by_node(missing, found.edges)
            known |= fresh
            if not cut:
                self._keep_edges(fresh)
        edges = {(one.document_id, one.position): one for at in known.values() for one in at}
        return FoundEdges([*edges.values()], cut=cut)

    def definitions(self, names: Iterable[str], read: _DefinitionsOf) -> list[FoundSymbol]:
        """The definitions of names.

        Args:
            names: qualified.
            read: reads those that were not met before.
        """
        held = self._definitions
        known = {name: held.get(name) for name in names}
        missing = [name for name, found in known.items() if found is None]
        if missing:
            fresh: dict[str, list[FoundSymbol]] = {name: [] for name in missing}
            for one in read(missing):
                fresh[one.name].append(one)
            known |= fresh
            self._keep_definitions(fresh)
        return [one for found in known.values() for one in found or ()]

    def _keep_edges(self, fresh: dict[Asked, list[FoundEdge]]) -> None:
        count = sum(len(edges) + 1 for edges in fresh.values())
        if self._edges_kept + count > _MOST:
            self._edges, self._edges_kept = {}, 0
        if count <= _MOST:
            self._edges |= fresh
            self._edges_kept += count

    def _keep_definitions(self, fresh: dict[str, list[FoundSymbol]]) -> None:
        count = sum(len(found) + 1 for found in fresh.values())
        if self._definitions_kept + count > _MOST:
            self._definitions, self._definitions_kept = {}, 0
        if count <= _MOST:
            self._definitions |= fresh
            self._definitions_kept += count


def _by_node(nodes: Sequence[Asked], edges: Iterable[FoundEdge]) -> dict[Asked, list[FoundEdge]]:
    found: dict[Asked, list[FoundEdge]] = {node: [] for node in nodes}
    asked: dict[NodeKey, list[Asked]] = {}
    for node in nodes:
        asked.setdefault(node.key, []).append(node)
    for edge in edges:
        target, start = (edge.source, edge.target), (edge.source, stated_of(edge))
        for node in asked.get(target, ()):
            found[node].append(edge)
        for node in asked.get(start, ()) if start != target else ():
            if node.is_whole or edge.stated_of:
                found[node].append(edge)
    return found


class MetByCallers:
    """What was met in the states that were asked last, by what callers could read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._met: OrderedDict[Hashable, MetNodes] = OrderedDict()

    def of(self, *state: Hashable) -> MetNodes:
        """What was met in a state of a build, by callers who could read the same scopes."""
        with self._lock:
            met = self._met.setdefault(state, MetNodes())
            self._met.move_to_end(state)
            while len(self._met) > _MOST_KEPT:
                self._met.popitem(last=False)
            return met
