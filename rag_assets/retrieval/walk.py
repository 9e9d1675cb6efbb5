"""The walk: what relates to a name in a repository, from edge to edge, with its evidence.

Only versions that count and evidence that the caller may read are told, counted or walked through.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from rag_assets.code.kinds import source_type_of
from rag_assets.code.names import keys_of
from rag_assets.code.naming import CALLED, depends_on_place, ends, meant
from rag_assets.code.places import is_test, type_of_place
from rag_assets.code.relations import (
    CONFIG,
    ENDPOINT,
    FILE,
    MEMBER,
    MIDDLEWARE,
    NAMED,
    PACKAGE,
    TABLE,
    UNNAMED,
    short_name,
)
from rag_assets.ingest.sources.derived import repository_of
from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.access import AccessPolicy, FlatScopes
from rag_assets.retrieval.model import Caller
from rag_assets.retrieval.roles import require_asker
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.relations import (
    Direction,
    FoundDocument,
    FoundEdge,
    FoundSymbol,
    Readable,
    RelationQuery,
)

MOST_STEPS = 8
USUAL_STEPS = 5
MOST_NODES = 200
_MOST_EDGES = 2_000
"""Edges that are read for one step."""

_PREFIXES = {
    TABLE: "table",
    CONFIG: "config",
    PACKAGE: "package",
    MIDDLEWARE: "middleware",
    ENDPOINT: "api_endpoint",
}
_OF_PLACES = {"adr": "decides", "known_bug": "bug_in"}
_OF_TESTS = frozenset({"imports", "calls", "makes", "touches", "takes"})
NodeKey: TypeAlias = tuple[str, str]
"""Of a node: its repository and its name."""

_Place = TypeVar("_Place", FoundDocument, FoundEdge, FoundSymbol)
_UNIT_ROLES = {
    "method": "method",
    "function": "function",
    "route": "derived",
    "table": "derived",
    "operation": "operation",
    "run": "derived",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A definition, or something else that edges name.

    Attributes:
        name: qualified; with a prefix for what is no definition: `table:invoices`.
        source_type: what it is; "code" where nothing more is known.
        repository: the source that it is in: names mean something within theirs only.
        uri: of the document that defines it; None for what is no definition.
        line_start, line_end: there.
        content_hash: of the text that is embedded for it; None where it has no chunk of its own.
        document_id, symbol: of its entry: the document, and the name that its own text gives it.
    """

    name: str
    source_type: str
    repository: str
    uri: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    content_hash: str | None = None
    document_id: str | None = None
    symbol: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge, as people call it, with its evidence.

    Attributes:
        kind: of the relation.
        source, target: names of nodes of one repository.
        how: stated; by convention; or inferred.
        confidence: 0 to 1.
        uri, line_start, line_end: where the evidence is.
        evidence: its text, at most 200 characters.
    """

    kind: str
    source: str
    target: str
    how: str
    confidence: float
    uri: str
    line_start: int
    line_end: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found.

    Attributes:
        nodes: in the order in which they were met; those that it began at first.
        relations: between them.
        complete: whether nothing was left out for a limit.
        why: what was left out; None if nothing was.
    """

    nodes: tuple[Node, ...] = ()
    relations: tuple[Relation, ...] = ()
    complete: bool = True
    why: str | None = None


