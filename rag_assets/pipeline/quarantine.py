"""Notes on quarantined and incomplete documents, and the remedy for each."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.storage.catalog.document_rows import NEVER, Document


@dataclass(frozen=True, slots=True)
class DocumentNote:
    """A note on one document: why it failed, or what was left out of it.

    Attributes:
        uri: its printable name.
        text: one line, with no secret and none of its text.
    """

    document_id: str
    uri: str
    text: str


def remedy_of(document: Document) -> str:
    """The remedy for a quarantined document; empty for any other.

    Args:
        document: in any status.
    """
    if document.status != "FAILED":
        return ""
    if document.retry_at == NEVER:
        return "tried again by the next `rag-assets sync`, once what its reason names is settled"
    if document.retry_at is not None:
        return f"tried again by itself after {document.retry_at:%Y-%m-%d %H:%M} UTC, or by a sync"
    if document.content_sha256 is None:
        return "make the file readable, or raise max_bytes; every listing checks it again"
    return (
        "repair, replace or exclude the file, or change the tenant's settings; "
        "it is tried again as soon as either changes"
    )
