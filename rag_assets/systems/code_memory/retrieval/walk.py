"""The walk: follows relations from a name in a repository, edge by edge, with their evidence.

Only current versions and evidence that the caller may read are shown, counted or followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rag_assets.common.formatting import counted
from rag_assets.search.access import AccessPolicy, FlatScopes, require_asker
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.found_relations import Direction, FoundEdge, Readable
from rag_assets.systems.code_memory.catalog.graph.graph import GraphKey
from rag_assets.systems.code_memory.catalog.graph.reading import GraphRelations
from rag_assets.systems.code_memory.catalog.relation_state import RelationMoment
from rag_assets.systems.code_memory.retrieval.nodes import (
    PREFIXES,
    Node,
    NodeKey,
    Relation,
    class_of_constructor,
    node_of,
    other_node,
    relation_of,
    stated_of,
)
from rag_assets.systems.code_memory.retrieval.unresolved import (
    Question,
    describe_unfollowed_calls,
    describe_unresolved,
    may_lack_relations,
)
from rag_assets.systems.code_memory.retrieval.uses import collect_stated_uses, uses_of_nodes
from rag_assets.systems.code_memory.retrieval.view import MOST_EDGES, RelationsChanged, View
from rag_assets.systems.code_memory.symbols.names import MEMBER

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
        begun: names of the start nodes.
        uses: places that use the start nodes, found by name: certain uses first, then possible
            uses, at most MOST_USES; see retrieval.uses.
    """

    nodes: tuple[Node, ...] = ()
    relations: tuple[Relation, ...] = ()
    complete: bool = True
    why: str | None = None
    begun: tuple[str, ...] = ()
    uses: tuple[Relation, ...] = ()


class Walker:
    """Walks over the relations of tenants' repositories.

    Args:
        catalog: contains the symbols and edges, and who may read them.
        policy: decides what callers may read.
    """

    def __init__(self, catalog: Catalog, policy: AccessPolicy | None = None) -> None:
        self._catalog = catalog
        self._policy = policy or FlatScopes()

    def symbols(
        self, tenant_id: str, caller: Caller, *, name: str | None = None, path: str | None = None
    ) -> list[Node]:
        """Return the definitions with a name, qualified or as people write it, or in a document.

        Args:
            tenant_id, caller: owner of the repositories, and who asks.
            name: `InvoiceController`, `InvoiceController@store`, or a qualified name.
            path: a document's URI.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
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
        """Return the nodes and relations around a name, up to a number of steps away.

        Args:
            tenant_id, caller: owner of the repositories, and who asks.
            name: a name as for symbols(); a table as `table:NAME`, and so on.
            kinds: the kinds of the relations to follow; empty for all.
            direction: relations that start at the name (out), that lead to it (in), or both.
            depth: number of steps, up to MOST_STEPS.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
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
            tenant_id, caller: owner of the repositories, and who asks.
            read: may raise RelationsChanged if the view is of a graph in memory.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
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
            view: the view of the tenant's serving build; see serving_view.
            tenant_id: owner of the repositories.
            question: start node, kinds and direction.
            depth: number of steps, up to MOST_STEPS.

        Raises:
            RelationsChanged: a document was replaced during the walk; see ask.
        """
        name, kinds, direction = question.name, question.kinds, question.direction
        walking = _Walking(view, frozenset(kinds), direction)
        frontier = walking.begin(name)
        for _ in range(min(depth, MOST_STEPS)):
            if frontier:
                frontier = walking.step(frontier)
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
        unresolved = code_catalog(self._catalog).derivations.unresolved(tenant_id)
        if not any(unresolved.values()):
            return None
        return describe_unresolved(question, found.nodes, unresolved, view)

    def serving_view(
        self, tenant_id: str, caller: Caller, *, from_memory: bool = True
    ) -> View | None:
        """Return a caller's view of the serving build; None if no build is serving.

        Args:
            tenant_id, caller: owner of the repositories, and who asks.
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

    def moment(self, tenant_id: str, caller: Caller) -> RelationMoment:
        """Return the current state of a tenant's relations, and what the caller may read."""
        relations = code_catalog(self._catalog).relations
        return relations.moment(tenant_id, self._policy.principals(caller))

    def view(
        self, build: GraphKey, caller: Caller, moment: RelationMoment, *, from_memory: bool = True
    ) -> View:
        """Return a caller's view of the relations of a tenant's build.

        Args:
            moment: the relations' state, and the scopes that the caller's principals may read.
        """
        principals = self._policy.principals(caller)
        relations = code_catalog(self._catalog).relations
        rows = relations.readable(Readable(build.ref.id, build.generation, principals))
        graph = relations.graphs.of(build, moment.state) if from_memory else None
        found = rows if graph is None else GraphRelations(graph, moment.scopes, rows)
        return View(found, self._policy, caller)


