"""The vector stores that must pass the same tests: in memory, and in Elasticsearch.

A third one searches vectors in Postgres, and everything else in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import pytest

from rag_assets.storage.index.model import Candidate, Entry, Owner, RankingRequest
from rag_assets.storage.index.pgvector.tables import PgVectors
from rag_assets.storage.index.second_store import MirroredEntries
from rag_assets.storage.index.store import (
    EntrySearcher,
    EntryStore,
    StoreConfig,
    VectorStore,
    open_store,
)
from tests.vector_stores import SPEC, Opened, owner_of


class VectorsBeside(MirroredEntries):
    """Entries whose vectors are also in Postgres, where tables are created as needed."""

    def __init__(self, first: EntryStore, vectors: PgVectors) -> None:
        super().__init__(first, vectors, self._fail)
        self.first, self.second, self.failed = first, vectors, False

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        every = list(entries)
        for one in {one.owner: one for one in every}.values():
            self.second.create(one.owner, len(one.vector))
            self.second.index(one.owner, len(one.vector))
        self.failed = False
        written = super().write(index_name, every)
        assert not self.failed
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.first, name)

    def _fail(self) -> None:
        self.failed = True


class AlwaysBeside:
    """Searches vectors in Postgres for every owner."""

    def __init__(self, searcher: EntrySearcher) -> None:
        self.searcher = searcher

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        ours = replace(owner, vectors_beside=True)
        return await self.searcher.rankings(index_name, ours, requests)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.searcher, name)


def add_postgres_vectors(store: VectorStore) -> VectorStore:
    assert store.vectors is not None
    entries = cast("EntryStore", VectorsBeside(store.entries, store.vectors))
    return replace(store, entries=entries, searcher=lambda: AlwaysBeside(store.searcher()))


@pytest.fixture(params=["memory", "elasticsearch", "pgvector"], scope="module")
def config(request: pytest.FixtureRequest) -> StoreConfig:
    url = "memory:"
    if request.param == "elasticsearch":
        url = request.getfixturevalue("elasticsearch_url")
    vectors = request.getfixturevalue("postgres_url") if request.param == "pgvector" else None
    return StoreConfig(url, prefix=f"conform{uuid4().hex[:8]}", vectors_url=vectors)


@pytest.fixture(scope="module")
def module_store(config: StoreConfig) -> Iterator[VectorStore]:
    store = open_store(config)
    if config.vectors_url is not None:
        store = add_postgres_vectors(store)
    yield store
    for name in store.indexes.names():
        store.indexes.drop(name)
    store.close()


@pytest.fixture
def opened(module_store: VectorStore) -> Opened:
    return Opened(module_store, module_store.indexes.place(SPEC, "any", "shared"))


@pytest.fixture
def tenant() -> str:
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
def owner(tenant: str) -> Owner:
    return owner_of(tenant)
