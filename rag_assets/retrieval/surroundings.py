"""What is around a node of a repository: how relevance flows from it along its relations.

Walks begin at what questions are about, and lead to the same few nodes: models, base classes,
tables. The ways from a node depend on nothing but what the caller may read, so that they are worked
out once in a state of the relations.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from rag_assets.code.nodes import ENV, FILE, MEMBER, MIDDLEWARE, PACKAGE
from rag_assets.retrieval.code_nodes import Node, NodeKey, kind_of, stated_of
from rag_assets.retrieval.code_view import View
from rag_assets.retrieval.shares import WEAK, share_of
from rag_assets.storage.catalog.found_relations import FoundEdge

_CROWD: Final = 30
"""Relations from which on a definition is thought to be related to everything."""
_SHARED: Final = (PACKAGE, ENV, MIDDLEWARE)
_SHARED_CROWD: Final = 2
_LEAST: Final = 0.01
"""Share below which nothing is passed on, however relevant a node is."""

_MOST_EDGES: Final = 1_000
"""Relations of a node in a direction; what has more is related to everything, and leads nowhere."""
_MOST_WAYS: Final = 50_000
"""Ways, and nodes, that are kept for one state and one set of scopes; about 10 MB."""
_MOST_STATES: Final = 4


@dataclass(frozen=True, slots=True)
class Way:
    """A step from a node to another one.

    Attributes:
        share: of the node's relevance that flows along.
        key, node: the other one.
        kind: of the edge.
        is_named: whether people have a name for the relation.
        document_id: of the document that states it.
    """

    share: float
    key: NodeKey
    node: Node
    kind: str
    is_named: bool
    document_id: str


class Around(NamedTuple):
    """What is around a node.

    Attributes:
        ways: those with the greatest shares first.
        size: how many relations it has, each direction counted; at least so many where it is cut.
        is_cut: whether it has too many, and therefore no way.
    """

    ways: Sequence[Way]
    size: int
    is_cut: bool


def specificity(name: str, around: Around) -> float:
    """Return the factor of what a node passes on: less than 1 where much is related to it.

    What a repository does not define itself, such as a package or a setting, is named by files that
    have nothing else in common: it passes on in inverse proportion to their number.
    """
    if name.startswith(_SHARED):
        return min(1.0, _SHARED_CROWD / max(1, around.size))
    return math.sqrt(min(1.0, _CROWD / max(1, around.size)))


class _Asked(NamedTuple):
    """A node, and the file of which what is stated is stated of it; None where it has none."""

    key: NodeKey
    file: NodeKey | None


class Surroundings:
    """What is around nodes, as far as it was asked, in one state and for equal scopes."""

    def __init__(self) -> None:
        self._around: dict[_Asked, Around] = {}
        self._kept = 0

    def of(
        self, view: View, keys: Sequence[NodeKey], nodes: Mapping[NodeKey, Node]
    ) -> tuple[dict[NodeKey, Around], bool]:
        """What is around nodes, and whether some of it was left out for a limit.

        Args:
            view: what the caller may read.
            keys: of the nodes, the most relevant first: what is stated of a file is stated of the
                first of its definitions.
            nodes: what they are.
        """
        files = {key: file for file, key in files_of(keys, nodes).items()}
        asked = [_Asked(key, files.get(key)) for key in keys]
        held = self._around
        known = {one: held[one] for one in asked if one in held}
        missing = [one for one in asked if one not in known]
        if missing:
            fresh = _read(view, missing, nodes)
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


class KeptSurroundings:
    """Surroundings in the states that were asked last, by what callers could read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, Surroundings] = OrderedDict()

    def of(self, *state: Hashable) -> Surroundings:
        """Those of a state of a build, for callers who may read the same scopes."""
        with self._lock:
            found = self._kept.setdefault(state, Surroundings())
            self._kept.move_to_end(state)
            while len(self._kept) > _MOST_STATES:
                self._kept.popitem(last=False)
            return found


