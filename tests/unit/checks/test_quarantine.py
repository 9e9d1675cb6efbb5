from datetime import UTC, datetime

from rag_assets.checks.quarantine import build_verdict
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.storage.catalog.documents.model import Document

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def failed(uri: str, *, read: bool = True, retry_at: datetime | None = None) -> Document:
    return Document(
        document_id=uri, source="files", source_type="file", path=b"", uri=uri, title=None,
        media_type=None, facts=ListingFacts(0, 0, 0, 0), listed_at_ns=0,
        content_sha256="0" if read else None, modified_at=NOW, access_scope="public", tags=(),
        metadata={}, document_key="", status="FAILED", error_message="it is empty", attempts=1,
        retry_at=retry_at, chunk_count=0, dropped_count=0, changed_at=NOW, updated_at=NOW,
    )  # fmt: skip


def test_a_document_in_quarantine_is_a_warning_with_its_row() -> None:
    verdict = build_verdict("team", [failed("files/a.md"), failed("files/b.md")], 2, 9)
    assert (verdict.passed, verdict.severity) == (False, "WARN")
    assert verdict.offenders == (("files/a.md", "it is empty"), ("files/b.md", "it is empty"))
    assert verdict.description.startswith("files/a.md: it is empty, and 1 more; repair, replace")
    assert verdict.notes["rows"] == "/documents/team?status=FAILED"


def test_what_is_to_be_done_depends_on_what_failed() -> None:
    unread = build_verdict("team", [failed("files/a.md", read=False)], 1, 9).description
    assert "make the file readable" in unread
    outage = build_verdict("team", [failed("files/a.md", retry_at=NOW)], 1, 9).description
    assert "retried automatically after 2026-01-01 00:00 UTC" in outage


def test_without_failures_it_passes() -> None:
    verdict = build_verdict("team", [], 0, 9)
    assert verdict.passed
    assert verdict.description == "no document in quarantine, of 9 documents"
