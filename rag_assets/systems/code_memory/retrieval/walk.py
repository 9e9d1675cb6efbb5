"""Walks: follow relations from a name in a repository, step by step, with their evidence.

Only current versions and evidence that the caller may read are shown, counted or followed. A result
also says which relations may be missing because the code computes them at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from rag_assets.common.formatting import format_count
from rag_assets.ingest.sources.model import build_uri
from rag_assets.search.access import AccessPolicy, FlatScopes, require_query_role
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.found_relations import Direction, FoundEdge, Readable
from rag_assets.systems.code_memory.catalog.graph import GraphKey
from rag_assets.systems.code_memory.catalog.relation_rows import ReadableState
from rag_assets.systems.code_memory.catalog.relations import GraphRelations
from rag_assets.systems.code_memory.derived.model import ROUTES, TABLES, UnresolvedStatement
from rag_assets.systems.code_memory.retrieval.nodes import (
    PREFIXES,
    Node,
    NodeKey,
    Relation,
    build_node,
    build_other_node,
    find_relation,
    get_class_of_constructor,
    get_stating_node,
)
from rag_assets.systems.code_memory.retrieval.uses import find_uses_of_nodes
from rag_assets.systems.code_memory.retrieval.view import (
    IMPLEMENTED_BY,
    MAX_EDGES,
    RelationsChanged,
    RelationView,
)
from rag_assets.systems.code_memory.symbols.names import ENDPOINT, FILE, MEMBER, MIDDLEWARE, TABLE

_KINDS_ADDED: Final = {
    ROUTES: frozenset({"routes_to", "in_group", "guarded_by", "serves", "authorizes", "requests"}),
    TABLES: frozenset({"creates", "alters", "renames", "drops", "references", "maps_to"}),
}
"""Kinds of relations that unresolved statements about routes, or about tables, may add."""

_END_TYPES: Final = {
    ROUTES: frozenset(
        {"route", "controller", "controller_method", "middleware", "policy", "api_endpoint"}
    ),
    TABLES: frozenset({"table", "model", "migration"}),
}
"""Types of nodes at either end of the relations that such a statement may add."""

_STATING_TYPES: Final = {ROUTES: frozenset({"route"}), TABLES: frozenset({"table", "migration"})}
"""Types of nodes at the source of the relations that such a statement may add."""

_MAX_LISTED_REASONS: Final = 3
_MAX_REASON_CHARACTERS: Final = 120
_FACADE: Final = "Illuminate\\Support\\Facades\\Facade"


@dataclass(frozen=True, slots=True)
class RelationQuestion:
    """A question about the relations of a name.

    Attributes:
        kinds: kinds of relations; empty for all.
    """

    name: str
    kinds: Collection[str]
    direction: Direction


def describe_unresolved(
    question: RelationQuestion,
    nodes: Sequence[Node],
    unresolved: Mapping[str, Sequence[UnresolvedStatement]],
    view: RelationView,
) -> str | None:
    """Describe unresolved statements that may add to an answer; None if there are none.

    Only statements that the caller may read count. A computed route counts if the answer includes
    routes or their targets, or if no node has the name; the same applies to computed tables. A
    statement about one route or table counts if the answer includes that node.

    Args:
        nodes: the nodes in the answer.
        unresolved: unresolved statements, by source.
    """
    relevant = [
        (build_uri(source, statement.path), statement)
        for source, statements in unresolved.items()
        for statement in statements
        if _may_affect(
            statement.about, question, [n for n in nodes if n.repository == source], nodes
        )
    ]
    readable = {file.uri for file in view.find_files(list({FILE + uri for uri, _ in relevant}))}
    relevant = [(uri, statement) for uri, statement in relevant if uri in readable]
    if not relevant:
        return None
    lines = [
        f"{uri}:{statement.line} {statement.reason[:_MAX_REASON_CHARACTERS]}".rstrip()
        for uri, statement in relevant
    ]
    return (
        f"{format_count(len(relevant), 'statement')} of routes or tables computed:"
        f" {_join_first(lines)}"
    )


def describe_unfollowed_calls(
    question: RelationQuestion, calls: Collection[FoundEdge], view: RelationView
) -> str | None:
    """Describe calls of facades in the repository that lead to no definition; None if none do.

    The class behind such a facade is only known at run time.
    """
    if question.kinds and "calls" not in question.kinds:
        return None
    owners = sorted({_get_target_class(call) for call in calls} - {""})
    if not owners:
        return None
    extends = view.find_edges_of_names(owners, "out", only=("extends",)).edges
    facades = {(extend.source, extend.stated_of) for extend in extends if extend.target == _FACADE}
    unfollowed = [call for call in calls if (call.source, _get_target_class(call)) in facades]
    if not unfollowed:
        return None
    places = sorted({(call.uri, call.line_start, call.target) for call in unfollowed})
    lines = [f"{uri}:{line} {name}" for uri, line, name in places]
    return f"{format_count(len(places), 'call')} on facades not followed: {_join_first(lines)}"


def _get_target_class(call: FoundEdge) -> str:
    return call.target.rpartition("::")[0]


def may_lack_relations(question: RelationQuestion, nodes: Sequence[Node]) -> bool:
    """Return whether relations computed at run time may be missing from an answer.

    If not, the unresolved statements need not be read.
    """
    return any(_may_add_relations(about, question, nodes, nodes) for about in (ROUTES, TABLES))


def _may_affect(
    about: str, question: RelationQuestion, own: Sequence[Node], nodes: Sequence[Node]
) -> bool:
    if about in _KINDS_ADDED:
        return _may_add_relations(about, question, own, nodes)
    if about:
        of = TABLES if about.startswith(TABLE) else ROUTES
        return _is_requested(of, question) and any(node.name == about for node in own)
    return any(_may_add_relations(topic, question, own, nodes) for topic in _KINDS_ADDED)


def _may_add_relations(
    about: str, question: RelationQuestion, own: Sequence[Node], nodes: Sequence[Node]
) -> bool:
    if not _is_requested(about, question):
        return False
    if not nodes:
        return about == _choose_topic(question.name)
    types = (_STATING_TYPES if question.direction == "out" else _END_TYPES)[about]
    return any(node.source_type in types for node in own)


def _is_requested(about: str, question: RelationQuestion) -> bool:
    return not question.kinds or not _KINDS_ADDED[about].isdisjoint(question.kinds)


def _choose_topic(name: str) -> str:
    """Return the topic of an unknown name: ROUTES, TABLES, or "" if it can be neither.

    The unresolved statements on that topic may concern the name.
    """
    prefix = next((known_prefix for known_prefix in PREFIXES if name.startswith(known_prefix)), "")
    if prefix == TABLE:
        return TABLES
    return ROUTES if prefix in {"", ENDPOINT, MIDDLEWARE} else ""


def _join_first(lines: Sequence[str]) -> str:
    more = len(lines) - _MAX_LISTED_REASONS
    return "; ".join(lines[:_MAX_LISTED_REASONS]) + (f" and {more:,} more" if more > 0 else "")


MAX_STEPS = 8
USUAL_STEPS = 5
MAX_NODES = 200
MAX_USES = 200

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The result of a walk.

    Attributes:
        nodes: the nodes in the order of the walk, the start nodes first.
        relations: relations between these nodes.
        complete: whether no limit cut the result, and no computed relation may be missing.
        why: why the result is incomplete; None if it is complete.
        start_names: names of the start nodes.
        uses: uses of the start nodes found by name, at most MAX_USES: certain uses first, then
            possible uses; see retrieval.uses.
    """

    nodes: tuple[Node, ...] = ()
    relations: tuple[Relation, ...] = ()
    complete: bool = True
    why: str | None = None
    start_names: tuple[str, ...] = ()
    uses: tuple[Relation, ...] = ()


