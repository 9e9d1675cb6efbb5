"""Holds: held documents leave the index when deleted, but stay in all other stores."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import OnHold
from rag_assets.pipeline.removal import purge_tenant
from rag_assets.pipeline.upkeep import compact_lake
from tests.installation import Installation
from tests.integration.aging import AgingTenant, Make
from tests.integration.test_generations import CHUNKED
from tests.integration.test_incremental import due
from tests.records import remove_record

YEAR = {"retention_days": 365}


def hold(tenant: AgingTenant, *options: str, what: str = "set") -> None:
    said = tenant.installation.command("hold", what, tenant.id, *options, "--reason", "a claim")
    assert said.code == 0, said.err


def document_id(tenant: AgingTenant, uri: str) -> str:
    documents = tenant.driver.session.catalog.documents.all(tenant.id)
    return next(d.document_id for d in documents if d.uri == uri)


def compacted(tenant: AgingTenant) -> None:
    """Let a month pass, and run the weekly compaction."""
    tenant.forward(days=30)
    with tenant.within() as ctx:
        compact_lake(ctx)


def test_what_is_held_leaves_answers_when_deleted_and_the_stores_when_lifted(make: Make) -> None:
    tenant = make()
    tenant.write("old", "Words of the old harbour.")
    tenant.push("record", "Words of the lost logbook.", title="Logbook")
    tenant.sync()
    hold(tenant)
    (tenant.folder / "old.md").unlink()
    record = document_id(tenant, "pushed/page/record")
    with tenant.within() as ctx:
        assert remove_record(ctx.catalog.records, ctx.ref, record, "a test")
    tenant.driver.sync(tenant.id, allow_deletes=True)
    assert tenant.uris() == set()
    compacted(tenant)
    for words in ("old harbour", "lost logbook"):
        assert words in tenant.lake_texts()
    rows = tenant.catalog_rows()
    assert "lost logbook" in rows
    assert "Logbook" in rows
    hold(tenant, what="lift")
    assert "lost logbook" not in tenant.catalog_rows()
    compacted(tenant)
    for words in ("old harbour", "lost logbook"):
        assert words not in tenant.lake_texts()
    assert "Logbook" not in tenant.catalog_rows()


def test_former_versions_of_what_is_held_stay_whatever_replaces_them(make: Make) -> None:
    tenant = make()
    tenant.write("edited", "The first words.")
    tenant.write("free", "The free words.")
    tenant.push("record", "The first text.")
    tenant.sync()
    hold(tenant, "--document", document_id(tenant, "files/edited.md"))
    hold(tenant, "--source", "pushed")
    tenant.write("edited", "The second words.")
    tenant.write("free", "Other words.")
    tenant.push("record", "The second text.")
    tenant.sync()
    tenant.installation.configure(tenant.id, **CHUNKED)
    tenant.sync()
    compacted(tenant)  # this also deletes the former build
    tenant.sync()
    texts = tenant.lake_texts()
    for words in ("first words", "second words", "first text", "second text", "Other words"):
        assert words in texts
    assert "free words" not in texts
    assert "The first text." in tenant.catalog_rows()
    hold(tenant, "--source", "pushed", what="lift")
    compacted(tenant)
    texts = tenant.lake_texts()
    assert "first text" not in texts
    assert "first words" in texts
    assert "The first text." not in tenant.catalog_rows()


def test_what_is_held_is_not_pruned_until_the_hold_is_lifted(
    shared_installation: Installation, make: Make
) -> None:
    tenant = make(**YEAR)
    tenant.write("held", "Held words.")
    tenant.write("free", "Free words.")
    tenant.sync()
    hold(tenant, "--document", document_id(tenant, "files/held.md"))
    tenant.embedded(tenant.clock.now().replace(year=tenant.clock.now().year - 2))
    assert tenant.prune().documents == 1
    assert tenant.uris() == {"files/held.md"}
    assert due(shared_installation, tenant.id) is None, "nothing loops"
    hold(tenant, "--document", document_id(tenant, "files/held.md"), what="lift")
    assert due(shared_installation, tenant.id) == "documents have reached their retention"
    assert tenant.prune().documents == 1
    assert "Held words" not in tenant.lake_texts()


def test_a_deleted_document_that_was_never_indexed_is_held_too(make: Make) -> None:
    tenant = make()
    tenant.push("record", "Words of the lost logbook.")
    tenant.sync()
    tenant.push("record", "Words that were not synced yet.")
    hold(tenant)
    with tenant.within() as ctx:
        remove_record(
            ctx.catalog.records, ctx.ref, document_id(tenant, "pushed/page/record"), "a test"
        )
    tenant.sync()
    compacted(tenant)
    assert "not synced yet" in tenant.catalog_rows()
    assert "lost logbook" in tenant.lake_texts()


def test_removing_the_tenant_is_refused_and_names_the_hold(make: Make) -> None:
    tenant = make()
    tenant.write("page", "Words.")
    tenant.sync()
    hold(tenant, "--source", "files")
    said = tenant.installation.command("tenants", "remove", tenant.id, "--yes")
    assert said.code == 1
    assert "source 'files'" in said.err
    assert "a claim" in said.err
    assert f"id: {tenant.id}\n" in (tenant.installation.home / "tenants.yaml").read_text()
    session = tenant.driver.session
    record = session.catalog.tenants.get(tenant.id)
    with pytest.raises(OnHold):
        purge_tenant(
            session.catalog, session.lake, session.store, record, session.settings, by="a test"
        )
    assert tenant.uris() == {"files/page.md"}
    hold(tenant, "--source", "files", what="lift")
    assert tenant.installation.command("tenants", "remove", tenant.id, "--yes").code == 0


def test_holds_are_listed_with_their_reasons_and_wrong_ones_are_refused(make: Make) -> None:
    tenant = make()
    tenant.write("page", "Words.")
    tenant.sync()
    cli = tenant.installation.command
    id_ = document_id(tenant, "files/page.md")
    for wrong in (
        ("--source", "nope"),
        ("--document", "0" * 32),
        ("--source", "files", "--document", id_),
    ):
        said = cli("hold", "set", tenant.id, *wrong, "--reason", "a claim")
        assert said.code == 1
        assert "hint:" in said.err
    assert cli("hold", "lift", tenant.id, "--reason", "none is set").code == 1
    hold(tenant, "--document", id_)
    hold(tenant, "--document", id_)  # a second hold only changes its reason
    [shown] = cli("hold", "list", tenant.id, "--json").json["holds"]
    assert (shown["scope"]["document_id"], shown["reason"]) == (id_, "a claim")
    assert shown["by"].startswith("operator ")
    assert id_ in cli("hold", "list", tenant.id).out
    kinds = [event.kind for event in tenant.driver.session.catalog.events.latest(tenant.id)]
    assert kinds.count("hold_set") == 2
