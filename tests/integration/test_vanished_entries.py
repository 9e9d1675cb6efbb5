"""Entries, indexes and aliases that vanish from Elasticsearch between runs are noticed.

A sync without work counts entries with two requests, and restores missing ones. Until then searches
report that the index is incomplete. The daemon counts the entries of all tenants.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from elastic_transport import Transport
from elasticsearch import Elasticsearch
from sqlalchemy import update

from rag_assets.common.errors import IndexInconsistent
from rag_assets.declarations import PLAIN
from rag_assets.definitions import build_resources
from rag_assets.pipeline.drift import inspect_index
from rag_assets.search import Retriever, services
from rag_assets.search.model import SearchAnswer, SearchRequest
from rag_assets.sensors.drift import drift_offenders_sensor, lost_entries_sensor
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.tables import catalog_marks
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.builds import DOCUMENTS, prose, serving
from tests.sensor_resources import sensor_resources

QUESTION = "What is Sentence 3 about?"
ALONE = {"index": {"placement": "dedicated"}}


class Index:
    """The index of a tenant's serving build, as a foreign program changes it."""

    def __init__(self, installation: Installation, driver: Driver, tenant_id: str) -> None:
        self.client = Elasticsearch(installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"])
        self.driver, self.tenant = driver, tenant_id
        self.alias = driver.session.store.indexes.view_name(tenant_id)

    @property
    def build(self) -> Generation:
        return serving(self.driver, self.tenant)

    @property
    def name(self) -> str:
        return self.build.index_name

    def entries(self) -> dict[str, dict[str, Any]]:
        """Return the fields of the build's entries, with vectors, by id."""
        self.client.indices.refresh(index=self.name)
        query = {"bool": {"filter": [{"term": {"tenant": self.tenant}}]}}
        hits = self.client.search(
            index=self.name, query=query, size=1_000, source_exclude_vectors=False
        )["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    def delete(self, ids: list[str]) -> None:
        for id_ in ids:
            self.client.delete(index=self.name, id=id_, routing=self.tenant)
        self.client.indices.refresh(index=self.name)

    def put(self, entries: dict[str, dict[str, Any]]) -> None:
        for id_, fields in entries.items():
            self.client.index(index=self.name, id=id_, document=fields, routing=self.tenant)
        self.client.indices.refresh(index=self.name)

    def close(self) -> None:
        self.client.close()


@pytest.fixture
def folder(shared_installation: Installation, driver: Driver, tenant: str) -> Path:
    """Create a synced tenant with its own index; return its folder."""
    folder = shared_installation.add_tenant(tenant, **FAST, **ALONE)
    for number in range(DOCUMENTS):
        write(folder / f"{number}.md", prose(str(number)))
    driver.sync(tenant)
    return folder


@pytest.fixture
def index(
    shared_installation: Installation, driver: Driver, tenant: str, folder: Path
) -> Iterator[Index]:
    index = Index(shared_installation, driver, tenant)
    yield index
    index.close()
    shared_installation.configure(tenant, enabled=False)


def write(file: Path, text: str) -> None:
    """Write a file with an old modification time, so that every later change is noticed."""
    file.write_text(text)
    before = time.time() - 60 + len(text) / 1_000
    os.utime(file, (before, before))


def ask(installation: Installation, tenant: str, question: str = QUESTION) -> SearchAnswer:
    """Search with a new retriever, which has not counted entries yet."""
    session = installation.session()
    retriever = Retriever(session.catalog, session.store, session.embedders)
    try:
        return retriever.search(tenant, SearchRequest.of(query=question, mode="text", top_k=20))
    finally:
        retriever.close()


def require_restored(
    installation: Installation, driver: Driver, tenant: str, before: dict[str, Any]
) -> None:
    """Sync; fail unless everything is restored without embedding, and nothing is left to do."""
    done = installation.synced(tenant)
    assert (done["embeddings"]["embedded"], done["parsed_text"]["parsed"]) == (0, 0)
    assert installation.entries(tenant) == before
    with driver.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
    assert installation.sync(tenant).nothing_to_do
    assert ask(installation, tenant).degraded == ()


def test_a_sync_with_nothing_to_do_costs_two_requests(
    shared_installation: Installation,
    tenant: str,
    index: Index,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[str] = []
    perform = Transport.perform_request

    def counted(self: Transport, method: str, target: str, **options: Any) -> Any:
        requests.append(target)
        return perform(self, method, target, **options)

    monkeypatch.setattr(Transport, "perform_request", counted)
    assert shared_installation.sync(tenant).nothing_to_do
    # A session identifies its server and cluster only once.
    others = [path for path in requests if path != "/" and "cluster_uuid" not in path]
    assert len(others) == 2, requests


def test_entries_that_vanished_are_restored(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index
) -> None:
    before = shared_installation.entries(tenant)
    index.delete([*before][:2])
    answer = ask(shared_installation, tenant)
    assert answer.degraded == ("index-incomplete",)
    assert answer.debug is not None
    assert answer.debug.degraded == {"index-incomplete": "entries missing"}
    require_restored(shared_installation, driver, tenant, before)


def test_entries_that_were_added_are_removed(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index
) -> None:
    before = shared_installation.entries(tenant)
    fields = next(iter(index.entries().values()))
    index.put({"added": {**fields, "document_id": "nobody"}})
    assert ask(shared_installation, tenant).degraded == (), "every entry is there"
    require_restored(shared_installation, driver, tenant, before)


def test_an_altered_entry_degrades_the_answers_that_leave_it_out(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index
) -> None:
    id_, fields = next(iter(index.entries().items()))
    index.put({id_: {**fields, "text": f"{fields['text']} And more."}})
    answer = ask(shared_installation, tenant)
    assert not any("And more." in hit.text for hit in answer.hits)
    assert answer.debug is not None
    assert answer.debug.degraded == {"index-incomplete": "entries altered"}


def test_an_entry_back_at_its_former_version_is_noticed(
    shared_installation: Installation, driver: Driver, tenant: str, folder: Path, index: Index
) -> None:
    """The index was rolled back, and has the right number of entries."""
    former = index.entries()
    text = (folder / "0.md").read_text()
    write(folder / "0.md", text.replace("topic 3", "subject 3"))
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    index.delete([id_ for id_ in before if id_ not in former])
    index.put({id_: fields for id_, fields in former.items() if id_ not in before})
    assert len(index.entries()) == len(before)
    for question in ("topic 3", "subject 3"):
        answer = ask(shared_installation, tenant, question)
        assert answer.degraded == ("index-incomplete",)
        assert {hit.document_id for hit in answer.hits} < {
            fields["document_id"] for fields in former.values()
        }, "neither version of the document answers"
    require_restored(shared_installation, driver, tenant, before)
    assert any("subject 3" in hit.text for hit in ask(shared_installation, tenant).hits)


@pytest.mark.parametrize("shows", ["nothing", "another index", "too much", "too little"])
def test_an_alias_that_shows_something_else_is_put_right(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index, shows: str
) -> None:
    before = shared_installation.entries(tenant)
    index.client.indices.delete_alias(index="*", name=index.alias)
    other = f"{shared_installation.environment['RAG_ASSETS_INDEX_PREFIX']}-own-0-other"
    match shows:
        case "another index":
            index.client.indices.create(index=other, aliases={index.alias: {}})
        case "too much":
            stranger = dict(next(iter(index.entries().values())), tenant="somebody-else")
            index.client.index(
                index=index.name, id="x", document=stranger, routing="else", refresh=True
            )
            index.client.indices.put_alias(index=index.name, name=index.alias)
        case "too little":
            only = {"term": {"ordinal": 77}}
            index.client.indices.put_alias(index=index.name, name=index.alias, filter=only)
    try:
        if shows == "another index":
            # The index names no owner and may belong to another installation: only an operator may
            # move the alias.
            refused = shared_installation.sync(tenant).error
            assert refused is not None
            assert other in refused.message
            index.client.indices.delete(index=other)
        require_restored(shared_installation, driver, tenant, before)
        found = index.client.search(index=index.alias, size=100)["hits"]["hits"]
        assert {hit["_id"] for hit in found} == set(before)
    finally:
        index.client.indices.delete(index=other, ignore_unavailable=True)


def test_an_index_that_somebody_deleted_is_made_again(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index
) -> None:
    before = shared_installation.entries(tenant)
    index.client.indices.delete(index=index.name)
    with pytest.raises(IndexInconsistent, match="is gone"):
        ask(shared_installation, tenant)
    require_restored(shared_installation, driver, tenant, before)


def test_a_tenant_without_automatic_repair_is_told_the_command(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index
) -> None:
    shared_installation.configure(tenant, auto_repair=False)
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    index.delete([*before][:1])
    error = shared_installation.sync(tenant).error
    assert error is not None
    assert error.message == (
        f"build 1 of tenant {tenant!r} holds {DOCUMENTS - 1} entries, but the catalog records"
        f" {DOCUMENTS}"
    )
    assert error.hint is not None
    assert error.hint.endswith(f"rag-assets sync {tenant} --repair")
    assert len(shared_installation.entries(tenant)) == len(before) - 1
    shared_installation.synced(tenant, repair=True)
    assert shared_installation.entries(tenant) == before


def test_a_catalog_that_was_set_back_is_no_reason_to_delete(
    shared_installation: Installation, driver: Driver, tenant: str, folder: Path, index: Index
) -> None:
    fields = next(iter(index.entries().values()))
    index.put({"newer": {**fields, "document_id": "newer"}})
    mark = catalog_marks.c
    with driver.session.catalog.database.begin() as connection:
        connection.execute(update(catalog_marks).where(mark.tenant == tenant).values(mark=0))
    assert shared_installation.sync(tenant).nothing_to_do
    assert "newer" in index.entries()


def test_the_daemon_counts_all_tenants_and_repairs(
    shared_installation: Installation, driver: Driver, tenant: str, index: Index
) -> None:
    other = f"{tenant[:20]}-closed"
    folder = shared_installation.add_tenant(other, **FAST, **ALONE)
    write(folder / "a.md", "# A\n\nThe valve is closed.\n")
    driver.sync(other)
    closed = Index(shared_installation, driver, other)
    closed.client.indices.close(index=closed.name)
    index.delete([*shared_installation.entries(tenant)][:1])
    instance = driver.session.instance
    instance.add_dynamic_partitions(PLAIN.partitions_name, [tenant, other])

    def tick() -> tuple[int, list[str | None]]:
        with dg.build_sensor_context(
            instance=instance,
            resources={"rag_assets_workbench": build_resources()["rag_assets_workbench"]},
        ) as context:
            lost_entries_sensor.build(PLAIN)(context)
        with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
            result = drift_offenders_sensor.build(PLAIN)(context)
        assert isinstance(result, dg.SensorResult)
        found = driver.session.catalog.events.latest(tenant, kind="drift_found")
        return len(found), [request.partition_key for request in result.run_requests or ()]

    try:
        assert tick() == (1, [tenant])
        assert tick() == (1, [tenant]), "it is recorded once"
        assert shared_installation.synced(tenant)["search_index"]["upserted"] == 1
        assert tick() == (1, [])
        index.delete([*shared_installation.entries(tenant)][:1])
        assert tick() == (1, []), "it was repaired within the hour"
    finally:
        closed.client.indices.delete(index=closed.name)
        closed.close()
        shared_installation.configure(other, enabled=False)


def test_a_run_that_finds_its_index_gone_has_it_repaired_by_the_next_tick(
    shared_installation: Installation, driver: Driver, tenant: str, folder: Path, index: Index
) -> None:
    instance = driver.session.instance
    instance.add_dynamic_partitions(PLAIN.partitions_name, [tenant])

    def requested() -> list[str | None]:
        with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
            result = drift_offenders_sensor.build(PLAIN)(context)
        assert isinstance(result, dg.SensorResult)
        return [request.partition_key for request in result.run_requests or ()]

    for number in range(2):  # the second time, it was repaired within the hour
        assert tenant not in requested()
        index.client.indices.delete(index=index.name)
        write(folder / "0.md", prose(f"edited {number}"))
        with pytest.raises(IndexInconsistent, match="is gone"):
            driver.sync(tenant)
        assert tenant in requested()
        shared_installation.synced(tenant, repair=True)
    index.client.indices.delete(index=index.name)
    with dg.build_sensor_context(
        instance=instance,
        resources={"rag_assets_workbench": build_resources()["rag_assets_workbench"]},
    ) as context:
        lost_entries_sensor.build(PLAIN)(context)
    assert tenant in requested(), "a lost index waits for no pause"
    shared_installation.synced(tenant)


def test_searches_count_a_build_once_in_a_while(
    shared_installation: Installation,
    tenant: str,
    index: Index,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = 0
    count = services.BuildCompleteness._compare_counts

    async def counting(self: Any, *build: Any) -> bool | None:
        nonlocal counted
        counted += 1
        return await count(self, *build)

    monkeypatch.setattr(services.BuildCompleteness, "_compare_counts", counting)
    session = shared_installation.session()
    retriever = Retriever(session.catalog, session.store, session.embedders)
    request = SearchRequest.of(query=QUESTION, mode="text")
    try:
        assert not any(retriever.search(tenant, request).degraded for _ in range(20))
        assert counted == 1
    finally:
        retriever.close()
