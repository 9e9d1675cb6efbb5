"""Contents that changed although size, times and inode stayed the same, and how they are found."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from rag_assets.common.hashing import compute_key
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.pipeline import context, source_contents
from rag_assets.pipeline.context import DailyShare
from rag_assets.pipeline.source_contents import compare_contents
from rag_assets.storage.catalog.tables import documents
from tests.installation import Installation
from tests.integration.checks.conftest import MakeTenant
from tests.integration.checks.faults import CheckedTenant

CONTENTS = "raw_documents.contents"
EVERYTHING = DailyShare(1, date(2026, 11, 22))


def settle(tenant: CheckedTenant) -> None:
    """Make files older than their listing, so that the listing can be relied on."""
    for path in tenant.folder.iterdir():
        before = path.stat().st_mtime_ns - 60 * 10**9
        os.utime(path, ns=(before, before))
    tenant.installation.synced(tenant.name)


def alter(tenant: CheckedTenant, file_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a file's content, but show listings its former facts, as a failing disk does."""
    path = tenant.folder / file_name
    facts = tenant.document(file_name).facts
    altered = path.read_bytes().replace(b"ten minutes", b"two minutes")
    assert len(altered) == facts.size
    path.write_bytes(altered)
    os.utime(path, ns=(facts.mtime_ns, facts.mtime_ns))
    real = ListingFacts.__eq__

    def equal(self: ListingFacts, other: object) -> bool:
        # No program can set the change time of a file.
        if not isinstance(other, ListingFacts):
            return False
        return real(replace(self, ctime_ns=0), replace(other, ctime_ns=0))

    monkeypatch.setattr(ListingFacts, "__eq__", equal)


def test_a_file_that_changed_under_equal_facts_is_named_and_repaired(
    make_tenant: MakeTenant, shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = make_tenant("rotten", drift={"days": 1})
    settle(tenant)
    assert tenant.check(tables=False).failing == set()
    alter(tenant, "oncall.md", monkeypatch)
    shared_installation.synced("rotten")
    assert "ten minutes" in shared_installation.search("rotten", "on call answers")[0].text
    outcome = tenant.check(tables=False)
    assert outcome.failing == {CONTENTS}, "by this name and no other"
    assert outcome.offenders(CONTENTS) == [
        {
            "fault": "content changed unnoticed",
            "which": "files/oncall.md",
        }
    ]
    shared_installation.synced("rotten", repair=True)
    assert "two minutes" in shared_installation.search("rotten", "on call answers")[0].text
    assert tenant.check(tables=False).failing == set()


def test_a_row_that_no_listing_accounts_for_is_gone(make_tenant: MakeTenant) -> None:
    tenant = make_tenant("lost")
    settle(tenant)
    (tenant.folder / "leave.md").unlink()
    unlisted = compare_contents(tenant.ctx, EVERYTHING)
    assert unlisted.gone == (), "the next listing finds that"
    # As after restoring a dump from before the deletion, the listing is already recorded.
    document = tenant.document("leave.md")
    tenant.installation.synced("lost")
    with tenant.ctx.catalog.database.begin() as connection:
        mine = documents.c.document_id == document.document_id
        connection.execute(update(documents).where(mine).values(status="READY"))
    assert compare_contents(tenant.ctx, EVERYTHING).gone == (document.document_id,)


def test_a_file_that_is_written_while_it_is_read_is_no_damage(
    make_tenant: MakeTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = make_tenant("written")
    settle(tenant)
    path: Path = tenant.folder / "leave.md"
    real = source_contents.hash_documents

    def slow(source: object, chosen: object) -> object:
        listed = list(chosen)  # type: ignore[call-overload]
        path.write_text("# Leave\n\nOtherwise now.\n")
        return real(source, listed)  # type: ignore[arg-type]

    monkeypatch.setattr(source_contents, "hash_documents", slow)
    report = compare_contents(tenant.ctx, EVERYTHING)
    assert (report.compared, report.altered, report.gone) == (3, (), ())


def test_each_document_is_read_once_in_a_cycle() -> None:
    ids = [compute_key("document", str(n)) for n in range(500)]
    days = [DailyShare(7, date(2026, 11, 22) + timedelta(days=n)) for n in range(7)]
    counts = [sum(id_ in share for share in days) for id_ in ids]
    assert counts == [1] * 500
    assert all(40 < sum(id_ in share for id_ in ids) < 110 for share in days)
    assert all(id_ in DailyShare(1, date(2026, 1, 1)) for id_ in ids)


def test_reading_is_paced(make_tenant: MakeTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = make_tenant("paced")
    settle(tenant)
    slept: list[float] = []
    monkeypatch.setattr(context, "sleep", slept.append)
    compare_contents(tenant.ctx, EVERYTHING, bytes_per_second=100)
    size = sum(path.stat().st_size for path in tenant.folder.iterdir())
    assert max(slept) > 0.9 * size / 100 - 1
    slept.clear()
    compare_contents(tenant.ctx, EVERYTHING)
    assert slept == []