class Walker:
    """Walks over the relations of tenants' repositories.

    Args:
        catalog: has symbols and edges, and who may read them.
        policy: what callers may read.
    """

    def __init__(self, catalog: Catalog, policy: AccessPolicy | None = None) -> None:
        self._catalog = catalog
        self._policy = policy or FlatScopes()

    def symbols(
        self, tenant_id: str, caller: Caller, *, name: str | None = None, path: str | None = None
    ) -> list[Node]:
        """Definitions by a name, as people call it or qualified, or all of a document.

        Args:
            tenant_id, caller: whose repositories, and who asks.
            name: `InvoiceController`, `InvoiceController@store`, or qualified.
            path: a document's uri.

        Raises:
            UnknownTenant: there is none of that id.
            RoleRefused: the caller's role may not ask this tenant.
        """
        view = self.serving_view(tenant_id, caller)
        if view is None:
            return []
        found = view.named(name) if name is not None else view.within(path or "")
        return [node_of(one) for one in found if path is None or one.uri == path]

    def relations(
        self,
        tenant_id: str,
        caller: Caller,
        name: str,
        *,
        kinds: Sequence[str] = (),
        direction: Direction = "both",
        depth: int = 1,
    ) -> Walk:
        """What relates to a name, over so many steps.

        Args:
            tenant_id, caller: whose repositories, and who asks.
            name: as for symbols; a table as `table:NAME`, and so on.
            kinds: of the relations to follow; none: all.
            direction: from what is stated of it (out), from what names it (in), or both.
            depth: steps, up to MOST_STEPS.

        Raises:
            UnknownTenant: there is none of that id.
            RoleRefused: the caller's role may not ask this tenant.
        """
        view = self.serving_view(tenant_id, caller)
        if view is None:
            return Walk()
        walking = _Walking(view, frozenset(kinds), direction)
        frontier = walking.begin(name)
        for _ in range(min(depth, MOST_STEPS)):
            if frontier:
                frontier = walking.step(frontier)
        return walking.found()

    def serving_view(self, tenant_id: str, caller: Caller) -> View | None:
        """What a caller may read of the build that answers; None where none does.

        Raises:
            UnknownTenant: there is none of that id.
            RoleRefused: the caller's role may not ask this tenant.
        """
        record = self._catalog.tenants.get(tenant_id)
        require_asker(record.profile, caller)
        serving = self._catalog.generations.serving(tenant_id)
        if record.state != "ACTIVE" or serving is None:
            return None
        return self.view(tenant_id, serving.number, caller)

    def view(self, tenant_id: str, generation: int, caller: Caller) -> View:
        """What a caller may read of the relations of a tenant's build."""
        readable = Readable(tenant_id, generation, self._policy.principals(caller))
        return View(self._catalog.relations, self._policy, caller, readable)


