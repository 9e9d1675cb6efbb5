"""Relevance of relations to a question, and neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rag_assets.search.access import FlatScopes
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.found_relations import (
    FoundEdge,
    FoundEdges,
    FoundSymbol,
    NamesByRepository,
)
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, build_node
from rag_assets.systems.code_memory.retrieval.relevance import (
    Flow,
    Neighbourhood,
    NeighbourhoodCache,
    Neighbourhoods,
    flow_from_results,
)
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.symbols.names import FILE, MEMBER

ROLES = {"M": "model", "J": "job", "P": "policy"}


class FakeRelations:
    """Relations between methods, in memory; `A::a` is in the file a of its class."""

    def __init__(self, *edges: tuple[str, str, str]) -> None:
        self._edges = [self._edge(position, *edge) for position, edge in enumerate(edges)]

    def find_edges(self, nodes: Sequence[str], *_: Any, **__: Any) -> FoundEdges:
        wanted = set(nodes)
        return FoundEdges([e for e in self._edges if wanted & {e.stated_of, e.target}])

    def find_definitions(self, names: Sequence[str]) -> list[FoundSymbol]:
        return [symbol(name) for name in names]

    def find_documents(self, _: Sequence[str]) -> list[Any]:
        return []

    def find_names(self, *_: Any) -> dict[str, NamesByRepository]:
        return {}

    @staticmethod
    def _edge(position: int, source: str, kind: str, target: str) -> FoundEdge:
        place = (None, source, f"r/{source}.php", "r", "public", position)
        return FoundEdge(kind, source, target, "stated", 1.0, 1, 1, "", *place)


def symbol(name: str) -> FoundSymbol:
    kind = ROLES.get(name[:1], "service")
    fake = ("h", name, f"r/{name}.php", "r", "public", "code")
    return FoundSymbol(name, "class", True, 1, 1, *fake, {name: kind}, local_name=name)


def view_of(fake: FakeRelations) -> RelationView:
    return RelationView(fake, FlatScopes(), Caller())  # type: ignore[arg-type]


def nodes_of(*names: str) -> dict[NodeKey, Node]:
    return {("r", name): build_node(symbol(name)) for name in names}


def flow_of(*edges: tuple[str, str, str], **found: float) -> Flow:
    """Return what flows over edges from results with these scores."""
    seeds: dict[NodeKey, float] = {("r", name): value for name, value in found.items()}
    view = view_of(FakeRelations(*edges))
    return flow_from_results(view, Neighbourhoods(), seeds, nodes_of(*found))


def scores(*edges: tuple[str, str, str], **found: float) -> dict[str, float]:
    return {one.node.name: one.score for one in flow_of(*edges, **found).nodes}


def test_a_node_gets_the_sum_of_several_results() -> None:
    edges = (("A", "calls", "X"), ("B", "calls", "X"), ("A", "calls", "Y"))
    found = scores(*edges, A=1.0, B=1.0)
    assert found["X"] > found["Y"] > 0
    assert found["X"] > scores(*edges, A=1.0)["X"]


def test_a_node_that_everything_uses_gets_less() -> None:
    crowd = [(f"C{number}", "uses_model", "M1") for number in range(200)]
    found = scores(("A", "uses_model", "M1"), ("A", "uses_model", "M2"), *crowd, A=1.0)
    assert found["M2"] > 1.5 * found["M1"] > 0


def test_relevance_fades_along_a_chain_and_its_path_is_returned() -> None:
    found = flow_of(("A", "calls", "B"), ("B", "dispatches", "J"), ("J", "calls", "D"), A=1.0)
    nodes = {one.node.name: one for one in found.nodes}
    assert nodes["B"].score > nodes["J"].score > nodes["D"].score
    assert nodes["D"].path == ("A", "B", "J", "D")


def test_relevance_flows_three_steps_and_ends_in_a_ring() -> None:
    chain = [(f"A{n}", "calls", f"A{n + 1}") for n in range(9)]
    assert set(scores(*chain, A0=1.0)) == {"A0", "A1", "A2", "A3"}
    assert set(scores(("A", "calls", "B"), ("B", "calls", "A"), A=1.0)) == {"A", "B"}


def test_a_result_gains_by_its_neighbours() -> None:
    assert scores(("A", "calls", "B"), A=1.0, B=0.5)["A"] > 0


def test_a_created_job_is_dispatched() -> None:
    found = scores(("A", "makes", "J"), ("A", "makes", "S"), A=1.0)
    assert found["J"] > found["S"] > 0


def test_a_policy_is_found_by_the_name_of_its_model() -> None:
    edges = (("MPolicy", "takes", "M"), ("A", "uses_model", "M"), ("B", "takes", "M"))
    found = scores(*edges, A=1.0)
    assert found["MPolicy"] > found["B"]


def test_documents_that_state_relations_are_returned() -> None:
    found = flow_of(("docs/adr/1.md", "documents", "A"), A=1.0)
    assert found.stating_documents == {"docs/adr/1.md": found.nodes[0].score}


class CountingRelations(FakeRelations):
    def __init__(self, *edges: tuple[str, str, str], cut: bool = False) -> None:
        super().__init__(*edges)
        self.read: list[set[str]] = []
        self.cut = cut

    def find_edges(self, nodes: Sequence[str], *_: Any, **__: Any) -> FoundEdges:
        self.read.append(set(nodes))
        return FoundEdges(super().find_edges(nodes).edges, cut=self.cut)


def read_neighbourhoods(
    fake: FakeRelations, kept: Neighbourhoods, *names: str
) -> dict[str, Neighbourhood]:
    nodes = nodes_of(*names)
    found = kept.read(view_of(fake), [*nodes], nodes)
    return {key[1]: one for key, one in found.items()}


CHAIN = (
    *(("A", "calls", "B"), ("B", "dispatches", "J")),
    *(("C", "uses_model", "M"), ("A", "calls", "M")),
)


def test_a_node_is_read_once() -> None:
    fake, kept = CountingRelations(*CHAIN), Neighbourhoods()
    first = read_neighbourhoods(fake, kept, "A", "B")
    read = len(fake.read)
    assert read_neighbourhoods(fake, kept, "B", "A") == first
    assert len(fake.read) == read
    assert read_neighbourhoods(fake, kept, "A", "M").keys() == {"A", "M"}
    assert "A" not in set().union(*fake.read[read:])


def test_ways_are_the_same_whatever_was_asked_before() -> None:
    kept = Neighbourhoods()
    fake = CountingRelations(*CHAIN)
    for names in (("A",), ("B", "J"), ("M", "A", "C"), ("J", "C")):
        fresh = read_neighbourhoods(fake, Neighbourhoods(), *names)
        assert read_neighbourhoods(fake, kept, *names) == fresh


def test_ways_with_the_greatest_shares_come_first_and_both_directions_count() -> None:
    [found] = read_neighbourhoods(CountingRelations(*CHAIN), Neighbourhoods(), "B").values()
    assert [(neighbour.key[1], neighbour.kind) for neighbour in found.neighbours] == [
        ("J", "dispatches"),
        ("A", "calls"),
    ]
    assert found.size == 2
    shares = [neighbour.share for neighbour in found.neighbours]
    assert shares == sorted(shares, reverse=True)


class Foreign(CountingRelations):
    """Relations of a repository that defines no name V followed by a number."""

    def find_definitions(self, names: Sequence[str]) -> list[FoundSymbol]:
        return super().find_definitions([name for name in names if not name.startswith("V")])


def shares(fake: FakeRelations, name: str) -> dict[str, float]:
    [found] = read_neighbourhoods(fake, Neighbourhoods(), name).values()
    return {neighbour.key[1]: neighbour.share for neighbour in found.neighbours}


def test_names_of_packages_have_no_share() -> None:
    alone = shares(Foreign(("A", "calls", "B")), "A")
    assert shares(Foreign(("A", "calls", "B"), ("A", "calls", "V1")), "A") == alone
    divided = shares(Foreign(("A", "calls", "B"), ("A", "calls", "C")), "A")
    assert divided["B"] == divided["C"] < alone["B"]


class PartlyInferred(CountingRelations):
    """Relations of which those to names that start with I are inferred."""

    def find_edges(self, nodes: Sequence[str], *_: Any, **__: Any) -> FoundEdges:
        return FoundEdges(
            [
                e._replace(how="inferred", confidence=0.6) if e.target.startswith("I") else e
                for e in super().find_edges(nodes).edges
            ]
        )


def test_inferred_relations_take_nothing_from_stated_ones() -> None:
    fake = [("A", "calls", "B"), ("A", "calls", "I1"), ("A", "calls", "I2")]
    sure = shares(PartlyInferred(fake[0]), "A")["B"]
    one = shares(PartlyInferred(*fake[:2]), "A")
    both = shares(PartlyInferred(*fake), "A")
    assert one["B"] == both["B"] == sure
    assert 0 < both["I1"] == both["I2"] < one["I1"] < sure


def test_what_people_name_otherwise_has_a_share_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROLES, "Q", "request")
    monkeypatch.setitem(ROLES, "M", "model")
    alone = shares(CountingRelations(("A", "takes", "Q")), "A")
    fake = CountingRelations(("A", "takes", "Q"), ("A", "takes", "M"), ("A", "takes", "S"))
    assert shares(fake, "A")["Q"] == alone["Q"]


def test_the_only_method_of_a_class_has_more_than_one_of_several() -> None:
    only = shares(CountingRelations(("A::a", MEMBER, "A")), "A")
    several = shares(CountingRelations(("A::a", MEMBER, "A"), ("A::b", MEMBER, "A")), "A")
    assert only["A::a"] > 2 * several["A::a"] > 0


def test_what_is_stated_of_a_file_is_stated_of_its_first_definition() -> None:
    fake = CountingRelations((f"{FILE}r/A.php", "changed_by", "R"), ("A", "calls", "B"))
    nodes = nodes_of("A") | {("r", "A::a"): build_node(symbol("A"))}
    for order in ([("r", "A"), ("r", "A::a")], [("r", "A::a"), ("r", "A")]):
        kept = Neighbourhoods()
        found = kept.read(view_of(fake), order, nodes)
        first, second = (found[key] for key in order)
        assert ("r", "R") in {neighbour.key for neighbour in first.neighbours}
        assert ("r", "R") not in {neighbour.key for neighbour in second.neighbours}


def test_a_node_with_too_many_relations_leaves_room_for_others() -> None:
    class Crowded(CountingRelations):
        """Relations that are truncated when they are read together with M."""

        def find_edges(self, nodes: Sequence[str], *_: Any, **__: Any) -> FoundEdges:
            self.cut = "M" in nodes
            found = super().find_edges(nodes)
            return FoundEdges([], cut=True) if self.cut else found

    fake, kept = Crowded(*CHAIN), Neighbourhoods()
    nodes = nodes_of("A", "B", "M")
    found = kept.read(view_of(fake), [*nodes], nodes)
    assert {key[1]: one.size for key, one in found.items()} == {"A": 2, "B": 2, "M": 1_000}
    assert [key[1] for key, one in found.items() if not one.neighbours] == ["M"]
    read = len(fake.read)
    assert kept.read(view_of(fake), [*nodes], nodes) == found
    assert len(fake.read) == read


def test_the_cache_of_neighbourhoods_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.systems.code_memory.retrieval.relevance._MAX_NEIGHBOURS", 3)
    fake, kept = CountingRelations(*CHAIN), Neighbourhoods()
    first = read_neighbourhoods(fake, kept, "B")
    read_neighbourhoods(fake, kept, "M")
    read = len(fake.read)
    assert read_neighbourhoods(fake, kept, "B") == first
    assert len(fake.read) > read
    whole = read_neighbourhoods(fake, kept, "A", "B", "C", "J", "M")
    assert len(whole) == 5


def test_states_and_scopes_are_kept_apart() -> None:
    kept = NeighbourhoodCache()
    one = kept.get("state", frozenset({"public"}))
    assert kept.get("state", frozenset({"public"})) is one
    others = [kept.get("state", frozenset({name})) for name in "abcd"]
    assert one not in others
    assert kept.get("state", frozenset({"public"})) is not one, "the oldest is forgotten"


def test_a_walk_finds_the_same_with_and_without_what_was_kept() -> None:
    edges = [(f"A{n % 7}", "calls", f"B{n % 5}") for n in range(35)]
    edges += [(f"B{n}", "dispatches", f"J{n}") for n in range(5)]
    fake, kept = CountingRelations(*edges), Neighbourhoods()
    for seeds in ({"A0": 1.0, "A3": 0.7}, {"B1": 0.9}, {"A0": 0.4, "J2": 1.0}):
        found = {("r", name): value for name, value in seeds.items()}
        nodes = nodes_of(*seeds)
        fresh = flow_from_results(view_of(fake), Neighbourhoods(), found, nodes)
        assert flow_from_results(view_of(fake), kept, found, nodes) == fresh
        assert fresh.nodes