class Walker:
    """A reader of the relations in tenants' repositories, limited to what a caller may read."""

    def __init__(self, catalog: Catalog, policy: AccessPolicy | None = None) -> None:
        self._catalog = catalog
        self._policy = policy or FlatScopes()

    def find_definitions(
        self, tenant_id: str, caller: Caller, *, name: str | None = None, path: str | None = None
    ) -> list[Node]:
        """Return the definitions with a name, or in a document, or both.

        Args:
            name: `InvoiceController`, `InvoiceController@store`, or a qualified name.
            path: a document's URI.

        Raises:
            UnknownTenant, RoleRefused: see get_serving_view.
        """
        view = self.get_serving_view(tenant_id, caller)
        if view is None:
            return []
        definitions = (
            view.find_by_name(name) if name is not None else view.list_definitions([path or ""])
        )
        return [
            build_node(definition)
            for definition in definitions
            if path is None or definition.uri == path
        ]

    def walk_from_name(
        self,
        tenant_id: str,
        caller: Caller,
        name: str,
        *,
        kinds: Sequence[str] = (),
        direction: Direction = "both",
        depth: int = 1,
    ) -> WalkResult:
        """Return the nodes and relations around a name, and the uses of the name.

        Args:
            name: as for find_definitions, or a name with a prefix, such as `table:NAME`.
            kinds: the kinds of the relations to follow; empty for all.
            direction: relations that start at the name (out), that lead to it (in), or both.
            depth: number of steps, up to MAX_STEPS.

        Raises:
            UnknownTenant, RoleRefused: see get_serving_view.
        """

        def walk(view: RelationView) -> WalkResult:
            result = self.walk_in_view(
                view, tenant_id, RelationQuestion(name, kinds, direction), depth=depth
            )
            return result if direction == "out" else _add_uses(view, result, kinds)

        return self.read_with_view(tenant_id, caller, walk) or WalkResult()

    def read_with_view(
        self, tenant_id: str, caller: Caller, read: Callable[[RelationView], _Answer]
    ) -> _Answer | None:
        """Return the result of `read` for a view of the serving build; None if no build is serving.

        Edges may come from a graph in memory, but their evidence comes from the catalog. If a
        document was replaced in between, `read` is called again with a view of the catalog alone.

        Args:
            read: may raise RelationsChanged if the view is of a graph in memory.

        Raises:
            UnknownTenant, RoleRefused: see get_serving_view.
        """
        try:
            view = self.get_serving_view(tenant_id, caller)
            return None if view is None else read(view)
        except RelationsChanged:
            view = self.get_serving_view(tenant_id, caller, from_memory=False)
            return None if view is None else read(view)

    def walk_in_view(
        self, view: RelationView, tenant_id: str, question: RelationQuestion, *, depth: int
    ) -> WalkResult:
        """Return the result of a walk in a view; several walks of one answer may share a view.

        Args:
            depth: number of steps, up to MAX_STEPS.

        Raises:
            RelationsChanged: a document was replaced during the walk; see read_with_view.
        """
        name, kinds, direction = question.name, question.kinds, question.direction
        state = _WalkState(view, frozenset(kinds), direction)
        start = state.find_start_nodes(name)
        frontier = [*start, *state.add_implementations(start, direction)]
        if direction == "in":
            # Implementations depend on the method, but users of the implementations do not.
            state.add_implementations(start, "out")
        for _ in range(min(depth, MAX_STEPS)):
            if frontier:
                frontier = state.follow_edges(frontier)
                frontier += state.add_implementations(frontier, direction)
        result = state.build_result()
        lacks = [
            self._describe_missing(tenant_id, view, question, result),
            describe_unfollowed_calls(question, state.lost_calls, view),
        ]
        why = "; ".join(reason for reason in (result.why, *lacks) if reason)
        return replace(result, complete=not why, why=why or None)

    def _describe_missing(
        self, tenant_id: str, view: RelationView, question: RelationQuestion, result: WalkResult
    ) -> str | None:
        """Describe computed routes and tables that an answer may lack; None if there are none."""
        if not may_lack_relations(question, result.nodes):
            return None
        unresolved = get_code_catalog(self._catalog).derivations.list_unresolved(tenant_id)
        if not any(unresolved.values()):
            return None
        return describe_unresolved(question, result.nodes, unresolved, view)

    def get_serving_view(
        self, tenant_id: str, caller: Caller, *, from_memory: bool = True
    ) -> RelationView | None:
        """Return a caller's view of the serving build; None if no build is serving.

        Args:
            from_memory: whether a graph in memory may be read instead of the catalog.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
        """
        record = self._catalog.tenants.get(tenant_id)
        require_query_role(record.profile, caller)
        serving = self._catalog.generations.serving(tenant_id)
        if record.state != "ACTIVE" or serving is None:
            return None
        moment = self.get_readable_state(tenant_id, caller)
        build = GraphKey(record.ref, serving.number)
        return self.create_view(build, caller, moment, from_memory=from_memory)

    def get_readable_state(self, tenant_id: str, caller: Caller) -> ReadableState:
        """Return the current state of a tenant's relations, and the scopes the caller may read."""
        relations = get_code_catalog(self._catalog).relations
        return relations.read_readable_state(tenant_id, self._policy.principals(caller))

    def create_view(
        self, build: GraphKey, caller: Caller, moment: ReadableState, *, from_memory: bool = True
    ) -> RelationView:
        """Return a caller's view of the relations of a build.

        Args:
            moment: the state to read, and the caller's readable scopes; see get_readable_state.
            from_memory: whether a graph in memory may be read instead of the catalog.
        """
        principals = self._policy.principals(caller)
        relations = get_code_catalog(self._catalog).relations
        rows = relations.select_readable(Readable(build.ref.id, build.generation, principals))
        graph = relations.graphs.get(build, moment.state) if from_memory else None
        relation_reader = rows if graph is None else GraphRelations(graph, moment.scopes, rows)
        return RelationView(relation_reader, self._policy, caller)


