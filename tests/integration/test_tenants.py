"""Tenants are isolated, can be disabled and enabled, and are removed without a trace."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2 as httpx
import psycopg
import pytest
from psycopg import sql

from rag_assets.common.clock import Clock
from rag_assets.common.errors import UnknownTenant
from rag_assets.pipeline.retention import prune_tenant
from rag_assets.search.model import SearchRequest
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.aging import write_old
from tests.integration.test_incremental import due

TEXT = "# Harbour\n\nThe tide turns at {}.\n"


def fill(folder: Path, files: int = 3) -> None:
    for number in range(files):
        write_old(folder / f"{number}.md", TEXT.format(number))


def uris(installation: Installation, tenant_id: str) -> set[str]:
    return {uri for uri, _, _ in installation.entries(tenant_id).values()}


def test_tenants_with_the_same_files_never_see_each_other(
    shared_installation: Installation, driver: Driver, tmp_path: Path
) -> None:
    for tenant in ("left", "right"):
        shared_installation.add_tenant(tenant, root=tmp_path / "both", **FAST)
    fill(tmp_path / "both")
    assert driver.sync("left")["embedded"] == driver.sync("right")["embedded"] == 3
    left, right = shared_installation.entries("left"), shared_installation.entries("right")
    assert sorted(left.values()) == sorted(right.values())
    assert left.keys().isdisjoint(right)
    (tmp_path / "both" / "0.md").unlink()
    driver.sync("left")
    for mode in ("knn", "text", "hybrid"):
        for tenant, expected in (("left", 2), ("right", 3)):
            hits = shared_installation.search(tenant, "Harbour tide", mode=mode, top_k=100)
            assert len(hits) == expected, (tenant, mode)
            assert all(hit.chunk_id.startswith(f"{tenant}:") for hit in hits)
    # A trusted service that queries Elasticsearch through the alias gets the same.
    store = driver.session.store
    url = shared_installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]
    query = {"size": 100, "query": {"match_all": {}}}
    vector = {"field": "vector", "query_vector": [1.0] * 384, "k": 50, "num_candidates": 100}
    for tenant, expected in (("left", 2), ("right", 3)):
        for body in (query, {"size": 100, "knn": vector}):
            path = f"{url}/{store.indexes.view_name(tenant)}/_search"
            hits = httpx.request("POST", path, json=body).json()["hits"]["hits"]
            assert len(hits) == expected
            assert {hit["_source"]["tenant"] for hit in hits} == {tenant}


def test_a_missing_folder_deletes_nothing(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("vanishing", **FAST)
    fill(folder, 30)
    driver.sync("vanishing")
    before = shared_installation.entries("vanishing")
    shutil.move(folder, f"{folder}-away")
    result = shared_installation.sync("vanishing")
    assert result.error is not None
    assert str(folder) in result.error.message
    assert shared_installation.entries("vanishing") == before
    folder.mkdir()  # the mount point without the mount
    held = driver.sync("vanishing")
    assert (held["removed"], held["held"], held["deleted"]) == (0, 30, 0)
    assert due(shared_installation, "vanishing") is None  # it needs a decision
    assert shared_installation.search("vanishing", "tide turns", mode="text")
    assert shared_installation.entries("vanishing") == before
    shutil.rmtree(folder)
    shutil.move(f"{folder}-away", folder)
    back = driver.sync("vanishing")
    assert (back["embedded"], back["upserted"], back["deleted"]) == (0, 0, 0)
    for number in range(30):
        (folder / f"{number}.md").unlink()
    assert driver.sync("vanishing")["held"] == 30
    gone = shared_installation.synced("vanishing", allow_deletes=True)
    assert (gone["raw_documents"]["removed"], gone["search_index"]["deleted"]) == (30, 30)
    assert shared_installation.entries("vanishing") == {}


def test_a_disabled_tenant_neither_indexes_nor_answers(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("resting", **FAST)
    fill(folder)
    driver.sync("resting")
    before = shared_installation.entries("resting")
    assert shared_installation.command("tenants", "disable", "resting").code == 0
    answer = shared_installation.retriever.search("resting", SearchRequest(query="tide"))
    assert (answer.disabled, answer.hits) == (True, ())
    said = shared_installation.command("sync", "resting")
    assert said.code == 1
    assert "disabled" in said.err
    assert "tenants enable resting" in said.err
    assert shared_installation.entries("resting") == before
    assert shared_installation.command("tenants", "enable", "resting").code == 0
    assert due(shared_installation, "resting") is not None
    done = shared_installation.synced("resting")
    assert (done["embeddings"]["embedded"], done["search_index"]["upserted"]) == (0, 0)
    assert shared_installation.search("resting", "tide")


def test_a_tenant_missing_from_the_file_is_disabled_not_purged(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("unlisted", **FAST)
    fill(folder)
    driver.sync("unlisted")
    before = shared_installation.entries("unlisted")
    path = shared_installation.home / "tenants.yaml"
    with_it = path.read_text()
    from rag_assets.tenants.file import TenantsFile

    TenantsFile(path).remove("unlisted")
    assert shared_installation.session().catalog.tenants.get("unlisted").state == "DISABLED"
    assert shared_installation.entries("unlisted") == before
    path.write_text(with_it)
    assert shared_installation.session().catalog.tenants.get("unlisted").state == "ACTIVE"
    assert driver.sync("unlisted")["embedded"] == 0


@pytest.mark.parametrize(
    ("name", "text"), [("unmounted", None), ("emptied", ""), ("commented-out", "# tenants\n")]
)
def test_reconcile_tenants_file_without_content_disables_no_tenant(
    shared_installation: Installation, name: str, text: str | None
) -> None:
    shared_installation.add_tenant(name, **FAST)
    path = shared_installation.home / "tenants.yaml"
    before = path.read_text()
    assert shared_installation.session().catalog.tenants.get(name).state == "ACTIVE"
    try:
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
        refused = shared_installation.command("sync", name)
        assert refused.code == 1
        assert f"{path} is missing or has no content" in refused.err
        assert "`tenants: []`" in refused.err
        added = shared_installation.command("tenants", "add", "other", "--records")
        assert "is missing or has no content" in added.err
        assert path.exists() is (text is not None)
    finally:
        path.write_text(before)
    assert shared_installation.session().catalog.tenants.get(name).state == "ACTIVE"


def test_documents_past_their_retention_are_pruned_until_they_change(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("forgetful", retention_days=30, **FAST)
    fill(folder)
    driver.sync("forgetful")
    clock = Clock(ahead=timedelta(days=31))
    later = clock.now()
    with driver.locked("forgetful") as ctx:
        aged = replace(ctx, clock=clock)
        assert prune_tenant(ctx, by="a test").documents == 0
        assert prune_tenant(aged, by="a test").documents == 3
        asked = ("rag_search_started", later - timedelta(days=91), {"query": "tide"})
        ctx.catalog.events.append(ctx.ref, [asked, (asked[0], later, asked[2])])
        assert prune_tenant(aged, by="a test").events == 1
    assert shared_installation.entries("forgetful") == {}
    assert not shared_installation.search("forgetful", "tide", mode="text")
    unchanged = driver.sync("forgetful")
    assert (unchanged["added"], unchanged["upserted"]) == (0, 0)
    assert due(shared_installation, "forgetful") is None
    write_old(folder / "0.md", TEXT.format("noon"))
    assert driver.sync("forgetful")["upserted"] == 1
    write_old(folder / "0.md", TEXT.format(0))  # the pruned content, newly written
    assert driver.sync("forgetful")["upserted"] == 1
    assert uris(shared_installation, "forgetful") == {"files/0.md"}


@pytest.mark.parametrize("placement", ["shared", "dedicated"])
def test_a_removed_tenant_leaves_nothing_and_its_id_is_free(
    shared_installation: Installation, driver: Driver, placement: str
) -> None:
    tenant = f"gone-{placement}"
    folder = shared_installation.add_tenant(tenant, index={"placement": placement}, **FAST)
    neighbour = f"also-{tenant}"
    shared_installation.add_tenant(neighbour, index={"placement": placement}, **FAST)
    fill(folder)
    fill(folder.parent / neighbour)
    driver.sync(neighbour)
    shared_installation.synced(tenant)  # with a Dagster run, the last one
    first = driver.session.catalog.tenants.get(tenant).incarnation
    refused = shared_installation.command("tenants", "remove", tenant)
    assert refused.code == 1
    assert "--yes" in refused.err
    assert len(shared_installation.entries(tenant)) == 3
    removed = shared_installation.command("tenants", "remove", tenant, "--yes", "--json")
    assert removed.code == 0, removed.err
    assert removed.json["entries"] == 3
    [receipt] = driver.session.catalog.receipts.all(tenant)
    assert receipt.proof["found"] == {"index": 0, "lake": 0, "blobs": 0, "postgres": []}
    assert receipt.proof["deleted entries in segments"] == 0
    # None of its sentences is long enough to be searched for.
    assert receipt.proof["searched for"] == ["the tenant", "document ids", "names"]
    assert_no_trace(shared_installation, driver, tenant)
    with pytest.raises(UnknownTenant):
        shared_installation.search(tenant, "tide")
    assert len(shared_installation.entries(neighbour)) == 3
    assert shared_installation.search(neighbour, "tide", mode="text")
    # The id is free, and its next user starts from nothing.
    shared_installation.add_tenant(tenant, index={"placement": placement}, **FAST)
    done = shared_installation.synced(tenant)
    assert done["embeddings"]["embedded"] == 3
    assert driver.session.catalog.tenants.get(tenant).incarnation > first
    assert len(shared_installation.search(tenant, "tide turns", mode="text")) == 3


def assert_no_trace(installation: Installation, driver: Driver, tenant: str) -> None:
    """Fail if a row, entry, alias or file names the tenant or contains its text."""
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            # These outlive their tenant, and record only that it was removed.
            " AND tablename NOT IN ('receipts', 'security_changes')"
        ).fetchall()
        left = {}
        for schema, table in tables:
            query = sql.SQL("SELECT to_jsonb(t)::text FROM {} t").format(
                sql.Identifier(schema, table)
            )
            for (row,) in connection.execute(query).fetchall():
                if any(f'"{tenant}"' in text or f"{tenant}/" in text for text in spellings(row)):
                    left[f"{schema}.{table}"] = row[:300]
    assert left == {}
    store = driver.session.store
    for index_name in store.indexes.names():
        assert tenant not in {name for name, _ in store.indexes.owners(index_name)}
    assert store.indexes.dedicated(tenant) == []
    assert store.indexes.view(tenant) is None
    stored = {name for name, _ in driver.session.lake.incarnations()}
    assert tenant not in stored
    named = [p for p in (installation.home / ".local").rglob("*") if p.name.startswith(tenant)]
    assert named == []
    listed = (installation.home / "tenants.yaml").read_text()
    assert f"id: {tenant}\n" not in listed


def spellings(row: str) -> tuple[str, str]:
    """Return a row as it is, and with the JSON in its text columns unquoted."""
    return row, row.replace('\\"', '"')
