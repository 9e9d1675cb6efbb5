"""Notes on quarantined and incomplete documents, and the remedy for each."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import NEVER


@dataclass(frozen=True, slots=True)
class DocumentNote:
    """A note on one document: why it failed, or which part of it was left out.

    Attributes:
        uri: the document's printable name.
        text: one line without credentials and without text of the document.
    """

    document_id: str
    uri: str
    text: str


def remedy_of(document: Document) -> str:
    """Return the remedy for a quarantined document; empty for any other document."""
    if document.status != "FAILED":
        return ""
    if document.retry_at == NEVER:
        return (
            "remove the cause that the reason states; the document is tried again by the next"
            " `rag-assets sync`, and after `rag-assets up` with changed settings"
        )
    if document.retry_at is not None:
        return f"retried automatically after {document.retry_at:%Y-%m-%d %H:%M} UTC, or by a sync"
    if document.content_sha256 is None:
        return "make the file readable, or raise max_bytes; every listing checks it again"
    return (
        "repair, replace or exclude the file, or change the tenant's settings; "
        "the document is tried again as soon as the file or a setting changes"
    )
