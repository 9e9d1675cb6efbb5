"""The walk: follows relations from a name in a repository, edge by edge, with their evidence.

Only current versions and evidence that the caller may read are shown, counted or followed. A walk
also describes relations that it may lack because they are only known when the code runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from rag_assets.common.formatting import format_count
from rag_assets.ingest.sources.model import build_uri
from rag_assets.search.access import AccessPolicy, FlatScopes, require_asker
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
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
    class_of_constructor,
    find_relation,
    get_stating_node,
    other_node,
)
from rag_assets.systems.code_memory.retrieval.uses import uses_of_nodes
from rag_assets.systems.code_memory.retrieval.view import (
    IMPLEMENTED_BY,
    MOST_EDGES,
    RelationsChanged,
    View,
)
from rag_assets.systems.code_memory.symbols.names import ENDPOINT, FILE, MEMBER, MIDDLEWARE, TABLE

_KINDS_ADDED: Final = {
    ROUTES: frozenset({"routes_to", "in_group", "guarded_by", "serves", "authorizes", "requests"}),
    TABLES: frozenset({"creates", "alters", "renames", "drops", "references", "maps_to"}),
}
"""Kinds of relations that an unresolved statement about routes, or about tables, may add."""

_TYPES: Final = {
    ROUTES: frozenset(
        {"route", "controller", "controller_method", "middleware", "policy", "api_endpoint"}
    ),
    TABLES: frozenset({"table", "model", "migration"}),
}
"""Types of nodes that such a statement may name, or may belong to."""

_STATING: Final = {ROUTES: frozenset({"route"}), TABLES: frozenset({"table", "migration"})}
"""Types of nodes that such a statement may belong to."""

_MOST_TOLD: Final = 3
_LONGEST_REASON: Final = 120
_FACADE: Final = "Illuminate\\Support\\Facades\\Facade"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the relations of a name; without kinds, about relations of all kinds."""

    name: str
    kinds: Collection[str]
    direction: Direction


def describe_unresolved(
    question: Question,
    nodes: Sequence[Node],
    unresolved: Mapping[str, Sequence[UnresolvedStatement]],
    view: View,
) -> str | None:
    """Describe unresolved statements whose relations an answer may lack; None without any.

    Only statements that the caller may read count. A computed route counts if the answer includes
    routes or their targets, or if no node has the name; the same applies to computed tables. A
    statement about one route or table counts if the answer includes that node.

    Args:
        nodes: the nodes that the answer visited.
        unresolved: unresolved statements, by source.
    """
    found = [
        (build_uri(source, statement.path), statement)
        for source, statements in unresolved.items()
        for statement in statements
        if _may_affect(
            statement.about, question, [n for n in nodes if n.repository == source], nodes
        )
    ]
    readable = {file.uri for file in view.files(list({FILE + uri for uri, _ in found}))}
    counts = [(uri, one) for uri, one in found if uri in readable]
    if not counts:
        return None
    lines = [f"{uri}:{one.line} {one.reason[:_LONGEST_REASON]}".rstrip() for uri, one in counts]
    return (
        f"{format_count(len(counts), 'statement')} of routes or tables computed:"
        f" {_join_first(lines)}"
    )


def describe_unfollowed_calls(
    question: Question, calls: Collection[FoundEdge], view: View
) -> str | None:
    """Describe calls on the repository's own facades that lead to no definition, or return None.

    The repository itself decides which class such a facade stands for.
    """
    if question.kinds and "calls" not in question.kinds:
        return None
    owners = sorted({_get_target_class(call) for call in calls} - {""})
    if not owners:
        return None
    extends = view.edges(owners, "out", only=("extends",)).edges
    facades = {(extend.source, extend.stated_of) for extend in extends if extend.target == _FACADE}
    unfollowed = [call for call in calls if (call.source, _get_target_class(call)) in facades]
    if not unfollowed:
        return None
    places = sorted({(one.uri, one.line_start, one.target) for one in unfollowed})
    lines = [f"{uri}:{line} {name}" for uri, line, name in places]
    return f"{format_count(len(places), 'call')} on facades not followed: {_join_first(lines)}"


def _get_target_class(call: FoundEdge) -> str:
    return call.target.rpartition("::")[0]


