"""What to do about a document that failed: one sentence, the same wherever it is shown."""

from __future__ import annotations

from rag_assets.catalog.document_rows import Document


def what_to_do(document: Document) -> str:
    """What somebody can do about a quarantined document.

    Args:
        document: of any standing; nothing is to be done about one that did not fail.
    """
    if document.status != "FAILED":
        return ""
    if document.retry_at is not None:
        return f"tried again by itself after {document.retry_at:%Y-%m-%d %H:%M} UTC, or by a sync"
    if document.content_sha256 is None:
        return "make the file readable, or raise max_bytes; every listing looks at it again"
    return "mend, replace or exclude the file; it is tried again as soon as it changes"
