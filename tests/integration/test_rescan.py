"""New rules for credentials are applied to all stored text, without parsing again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import dagster as dg
import psycopg
import pytest

from rag_assets.pipeline.chunking import chunk_documents
from rag_assets.pipeline.embedding import embed_chunks
from rag_assets.pipeline.erasure import rescan_tenant
from rag_assets.pipeline.parsing import parse_documents
from rag_assets.pipeline.publishing import publish_slice
from rag_assets.pipeline.rescan import read_rules_version
from rag_assets.pipeline.slices import plan_work
from rag_assets.privacy.secrets import scanner as scanners
from rag_assets.storage.catalog.erasure.receipts import Receipt
from tests.integration.aging import AgingTenant, Make
from tests.integration.test_generations import CHUNKED
from tests.newer_rules import find_also, wait_for_no_history

TOKEN = "zebra-4471-stripe"
"""What the new rules find, and the former ones did not."""


@pytest.fixture
def new_rules() -> Iterator[Callable[[], None]]:
    """Yield a function that changes the rules."""
    with pytest.MonkeyPatch.context() as patched:
        yield partial(find_also, TOKEN, patched)
    scanners.rules_version.cache_clear()


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_no_history(monkeypatch)


def rescanned(tenant: AgingTenant) -> Receipt | None:
    with tenant.within() as ctx:
        return rescan_tenant(ctx, by="a test")


def texts_of_answers(tenant: AgingTenant, query: str) -> str:
    hits = tenant.installation.search(tenant.id, query, mode="text", top_k=20)
    return " ".join(f"{hit.uri} {hit.title} {hit.text}" for hit in hits)


def database_text(tenant: AgingTenant) -> str:
    """Return every text of every table, except records as they were pushed."""
    with psycopg.connect(tenant.installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            " AND tablename NOT IN ('source_records')"
        ).fetchall()
        return "\n".join(
            row[0]
            for names in tables
            for row in connection.execute(
                psycopg.sql.SQL("SELECT to_jsonb(t)::text FROM {} t").format(
                    psycopg.sql.Identifier(*names)
                )
            ).fetchall()
        )


def test_what_new_rules_find_is_masked_in_every_store_and_no_clean_document_is_touched(
    make: Make, new_rules: Callable[[], None]
) -> None:
    tenant = make()
    tenant.write(
        "door", f"The door opens with {TOKEN} at night.\n\n## Cellar\n\nThe cellar is dry."
    )
    tenant.write("clean", "The garden has a fence.")
    tenant.write(f"note-{TOKEN}", "A note about the roof.")
    tenant.push("shed", "The shed is locked.", title=f"Shed {TOKEN}")
    tenant.installation.synced(tenant.id)
    tenant.installation.search(tenant.id, f"where is {TOKEN}", mode="text")
    tenant.installation.configure(tenant.id, **CHUNKED)
    tenant.installation.synced(tenant.id)  # a former build holds it, too
    assert TOKEN in texts_of_answers(tenant, "door opens")
    new_rules()
    (tenant.folder / "door.md").unlink()  # nobody can parse it again
    receipt = rescanned(tenant)
    assert receipt is not None
    assert (receipt.kind, receipt.by) == ("secrets", "a test")
    assert read_rules_version() in receipt.rule
    assert receipt.counts["rules"]["later-rule"] >= 3
    assert receipt.counts["texts"]["texts masked"] >= 1
    assert receipt.counts["index"]["entries"] >= 4
    assert receipt.proof["complete"], receipt.proof
    assert TOKEN not in texts_of_answers(tenant, "door opens")
    assert TOKEN not in tenant.lake_texts()
    rows = database_text(tenant)
    assert TOKEN not in rows, rows[rows.index(TOKEN) - 400 :][:600]
    with tenant.within() as ctx:
        live = ctx.catalog.generations.live(tenant.id)
        for generation in live:
            stored = list(ctx.store.entries.stored(generation.index_name, ctx.owner(generation)))
            assert TOKEN not in repr([entry.fields for entry in stored])
    assert rescanned(tenant) is None


def test_what_jobs_of_all_tenants_logged_is_masked(
    make: Make, new_rules: Callable[[], None]
) -> None:
    tenant = make()
    tenant.write("clean", "The garden has a fence.")
    tenant.sync()

    @dg.op
    def visit() -> None:
        dg.get_dagster_logger().warning(f"{tenant.id}: door-{TOKEN}.md is missing")

    @dg.job
    def nightly() -> None:
        visit()

    assert nightly.execute_in_process(instance=tenant.driver.session.instance).success
    assert TOKEN in database_text(tenant)
    new_rules()
    rescanned(tenant)
    assert TOKEN not in database_text(tenant)


@pytest.mark.usefixtures("no_wait")
def test_a_masked_document_answers_again_though_its_source_is_gone(
    make: Make, new_rules: Callable[[], None]
) -> None:
    tenant = make(chunker={"chunker": "heading", "max_tokens": 40, "overlap": 0})
    line = "The cellar is dry in summer and in winter, and its window faces the yard."
    tenant.write("door", f"The door opens with {TOKEN} at night.\n\n## Cellar\n\n{line}")
    tenant.write("clean", "The garden has a fence.")
    tenant.sync()
    new_rules()
    before = tenant.vectors()
    assert rescanned(tenant) is not None
    (tenant.folder / "door.md").unlink()
    (tenant.folder / "clean.md").unlink()
    tenant.folder.rmdir()  # it cannot be listed any more
    with tenant.within() as ctx:
        work = plan_work(ctx, "a-run")
        assert len(work.documents) == 1
        assert parse_documents(ctx, work).parsed == 0
        chunk_documents(ctx, work)
        embedded = embed_chunks(ctx, work)
        publish_slice(ctx, work)
    assert "cellar is dry" in texts_of_answers(tenant, "cellar dry")
    assert TOKEN not in texts_of_answers(tenant, "door opens night")
    assert "garden" in texts_of_answers(tenant, "garden fence")
    assert tenant.vectors() <= before + embedded.embedded


@pytest.mark.usefixtures("no_wait")
def test_a_run_scans_by_new_rules_and_the_check_tells_what_was_found(
    make: Make, new_rules: Callable[[], None]
) -> None:
    tenant = make()
    tenant.write("door", f"The door opens with {TOKEN} at night.")
    tenant.write("clean", "The garden has a fence.")
    tenant.installation.synced(tenant.id)
    new_rules()
    stages = tenant.installation.synced(tenant.id)
    assert stages["parsed_text"]["parsed"] == 0
    assert stages["embeddings"]["embedded"] <= 1
    assert TOKEN not in texts_of_answers(tenant, "door opens")
    assert "garden" in texts_of_answers(tenant, "garden fence")
    record = tenant.driver.session.catalog.tenants.get(tenant.id)
    assert record.scanned["found"] == {"later-rule": 1}
