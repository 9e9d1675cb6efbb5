"""Vector stores that pass the same tests: the adapters for memory and Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.store import StoreConfig, VectorStore, open_store
from tests.vector_stores import SPEC, Opened, owner_of


@pytest.fixture(params=["memory", "elasticsearch"], scope="module")
def config(request: pytest.FixtureRequest) -> StoreConfig:
    in_memory = request.param == "memory"
    url = "memory:" if in_memory else request.getfixturevalue("elasticsearch_url")
    return StoreConfig(url, prefix=f"conform{uuid4().hex[:8]}")


@pytest.fixture(scope="module")
def module_store(config: StoreConfig) -> Iterator[VectorStore]:
    store = open_store(config)
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
