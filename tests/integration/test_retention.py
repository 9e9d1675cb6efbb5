"""Retention: expired documents leave every store, and nothing else does."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from elasticsearch import Elasticsearch
from sqlalchemy import update

from rag_assets.common.clock import Clock
from rag_assets.declarations import PLAIN
from rag_assets.definitions import build_resources
from rag_assets.jobs.upkeep import prune_documents
from rag_assets.pipeline.retention import prune_tenant
from rag_assets.storage.catalog.erasure.receipts import receipts
from rag_assets.storage.catalog.tables import documents
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.aging import AgingTenant, Make, write_old
from tests.integration.test_generations import CHUNKED
from tests.integration.test_incremental import due

YEAR = {"retention_days": 365}
BROKEN = "\0 no text at all \0" * 50


def test_at_365_days_it_stays_and_a_second_later_it_is_due(make: Make) -> None:
    tenant = make(**YEAR)
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    now = tenant.driver.session.catalog.database.time()
    tenant.clock = Clock(machine=lambda: now)
    tenant.embedded(now - timedelta(days=365))
    assert tenant.prune().documents == 0
    assert due_at(tenant, now) is None
    tenant.forward(seconds=1)
    assert due_at(tenant, tenant.clock.now()) == "documents have reached their retention"
    assert tenant.prune().documents == 1
    assert tenant.uris() == set()
    assert due_at(tenant, tenant.clock.now()) is None


def due_at(tenant: AgingTenant, now: datetime) -> str | None:
    """Return why a sync would be due at a time because of retention."""
    from rag_assets.common.settings import Settings
    from rag_assets.sensors.due import explain_due
    from rag_assets.sensors.state import read_tenant_state
    from rag_assets.tenants.model import Tenant

    catalog = tenant.driver.session.catalog
    record = catalog.tenants.get(tenant.id)
    state = read_tenant_state(
        catalog, record, Tenant.from_config(record.config), Settings.from_environment()
    )
    return explain_due(replace(state, recently_changed=0), now)


def test_age_counts_from_the_first_embedding_of_the_present_content(
    shared_installation: Installation, make: Make
) -> None:
    tenant = make(**YEAR)
    for name in ("kept", "edited"):
        tenant.write(name, f"The first text of {name}.")
    tenant.push("titled", "A text that stays.", title="Before")
    tenant.sync()
    tenant.forward(days=200)
    tenant.write("edited", "The second text.")
    tenant.push("titled", "A text that stays.", title="After")
    shared_installation.configure(tenant.id, **CHUNKED)
    tenant.sync()
    assert tenant.prune().documents == 0
    tenant.forward(days=166)
    assert tenant.prune().documents == 2
    assert tenant.uris() == {"files/edited.md"}
    tenant.forward(days=200)
    assert tenant.prune().documents == 1
    assert tenant.uris() == set()


def test_a_renamed_document_and_a_copy_are_as_old_as_their_content(make: Make) -> None:
    tenant = make(**YEAR)
    tenant.write("renamed", "Words of the old harbour.")
    tenant.write("copied", "Words of the lost logbook.")
    tenant.sync()
    tenant.forward(days=365)
    (tenant.folder / "renamed.md").rename(tenant.folder / "other.md")
    shutil.copy2(tenant.folder / "copied.md", tenant.folder / "copy.md")
    done = tenant.sync()
    assert (done["added"], done["embedded"]) == (2, 0)
    tenant.forward(days=1)
    assert tenant.prune().documents == 3
    assert tenant.uris() == set()


def test_an_edit_that_was_taken_back_before_it_was_embedded_renews_nothing(make: Make) -> None:
    tenant = make(**YEAR)
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    tenant.forward(days=200)
    write_old(tenant.folder / "anchors.md", BROKEN)
    tenant.sync()
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    tenant.forward(days=166)
    assert tenant.prune().documents == 1


def test_each_source_type_has_its_own_days(make: Make) -> None:
    tenant = make(retention_days={"page": 30, "file": 365}, prune_share=None)
    tenant.write("anchors", "Anchors hold.")
    tenant.push("p", "Pages of the log.", kind="page")
    tenant.push("c", "Comments of the crew.", kind="comment")
    tenant.sync()
    tenant.forward(days=31)
    assert tenant.prune().documents == 1
    assert tenant.uris() == {"files/anchors.md", "pushed/comment/c"}
    tenant.forward(days=340)
    assert tenant.prune().documents == 1
    assert tenant.uris() == {"pushed/comment/c"}
    tenant.forward(days=4_000)
    assert tenant.prune().documents == 0


def test_the_same_run_takes_it_out_of_every_store(make: Make) -> None:
    tenant = make(**YEAR)
    shared = "A paragraph that two documents have."
    tenant.write("old", f"Words of the old harbour.\n\n## Shared\n\n{shared}")
    tenant.push("record", "Words of the lost logbook.", title="Logbook")
    tenant.sync()
    tenant.forward(days=200)
    tenant.write("young", f"Words of the new harbour.\n\n## Shared\n\n{shared}")
    tenant.sync()
    before = tenant.catalog_rows()
    assert "lost logbook" in before
    vectors = tenant.vectors()
    tenant.forward(days=166)
    report = tenant.prune()
    assert report.documents == 2
    texts = tenant.lake_texts()
    assert "old harbour" not in texts
    assert "lost logbook" not in texts
    assert "new harbour" in texts
    assert shared in texts
    assert tenant.vectors() < vectors
    after = tenant.catalog_rows()
    assert "lost logbook" not in after
    assert "Logbook" not in after
    with tenant.within() as ctx:
        assert {d.uri for d in ctx.catalog.documents.all(tenant.id, deleted=True)} == {
            "files/young.md"
        }
    assert tenant.uris() == {"files/young.md"}
    done = tenant.sync()
    assert (done["added"], done["embedded"]) == (0, 0)
    [receipt] = report.receipts
    assert receipt.counts["documents"] == {"documents": 2, "former versions": 0}
    assert receipt.counts["records"] == {"records": 1, "staged": 0}
    assert receipt.counts["index"]["entries"] == report.entries > 0
    assert (receipt.counts["lake"]["parsed_text"], receipt.counts["lake"]["chunks"]) == (2, 2)
    assert receipt.counts["lake"]["embeddings"] == vectors - tenant.vectors()


def test_a_pruned_record_comes_back_with_another_text_only(make: Make) -> None:
    tenant = make(**YEAR)
    tenant.push("record", "The first text.")
    tenant.sync()
    tenant.forward(days=366)
    assert tenant.prune().documents == 1
    assert not tenant.push("record", "The first text.", title="With a title")
    assert "first text" not in tenant.catalog_rows()
    assert tenant.push("record", "The second text.")
    assert tenant.push("record", "The first text."), "it takes back what was not synced"
    assert "second text" not in tenant.catalog_rows()
    assert tenant.push("record", "The second text.")
    assert tenant.sync()["added"] == 1
    assert tenant.push("record", "The first text.")
    tenant.sync()
    assert tenant.uris() == {"pushed/page/record"}
    assert tenant.prune().documents == 0


@pytest.mark.parametrize("minutes", [-61, 61], ids=["behind", "ahead"])
def test_a_clock_an_hour_from_postgress_prunes_nothing(make: Make, minutes: int) -> None:
    tenant = make(**YEAR)
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    tenant.forward(days=400)
    right = tenant.clock

    def wrong() -> datetime:
        return right.machine() + timedelta(minutes=minutes)

    with tenant.within() as ctx:
        long_ago = ctx.clock.now() - timedelta(days=200)
        asked = ("rag_search_started", long_ago, {"query": "tide"})
        ctx.catalog.events.append(ctx.ref, [asked])
    tenant.clock = replace(right, machine=wrong)
    report = tenant.prune()
    assert (report.documents, report.events, report.receipts) == (0, 0, ())
    assert report.doubt is not None
    assert report.doubt.kind == "skewed"
    assert "clock" in report.warnings(tenant.id)[0]
    tenant.clock = right
    report = tenant.prune()
    assert (report.documents, report.events, report.doubt) == (1, 1, None)


def test_most_of_a_source_is_pruned_only_when_a_person_confirms_it(
    shared_installation: Installation, make: Make
) -> None:
    tenant = make(**YEAR)
    for number in range(21):
        tenant.write(f"page{number}", f"Page {number}.")
    tenant.push("record", "A record.")
    tenant.sync()
    for number in range(21, 41):
        tenant.write(f"page{number}", f"Page {number}.")
    long_ago = tenant.clock.now() - timedelta(days=366)
    tenant.embedded(long_ago)
    tenant.sync()
    assert len(tenant.uris()) == 42
    report = tenant.prune()
    assert [(one.source, one.due, one.documents) for one in report.held] == [("files", 21, 41)]
    assert report.documents == 1, "another source does not wait"
    assert f"rag-assets prune {tenant.id} --confirm" in report.warnings(tenant.id)[0]
    assert len(tenant.uris()) == 41
    tenant.sync()
    assert len(tenant.uris()) == 41
    assert due(shared_installation, tenant.id) is None, "it waits for a person"
    said = shared_installation.command("prune", tenant.id)
    assert said.code == 0
    assert "--confirm" in said.err
    assert len(tenant.uris()) == 41
    said = shared_installation.command("prune", tenant.id, "--confirm", "--json")
    assert said.json["documents"] == 21
    assert said.json["receipts"][0]["by"].startswith("operator ")
    assert len(tenant.uris()) == 20
    assert tenant.driver.session.catalog.syncs.all(tenant.id)["files"].held_prunes == 0


def test_twenty_documents_or_a_rule_wait_for_nobody(
    shared_installation: Installation, make: Make
) -> None:
    tenant = make(**YEAR)
    for number in range(20):
        tenant.write(f"page{number}", f"Page {number}.")
    tenant.sync()
    tenant.forward(days=366)
    assert tenant.prune().documents == 20
    shared_installation.configure(tenant.id, prune_share=None, **YEAR)
    shared_installation.configure(tenant.id, prune_share=1.0)
    for number in range(30):
        tenant.write(f"other{number}", f"Other {number}.")
    tenant.sync()
    tenant.forward(days=366)
    assert tenant.prune().documents == 30


def test_a_former_version_goes_while_its_successor_fails(make: Make) -> None:
    tenant = make(**YEAR)
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    tenant.forward(days=200)
    write_old(tenant.folder / "anchors.md", BROKEN)
    tenant.sync()
    assert tenant.uris() == {"files/anchors.md"}
    tenant.forward(days=166)
    report = tenant.prune()
    assert report.receipts[0].counts["documents"] == {"documents": 0, "former versions": 1}
    assert tenant.uris() == set()
    assert "Anchors hold" not in tenant.lake_texts()
    tenant.write("anchors", "Anchors drag.")
    tenant.sync()
    assert tenant.uris() == {"files/anchors.md"}


class Killed(Exception):
    """Simulates the end of the process."""


@pytest.mark.long
def test_killed_anywhere_the_next_run_ends_it_with_the_same_receipt(make: Make) -> None:
    tenant = make(**YEAR)
    expected = None
    for step in range(60):
        tenant.write("old", f"Words of harbour {step}.")
        tenant.push("record", f"Words of logbook {step}.")
        tenant.sync()
        tenant.forward(days=366)
        left = step

        def guard() -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1

        killed = False
        with tenant.within() as ctx:
            lake = tenant.driver.session.lake.tenant(tenant.id, ctx.ref.incarnation, guard=guard)
            try:
                prune_tenant(replace(ctx, guard=guard, lake=lake), by="a test")
            except Killed:
                killed = True
        if killed:
            tenant.sync()  # any later run
            tenant.prune()
        [receipt] = tenant.driver.session.catalog.receipts.all(tenant.id)[-1:]
        expected = expected or receipt.counts
        assert receipt.counts == expected, step
        assert len(receipt.documents) == 2
        assert tenant.uris() == set()
        assert "Words of" not in tenant.lake_texts()
        assert "Words of" not in tenant.catalog_rows()
        assert len(tenant.driver.session.catalog.receipts.all(tenant.id)) == step + 1
        if not killed:
            assert step > 3, "there is more than one place to be killed at"
            return
    raise AssertionError("it never ran to its end")


def test_receipts_name_nothing_outlive_their_tenant_and_show_when_one_is_altered(
    shared_installation: Installation, make: Make
) -> None:
    tenant = make(**YEAR)
    tenant.write("verysecretname", "Words of the old harbour.")
    tenant.sync()
    [document] = tenant.driver.session.catalog.documents.all(tenant.id)
    tenant.forward(days=366)
    tenant.prune()
    catalog = tenant.driver.session.catalog
    [receipt] = catalog.receipts.all(tenant.id)
    assert receipt.documents == tuple(catalog.receipts.map_ids_by_hash([document.document_id]))
    shown = shared_installation.command("receipts", tenant.id, "--json")
    for word in ("verysecretname", "harbour", document.document_id):
        assert word not in shown.out
    assert (receipt.kind, receipt.rule, receipt.by) == ("prune", "retention_days: 365", "a test")
    assert shared_installation.command("tenants", "remove", tenant.id, "--yes").code == 0
    said = shared_installation.command("receipts", tenant.id, "--verify", "--json")
    assert said.code == 0
    assert receipt.hash in {one["hash"] for one in said.json["receipts"]}
    assert said.json["chain"]["broken"] == []
    counts = {**receipt.counts, "index": {"entries": receipt.counts["index"]["entries"] + 1}}
    alter(tenant, receipt.number, counts=counts)
    said = shared_installation.command("receipts", "--verify")
    assert said.code == 1
    assert f"is missing: {receipt.number} of" in said.out
    for counts in (["no mapping"], {"index": 3}, {"index": {"entries": "three"}}):
        alter(tenant, receipt.number, counts=counts)
        said = shared_installation.command("receipts", "--verify")
        assert f"is missing: {receipt.number} of" in said.out
    alter(tenant, receipt.number, counts=dict(receipt.counts))
    assert shared_installation.command("receipts", "--verify").code == 0


def alter(tenant: AgingTenant, number: int, **values: object) -> None:
    """Alter a receipt, as a foreign program could."""
    with tenant.driver.session.catalog.database.begin() as connection:
        connection.execute(update(receipts).where(receipts.c.number == number).values(**values))


def test_a_receipt_that_is_missing_before_another_is_found(
    installation: Installation,
) -> None:
    tenant = AgingTenant.made(installation, Driver(installation), "team", **YEAR)
    for number in range(3):
        tenant.write("page", f"Page {number}.")
        tenant.sync()
        tenant.forward(days=366)
        tenant.prune()
    stored = tenant.driver.session.catalog.receipts
    assert [receipt.number for receipt in stored.all()] == [1, 2, 3]
    report = stored.verify()
    assert (report.receipts, report.broken, report.last) == (3, (), stored.all()[-1].hash)
    alter(tenant, 3, rule="retention_days: 364")
    assert stored.verify().broken == (3,)
    with tenant.driver.session.catalog.database.begin() as connection:
        connection.execute(receipts.delete().where(receipts.c.number == 1))
    assert stored.verify().broken == (2, 3)


def test_the_daily_job_prunes_and_says_so(shared_installation: Installation, make: Make) -> None:
    from rag_assets.definitions import build_defs

    tenant = make(**YEAR)
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    tenant.embedded(tenant.clock.now() - timedelta(days=366))
    job = build_defs().get_repository_def().get_job("prune")
    result = job.execute_in_process(instance=tenant.driver.session.instance)
    assert result.success
    assert tenant.uris() == set()
    [receipt] = tenant.driver.session.catalog.receipts.all(tenant.id)
    assert receipt.by == "job prune"


def test_a_tenant_without_retention_keeps_all(make: Make) -> None:
    tenant = make()
    tenant.write("anchors", "Anchors hold.")
    tenant.sync()
    tenant.forward(days=4_000)
    assert tenant.prune().documents == 0
    assert tenant.uris() == {"files/anchors.md"}


@pytest.mark.parametrize("by", ["a sync and the nightly job", "the command"])
def test_pruned_entries_leave_the_files_of_the_index(
    shared_installation: Installation, make: Make, by: str
) -> None:
    tenant = make(**YEAR, index={"placement": "dedicated"})
    for number in range(25):
        tenant.write(f"page{number}", f"Words of page {number}.")
    tenant.sync()
    session = tenant.driver.session
    [document_id] = [
        d.document_id for d in session.catalog.documents.all(tenant.id) if "page7" in d.uri
    ]
    long_ago = tenant.clock.now() - timedelta(days=366)
    with session.catalog.database.begin() as connection:
        is_old = documents.c.document_id == document_id
        connection.execute(update(documents).where(is_old).values(embedded_at=long_ago))
    [index_name] = session.store.indexes.dedicated(tenant.id)
    with Elasticsearch(shared_installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:

        def deleted() -> int:
            stats = client.indices.stats(index=index_name, metric="docs")
            return int(stats["_all"]["total"]["docs"]["deleted"])

        if by == "the command":
            done = shared_installation.command("prune", tenant.id)
            assert (done.code, "1 document pruned" in done.out) == (0, True), done.err
        else:
            shared_installation.synced(tenant.id)
            assert len(tenant.uris()) == 24
            client.indices.flush(index=index_name)
            assert deleted() > 0
            resources = {"rag_assets_workbench": build_resources()["rag_assets_workbench"]}
            for _ in range(2):
                assert (
                    prune_documents.build(PLAIN)
                    .execute_in_process(instance=session.instance, resources=resources)
                    .success
                )
        assert deleted() == 0
    assert len(tenant.uris()) == 24
    assert len(session.catalog.events.latest(tenant.id, kind="pruned_expunged")) == 1
