"""Records as applications push them, and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from rag_assets.common.hashing import key_of, sha256_hex
from rag_assets.common.times import stamp
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.ingest.sources.records import record_document_id
from rag_assets.storage.catalog.database import TenantRef

METADATA_FIELDS = ("title", "uri", "access_scope", "tags", "metadata")


@dataclass(frozen=True)
class PushedRecord:
    """A record as an application pushes it.

    Attributes:
        source: name of the source that it belongs to.
        source_type: the application's kind of record, such as page or comment.
        source_id: its id among records of that kind.
        media_type: the format of its text.
        page_uuid: the page or database that it is attached to.
        resolved_at: for a comment, when it was resolved.
    """

    source: str
    source_type: str
    source_id: str
    text: str
    media_type: str
    source_metadata: SourceMetadata
    page_uuid: str | None = None
    resolved_at: datetime | None = None

    @cached_property
    def document_id(self) -> str:
        """Return the id of the record's document."""
        return record_document_id(self.source, self.source_type, self.source_id)

    @cached_property
    def content_sha256(self) -> str:
        """Return the hash of its text."""
        return sha256_hex(self.text)

    @cached_property
    def key(self) -> str:
        """Return the hash of the record's text and metadata, without its time of modification."""
        metadata = self.source_metadata
        # Only if there are any: the keys of other records must not change.
        resolved = None if self.resolved_at is None else stamp(self.resolved_at)
        placed = [["of", self.page_uuid, resolved]] if self.page_uuid or resolved else []
        return key_of(
            *("record", self.content_sha256, self.media_type),
            *(metadata.title, metadata.uri, metadata.access_scope),
            *(list(metadata.tags), dict(metadata.metadata)),
            *placed,
        )


def record_values(ref: TenantRef, record: PushedRecord) -> dict[str, Any]:
    """Return the row of a record, without its revision and the time of its change."""
    metadata = record.source_metadata
    return {
        "tenant": ref.id,
        "source": record.source,
        "source_type": record.source_type,
        "source_id": record.source_id,
        "document_id": record.document_id,
        "record_key": record.key,
        "text": record.text,
        "media_type": record.media_type,
        "size": len(record.text.encode()),
        "content_sha256": record.content_sha256,
        "said": {name: value for name in METADATA_FIELDS if (value := getattr(metadata, name))},
        "modified_at": metadata.modified_at,
        "page_uuid": record.page_uuid,
        "resolved_at": record.resolved_at,
    }
