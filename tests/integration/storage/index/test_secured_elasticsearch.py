"""Elasticsearch in production: its own TLS, an API key, several nodes, Serverless."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.common.errors import IndexUnavailable, RagAssetsError, ServiceUnavailable
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch.server import check_elasticsearch
from rag_assets.storage.index.model import IndexRef
from rag_assets.storage.index.store import StoreConfig, VectorStore, open_store
from tests.installation import FAST, Installation
from tests.tls_gateway import Gateway, tls_gateway
from tests.vector_stores import SPEC

KEY = "key-of-the-test"


@pytest.fixture
def gateway(elasticsearch_url: str, tmp_path: Path) -> Iterator[Gateway]:
    with tls_gateway(elasticsearch_url, tmp_path / "tls") as opened:
        yield opened


def connection_through(gateway: Gateway) -> ElasticsearchConnection:
    return ElasticsearchConnection((gateway.url,), api_key=KEY, ca_file=gateway.ca_file)


def add_documents(installation: Installation) -> Path:
    folder = installation.add_tenant("acme", **FAST)
    (folder / "a.md").write_text("# Alpha\n\nThe turbine runs at night.\n")
    (folder / "b.md").write_text("# Beta\n\nThe valve is closed by hand.\n")
    return folder


@pytest.mark.parametrize("kind", ["default", "serverless"])
def test_the_chain_works_through_tls_with_an_api_key(
    kind: str,
    installation: Installation,
    elasticsearch_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tls_gateway(elasticsearch_url, tmp_path / "tls", kind) as gateway:  # type: ignore[arg-type]
        for name, value in gateway.environment(KEY).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("RAG_ASSETS_ELASTICSEARCH_REFRESH_INTERVAL", "1s")
        folder = add_documents(installation)
        installation.sync("acme")
        assert [hit.uri for hit in installation.search("acme", "turbine")][:1] == ["files/a.md"]
        (folder / "a.md").unlink()
        installation.sync("acme", allow_deletes=True)
        assert [hit.uri for hit in installation.search("acme", "turbine")] == ["files/b.md"]
        with installation.session() as session:
            assert session.store.indexes.conditions() == []
            assert session.store.indexes.list_layout_differences() == []
            [name] = session.store.indexes.names()
            left = session.store.indexes.expunge(name)
            assert (left is None) == (kind == "serverless")
        installation.release()
        assert gateway.refused == [], "nothing is sent that Serverless refuses"


def test_commands_in_other_processes_have_the_connection_and_show_no_secret(
    installation: Installation, gateway: Gateway
) -> None:
    add_documents(installation)
    environment = gateway.environment(KEY)
    synced = installation.cli("sync", "acme", "--json", **environment)
    assert synced.code == 0, synced.err
    found = installation.cli("search", "acme", "turbine", "--json", **environment)
    status = installation.cli("status", "--json", **environment)
    check = installation.cli("elasticsearch", "check", **environment)
    wrong = {"RAG_ASSETS_ELASTICSEARCH_API_KEY": "wrong-key-of-the-test"}
    refused = installation.cli("search", "acme", "turbine", **(environment | wrong))
    assert "turbine" in found.out
    services = {one["name"]: one for one in json.loads(status.out)["services"]}
    assert services["Elasticsearch"]["state"] == "external"
    assert services["Elasticsearch"]["url"] == gateway.url
    assert refused.code == 1
    assert "refuses the account (status 401)" in refused.out + refused.err
    for done in (synced, found, status, check, refused):
        assert "key-of-the-test" not in done.out + done.err


def test_a_sealed_key_in_a_file_opens_the_connection(
    installation: Installation, gateway: Gateway, tmp_path: Path
) -> None:
    from rag_assets.common.settings import Settings
    from rag_assets.runtime.elasticsearch_access import find_external_connection, seal_secret

    environment = installation.environment | gateway.environment(KEY)
    del environment["RAG_ASSETS_ELASTICSEARCH_API_KEY"]
    file = tmp_path / "api.key"
    environment["RAG_ASSETS_ELASTICSEARCH_API_KEY_FILE"] = str(file)
    settings = Settings.from_environment(environment)
    file.write_text(seal_secret(settings, KEY, environment) + "\n")
    assert KEY not in file.read_text()
    connection = find_external_connection(settings, environment)
    assert connection is not None
    assert connection.api_key == KEY
    assert KEY not in repr(connection)
    with closing(open_store(StoreConfig(connection))) as store:
        assert store.indexes.cluster_id() == gateway.cluster_id
    file.write_text(file.read_text()[:-6] + "AAAA=\n")
    with pytest.raises(RagAssetsError, match="API_KEY_FILE cannot be unsealed") as refused:
        find_external_connection(settings, environment)
    assert "rag-assets elasticsearch seal" in (refused.value.hint or "")


def test_a_node_that_is_down_is_passed_over(gateway: Gateway) -> None:
    nodes = ("https://127.0.0.1:9", gateway.url)
    connection = replace(connection_through(gateway), nodes=nodes)
    with closing(open_store(StoreConfig(connection, prefix="nobody"))) as store:
        for _ in range(4):
            assert store.indexes.names() == []


@pytest.mark.parametrize("of", ["server", "authority"])
def test_a_fingerprint_verifies_a_certificate_of_an_unknown_authority(
    gateway: Gateway, of: str
) -> None:
    fingerprint = gateway.fingerprint if of == "server" else gateway.authority_fingerprint
    pinned = ElasticsearchConnection((gateway.url,), api_key=KEY, fingerprint=fingerprint)

    async def presence(store: VectorStore) -> str:
        searcher = store.searcher()
        try:
            return await searcher.presence(IndexRef("nobody-7", ""))
        finally:
            await searcher.close()

    with closing(open_store(StoreConfig(pinned, prefix="nobody"))) as store:
        assert store.indexes.names() == []
        assert asyncio.run(presence(store)) == "missing"
    assert check_elasticsearch(pinned, "nobody").version == "9.5.3"


@pytest.mark.parametrize("fingerprint", [None, "ab" * 32])
def test_a_certificate_that_nothing_verifies_is_refused(
    gateway: Gateway, fingerprint: str | None
) -> None:
    connection = ElasticsearchConnection((gateway.url,), api_key=KEY, fingerprint=fingerprint)
    with (
        closing(open_store(StoreConfig(connection))) as store,
        pytest.raises(ServiceUnavailable, match="does not answer"),
    ):
        store.indexes.names()


def test_opensearch_is_refused_by_name(elasticsearch_url: str, tmp_path: Path) -> None:
    with tls_gateway(elasticsearch_url, tmp_path / "tls", "opensearch") as gateway:
        connection = connection_through(gateway)
        with (
            closing(open_store(StoreConfig(connection))) as store,
            pytest.raises(IndexUnavailable, match="is opensearch, not Elasticsearch"),
        ):
            store.indexes.cluster_id()
        with pytest.raises(IndexUnavailable, match="is opensearch, not Elasticsearch"):
            check_elasticsearch(connection, "rag")


def test_a_layout_applies_to_new_indexes_and_a_difference_is_named(elasticsearch_url: str) -> None:
    layout = IndexLayout(shards=2, replicas=0, refresh_interval="5s", tier="data_content")
    config = StoreConfig(elasticsearch_url, prefix="layoutoftest", layout=layout)
    with closing(open_store(config)) as store, Elasticsearch(elasticsearch_url) as client:
        shared = store.indexes.place(SPEC, "acme", "shared").name
        own = store.indexes.place(SPEC, "acme", "dedicated").name
        try:
            found = client.indices.get_settings(index=[shared, own], flat_settings=True)
            live = found[shared]["settings"]
            assert live["index.number_of_shards"] == "2"
            assert live["index.number_of_replicas"] == "0"
            assert live["index.refresh_interval"] == "5s"
            assert live["index.routing.allocation.include._tier_preference"] == "data_content"
            assert found[own]["settings"]["index.number_of_shards"] == "1"
            assert store.indexes.list_layout_differences() == []
            with closing(open_store(replace(config, layout=IndexLayout()))) as other:
                lines = other.indexes.list_layout_differences()
            assert len(lines) == 2
            assert "index.number_of_shards is 2, but 1 in a new index" in lines[1] + lines[0]
            assert "index.refresh_interval is 5s, but 30s in a new index" in lines[0]
        finally:
            store.indexes.drop(shared)
            store.indexes.drop(own)


def test_the_check_names_what_is_wrong_and_changes_nothing(gateway: Gateway) -> None:
    found = check_elasticsearch(connection_through(gateway), "nobody")
    assert found.version == "9.5.3"
    assert found.flavor == "default"
    assert found.health in {"green", "yellow"}
    assert found.missing is None
    assert "the server has no security: the account is not checked" in found.warnings
