"""Weekly compaction deletes exactly the text that no build holds and no sync would use."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from sqlalchemy import Table, update

from rag_assets.pipeline.chunking import chunk_documents
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.parsing import parse_documents
from rag_assets.pipeline.slices import plan_work
from rag_assets.pipeline.upkeep import compact_lake
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.tables import document_index, events, tenants
from tests.driving import Driver, tenant_named_after
from tests.installation import FAST, Installation
from tests.integration.aging import write_old
from tests.integration.test_generations import CHUNKED, SPARSE

BROKEN = b"%PDF-1.7 and nothing that follows"
"""A file that is never parsed."""


@dataclass
class Tenant:
    """A tenant with a few files, and their texts in the lake."""

    id: str
    folder: Path
    driver: Driver

    def write(self, name: str, words: str) -> None:
        prose = " ".join(f"Sentence {n} is about {words}." for n in range(20))
        write_old(self.folder / f"{name}.md", f"# About {name}\n\n{prose}\n")

    def sync(self) -> Counter[str]:
        return self.driver.sync(self.id)

    def within(self, work: Callable[[TenantContext], object]) -> None:
        with self.driver.locked(self.id) as ctx:
            work(ctx)

    def texts(self) -> str:
        """Return all texts of documents and chunks in the lake."""
        with self.driver.locked(self.id) as ctx:
            parsed = ctx.lake.parsed(ctx.lake.read_parsed_keys())
            sets = ctx.lake._tables.chunks().keys()
            chunks = [c.text for row in ctx.lake.chunk_sets(sets).values() for c in row.chunks]
        return " ".join([*(row.parsed.text for row in parsed.values()), *chunks])

    def vectors(self) -> int:
        with self.driver.locked(self.id) as ctx:
            return len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id))


@pytest.fixture
def tenant(
    shared_installation: Installation, driver: Driver, request: pytest.FixtureRequest
) -> Tenant:
    name = tenant_named_after(request)
    made = Tenant(name, shared_installation.add_tenant(name, **FAST), driver)
    for word in ("anchors", "barges"):
        made.write(word, word)
    made.sync()
    return made


def test_dead_text_goes_while_a_document_has_failed(tenant: Tenant) -> None:
    (tenant.folder / "never.pdf").write_bytes(BROKEN)
    tenant.write("anchors", "capstans")
    assert tenant.sync()["failed"] == 1
    assert "anchors." in tenant.texts()
    before = tenant.vectors()
    tenant.within(compact_lake)
    assert "anchors." not in tenant.texts()
    assert "capstans" in tenant.texts()
    assert "barges" in tenant.texts()
    assert tenant.vectors() < before
    assert tenant.sync()["embedded"] == 0


def test_the_command_compacts_without_a_daemon(
    shared_installation: Installation, tenant: Tenant
) -> None:
    tenant.write("anchors", "capstans")
    tenant.sync()
    other = shared_installation.command("compact", "nobody")
    assert (other.code, "no tenant 'nobody'" in other.err) == (1, True)
    done = shared_installation.command("compact", tenant.id, "--json")
    assert done.code == 0, done.err
    [result] = done.json["tenants"]
    assert (result["tenant"], result["error"], done.json["leftovers"]) == (tenant.id, None, 0)
    assert any("unneeded row" in line for line in result["lines"])
    assert "anchors." not in tenant.texts()
    catalog = tenant.driver.session.catalog
    serving = catalog.generations.serving(tenant.id)
    assert serving is not None
    assert f"{serving.index_name}: 0 deleted entries left in its files" in done.err
    [event] = catalog.events.latest(tenant.id, kind="compacted")
    assert event.payload["rows"] > 0


def test_the_command_compacts_all_tenants_and_indexes(
    shared_installation: Installation, tenant: Tenant
) -> None:
    done = shared_installation.command("compact", "--json")
    assert done.code == 0, done.err
    active = {r.id for r in tenant.driver.session.catalog.tenants.all() if r.state == "ACTIVE"}
    assert {result["tenant"] for result in done.json["tenants"]} == active
    for index_name in tenant.driver.session.store.indexes.names():
        assert f"{index_name}: 0 deleted entries left in its files" in done.err


def test_status_names_tenants_that_were_not_compacted_for_eight_days(
    shared_installation: Installation, tenant: Tenant
) -> None:
    def warnings() -> list[str]:
        shown = shared_installation.command("status", "--json")
        assert shown.code == 0
        return [line for line in shown.json["warnings"] if tenant.id in line]

    def age(table: Table, column: str, days: int) -> None:
        values = {column: datetime.now(UTC) - timedelta(days=days)}
        whose = table.c.id if table is tenants else table.c.tenant
        with tenant.driver.session.catalog.database.begin() as connection:
            connection.execute(update(table).where(whose == tenant.id).values(values))

    assert warnings() == [], "its documents are new"
    age(tenants, "created_at", 9)
    [warning] = warnings()
    assert "not compacted for 8 days" in warning
    assert "`rag-assets compact`" in warning
    assert warning in shared_installation.command("status").out
    assert shared_installation.command("compact", tenant.id).code == 0
    assert warnings() == []
    age(events, "at", 9)
    assert len(warnings()) == 1


def test_the_version_that_answers_stays_while_its_successor_fails(tenant: Tenant) -> None:
    first = tenant.folder / "anchors.md"
    kept = first.read_text()
    write_old(first, "\0 no text at all \0" * 50)
    tenant.sync()
    tenant.within(compact_lake)
    assert "anchors." in tenant.texts()
    write_old(first, kept)
    done = tenant.sync()
    assert (done["parsed"], done["embedded"]) == (0, 0)


def test_each_of_two_builds_keeps_its_own_and_no_more(
    shared_installation: Installation, tenant: Tenant
) -> None:
    shared_installation.configure(tenant.id, **CHUNKED)
    tenant.sync()
    tenant.write("anchors", "capstans")
    tenant.sync()
    tenant.within(compact_lake)
    assert "barges" in tenant.texts()
    shared_installation.configure(tenant.id, chunker=None)
    back = tenant.sync()
    # The other build never had the edit; the rest of it is stored.
    assert (back["parsed"], back["upserted"]) == (0, back["embedded"])
    tenant.within(compact_lake)
    assert "anchors." not in tenant.texts()
    shared_installation.configure(tenant.id, **CHUNKED)
    again = tenant.sync()
    assert (again["parsed"], again["chunks"], again["embedded"]) == (0, 0, 0)


def test_what_waits_for_the_embedder_is_kept(tenant: Tenant) -> None:
    tenant.write("capstans", "capstans")
    scanner = SecretScanner(tenant.driver.session.settings.local / "cache")

    def begin(ctx: TenantContext) -> None:
        list_documents(ctx, scanner)
        work = plan_work(ctx, str(uuid.uuid4()))
        parse_documents(ctx, work)
        chunk_documents(ctx, work)
        compact_lake(ctx)

    tenant.within(begin)
    done = tenant.sync()
    assert (done["parsed"], done["chunks"]) == (0, 0)
    assert done["embedded"] > 0


def test_a_new_embedder_that_waits_keeps_the_vectors_of_the_one_that_answers(
    shared_installation: Installation, tenant: Tenant
) -> None:
    before = tenant.vectors()
    shared_installation.configure(tenant.id, **SPARSE)
    tenant.within(compact_lake)
    shared_installation.configure(tenant.id, **FAST)
    assert tenant.vectors() == before


def forget_keys(tenant: Tenant, *document_ids: str) -> None:
    """Change rows to the form of an earlier version, without keys."""
    statement = update(document_index).where(document_index.c.tenant == tenant.id)
    if document_ids:
        statement = statement.where(document_index.c.document_id.in_(document_ids))
    with tenant.driver.session.catalog.database.begin() as connection:
        connection.execute(statement.values(parse_key=None, chunk_set_key=None))


def test_versions_of_an_earlier_release_are_filled_in(tenant: Tenant) -> None:
    tenant.write("anchors", "capstans")
    tenant.sync()
    forget_keys(tenant)
    tenant.within(compact_lake)
    parsed, chunk_sets, unknown = tenant.driver.session.catalog.lake_keys.read_all(tenant.id)
    assert (len(parsed), len(chunk_sets), unknown) == (2, 2, 0)
    assert "anchors." not in tenant.texts()
    assert tenant.sync()["embedded"] == 0


def test_nothing_goes_while_a_version_is_unknown(tenant: Tenant) -> None:
    tenant.write("barges", "buoys")
    tenant.sync()
    forget_keys(tenant)
    write_old(tenant.folder / "anchors.md", "\0 no text at all \0" * 50)
    tenant.sync()  # the former version stays, and its keys are not recorded
    tenant.within(compact_lake)
    assert "anchors." in tenant.texts()
    assert "barges." in tenant.texts()


def test_deleted_entries_leave_the_files_of_the_index(
    shared_installation: Installation, tenant: Tenant
) -> None:
    shared_installation.configure(tenant.id, index={"placement": "dedicated"}, **FAST)
    for number in range(40):  # each is less than a tenth of a file
        tenant.write(f"page{number}", f"topic {number}")
    tenant.sync()
    (tenant.folder / "page7.md").unlink()
    tenant.sync()
    store = tenant.driver.session.store
    [index_name] = store.indexes.dedicated(tenant.id)
    with Elasticsearch(shared_installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:

        def deleted() -> int:
            stats = client.indices.stats(index=index_name, metric="docs")
            return int(stats["_all"]["total"]["docs"]["deleted"])

        assert deleted() > 0
        assert store.indexes.expunge(index_name) == 0
        assert deleted() == 0
    assert len(shared_installation.entries(tenant.id)) > 0
    assert store.indexes.expunge("no-such-index") == 0
