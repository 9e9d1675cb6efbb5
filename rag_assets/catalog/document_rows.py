"""A document as a listing reports it, as the catalog keeps it, and between the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Row

from rag_assets.catalog.database import TenantRef
from rag_assets.hashing import key_of
from rag_assets.sources.model import ListingFacts

Status = Literal["PROCESSING", "READY", "FAILED", "DELETED"]

NEVER = datetime(9999, 12, 31, tzinfo=UTC)
"""When a document is tried again that waits for a person: a sync that is asked for tries it."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document that a listing found new, changed or merely touched."""

    document_id: str
    source: str
    source_type: str
    path: bytes
    uri: str
    facts: ListingFacts
    listed_at_ns: int
    content_sha256: str | None
    media_type: str | None = None
    access_scope: str = "public"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    @property
    def document_key(self) -> str:
        """Hash of all that is known of the document before it is parsed."""
        # A document that could not be read has no content hash: its facts stand in, so that it
        # is tried again when, and only when, it changes.
        facts = self.facts
        content = self.content_sha256 or f"{facts.size}/{facts.mtime_ns}/{facts.inode}"
        return key_of(
            "document",
            content,
            self.media_type,
            self.uri,
            self.access_scope,
            list(self.tags),
            dict(self.metadata),
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What a listing is compared with: a row of `documents` without what it need not read."""

    document_id: str
    uri: str
    facts: ListingFacts
    listed_at_ns: int
    content_sha256: str | None
    access_scope: str
    status: Status
    error_message: str | None


@dataclass(frozen=True, slots=True)
class Document:
    """One row of `documents`."""

    document_id: str
    source: str
    source_type: str
    path: bytes
    uri: str
    title: str | None
    media_type: str | None
    facts: ListingFacts
    listed_at_ns: int
    content_sha256: str | None
    access_scope: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    document_key: str
    status: Status
    error_message: str | None
    attempts: int
    retry_at: datetime | None
    chunk_count: int
    dropped_count: int
    changed_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a document is quarantined; with retry_at, the failure may pass."""

    document_id: str
    document_key: str
    message: str
    retry_at: datetime | None = None


def row_of(ref: TenantRef, change: DocumentChange, lane: int) -> dict[str, Any]:
    """The columns that a change sets; it waits to be parsed, unless it could not be read."""
    key = change.document_key
    return {
        "tenant": ref.id,
        "document_id": change.document_id,
        "source": change.source,
        "source_type": change.source_type,
        "path": change.path,
        "uri": change.uri,
        "media_type": change.media_type,
        "size": change.facts.size,
        "mtime_ns": change.facts.mtime_ns,
        "ctime_ns": change.facts.ctime_ns,
        "inode": change.facts.inode,
        "listed_at_ns": change.listed_at_ns,
        "content_sha256": change.content_sha256,
        "access_scope": change.access_scope,
        "tags": list(change.tags),
        "metadata": dict(change.metadata),
        "document_key": key,
        "lane": lane,
        "status": "FAILED" if change.error else "PROCESSING",
        "error_message": change.error,
        # No configuration makes an unreadable document readable: "*" stands for all of them.
        "failed_document_key": key if change.error else None,
        "failed_config_key": "*" if change.error else None,
        "attempts": 0,
        "retry_at": None,
    }


def document_of(row: Row[Any]) -> Document:
    """A row of `documents` as it was read."""
    return Document(
        document_id=row.document_id,
        source=row.source,
        source_type=row.source_type,
        path=row.path,
        uri=row.uri,
        title=row.title,
        media_type=row.media_type,
        facts=ListingFacts(row.size, row.mtime_ns, row.ctime_ns, int(row.inode)),
        listed_at_ns=row.listed_at_ns,
        content_sha256=row.content_sha256,
        access_scope=row.access_scope,
        tags=tuple(row.tags),
        metadata=row.metadata,
        document_key=row.document_key,
        status=row.status,
        error_message=row.error_message,
        attempts=row.attempts,
        retry_at=row.retry_at,
        chunk_count=row.chunk_count,
        dropped_count=row.dropped_count,
        changed_at=row.changed_at,
        updated_at=row.updated_at,
    )
