"""`sync --repair` restores the index from the lake after any damage, without embedding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from rag_assets.common.errors import IndexInconsistent, ListingFailed
from rag_assets.pipeline.drift import inspect_index
from rag_assets.pipeline.repair import repair_tenant
from tests.driving import Driver, tenant_named_after
from tests.installation import FAST, Installation
from tests.integration.test_generations import CHUNKED, SPARSE

FILES = 8


@pytest.fixture
def tenant(
    shared_installation: Installation, driver: Driver, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Create a synced tenant with its own index, so that no other tenant is affected."""
    name = tenant_named_after(request)
    folder = shared_installation.add_tenant(name, index={"placement": "dedicated"}, **FAST)
    for number in range(FILES):
        (folder / f"{number}.md").write_text(f"# Title {number}\n\nThe text of number {number}.\n")
    driver.sync(name)
    yield name
    shared_installation.configure(name, enabled=False)


class Server:
    """Elasticsearch, as a foreign program uses it."""

    def __init__(self, installation: Installation, driver: Driver, tenant_id: str) -> None:
        serving = driver.session.catalog.generations.serving(tenant_id)
        assert serving is not None
        self._url = installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]
        self.tenant = tenant_id
        self.index = serving.index_name

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(method, f"{self._url}/{path}", json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def ids(self) -> list[str]:
        self.call("POST", f"{self.index}/_refresh")
        query = {"size": 100, "query": {"term": {"tenant": self.tenant}}}
        hits = self.call("POST", f"{self.index}/_search", query)["hits"]["hits"]
        return sorted(hit["_id"] for hit in hits)

    def source(self, id_: str) -> dict[str, Any]:
        found = self.call("GET", f"{self.index}/_doc/{id_}?routing={self.tenant}")
        source: dict[str, Any] = found["_source"]
        return source

    def put(self, id_: str, source: dict[str, Any], routing: str | None = None) -> None:
        path = f"{self.index}/_doc/{id_}?routing={routing or self.tenant}"
        self.call("PUT", path, {**source, "vector": [1.0] * 384})


@pytest.fixture
def server(shared_installation: Installation, driver: Driver, tenant: str) -> Server:
    return Server(shared_installation, driver, tenant)


def assert_repaired(
    installation: Installation, driver: Driver, tenant_id: str, before: dict[str, Any]
) -> None:
    """Fail unless a repair restores everything, and a second one finds nothing to repair."""
    with driver.locked(tenant_id) as ctx:
        assert not all(state.is_healthy for state in inspect_index(ctx))
    done = installation.synced(tenant_id, repair=True)
    assert (done["embeddings"]["embedded"], done["parsed_text"]["parsed"]) == (0, 0)
    assert installation.entries(tenant_id) == before
    with driver.locked(tenant_id) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
        assert ctx.store.indexes.view(tenant_id) is not None
    assert catalog_statuses(driver, tenant_id) == {"READY"}
    assert installation.search(tenant_id, "The text of number 3", mode="text")


def test_entries_lost(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server
) -> None:
    before = shared_installation.entries(tenant)
    for id_ in server.ids()[:3]:
        server.call("DELETE", f"{server.index}/_doc/{id_}?routing={tenant}")
    assert_repaired(shared_installation, driver, tenant, before)


def test_entries_altered_and_foreign(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server
) -> None:
    before = shared_installation.entries(tenant)
    first, second, third, fourth = server.ids()[:4]
    server.put(first, {**server.source(first), "text": "Something else."})
    server.put(second, {**server.source(second), "access_scope": "everybody"})
    server.put("orphan", {**server.source(third), "document_id": "nobody"})
    server.put("foreign", {**server.source(third), "tenant": "somebody-else"})
    server.put(fourth, server.source(fourth), routing="somewhere-else")
    assert_repaired(shared_installation, driver, tenant, before)
    server.call("POST", f"{server.index}/_refresh")
    assert server.call("GET", f"{server.index}/_count")["count"] == FILES


def test_an_index_deleted(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server
) -> None:
    shared_installation.configure(tenant, auto_repair=False)
    before = shared_installation.entries(tenant)
    server.call("DELETE", server.index)
    error = shared_installation.sync(tenant).error
    assert error is not None
    assert "is gone" in error.message
    assert f"sync {tenant} --repair" in (error.hint or "")
    with pytest.raises(IndexInconsistent, match="is gone"):
        shared_installation.search(tenant, "The text of number 3")
    assert_repaired(shared_installation, driver, tenant, before)


@pytest.mark.parametrize("mapping", ["same", "other", "dynamic"])
def test_an_index_replaced(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server, mapping: str
) -> None:
    before = shared_installation.entries(tenant)
    source = server.source(server.ids()[0])
    body = server.call("GET", server.index)[server.index]
    server.call("DELETE", server.index)
    if mapping == "dynamic":
        server.put("anything", source)  # the server creates an index for any write
    else:
        mappings = body["mappings"]
        if mapping == "other":
            mappings["properties"]["vector"]["dims"] = 100
        analysis = body["settings"]["index"]["analysis"]
        server.call("PUT", server.index, {"mappings": mappings, "settings": {"analysis": analysis}})
    error = shared_installation.sync(tenant).error
    assert error is not None
    assert "was replaced by a different index" in error.message
    if mapping == "dynamic":
        # It names no owner, and may be another's: only a person may delete it.
        refused = shared_installation.sync(tenant, repair=True).error
        assert refused is not None
        assert server.index in refused.message
        assert "delete it if nobody needs it" in (refused.hint or "")
        server.call("DELETE", server.index)
    assert_repaired(shared_installation, driver, tenant, before)


def test_a_shared_index_replaced_is_given_up(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    shared_installation.configure(tenant, index=None, **SPARSE)
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    server = Server(shared_installation, driver, tenant)
    server.call("DELETE", server.index)
    server.call("PUT", f"{server.index}/_doc/1", {"tenant": tenant})
    assert_repaired(shared_installation, driver, tenant, before)


def test_an_alias_that_shows_something_else(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server
) -> None:
    before = shared_installation.entries(tenant)
    alias = driver.session.store.indexes.view_name(tenant)
    server.call("PUT", f"{server.index}/_alias/{alias}", {"filter": {"match_all": {}}})
    assert_repaired(shared_installation, driver, tenant, before)
    hits = server.call("POST", f"{alias}/_search", {"size": 100})["hits"]["hits"]
    assert {hit["_id"] for hit in hits} == set(before)


def test_a_retired_build_that_is_lost_is_let_go(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server
) -> None:
    shared_installation.configure(tenant, index={"placement": "dedicated"}, **SPARSE)
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    server.call("DELETE", server.index)  # the first build's, which no longer answers
    assert_repaired(shared_installation, driver, tenant, before)
    assert len(driver.session.catalog.generations.live(tenant)) == 1
    # Going back to it builds it again from the lake.
    shared_installation.configure(tenant, **FAST)
    assert driver.sync(tenant)["embedded"] == 0


def test_a_serving_build_lost_while_its_successor_is_due(
    shared_installation: Installation, driver: Driver, tenant: str, server: Server
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    server.call("DELETE", server.index)
    done = shared_installation.synced(tenant, repair=True)
    assert done["parsed_text"]["parsed"] == 0
    with driver.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
    assert len(shared_installation.entries(tenant)) == FILES


def test_a_lost_lake_whose_sources_are_gone(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    """The index keeps answering; when the sources are back, nothing is embedded again."""
    before = shared_installation.entries(tenant)
    folder = shared_installation.home.parent / "sources" / tenant
    away = folder.rename(folder.with_name(f"{tenant}-away"))
    with driver.locked(tenant) as ctx:
        for file in (Path(ctx.lake._location.url)).rglob("*.parquet"):
            file.unlink()
        done = repair_tenant(ctx)
    assert not done.is_healthy
    assert done.lake.to_embed == 0, "the index has every vector"
    with pytest.raises(ListingFailed):
        driver.sync(tenant)
    assert shared_installation.entries(tenant) == before
    assert shared_installation.search(tenant, "The text of number 3", mode="text")
    away.rename(folder)
    done = driver.sync(tenant)
    assert (done["parsed"], done["embedded"]) == (FILES, 0)
    assert shared_installation.entries(tenant) == before
    with driver.locked(tenant) as ctx:
        assert repair_tenant(ctx).is_healthy
    assert catalog_statuses(driver, tenant) == {"READY"}


def catalog_statuses(driver: Driver, tenant_id: str) -> set[str]:
    return {document.status for document in driver.session.catalog.documents.all(tenant_id)}
