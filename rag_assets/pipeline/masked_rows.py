"""Mask names and metadata in documents' rows after the credential rules changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.pipeline.listing_report import MaskedNames
from rag_assets.privacy.masker import Masker
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.builds.syncs import Sync
from rag_assets.storage.catalog.documents.model import Document, DocumentChange
from rag_assets.storage.catalog.erasure.rescans import MaskedDocument

_ENCODED = "in another encoding"
"""Replaces the rule's name if a credential is found only in the decoded form of a name."""


def settings_changed(last: Sync | None, settings: str) -> bool:
    """Return whether a source was last listed with different settings or credential rules."""
    digest = None if last is None else last.listing_digest
    return bool(digest) and not str(digest).endswith(settings[:8])


def mask_rows(
    rows: Sequence[Document], masker: Masker, scanner: SecretScanner
) -> tuple[list[MaskedDocument], Mapping[str, int]]:
    """Mask the credentials in documents' rows.

    Args:
        rows: any documents.
        masker: uses the present rules.
        scanner: names the matching rules.

    Returns:
        The rows that change, and how many credentials were found in them, by rule.
    """
    masker.prime(text for row in rows for text in _texts(row))
    found, rules = [], Counter[str]()
    for row in rows:
        change = _masked_change(row, masker)
        title = masker.text(row.title) if row.title else row.title
        if change == change_of(row) and title == row.title:
            continue
        found.append(MaskedDocument(row, change, title))
        texts = dict.fromkeys(text for text in _texts(row) if masker.holds_credential(text))
        spans = [span.rule for text in texts for span in scanner.scan(text)]
        rules.update(spans or [_ENCODED])
    return found, rules


def change_of(row: Document) -> DocumentChange:
    """Return the change by which a listing would have written this row."""
    return DocumentChange(
        document_id=row.document_id,
        source=row.source,
        source_type=row.source_type,
        path=row.path,
        uri=row.uri,
        facts=row.facts,
        listed_at_ns=row.listed_at_ns,
        content_sha256=row.content_sha256,
        modified_at=row.modified_at,
        media_type=row.media_type,
        access_scope=row.access_scope,
        tags=row.tags,
        metadata=row.metadata,
        said_title=row.said_title,
        error=row.error_message if row.content_sha256 is None else None,
        error_kind=row.error_kind if row.content_sha256 is None else None,
        source_id=row.source_id,
        page_uuid=row.page_uuid,
    )


def _texts(row: Document) -> Iterator[str]:
    yield _path(row)
    yield row.uri
    yield from filter(None, (row.title, row.said_title, *row.tags))
    for name, value in row.metadata.items():
        yield name
        for one in value if isinstance(value, list) else [value]:
            yield f"{name}: {one}"


def _path(row: Document) -> str:
    return row.path.decode("utf-8", "surrogateescape")


def _masked_change(row: Document, masker: Masker) -> DocumentChange:
    """Return the change by which a listing would write this row, masked."""
    metadata = SourceMetadata(title=row.said_title, tags=row.tags, metadata=row.metadata)
    shown = MaskedNames((), masker).source_metadata(metadata)
    return replace(
        change_of(row),
        path=masker.text(_path(row)).encode("utf-8", "surrogateescape"),
        uri=masker.text(row.uri),
        source_type=masker.text(row.source_type),
        said_title=shown.title,
        tags=shown.tags,
        metadata=shown.metadata,
    )
