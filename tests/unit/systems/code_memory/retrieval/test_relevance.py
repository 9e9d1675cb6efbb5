from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_assets.search.access import FlatScopes
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.found_relations import (
    FoundEdge,
    FoundEdges,
    FoundSymbol,
    NamesCalled,
)
from rag_assets.systems.code_memory.retrieval.nodes import NodeKey, build_node
from rag_assets.systems.code_memory.retrieval.relevance import (
    Flow,
    Neighbourhoods,
    flow_from_results,
)
from rag_assets.systems.code_memory.retrieval.view import RelationView

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

    def find_names(self, *_: Any) -> dict[str, NamesCalled]:
        return {}

    @staticmethod
    def _edge(position: int, source: str, kind: str, target: str) -> FoundEdge:
        place = (None, source, f"r/{source}.php", "r", "public", position)
        return FoundEdge(kind, source, target, "stated", 1.0, 1, 1, "", *place)


def symbol(name: str) -> FoundSymbol:
    kind = ROLES.get(name[:1], "service")
    fake = ("h", name, f"r/{name}.php", "r", "public", "code")
    return FoundSymbol(name, "class", True, 1, 1, *fake, {name: kind}, local_name=name)


def brought(fake: FakeRelations, **found: float) -> Flow:
    view = RelationView(fake, FlatScopes(), Caller())  # type: ignore[arg-type]
    seeds: dict[NodeKey, float] = {("r", name): value for name, value in found.items()}
    nodes = {key: build_node(symbol(key[1])) for key in seeds}
    return flow_from_results(view, Neighbourhoods(), seeds, nodes)


def scores(found: Flow) -> dict[str, float]:
    return {one.node.name: one.score for one in found.nodes}


def test_what_several_lead_to_gets_the_sum() -> None:
    fake = FakeRelations(("A", "calls", "X"), ("B", "calls", "X"), ("A", "calls", "Y"))
    found = scores(brought(fake, A=1.0, B=1.0))
    assert found["X"] > found["Y"] > 0
    alone = scores(brought(fake, A=1.0))
    assert found["X"] > alone["X"]


def test_what_everything_is_related_to_gets_less() -> None:
    crowd = [(f"C{number}", "uses_model", "M1") for number in range(200)]
    fake = FakeRelations(("A", "uses_model", "M1"), ("A", "uses_model", "M2"), *crowd)
    found = scores(brought(fake, A=1.0))
    assert found["M2"] > 1.5 * found["M1"] > 0


def test_relevance_fades_along_a_chain_and_its_path_is_returned() -> None:
    fake = FakeRelations(("A", "calls", "B"), ("B", "dispatches", "J"), ("J", "calls", "D"))
    found = brought(fake, A=1.0)
    assert scores(found)["B"] > scores(found)["J"] > scores(found)["D"]
    [path] = [one.path for one in found.nodes if one.node.name == "D"]
    assert path == ("A", "B", "J", "D")


def test_it_does_not_go_on_for_ever() -> None:
    fake = FakeRelations(*((f"A{n}", "calls", f"A{n + 1}") for n in range(9)))
    assert set(scores(brought(fake, A0=1.0))) == {"A0", "A1", "A2", "A3"}
    ring = FakeRelations(("A", "calls", "B"), ("B", "calls", "A"))
    assert set(scores(brought(ring, A=1.0))) == {"A", "B"}


def test_what_was_found_gains_by_its_neighbours() -> None:
    fake = FakeRelations(("A", "calls", "B"))
    found = scores(brought(fake, A=1.0, B=0.5))
    assert found["A"] > 0


def test_a_made_job_is_dispatched() -> None:
    fake = FakeRelations(("A", "makes", "J"), ("A", "makes", "S"))
    found = scores(brought(fake, A=1.0))
    assert found["J"] > found["S"] > 0


def test_a_policy_is_found_by_the_name_of_its_model() -> None:
    fake = FakeRelations(("MPolicy", "takes", "M"), ("A", "uses_model", "M"), ("B", "takes", "M"))
    found = scores(brought(fake, A=1.0))
    assert found["MPolicy"] > found["B"]


def test_documents_that_state_relations_are_returned() -> None:
    fake = FakeRelations(("docs/adr/1.md", "documents", "A"))
    assert brought(fake, A=1.0).stating_documents == {
        "docs/adr/1.md": brought(fake, A=1.0).nodes[0].score
    }
