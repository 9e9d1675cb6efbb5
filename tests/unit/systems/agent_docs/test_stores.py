"""Stores of passages."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.storage.index.model import Candidate, Entry, Owner, RankingRequest
from rag_assets.storage.index.store import EntrySearcher, StoreConfig, VectorStore, open_store
from rag_assets.systems.agent_docs.errors import DamagedIndex
from rag_assets.systems.agent_docs.file_store import FileStore
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore
from rag_assets.systems.agent_docs.stores import (
    DocChunk,
    MemoryStore,
    PassageIndex,
    PassageStore,
    build_agent_file_name,
    rank_rows,
)
from rag_assets.systems.agent_docs.tenant_search import order_exactly
from tests.unit.systems.agent_docs.indexes import chunks_of, state_of, vectors_of
from tests.vector_stores import SPEC, Opened, entry, owner_of

Make = Callable[[], PassageStore]


@pytest.fixture(params=["memory", "file", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> PassageStore:
    made: dict[str, Make] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(tmp_path / "rag"),
        "sqlite": lambda: SqliteStore(tmp_path / "rag.db"),
    }
    return made[request.param]()


def test_an_agent_without_an_index_has_nothing(store: PassageStore) -> None:
    assert not store.has_index("a")
    assert store.state("a") is None
    assert store.search(np.ones(8), "a", 5) == []
    assert store.chunks("a") == []
    assert store.vectors("a") == {}


def test_an_index_returns_what_was_stored(store: PassageStore) -> None:
    chunks, rows = chunks_of("a", 20), vectors_of(20)
    state = state_of(chunks)
    store.replace("a", chunks, rows, state)
    assert store.has_index("a")
    assert not store.has_index("b")
    assert store.chunks("a") == sorted(chunks, key=lambda one: one.id)
    assert store.state("a") == state
    best, *others = store.search(rows[4], "a", 3)
    assert best.chunk == chunks[4]
    assert best.score == pytest.approx(1.0, abs=1e-5)
    assert len(others) == 2
    known = store.vectors("a")
    assert all(np.allclose(known[c.id], r, atol=1e-6) for c, r in zip(chunks, rows, strict=True))


def test_agents_whose_names_and_paths_read_alike_keep_their_own(store: PassageStore) -> None:
    of_a = [DocChunk.from_location("a", "b:x.md", 0, "the valve")]
    of_ab = [DocChunk.from_location("a:b", "x.md", 0, "the pump")]
    for agent, chunks in (("a", of_a), ("a:b", of_ab)):
        store.replace(agent, chunks, vectors_of(1), state_of(chunks))
    assert store.chunks("a") == of_a
    assert store.chunks("a:b") == of_ab


def test_a_new_index_replaces_the_former_one(store: PassageStore) -> None:
    before, after, other = chunks_of("a", 20), chunks_of("a", 5), chunks_of("b", 3)
    store.replace("a", before, vectors_of(20), state_of(before))
    store.replace("b", other, vectors_of(3), state_of(other))
    store.replace("a", after, vectors_of(5, seed=2), state_of(after, "g"))
    assert store.chunks("a") == sorted(after, key=lambda one: one.id)
    assert store.state("a") == state_of(after, "g")
    assert len(store.chunks("b")) == 3
    store.replace("a", [], np.empty((0, 8), dtype=np.float32), state_of([]))
    assert store.has_index("a")
    assert store.search(np.ones(8), "a", 5) == []
    assert store.has_index("b")


def test_a_state_is_replaced_without_its_passages(store: PassageStore) -> None:
    chunks = chunks_of("a", 4)
    store.replace("a", chunks, vectors_of(4), state_of(chunks))
    store.touch("a", state_of(chunks, "later"))
    assert store.state("a") == state_of(chunks, "later")
    assert len(store.chunks("a")) == 4


def test_all_stores_find_the_same(tmp_path: Path) -> None:
    chunks, rows = chunks_of("a", 300), vectors_of(300)
    rows[10:20] = rows[9]  # ties
    stores = [MemoryStore(), FileStore(tmp_path / "f"), SqliteStore(tmp_path / "d.db")]
    for store in stores:
        store.replace("a", chunks, rows, state_of(chunks))
    for query in [*vectors_of(50, seed=3), rows[12]]:
        first, *others = ([(r.chunk.id, r.score) for r in s.search(query, "a", 15)] for s in stores)
        assert others == [first, first]
        assert first == sorted(first, key=lambda one: (-one[1], one[0]))


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_the_nearest_are_those_that_plain_arithmetic_finds(n: int, k: int, seed: int) -> None:
    rows, query = vectors_of(n, seed, 4), vectors_of(1, seed + 1, 4)[0]
    ids = [f"{at:03}" for at in range(n)]
    cosines = rows.astype(float) @ query.astype(float)
    wanted = sorted(range(n), key=lambda at: (-round(float(cosines[at]), 6), at))
    assert [row for row, _ in rank_rows(rows, query, ids, k)] == wanted[:k]


@pytest.mark.parametrize("agent_id", ["../x", "/etc/x", "..", ".hidden", "a/b", "ü" * 300, "a\\b"])
def test_an_agents_id_leads_to_no_other_folder(agent_id: str, tmp_path: Path) -> None:
    folder = tmp_path / "one" / "rag"
    store = FileStore(folder)
    chunks = chunks_of(agent_id, 2)
    store.replace(agent_id, chunks, vectors_of(2), state_of(chunks))
    assert store.chunks(agent_id) == chunks
    assert {p.parent for p in tmp_path.rglob("*") if p.is_file()} == {folder}
    assert not build_agent_file_name(agent_id).startswith(".")


def test_index_files_have_the_documented_form(tmp_path: Path) -> None:
    store, chunks, rows = FileStore(tmp_path), chunks_of("a", 3), vectors_of(3)
    store.replace("a", chunks, rows, state_of(chunks))
    read = json.loads((tmp_path / "a.index.json").read_text())
    fields = {"id", "content", "source_path", "byte_offset", "agent_id"}
    assert [set(one) for one in read] == [{"chunk", "embedding"}] * 3
    assert [set(one["chunk"]) for one in read] == [fields] * 3
    assert np.allclose([one["embedding"] for one in read], rows, atol=1e-6)
    assert stat.S_IMODE((tmp_path / "a.index.json").stat().st_mode) == 0o600


def test_a_database_has_the_documented_form(tmp_path: Path) -> None:
    path = tmp_path / "rag.db"
    chunks, rows = chunks_of("a", 3), vectors_of(3)
    SqliteStore(path).replace("a", chunks, rows, state_of(chunks))
    with sqlite3.connect(path) as connection:
        read = connection.execute(
            "SELECT id, content, source_path, byte_offset, agent_id, embedding FROM chunks"
            " WHERE agent_id = 'a' ORDER BY id"
        ).fetchall()
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT id FROM chunks WHERE agent_id = 'a'")
        assert "chunks_by_agent" in str(plan.fetchall())
    connection.close()
    assert [DocChunk(*row[:5]) for row in read] == chunks
    assert np.allclose([json.loads(row[5]) for row in read], rows, atol=1e-6)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rows_of_other_programs_are_searched(tmp_path: Path) -> None:
    path = tmp_path / "rag.db"
    chunks = chunks_of("a", 1)
    SqliteStore(path).replace("a", chunks, vectors_of(1), state_of(chunks))
    with sqlite3.connect(path) as connection:
        row = ("b:x.md:0", "theirs", "x.md", 0, "b", json.dumps([3.0, 4.0]), None)
        connection.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    found = SqliteStore(path).search([0.0, 2.0], "b", 1)
    assert [(one.chunk.content, one.score) for one in found] == [("theirs", 0.8)]


@pytest.mark.parametrize("name", ["a.index.json", "rag.db"])
def test_a_damaged_index_is_kept_under_another_name(name: str, tmp_path: Path) -> None:
    store = FileStore(tmp_path) if name.endswith("json") else SqliteStore(tmp_path / name)
    chunks = chunks_of("a", 3)
    store.replace("a", chunks, vectors_of(3), state_of(chunks))
    (tmp_path / name).write_bytes(b"no index" * 200)
    assert store.state("a") is None
    assert not store.has_index("a")
    with pytest.raises(DamagedIndex, match="is damaged"):
        store.search(np.ones(8), "a", 3)
    with store.building("a"):
        store.replace("a", chunks, vectors_of(3), state_of(chunks))
    assert len(store.chunks("a")) == 3
    assert (tmp_path / f"{name}.damaged-1").read_bytes().startswith(b"no index")


def test_a_busy_database_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "rag.db"
    store, chunks = SqliteStore(path), chunks_of("a", 3)
    store.replace("a", chunks, vectors_of(3), state_of(chunks))
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    assert len(store.search(np.ones(8), "a", 3)) == 3  # readers do not wait
    release = threading.Timer(0.5, other.rollback)
    release.start()
    store.replace("a", chunks[:2], vectors_of(2), state_of(chunks[:2]))
    release.join()
    other.close()
    assert len(store.chunks("a")) == 2
    assert not list(tmp_path.glob("*.damaged*"))


def test_a_file_that_another_program_wrote_has_no_state(tmp_path: Path) -> None:
    store, chunks = FileStore(tmp_path), chunks_of("a", 3)
    store.replace("a", chunks, vectors_of(3), state_of(chunks))
    path = tmp_path / "a.index.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:1]))
    assert store.state("a") is None
    assert store.vectors("a") == {}
    assert len(store.search(np.ones(8), "a", 3)) == 1


def test_a_second_builder_waits(store: PassageStore) -> None:
    order: list[str] = []
    inside = threading.Event()

    def build() -> None:
        with store.building("a"):
            order.append("second")

    second = threading.Thread(target=build)
    with store.building("a"):
        second.start()
        inside.wait(0.2)
        order.append("first")
    second.join()
    assert order == ["first", "second"]


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
def vector_store() -> Iterator[VectorStore]:
    opened = open_store(StoreConfig("memory:"))
    yield opened
    opened.close()


def filled(vector_store: VectorStore, made: Sequence[Entry]) -> Opened:
    opened = Opened(vector_store, vector_store.indexes.place(SPEC, "any", "shared"))
    opened.write(*made)
    return opened


async def ordered(
    searcher: Coarse, index_name: str, request: RankingRequest, count: int
) -> list[Candidate]:
    [found] = await searcher.rankings(index_name, OWNER, [request])
    given: Any = searcher
    return await order_exactly(given, index_name, OWNER, request, found, count=count)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top_k", [1, 5, 40])
def test_hits_have_the_exact_order(vector_store: VectorStore, seed: int, top_k: int) -> None:
    rows = vectors(400, seed)
    opened = filled(vector_store, made := entries(rows))
    question = vectors(1, 100 + seed)[0]
    request = RankingRequest(question, 2 * top_k + 30)
    searcher = Coarse(vector_store.searcher())
    found = asyncio.run(ordered(searcher, opened.name, request, top_k))
    ids = {one.id: f"{one.document.passage_source}:0" for one in made}
    chunks = [DocChunk(id_, "", "", 0, "guide") for id_ in ids.values()]
    wanted = PassageIndex.from_chunks(chunks, rows).search(question, top_k)
    best = [(ids[one.id], one.score) for one in found[:top_k]]
    assert best == [(one.chunk.id, one.score) for one in wanted]
    assert len({one.id for one in found}) == len(found)


def test_more_candidates_are_fetched_only_for_ties(vector_store: VectorStore) -> None:
    rows = np.tile(np.eye(DIMENSIONS, dtype=np.float32)[0], (300, 1))
    opened = filled(vector_store, entries(rows))
    searcher = Coarse(vector_store.searcher())
    request = RankingRequest(rows[0], 40)
    asyncio.run(ordered(searcher, opened.name, request, 5))
    assert searcher.limits == [40, 320]