def _add_uses(view: RelationView, result: WalkResult, kinds: Sequence[str]) -> WalkResult:
    """Return a walk's result extended by the uses of its start nodes that are found by name."""
    start_nodes = [node for node in result.nodes if node.name in result.start_names]
    by_name = find_uses_of_nodes(view, start_nodes, stated=result.relations)
    uses = [use.relation for use in (*by_name.certain, *by_name.possible)]
    uses = [use for use in uses if not kinds or use.kind in kinds]
    omitted_uses = max(0, len(uses) - MAX_USES) + by_name.omitted
    result = replace(result, uses=tuple(uses[:MAX_USES]))
    if not omitted_uses:
        return result
    why = f"at least {format_count(omitted_uses, 'use')} by name are left out"
    return replace(result, complete=False, why=f"{result.why}; {why}" if result.why else why)


class _WalkState:
    """The state of a walk: the nodes and relations read so far.

    Attributes:
        lost_calls: calls whose targets are unknown.
    """

    def __init__(self, view: RelationView, kinds: frozenset[str], direction: Direction) -> None:
        self._view, self._kinds, self._direction = view, kinds, direction
        self._nodes: dict[NodeKey, Node] = {}
        self._relations: dict[tuple[str, ...], tuple[FoundEdge, Relation]] = {}
        self.lost_calls: set[FoundEdge] = set()
        self._why: str | None = None
        self._start_names: tuple[str, ...] = ()

    def find_start_nodes(self, name: str) -> list[NodeKey]:
        """Add the nodes with a name, in all repositories, and return their keys."""
        self._nodes |= {
            (definition.source, definition.name): build_node(definition)
            for definition in self._view.find_by_name(name)
        }
        self._nodes |= {
            (file.repository, file.name): file for file in self._view.find_files([name])
        }
        if name.startswith(tuple(PREFIXES)):
            # A name without a definition is a node only if a readable edge leads to it.
            for edge in self._view.find_edges_of_names([name], "in").edges:
                self._nodes.setdefault((edge.source, name), build_other_node(name, edge.source))
        self._start_names = tuple(dict.fromkeys(name for _, name in self._nodes))
        return list(self._nodes)

    def follow_edges(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the edges of the nodes in the frontier; return the nodes that are new."""
        # Edges of a method also count as edges of its class.
        member_edges = self._list_edges(frontier, "in", only=(MEMBER,))
        members = [(edge.source, edge.stated_of) for edge in member_edges]
        # Code that creates an object uses the constructor of its class.
        classes = [
            (source, get_class_of_constructor(name))
            for source, name in frontier
            if get_class_of_constructor(name)
        ]
        edges = self._list_edges([*frontier, *members, *classes], self._direction)
        return self._add_relations(edges)

    def add_implementations(
        self, frontier: Sequence[NodeKey], direction: Direction
    ) -> list[NodeKey]:
        """Add the implementations of methods, or the methods that they implement; return new nodes.

        This does not count as a step, because a call of a method may run each implementation.

        Args:
            direction: "out" to the implementations, "in" to the implemented methods, or "both".
        """
        if not frontier or (self._kinds and IMPLEMENTED_BY not in self._kinds):
            return []
        return self._add_relations(self._view.find_implementations(frontier, direction))

    def _add_relations(self, edges: Sequence[FoundEdge]) -> list[NodeKey]:
        """Add the relations that edges state, and their ends; return the nodes that are new."""
        known = self._view.find_end_nodes(edges, self._nodes)
        new: list[NodeKey] = []
        for edge in edges:
            if edge.kind == "calls" and (edge.source, edge.target) not in known:
                self.lost_calls.add(edge)
            relation = find_relation(edge, known)
            if relation is None or (self._kinds and relation.kind not in self._kinds):
                continue
            ends = [(edge.source, relation.source), (edge.source, relation.target)]
            fresh = [end for end in ends if end not in self._nodes]
            if len(self._nodes) + len(fresh) > MAX_NODES:
                self._why = f"more than {MAX_NODES} nodes"
                continue
            self._nodes |= {end: known[end] for end in fresh}
            new += fresh
            # Several files may define a name, such as a table in one SQL file per database.
            key = edge.source, relation.kind, relation.source, relation.target, edge.uri
            self._relations.setdefault(key, (edge, relation))
        return new

    def build_result(self) -> WalkResult:
        """Return the result of the walk so far."""
        return WalkResult(
            tuple(self._nodes.values()),
            tuple(self._view.add_evidence([*self._relations.values()])),
            complete=self._why is None,
            why=self._why,
            start_names=self._start_names,
        )

    def _list_edges(
        self, nodes: Sequence[NodeKey], direction: Direction, *, only: Sequence[str] = ()
    ) -> list[FoundEdge]:
        edges = self._view.find_edges_of_nodes(nodes, self._nodes, direction, only=only)
        if edges.cut:
            self._why = f"more than {MAX_EDGES:,} relations at one follow_edges"
        node_keys = set(nodes)
        return [
            edge
            for edge in edges.edges
            if (edge.source, get_stating_node(edge)) in node_keys
            or (edge.source, edge.target) in node_keys
        ]
