"""Approximate vector searches may differ in their candidates, but never in the cosines.

Graph walks, and bits relative to the mean of a segment, depend on entries that a search may not
return. Exact search limits their effect on the first hits.
"""

from __future__ import annotations

import numpy as np
import pytest

from rag_assets.storage.index.elasticsearch import mapping
from rag_assets.storage.index.model import Candidate, IndexSpec, Owner, choose_vector_index
from rag_assets.storage.index.pgvector import searcher as searching
from rag_assets.storage.index.store import VectorStore
from tests.vector_stores import Opened, entry, unit

DIMENSIONS, ENTRIES, QUESTIONS, LIMIT = 384, 800, 6, 50
FIRST = 10
"""Hits that a question is answered by as a rule."""
LEAST_RECALL = 0.95


@pytest.fixture
def graph(module_store: VectorStore, tenant: str, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Return an index that walks graphs from a few hundred entries on."""
    monkeypatch.setattr(searching, "_MAX_EXACT_ROWS", 0)
    spec = IndexSpec(DIMENSIONS, choose_vector_index(DIMENSIONS))
    monkeypatch.setattr(mapping, "_SCANNED_NUMBERS", {spec.vector_index: 100 * DIMENSIONS})
    return Opened(module_store, module_store.indexes.place(spec, tenant, "dedicated"))


def test_unreadable_vectors_change_no_cosine_and_hardly_a_hit(graph: Opened, owner: Owner) -> None:
    drawn = np.random.default_rng(7)
    centres = drawn.normal(size=(20, DIMENSIONS))
    vectors = {
        f"d{at}": unit(*(centres[at % 20] + drawn.normal(size=DIMENSIONS))) for at in range(ENTRIES)
    }
    asked = [unit(*(centres[at] + drawn.normal(size=DIMENSIONS))) for at in range(QUESTIONS)]
    graph.write(*(entry(owner, name, vector=vector) for name, vector in vectors.items()))

    def found() -> list[list[Candidate]]:
        scopes = frozenset({"public"})
        return [graph.ranking(owner, one, limit=LIMIT, scopes=scopes) for one in asked]

    before = found()
    # These are as near to the questions as the readable ones, or nearer.
    graph.write(
        *(
            entry(
                owner,
                f"hidden{at}",
                vector=unit(*(asked[at % QUESTIONS] + 0.05 * drawn.normal(size=DIMENSIONS))),
                access_scope="board",
            )
            for at in range(ENTRIES)
        )
    )
    after = found()
    recalled = 0
    for question, *rankings in zip(asked, before, after, strict=True):
        exact = sorted(vectors, key=lambda name: -float(vectors[name] @ question))[:FIRST]
        for ranking in rankings:
            assert len(ranking) == LIMIT
            recalled += len({one.document_id for one in ranking[:FIRST]} & {*exact})
        cosines = [{one.document_id: one.score for one in ranking} for ranking in rankings]
        for name in cosines[0].keys() & cosines[1].keys():
            assert cosines[0][name] == pytest.approx(cosines[1][name], abs=1e-6)
    assert recalled >= LEAST_RECALL * 2 * FIRST * QUESTIONS
