"""Exact ranking of approximate results, with an index in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from rag_assets.storage.index.model import Candidate, Entry, Owner, RankingRequest
from rag_assets.storage.index.store import EntrySearcher, StoreConfig, VectorStore, open_store
from rag_assets.systems.agent_docs.stores import DocChunk, PassageIndex
from rag_assets.systems.agent_docs.tenant_search import order_exactly
from tests.vector_stores import SPEC, Opened, entry, owner_of

DIMENSIONS = 4
OWNER = owner_of("guide")


class Coarse:
    """An index in memory that rounds scores to four digits and breaks ties in reverse order."""

    def __init__(self, searcher: EntrySearcher) -> None:
        self._searcher = searcher
        self.limits: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._searcher, name)

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        [request] = requests
        self.limits.append(request.limit)
        [found] = await self._searcher.rankings(index_name, owner, [replace(request, limit=9_999)])
        rounded = [replace(one, score=round(one.score, 4)) for one in found]
        rounded.sort(key=lambda one: (one.score, one.id), reverse=True)
        return [rounded[: request.limit]]


def vectors(count: int, seed: int) -> npt.NDArray[np.float32]:
    chance = np.random.default_rng(seed)
    # Few directions and tiny differences: many ties, and many that rounding makes ties.
    rows = chance.integers(-1, 2, (count, DIMENSIONS)) + chance.choice([0, 1e-5], (count, 1)) + 0.1
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def entries(rows: npt.NDArray[np.float32]) -> list[Entry]:
    made = []
    for number, row in enumerate(rows):
        one = entry(OWNER, f"d{number:03}", f"Text {number % 7}.", vector=row)
        name = f"guide:docs/{number * 37 % 1_000:03}.md"
        made.append(replace(one, document=replace(one.document, passage_source=name)))
    return made


@pytest.fixture
def store() -> Iterator[VectorStore]:
    opened = open_store(StoreConfig("memory:"))
    yield opened
    opened.close()


def filled(store: VectorStore, made: Sequence[Entry]) -> Opened:
    opened = Opened(store, store.indexes.place(SPEC, "any", "shared"))
    opened.write(*made)
    return opened


async def ordered(
    searcher: Coarse, index_name: str, request: RankingRequest, count: int
) -> list[Candidate]:
    [candidates] = await searcher.rankings(index_name, OWNER, [request])
    return await order_exactly(
        searcher,  # type: ignore[arg-type]
        index_name,
        OWNER,
        request,
        candidates,
        count=count,
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top_k", [1, 5, 40])
def test_the_order_is_that_of_the_stores_on_one_machine(
    store: VectorStore, seed: int, top_k: int
) -> None:
    rows = vectors(400, seed)
    made = entries(rows)
    opened = filled(store, made)
    question = vectors(1, 100 + seed)[0]
    request = RankingRequest(question, 2 * top_k + 30)
    searcher = Coarse(store.searcher())
    found = asyncio.run(ordered(searcher, opened.name, request, top_k))
    ids = {one.id: f"{one.document.passage_source}:0" for one in made}
    chunks = [DocChunk(id_, "", "", 0, "guide") for id_ in ids.values()]
    wanted = PassageIndex.from_chunks(chunks, rows).search(question, top_k)
    assert [(ids[one.id], one.score) for one in found[:top_k]] == [
        (one.chunk.id, one.score) for one in wanted
    ]
    assert len({one.id for one in found}) == len(found)


def test_more_is_asked_for_only_while_ties_go_on(store: VectorStore) -> None:
    rows = np.tile(np.eye(DIMENSIONS, dtype=np.float32)[0], (300, 1))
    opened = filled(store, entries(rows))
    searcher = Coarse(store.searcher())
    request = RankingRequest(rows[0], 40)
    asyncio.run(ordered(searcher, opened.name, request, 5))
    assert searcher.limits == [40, 320]