def may_lack_relations(question: Question, nodes: Sequence[Node]) -> bool:
    """Return whether an answer may lack computed relations; if not, do not read the statements."""
    return any(_may_add_relations(about, question, nodes, nodes) for about in (ROUTES, TABLES))


def _may_affect(about: str, question: Question, own: Sequence[Node], nodes: Sequence[Node]) -> bool:
    if about in _KINDS_ADDED:
        return _may_add_relations(about, question, own, nodes)
    if about:
        of = TABLES if about.startswith(TABLE) else ROUTES
        return _is_requested(of, question) and any(node.name == about for node in own)
    return any(_may_add_relations(one, question, own, nodes) for one in _KINDS_ADDED)


def _may_add_relations(
    about: str, question: Question, own: Sequence[Node], nodes: Sequence[Node]
) -> bool:
    if not _is_requested(about, question):
        return False
    if not nodes:
        return about == _choose_topic(question.name)
    types = (_STATING if question.direction == "out" else _TYPES)[about]
    return any(node.source_type in types for node in own)


def _is_requested(about: str, question: Question) -> bool:
    return not question.kinds or not _KINDS_ADDED[about].isdisjoint(question.kinds)


def _choose_topic(name: str) -> str:
    """Return ROUTES or TABLES if an unknown name may be a route's or a table's."""
    prefix = next((one for one in PREFIXES if name.startswith(one)), "")
    if prefix == TABLE:
        return TABLES
    return ROUTES if prefix in {"", ENDPOINT, MIDDLEWARE} else ""