def _with_uses(view: View, found: Walk, kinds: Sequence[str]) -> Walk:
    """Add the uses of a walk's start nodes, found by name, to the walk."""
    begun = [node for node in found.nodes if node.name in found.begun]
    by_name = uses_of_nodes(view, begun, stated=collect_stated_uses(found.relations))
    uses = [one.relation for one in (*by_name.certain, *by_name.possible)]
    uses = [one for one in uses if not kinds or one.kind in kinds]
    left = max(0, len(uses) - MOST_USES) + by_name.omitted
    found = replace(found, uses=tuple(uses[:MOST_USES]))
    if not left:
        return found
    why = f"at least {counted(left, 'use')} by name are left out"
    return replace(found, complete=False, why=f"{found.why}; {why}" if found.why else why)


class _Walking:
    """The state of a walk: the nodes and relations read so far.

    Attributes:
        lost_calls: calls that lead to no definition.
    """

    def __init__(self, view: View, kinds: frozenset[str], direction: Direction) -> None:
        self._view, self._kinds, self._direction = view, kinds, direction
        self._nodes: dict[NodeKey, Node] = {}
        self._relations: dict[tuple[str, str, str, str], tuple[FoundEdge, Relation]] = {}
        self.lost_calls: set[FoundEdge] = set()
        self._why: str | None = None
        self._begun: tuple[str, ...] = ()

    def begin(self, name: str) -> list[NodeKey]:
        """Return the nodes with a name, from every repository that has them."""
        self._nodes |= {(one.source, one.name): node_of(one) for one in self._view.named(name)}
        self._nodes |= {(one.repository, one.name): one for one in self._view.files([name])}
        if name.startswith(tuple(PREFIXES)):
            # Without a definition, the name is a node only if a readable edge names it.
            for edge in self._view.edges([name], "in").edges:
                self._nodes.setdefault((edge.source, name), other_node(name, edge.source))
        self._begun = tuple(dict.fromkeys(name for _, name in self._nodes))
        return list(self._nodes)

    def step(self, frontier: Sequence[NodeKey]) -> list[NodeKey]:
        """Follow the edges of the frontier nodes; return the nodes that are new."""
        # Edges of a method also count as edges of its class.
        own = self._edges(frontier, "in", only=(MEMBER,))
        members = [(edge.source, edge.stated_of) for edge in own]
        # Code that creates an object uses the constructor of its class.
        made = [
            (source, class_of_constructor(name))
            for source, name in frontier
            if class_of_constructor(name)
        ]
        edges = self._edges([*frontier, *members, *made], self._direction)
        known = self._view.ends(edges, self._nodes)
        new: list[NodeKey] = []
        for edge in edges:
            if edge.kind == "calls" and (edge.source, edge.target) not in known:
                self.lost_calls.add(edge)
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
            self._relations.setdefault(key, (edge, relation))
        return new

    def found(self) -> Walk:
        """Return the nodes and relations that the walk found."""
        return Walk(
            tuple(self._nodes.values()),
            tuple(self._view.with_evidence([*self._relations.values()])),
            complete=self._why is None,
            why=self._why,
            begun=self._begun,
        )

    def _edges(
        self, nodes: Sequence[NodeKey], direction: Direction, *, only: Sequence[str] = ()
    ) -> list[FoundEdge]:
        found = self._view.edges_at(nodes, self._nodes, direction, only=only)
        if found.cut:
            self._why = f"more than {MOST_EDGES:,} relations at one step"
        wanted = set(nodes)
        return [
            edge
            for edge in found.edges
            if (edge.source, stated_of(edge)) in wanted or (edge.source, edge.target) in wanted
        ]
