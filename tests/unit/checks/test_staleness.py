from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rag_assets.checks.staleness import (
    LaggingItem,
    Reason,
    build_verdict,
    find_lagging_at_source,
    find_lagging_in_catalog,
)
from rag_assets.ingest.sources.model import (
    ListedDocument,
    build_uri,
    compute_document_id,
)
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import Status

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def nanoseconds(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000_000


def listed(name: str, changed: datetime = NOW - 9 * HOUR, size: int = 5) -> ListedDocument:
    at = nanoseconds(changed)
    uri = build_uri("files", name)
    id_ = compute_document_id("files", name)
    return ListedDocument("files", name, id_, uri, None, size, at, at, 1)


def row(document: ListedDocument, status: Status = "READY", key: str = "k1") -> Document:
    return Document(
        document_id=document.document_id, source="files", source_type="file",
        path=document.path.encode(), uri=document.uri, title=None, media_type=None,
        facts=document.facts, listed_at_ns=0, content_sha256="c", modified_at=NOW - 9 * HOUR,
        access_scope="public", tags=(), metadata={}, document_key=key, status=status,
        error_message=None, attempts=0, retry_at=None, chunk_count=1, dropped_count=0,
        changed_at=NOW - 2 * HOUR, updated_at=NOW,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "served", "reason"),
    [
        ("READY", "k1", None),
        ("READY", None, None),  # being mended: drift's affair
        ("READY", "k0", "waits"),  # ready in the build that is not serving yet
        ("PROCESSING", None, "waits"),
        ("PROCESSING", "k0", "waits"),
        ("FAILED", "k0", "failed"),
        ("FAILED", "k1", None),
        ("FAILED", None, None),
        ("DELETED", "k0", None),
    ],
)
def test_the_catalog_finds_lags(status: Status, served: str | None, reason: Reason | None) -> None:
    document = row(listed("a.md"), status)
    made_from = {} if served is None else {document.document_id: served}
    found = list(find_lagging_in_catalog([document], made_from))
    expected = [LaggingItem("files/a.md", reason, NOW - 2 * HOUR)] if reason else []
    assert found == expected


def test_a_document_in_a_batch_that_its_tenant_chose_is_late_for_certain_never() -> None:
    waiting = replace(row(listed("a.md"), "PROCESSING"), retry_at=NOW + HOUR)
    [found] = find_lagging_in_catalog([waiting], {})
    assert found == LaggingItem("files/a.md", "in a batch", NOW - 2 * HOUR, certain=False)
    verdict = build_verdict([found], 1, HOUR, NOW)
    assert (verdict.passed, verdict.severity) == (False, "WARN")


def at_source(
    now_there: list[ListedDocument],
    rows: list[Document],
    *,
    pruned: set[str] | None = None,
    first: bool = False,
) -> list[LaggingItem]:
    return list(
        find_lagging_at_source(
            now_there, {document.document_id: document for document in rows}, pruned or set(),
            last_listing=NOW - 5 * HOUR, is_first=first, now=NOW,
            build_name=lambda document: f"named {document.path}",
        )
    )  # fmt: skip


def test_a_source_as_it_was_recorded_is_not_behind() -> None:
    assert at_source([listed("a.md")], [row(listed("a.md"))]) == []


def test_added_changed_and_removed_documents_are_behind() -> None:
    known = [row(listed("changed.md")), row(listed("gone.md"))]
    there = [listed("changed.md", NOW - HOUR, size=6), listed("new.md", NOW - 3 * HOUR)]
    assert at_source(there, known) == [
        LaggingItem("files/changed.md", "changed", NOW - HOUR),
        LaggingItem("named new.md", "added", NOW - 3 * HOUR),
        LaggingItem("files/gone.md", "removed", NOW - 5 * HOUR, certain=False),
    ]


@pytest.mark.parametrize(
    ("ctime", "since"),
    [
        (NOW - 9 * HOUR, NOW - 5 * HOUR),  # it cannot have been there when it was last listed
        (NOW - HOUR, NOW - HOUR),
        (NOW + HOUR, NOW),  # the file server's clock goes ahead
    ],
)
def test_a_change_lies_between_the_last_listing_and_now(ctime: datetime, since: datetime) -> None:
    [found] = at_source([listed("new.md", ctime)], [])
    assert found.since == since


def test_a_source_never_listed_may_have_waited_for_any_time() -> None:
    [found] = at_source([listed("new.md")], [], first=True)
    assert not found.certain


def test_a_document_that_came_back_is_behind_but_one_that_was_pruned_is_not() -> None:
    document = listed("a.md")
    deleted = row(document, "DELETED")
    assert [b.reason for b in at_source([document], [deleted])] == ["added"]
    assert at_source([document], [deleted], pruned={document.document_id}) == []
    assert at_source([document], [], pruned={document.document_id}) == []
    newer = at_source([listed("a.md", NOW, size=9)], [deleted], pruned={document.document_id})
    assert [b.reason for b in newer] == ["added"]
    assert at_source([], [deleted]) == []


@pytest.mark.parametrize(
    ("behind", "passed", "severity"),
    [
        ([], True, "WARN"),
        ([LaggingItem("a", "changed", NOW - HOUR)], True, "WARN"),
        ([LaggingItem("a", "changed", NOW - HOUR - timedelta(seconds=1))], False, "ERROR"),
        ([LaggingItem("a", "removed", NOW - 2 * HOUR, certain=False)], False, "WARN"),
        ([LaggingItem("a", "held", NOW, certain=False)], False, "WARN"),
        ([LaggingItem("a", "removed", NOW - 9 * HOUR, certain=False),
          LaggingItem("b", "waits", NOW)], False, "WARN"),
    ],
)  # fmt: skip
def test_a_sure_delay_is_an_error(behind: list[LaggingItem], passed: bool, severity: str) -> None:
    verdict = build_verdict(behind, 9, HOUR, NOW)
    assert verdict.passed is passed
    assert passed or verdict.severity == severity
    assert len(verdict.offenders) == len(behind)


def test_the_longest_certain_wait_is_named_first() -> None:
    behind = [
        LaggingItem("a", "removed", NOW - 9 * HOUR, certain=False),
        LaggingItem("b", "waits", NOW - 2 * HOUR),
        LaggingItem("c", "waits", NOW - 3 * HOUR),
    ]
    verdict = build_verdict(behind, 9, HOUR, NOW)
    assert [offender[0] for offender in verdict.offenders] == ["c", "b", "a"]
    assert verdict.offenders[0][3] == "180"
    assert verdict.compared[0].actual == 540