def files_of(keys: Iterable[NodeKey], nodes: Mapping[NodeKey, Node]) -> dict[NodeKey, NodeKey]:
    """The files that define nodes, each with the first of these."""
    first: dict[NodeKey, NodeKey] = {}
    for key in keys:
        node = nodes.get(key)
        if node is not None and node.uri is not None:
            first.setdefault((key[0], FILE + node.uri), key)
    return first


_Ended: TypeAlias = tuple[FoundEdge, int, NodeKey]
"""An edge, at which of its ends a node is (0 where the edge is stated of it), and the other end."""
_Relation: TypeAlias = tuple[str, bool]
"""The kind of an edge, and whether people have a name for it."""
_Among: TypeAlias = tuple[bool, _Relation, int]
"""Whether it is inferred, its kind, and the end at which a node is."""


def _read(
    view: View, asked: Sequence[_Asked], nodes: Mapping[NodeKey, Node]
) -> dict[_Asked, Around]:
    at: dict[NodeKey, list[_Ended]] = {one.key: [] for one in asked}
    files = {one.file: one.key for one in asked if one.file is not None}
    names = dict.fromkeys(name for _, name in (*at, *files))
    whole = [name for _, name in at]
    found = view.edges([*names], "both", files=whole, without=WEAK, most=_MOST_EDGES)
    if found.cut and len(asked) > 1:
        # One of them leaves no room for the others.
        half = len(asked) // 2
        return _read(view, asked[:half], nodes) | _read(view, asked[half:], nodes)
    for edge in found.edges:
        ends = (edge.source, stated_of(edge)), (edge.source, edge.target)
        if ends[0] == ends[1]:
            continue
        for way, end in enumerate(ends):
            is_named = way == 1 or edge.stated_of  # and not what a file states of itself
            key = files.get(end) if is_named and end[1].startswith(FILE) else end
            if key in at:
                at[key].append((edge, way, ends[1 - way]))
    ended = {(one.document_id, one.position): one for edges in at.values() for one, *_ in edges}
    known = view.ends([*ended.values()], nodes)
    return {one: _around(at[one.key], known, is_cut=found.cut) for one in asked}


def _around(edges: Sequence[_Ended], known: Mapping[NodeKey, Node], *, is_cut: bool) -> Around:
    ways = []
    followed = [one for one in edges if one[2] in known]  # which the repository defines
    relations = [_relation_of(edge, known) for edge, *_ in followed]
    crowds = _crowds(followed, relations)
    for (edge, way, other), (kind, is_named) in zip(followed, relations, strict=True):
        crowd = crowds[_is_inferred(edge), (kind, is_named), way]
        share = share_of(kind, way, crowd) * edge.confidence
        if share >= _LEAST:
            found = Way(share, other, known[other], edge.kind, is_named, edge.document_id)
            ways.append((-share, (edge.document_id, edge.position), found))
    ways.sort(key=lambda one: one[:2])
    return Around([way for _, _, way in ways], _MOST_EDGES if is_cut else len(edges), is_cut)


def _crowds(edges: Sequence[_Ended], relations: Sequence[_Relation]) -> Mapping[_Among, float]:
    """Among how many each relation is divided, as far as they are sure.

    What is inferred is divided among all of its kind and way; it takes nothing from what is
    stated.
    """
    crowds: defaultdict[_Among, float] = defaultdict(float)
    for relation, (edge, way, _) in zip(relations, edges, strict=True):
        crowds[True, relation, way] += edge.confidence
        if not _is_inferred(edge):
            crowds[False, relation, way] += edge.confidence
    return crowds


def _is_inferred(edge: FoundEdge) -> bool:
    return edge.how == "inferred"


def _relation_of(edge: FoundEdge, known: Mapping[NodeKey, Node]) -> _Relation:
    """The kind of an edge, and whether people have a name for it."""
    if edge.kind == MEMBER:
        return MEMBER, True
    kind = kind_of(edge, known)
    return (edge.kind, False) if kind is None else (kind, True)
