"""Sources that changed without the index, under a clock that can be set forward."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rag_assets.checks import staleness
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.recipes import compute_config_key
from rag_assets.privacy.masker import get_scanner
from rag_assets.storage.catalog.documents.model import Failure
from tests.integration.checks.conftest import MakeTenant
from tests.integration.checks.faults import CheckedTenant, Outcome

STALENESS = "search_index.staleness"
CHANGED = "# Leave\n\nTwo weeks ahead, please.\n"


class Clock:
    """The clock of the check, because a test cannot set back the ctime of a file."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(staleness, "_get_now", clock.now)
    return clock


def check(tenant: CheckedTenant) -> Outcome:
    return tenant.check(tables=False)


def behind(outcome: Outcome) -> set[tuple[str, str]]:
    return {(row["document"], row["why"]) for row in outcome.offenders(STALENESS)}


def notice_changes(tenant: CheckedTenant) -> None:
    """List the sources only."""
    list_documents(tenant.ctx, get_scanner(tenant.ctx.settings.local))


def test_a_changed_document_is_late_when_the_limit_has_passed(
    make_tenant: MakeTenant, clock: Clock
) -> None:
    tenant = make_tenant("changing")
    clock.ahead = timedelta(hours=3)
    untouched = check(tenant)
    assert untouched.failing == set()
    assert untouched.offenders(STALENESS) == []

    clock.ahead = timedelta(0)
    (tenant.folder / "leave.md").write_text(CHANGED)
    (tenant.folder / "new.md").write_text("# New\n\nNot noticed by anybody.\n")
    just_now = check(tenant)
    assert just_now.failing == set()
    assert behind(just_now) == {("files/leave.md", "changed"), ("files/new.md", "added")}
    assert just_now.compared(STALENESS)["documents later than that"] == ("0", "0")

    clock.ahead = timedelta(hours=3)
    late = check(tenant)
    assert late.failing == {STALENESS}
    assert late.checks[STALENESS].severity == "ERROR"
    assert behind(late) == behind(just_now)
    expected, actual = late.compared(STALENESS)["oldest lag in minutes, at most"]
    assert (expected, int(actual)) == ("60", pytest.approx(180, abs=2))


def test_a_document_without_a_known_date_is_a_warning(
    make_tenant: MakeTenant, clock: Clock
) -> None:
    tenant = make_tenant("removing")
    clock.ahead = timedelta(hours=3)
    (tenant.folder / "leave.md").unlink()
    removed = check(tenant)
    assert removed.failing == {STALENESS}
    assert removed.checks[STALENESS].severity == "WARN"
    assert behind(removed) == {("files/leave.md", "removed")}
    assert removed.offenders(STALENESS)[0]["minutes"].startswith("at most ")

    tenant.folder.rename(tenant.folder.with_name("away"))
    away = check(tenant)
    assert away.checks[STALENESS].severity == "WARN"
    [unlisted] = away.offenders(STALENESS)
    assert unlisted["document"].startswith("files: ")
    assert unlisted["why"] == "unlisted"


def test_documents_that_the_chain_did_not_complete_are_late(
    make_tenant: MakeTenant, clock: Clock
) -> None:
    tenant = make_tenant("waiting")
    clock.ahead = timedelta(hours=3)
    (tenant.folder / "leave.md").write_text(CHANGED)
    notice_changes(tenant)
    waiting = check(tenant)
    assert waiting.failing == {STALENESS}
    assert waiting.checks[STALENESS].severity == "ERROR"
    assert behind(waiting) == {("files/leave.md", "waits")}

    (tenant.folder / "never.md").write_text("# Never\n\nIt was never indexed.\n")
    notice_changes(tenant)
    ctx = tenant.ctx
    failures = [
        Failure(document.document_id, document.document_key, "its parser gave up", "unreadable")
        for document in map(tenant.document, ("leave.md", "never.md", "oncall.md"))
    ]
    key = compute_config_key(ctx.tenant, ctx.embedder.embedder_id)
    ctx.catalog.quarantine.fail(ctx.ref, failures, config_key=key)
    failed = check(tenant)
    assert failed.failing == {STALENESS, "search_index.quarantine"}
    # never.md has no serving version; oncall.md failed with the same version that serves.
    assert behind(failed) == {("files/leave.md", "failed")}


def test_deletions_that_wait_for_a_person_are_a_warning(make_tenant: MakeTenant) -> None:
    tenant = make_tenant("held", files={f"{n}.md": f"# {n}\n\nNumber {n}.\n" for n in range(24)})
    for n in range(22):
        (tenant.folder / f"{n}.md").unlink()
    notice_changes(tenant)
    outcome = check(tenant)
    assert outcome.failing == {STALENESS, "raw_documents.deletions"}
    assert {outcome.checks[name].severity for name in outcome.failing} == {"WARN"}
    reason = "22 of 24 documents disappeared at once"
    assert behind(outcome) == {(f"files: 22 deletions, {reason}", "held")}