@dataclass(frozen=True, slots=True)
class View:
    """What a caller may read of the relations of a tenant."""

    query: RelationQuery
    policy: AccessPolicy
    caller: Caller
    readable: Readable

    def named(self, name: str) -> list[FoundSymbol]:
        """Definitions by a qualified name, or by what people call them."""
        wanted = name.lstrip("\\").replace("@", "::")
        exactly = self.defined([name]) or self.defined([wanted])
        if name.startswith(tuple(_PREFIXES)):
            return exactly or self._permitted(self.query.called(self.readable, keys_of(name)))
        # Only what is qualified, or named after its file, cannot mean anything else.
        if exactly and any(mark in name for mark in "\\#."):
            return exactly
        shorts = [short_name(wanted), *keys_of(name)]
        called = self._permitted(self.query.called(self.readable, shorts))
        precise = [one for one in called if "." in wanted and ends(one.name, wanted)]
        return list(dict.fromkeys([*exactly, *(precise or called)]))

    def defined(self, names: Sequence[str]) -> list[FoundSymbol]:
        """Definitions by their qualified names."""
        return self._permitted(self.query.named(self.readable, names)) if names else []

    def within(self, uri: str) -> list[FoundSymbol]:
        """The definitions of a document."""
        return self._permitted(self.query.within(self.readable, [uri]))

    def stated(self, kind: str) -> list[FoundEdge]:
        """The edges of a kind, whatever they name."""
        return self._permitted(self.query.stated(self.readable, kind, _MOST_EDGES))

    def documents(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """The documents of these types."""
        return self._permitted(self.query.documents(self.readable, source_types))

    def like(self, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """Some definitions whose names hold one of these parts."""
        return self._permitted(self.query.like(self.readable, parts, limit))

    def within_any(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """The definitions of documents."""
        return self._permitted(self.query.within(self.readable, uris)) if uris else []

    def edges(
        self, nodes: Sequence[str], direction: Direction, without: Collection[str] = ()
    ) -> list[FoundEdge]:
        """The edges that begin or end at nodes, those of some kinds left out."""
        found = self.query.edges(self.readable, nodes, direction, _MOST_EDGES, without)
        return self._resolved(self._permitted(found))

    def edges_of_files(
        self, nodes: Sequence[str], without: Collection[str] = ()
    ) -> list[FoundEdge]:
        """What files state outside of their definitions, of those among nodes."""
        uris = [name.removeprefix(FILE) for name in nodes if name.startswith(FILE)]
        if not uris:
            return []
        found = self.query.of_files(self.readable, uris, _MOST_EDGES, without)
        return self._resolved(self._permitted(found))

    def _resolved(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """The edges with what their targets mean, where only one definition may be meant."""
        named = {end for edge in edges for end in (edge.target, edge.stated_of)}
        open_names = {name for name in named if depends_on_place(name)}
        shorts = {name: _short_of(name) for name in open_names}
        if not shorts:
            return list(edges)
        called = self._permitted(self.query.called(self.readable, [*set(shorts.values())]))
        by_short: dict[tuple[str, str], set[str]] = {}
        for one in called:
            by_short.setdefault((one.source, one.short), set()).add(one.name)

        def resolved(name: str, edge: FoundEdge) -> str:
            if name not in shorts:
                return name
            alike = by_short.get((edge.source, shorts[name]), set())
            return meant(name, path_of(edge.uri), alike) or name

        return [
            replace(
                edge,
                target=resolved(edge.target, edge),
                stated_of=resolved(edge.stated_of, edge),
            )
            for edge in edges
        ]

    def edges_at(
        self,
        keys: Sequence[NodeKey],
        nodes: Mapping[NodeKey, Node],
        direction: Direction,
        without: Collection[str] = (),
    ) -> list[FoundEdge]:
        """The edges that begin or end at nodes, or at the files that define them.

        What is stated of a file (a run has changed it) is stated of the first of its definitions
        among these.

        Args:
            keys: of the nodes, the most relevant first.
            nodes: what is known of them.
            direction, without: see edges.
        """
        first: dict[NodeKey, str] = {}
        for key in keys:
            node = nodes.get(key)
            if node is not None and node.uri is not None:
                first.setdefault((key[0], FILE + node.uri), key[1])
        names = dict.fromkeys(name for _, name in (*keys, *first))
        found = self.edges([*names], direction, without)
        if direction != "in":
            found += self.edges_of_files([name for _, name in keys], without)
        return [_of_definition(edge, first) for edge in found]

    def ends(
        self, edges: Sequence[FoundEdge], known: Mapping[NodeKey, Node] = MappingProxyType({})
    ) -> dict[NodeKey, Node]:
        """The nodes at the ends of edges; names of other repositories are none.

        Args:
            edges: whose ends.
            known: nodes that were met before, and are not looked up again.
        """
        ends = {(edge.source, end) for edge in edges for end in (edge.target, edge.stated_of)}
        others = {end for end in ends if end[1].startswith(tuple(_PREFIXES))}
        names = sorted({end[1] for end in ends if end[1] and end not in known})
        met = {end: known[end] for end in ends if end in known}
        met |= {(one.source, one.name): node_of(one) for one in self.defined(names)}
        for edge in edges:
            if not edge.stated_of:
                name = FILE + edge.uri
                met[edge.source, name] = _file_node(name, edge.source)
        for file in self.files([name for source, name in ends if (source, name) not in met]):
            met[file.repository, file.name] = file
        return {end: other_node(end[1], end[0]) for end in others} | met

    def files(self, names: Sequence[str]) -> list[Node]:
        """The nodes of files, of those that there are: `file:` and a document's uri."""
        uris = [name.removeprefix(FILE) for name in names if name.startswith(FILE)]
        found = self._permitted(self.query.at(self.readable, uris)) if uris else []
        return [_file_node(FILE + one.uri, repository_of(one.source)) for one in found]

    def _permitted(self, found: Sequence[_Place]) -> list[_Place]:
        return [one for one in found if self.policy.permits(self.caller, one)]


class _Walking:
    """One walk: what was met, from step to step."""

    def __init__(self, view: View, kinds: frozenset[str], direction: Direction) -> None:
        self._view, self._kinds, self._direction = view, kinds, direction
        self._nodes: dict[NodeKey, Node] = {}
        self._relations: dict[tuple[str, str, str, str], Relation] = {}
        self._why: str | None = None

    def begin(self, name: str) -> list[NodeKey]:
        """The nodes that a name stands for, in every repository."""
        self._nodes |= {(one.source, one.name): node_of(one) for one in self._view.named(name)}
        self._nodes |= {(one.repository, one.name): one for one in self._view.files([name])}
        if name.startswith(tuple(_PREFIXES)):
            # Otherwise it is a node only where something that the caller may read names it.
            for edge in self._view.edges([name], "in"):
                self._nodes.setdefault((edge.source, name), other_node(name, edge.source))
        return list(self._nodes)

    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the edges at the frontier; returns the nodes that were not known before."""
        # What is stated of a method is stated of its class.
        own = self._edges(frontier, "in")
        members = [(edge.source, edge.stated_of) for edge in own if edge.kind == MEMBER]
        # Whoever makes an object uses its constructor.
        made = [(source, constructed(name)) for source, name in frontier if constructed(name)]
        edges = self._edges([*frontier, *members, *made], self._direction)
        known = self._view.ends(edges, self._nodes)
        new: list[NodeKey] = []
        for edge in edges:
            relation = relation_of(edge, known)
            if relation is None or (self._kinds and relation.kind not in self._kinds):
                continue
            ends = [(edge.source, relation.source), (edge.source, relation.target)]
            fresh = [end for end in ends if end not in self._nodes]
            if len(self._nodes) + len(fresh) > MOST_NODES:
                self._why = f"more than {MOST_NODES} nodes"
                continue
            self._nodes |= {end: known[end] for end in fresh}
            new += fresh
            key = edge.source, relation.kind, relation.source, relation.target
            self._relations.setdefault(key, relation)
        return new

    def found(self) -> Walk:
        """What was met."""
        return Walk(
            tuple(self._nodes.values()),
            tuple(self._relations.values()),
            complete=self._why is None,
            why=self._why,
        )

    def _edges(self, nodes: Sequence[NodeKey], direction: Direction) -> list[FoundEdge]:
        found = self._view.edges_at(nodes, self._nodes, direction)
        if len(found) >= _MOST_EDGES:
            self._why = f"more than {_MOST_EDGES:,} relations at one step"
        wanted = set(nodes)
        return [
            edge
            for edge in found
            if (edge.source, stated_of(edge)) in wanted or (edge.source, edge.target) in wanted
        ]


def _of_definition(edge: FoundEdge, first: Mapping[NodeKey, str]) -> FoundEdge:
    """An edge whose ends are definitions in place of their files."""
    source = first.get((edge.source, edge.stated_of), edge.stated_of)
    target = first.get((edge.source, edge.target), edge.target)
    if (source, target) == (edge.stated_of, edge.target):
        return edge
    return replace(edge, stated_of=source, target=target)


def constructed(name: str) -> str:
    """The class of a constructor; "" for any other name."""
    owner, separator, method = name.rpartition("::")
    return owner if separator and method == "__construct" else ""


def stated_of(edge: FoundEdge) -> str:
    """The node that an edge is stated of: a file, where it is none of its definitions."""
    return edge.stated_of or FILE + edge.uri


def _short_of(name: str) -> str:
    return name.removeprefix(CALLED) if name.startswith(CALLED) else short_name(name)


def _file_node(name: str, repository: str) -> Node:
    uri = name.removeprefix(FILE)
    return Node(name, type_of_place(path_of(uri)), repository, uri)


def _kind_of(edge: FoundEdge, target: Node) -> str:
    """What people call an edge."""
    path = path_of(edge.uri)
    if edge.kind == "documents":
        return _OF_PLACES.get(type_of_place(path), edge.kind)
    inner = target.uri is not None and is_test(path_of(target.uri))
    if edge.kind in _OF_TESTS and is_test(path) and not inner:
        return "tests"
    return NAMED.get((edge.kind, target.source_type), edge.kind)


def relation_of(edge: FoundEdge, known: Mapping[NodeKey, Node]) -> Relation | None:
    """An edge between nodes that are known, as people call it; None for any other."""
    source = stated_of(edge)
    target = known.get((edge.source, edge.target))
    if target is None or (edge.source, source) not in known or source == edge.target:
        return None
    kind = _kind_of(edge, target)
    if kind in UNNAMED:
        return None
    return Relation(
        kind,
        source,
        edge.target,
        edge.how,
        edge.confidence,
        edge.uri,
        edge.line_start,
        edge.line_end,
        edge.evidence,
    )


def node_of(one: FoundSymbol) -> Node:
    """The node of a definition."""
    role = _UNIT_ROLES.get(one.role, "class")
    # A class without a name has that of its document before its own.
    own = one.name.removeprefix(f"{one.uri}#")
    kind = source_type_of(role, own, one.kinds, one.document_type)
    lines = one.line_start, one.line_end
    return Node(
        *(one.name, kind, one.source, one.uri, *lines, one.content_hash),
        document_id=one.document_id,
        symbol=one.local_name,
    )


def other_node(name: str, repository: str) -> Node:
    """A node that is no definition, by the prefix of its name."""
    kind = next(kind for prefix, kind in _PREFIXES.items() if name.startswith(prefix))
    return Node(name, kind, repository)
