"""Vectors in Postgres: graphs where the extension supports them, and exact search elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest
from rag_assets.storage.index.pgvector import searcher as searching
from rag_assets.storage.index.pgvector.searcher import PgVectorSearcher
from rag_assets.storage.index.pgvector.tables import (
    OPTIONS,
    PgVectors,
    SchemaNames,
    build_driver_url,
)
from tests.vector_stores import entry, owner_of, unit

COUNT = 400
RARE = 40
"""Every so manieth entry has a scope of its own."""


class Build:
    """A build with known random vectors."""

    def __init__(self, url: str, dimensions: int) -> None:
        self.url, self.prefix = url, f"graph{uuid4().hex[:8]}"
        self.owner: Owner = owner_of(f"t{uuid4().hex[:12]}")
        drawn = np.random.default_rng(dimensions)
        self.vectors = {f"d{n}": unit(*drawn.normal(size=dimensions)) for n in range(COUNT)}
        self.asked = unit(*drawn.normal(size=dimensions))
        self.store = PgVectors(url, self.prefix)
        self.store.create(self.owner, dimensions)
        self.store.write(
            entry(self.owner, name, vector=vector, access_scope="public" if at % RARE else "rare")
            for at, (name, vector) in enumerate(self.vectors.items())
        )
        self.store.index(self.owner, dimensions)

    def ranking(self, limit: int, *scopes: str) -> list[tuple[str, float]]:
        """Return the ranking of a search."""

        async def ask() -> list[tuple[str, float]]:
            searcher = PgVectorSearcher(self.url, self.prefix)
            request = RankingRequest(self.asked, limit, EntryFilter(scopes=frozenset(scopes)))
            try:
                found = await searcher.ranking(self.owner, self.asked, request)
            finally:
                await searcher.close()
            return [(one.document_id, one.score) for one in found]

        return asyncio.run(ask())

    def exact(self, limit: int, every: int = 1) -> list[tuple[str, float]]:
        """Return the exact ranking, computed with numpy."""
        names = [*self.vectors][::every]
        cosines = {name: float(self.vectors[name] @ self.asked) for name in names}
        return sorted(cosines.items(), key=lambda one: -one[1])[:limit]

    def graphs(self) -> list[str]:
        """Return the definitions of the build's graphs in Postgres."""
        query = "SELECT indexdef FROM pg_indexes WHERE schemaname LIKE %s AND indexdef LIKE %s"
        with psycopg.connect(build_driver_url(self.url)) as connection:
            rows = connection.execute(query, [f"{self.prefix}%", "%hnsw%"])
            return [row[0] for row in rows]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Walk graphs also in small builds; return the number of results of each walk."""
    lengths: list[int] = []
    own = searching._Search.nearest

    async def noted(self: Any, connection: Any) -> Any:
        found = await own(self, connection)
        lengths.append(len(found))
        return found

    monkeypatch.setattr(searching._Search, "nearest", noted)
    monkeypatch.setattr(searching, "_MAX_EXACT_ROWS", 0)
    return lengths


def with_options(monkeypatch: pytest.MonkeyPatch, **options: object) -> None:
    """Add options to our connections."""
    given = " ".join(f"-c {name.replace('__', '.')}={value}" for name, value in options.items())
    monkeypatch.setitem(OPTIONS, "options", f"{OPTIONS['options']} {given}")


@pytest.mark.parametrize(
    ("dimensions", "operators"),
    [
        (2_000, "vector_cosine_ops"),
        (2_001, "halfvec_cosine_ops"),
        (4_000, "halfvec_cosine_ops"),
        (4_001, None),
    ],
)
def test_a_graph_is_of_the_precision_that_the_extension_indexes(
    postgres_url: str,
    walked: list[int],
    monkeypatch: pytest.MonkeyPatch,
    dimensions: int,
    operators: str | None,
) -> None:
    # Otherwise Postgres would compare so few rows one by one.
    with_options(monkeypatch, enable_seqscan="off", enable_sort="off")
    build = Build(postgres_url, dimensions)
    found = build.graphs()
    assert len(found) == (operators is not None)
    assert all(f" {operators})" in one for one in found)
    ranking, exact = build.ranking(10, "public", "rare"), build.exact(10)
    assert [name for name, _ in ranking] == [name for name, _ in exact]
    assert [score for _, score in ranking] == pytest.approx([s for _, s in exact], abs=1e-5)
    assert walked == [10]


def test_the_table_of_vectors_is_the_described_one(postgres_url: str) -> None:
    build = Build(postgres_url, 3_072)
    query = (
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 ORDER BY attnum"
    )
    table = f"{SchemaNames(build.prefix).schema(build.owner)}.rag_vectors"
    with psycopg.connect(build_driver_url(build.url)) as connection:
        columns = connection.execute(query, [table]).fetchall()
    assert columns == [("rag_chunk_id", "bigint"), ("embedding", "vector(3072)")]


def test_where_a_walk_gives_up_all_that_pass_are_compared(
    postgres_url: str, walked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_options(
        monkeypatch,
        enable_seqscan="off",
        enable_sort="off",
        enable_bitmapscan="off",
        hnsw__ef_search=1,
        hnsw__max_scan_tuples=1,
    )
    build = Build(postgres_url, 16)
    rare = COUNT // RARE
    ranking, exact = build.ranking(rare, "rare"), build.exact(rare, RARE)
    assert [name for name, _ in ranking] == [name for name, _ in exact]
    assert [score for _, score in ranking] == pytest.approx([s for _, s in exact], abs=1e-5)
    [found] = walked
    assert found < rare, "the walk itself had found too few"