def _join_first(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_TOLD
    return "; ".join(lines[:_MOST_TOLD]) + (f" and {more:,} more" if more > 0 else "")


MOST_STEPS = 8
USUAL_STEPS = 5
MOST_NODES = 200
MOST_USES = 200

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of a walk.

    Attributes:
        nodes: the nodes in the order in which they were visited; the start nodes first.
        relations: relations between these nodes.
        complete: whether no limit cut the result, and no computed relation may be missing.
        why: why the result is incomplete: a limit, or computed relations; None if it is complete.
        start_names: names of the start nodes.
        uses: places that use the start nodes, found by name: certain uses first, then possible
            uses, at most MOST_USES; see retrieval.uses.
    """

    nodes: tuple[Node, ...] = ()
    relations: tuple[Relation, ...] = ()
    complete: bool = True
    why: str | None = None
    start_names: tuple[str, ...] = ()
    uses: tuple[Relation, ...] = ()


class Walker:
    """Walks over the relations of tenants' repositories."""

    def __init__(self, catalog: Catalog, policy: AccessPolicy | None = None) -> None:
        self._catalog = catalog
        self._policy = policy or FlatScopes()

    def symbols(
        self, tenant_id: str, caller: Caller, *, name: str | None = None, path: str | None = None
    ) -> list[Node]:
        """Return the definitions with a name, qualified or as people write it, or in a document.

        Args:
            name: `InvoiceController`, `InvoiceController@store`, or a qualified name.
            path: a document's URI.

        Raises:
            UnknownTenant, RoleRefused: see serving_view.
        """
        view = self.serving_view(tenant_id, caller)
        if view is None:
            return []
        found = view.named(name) if name is not None else view.within(path or "")
        return [build_node(one) for one in found if path is None or one.uri == path]

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
        """Return the nodes and relations around a name, up to a number of steps away.

        Args:
            name: a name as for symbols(); a table as `table:NAME`, and so on.
            kinds: the kinds of the relations to follow; empty for all.
            direction: relations that start at the name (out), that lead to it (in), or both.
            depth: number of steps, up to MOST_STEPS.

        Raises:
            UnknownTenant, RoleRefused: see serving_view.
        """

        def walk(view: View) -> Walk:
            found = self.walk_in_view(
                view, tenant_id, Question(name, kinds, direction), depth=depth
            )
            return found if direction == "out" else _with_uses(view, found, kinds)

        return self.ask(tenant_id, caller, walk) or Walk()

    def ask(
        self, tenant_id: str, caller: Caller, read: Callable[[View], _Answer]
    ) -> _Answer | None:
        """Return the result of `read` for a view of the serving build; None without such a build.

        The evidence of edges from a graph in memory is read from the catalog. If a document was
        replaced in between, `read` is called once more, with a view of the catalog only.

        Args:
            read: may raise RelationsChanged if the view is of a graph in memory.

        Raises:
            UnknownTenant, RoleRefused: see serving_view.
        """
        try:
            view = self.serving_view(tenant_id, caller)
            return None if view is None else read(view)
        except RelationsChanged:
            view = self.serving_view(tenant_id, caller, from_memory=False)
            return None if view is None else read(view)

    def walk_in_view(self, view: View, tenant_id: str, question: Question, *, depth: int) -> Walk:
        """Return the walk from a name in a view; several walks of one answer may share the view.

        Args:
            depth: number of steps, up to MOST_STEPS.

        Raises:
            RelationsChanged: a document was replaced during the walk; see ask.
        """
        name, kinds, direction = question.name, question.kinds, question.direction
        walking = _Walking(view, frozenset(kinds), direction)
        start = walking.begin(name)
        frontier = [*start, *walking.add_implementations(start, direction)]
        if direction == "in":
            # Implementations depend on the method too, but their own users do not.
            walking.add_implementations(start, "out")
        for _ in range(min(depth, MOST_STEPS)):
            if frontier:
                frontier = walking.step(frontier)
                frontier += walking.add_implementations(frontier, direction)
        found = walking.found()
        lacks = [
            self._describe_missing(tenant_id, view, question, found),
            describe_unfollowed_calls(question, walking.lost_calls, view),
        ]
        why = "; ".join(one for one in (found.why, *lacks) if one)
        return replace(found, complete=not why, why=why or None)

    def _describe_missing(
        self, tenant_id: str, view: View, question: Question, found: Walk
    ) -> str | None:
        """Describe the computed routes and tables that an answer may lack; None without any."""
        if not may_lack_relations(question, found.nodes):
            return None
        unresolved = code_catalog(self._catalog).derivations.list_unresolved(tenant_id)
        if not any(unresolved.values()):
            return None
        return describe_unresolved(question, found.nodes, unresolved, view)

    def serving_view(
        self, tenant_id: str, caller: Caller, *, from_memory: bool = True
    ) -> View | None:
        """Return a caller's view of the serving build; None if no build is serving.

        Args:
            from_memory: whether a graph in memory may be read instead of the catalog.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
        """
        record = self._catalog.tenants.get(tenant_id)
        require_asker(record.profile, caller)
        serving = self._catalog.generations.serving(tenant_id)
        if record.state != "ACTIVE" or serving is None:
            return None
        moment = self.moment(tenant_id, caller)
        build = GraphKey(record.ref, serving.number)
        return self.view(build, caller, moment, from_memory=from_memory)

    def moment(self, tenant_id: str, caller: Caller) -> ReadableState:
        """Return the current state of a tenant's relations, and what the caller may read."""
        relations = code_catalog(self._catalog).relations
        return relations.read_moment(tenant_id, self._policy.principals(caller))

    def view(
        self, build: GraphKey, caller: Caller, moment: ReadableState, *, from_memory: bool = True
    ) -> View:
        """Return a caller's view of the relations of a tenant's build."""
        principals = self._policy.principals(caller)
        relations = code_catalog(self._catalog).relations
        rows = relations.select_readable(Readable(build.ref.id, build.generation, principals))
        graph = relations.graphs.get(build, moment.state) if from_memory else None
        found = rows if graph is None else GraphRelations(graph, moment.scopes, rows)
        return View(found, self._policy, caller)


def _with_uses(view: View, found: Walk, kinds: Sequence[str]) -> Walk:
    """Add the uses of a walk's start nodes, found by name, to the walk."""
    start_nodes = [node for node in found.nodes if node.name in found.start_names]
    by_name = uses_of_nodes(view, start_nodes, stated=found.relations)
    uses = [one.relation for one in (*by_name.certain, *by_name.possible)]
    uses = [use for use in uses if not kinds or use.kind in kinds]
    left = max(0, len(uses) - MOST_USES) + by_name.omitted
    found = replace(found, uses=tuple(uses[:MOST_USES]))
    if not left:
        return found
    why = f"at least {format_count(left, 'use')} by name are left out"
    return replace(found, complete=False, why=f"{found.why}; {why}" if found.why else why)


class _Walking:
    """The state of a walk: the nodes and relations read so far.

    Attributes:
        lost_calls: calls that lead to no definition.
    """

    def __init__(self, view: View, kinds: frozenset[str], direction: Direction) -> None:
        self._view, self._kinds, self._direction = view, kinds, direction
        self._nodes: dict[NodeKey, Node] = {}
        self._relations: dict[tuple[str, ...], tuple[FoundEdge, Relation]] = {}
        self.lost_calls: set[FoundEdge] = set()
        self._why: str | None = None
        self._start_names: tuple[str, ...] = ()

    def begin(self, name: str) -> list[NodeKey]:
        """Return the nodes with a name, from every repository that has them."""
        self._nodes |= {(one.source, one.name): build_node(one) for one in self._view.named(name)}
        self._nodes |= {(file.repository, file.name): file for file in self._view.files([name])}
        if name.startswith(tuple(PREFIXES)):
            # Without a definition, the name is a node only if a readable edge names it.
            for edge in self._view.edges([name], "in").edges:
                self._nodes.setdefault((edge.source, name), other_node(name, edge.source))
        self._start_names = tuple(dict.fromkeys(name for _, name in self._nodes))
        return list(self._nodes)

    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the edges of the frontier nodes; return the nodes that are new."""
        # Edges of a method also count as edges of its class.
        own = self._list_edges(frontier, "in", only=(MEMBER,))
        members = [(edge.source, edge.stated_of) for edge in own]
        # Code that creates an object uses the constructor of its class.
        made = [
            (source, class_of_constructor(name))
            for source, name in frontier
            if class_of_constructor(name)
        ]
        edges = self._list_edges([*frontier, *members, *made], self._direction)
        return self._add(edges)

    def add_implementations(
        self, frontier: Sequence[NodeKey], direction: Direction
    ) -> list[NodeKey]:
        """Follow the frontier's methods to those that implement them, or that they implement.

        This is not a step of its own: a call of a method may run each of its implementations.

        Args:
            direction: out: to those that implement them; in: to those that they implement; or both.
        """
        if not frontier or (self._kinds and IMPLEMENTED_BY not in self._kinds):
            return []
        return self._add(self._view.find_implementations(frontier, direction))

    def _add(self, edges: Sequence[FoundEdge]) -> list[NodeKey]:
        """Add the relations that edges stand for; return the nodes that are new."""
        known = self._view.ends(edges, self._nodes)
        new: list[NodeKey] = []
        for edge in edges:
            if edge.kind == "calls" and (edge.source, edge.target) not in known:
                self.lost_calls.add(edge)
            relation = find_relation(edge, known)
            if relation is None or (self._kinds and relation.kind not in self._kinds):
                continue
            ends = [(edge.source, relation.source), (edge.source, relation.target)]
            fresh = [end for end in ends if end not in self._nodes]
            if len(self._nodes) + len(fresh) > MOST_NODES:
                self._why = f"more than {MOST_NODES} nodes"
                continue
            self._nodes |= {end: known[end] for end in fresh}
            new += fresh
            # Several files may define a name: the SQL of one table for each database.
            key = edge.source, relation.kind, relation.source, relation.target, edge.uri
            self._relations.setdefault(key, (edge, relation))
        return new

    def found(self) -> Walk:
        """Return the nodes and relations that the walk found."""
        return Walk(
            tuple(self._nodes.values()),
            tuple(self._view.with_evidence([*self._relations.values()])),
            complete=self._why is None,
            why=self._why,
            start_names=self._start_names,
        )

    def _list_edges(
        self, nodes: Sequence[NodeKey], direction: Direction, *, only: Sequence[str] = ()
    ) -> list[FoundEdge]:
        edges = self._view.find_edges(nodes, self._nodes, direction, only=only)
        if edges.cut:
            self._why = f"more than {MOST_EDGES:,} relations at one step"
        wanted = set(nodes)
        return [
            edge
            for edge in edges.edges
            if (edge.source, get_stating_node(edge)) in wanted
            or (edge.source, edge.target) in wanted
        ]
