"""Documents as listings report them and as the catalog stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Label,
    Row,
    Text,
    and_,
    case,
    cast,
    func,
    or_,
)
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.failure_kinds import FailureKind
from rag_assets.common.hashing import key_of
from rag_assets.common.times import stamp
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.status import Status
from rag_assets.storage.catalog.installation.clock import time_to_record
from rag_assets.storage.catalog.tables import documents

LARGE_BYTES = 128 * 1024
"""Larger documents are not processed before others: they may take longer than a slice."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document that a listing found new, changed or touched.

    Attributes:
        modified_at: when its present content was written, according to its source.
        said_title: the title that its source gives.
        source_id, page_uuid: see ListedDocument.
        error: why it could not be read; None if it was read.
        error_kind: the kind of this failure.
    """

    document_id: str
    source: str
    source_type: str
    path: bytes
    uri: str
    facts: ListingFacts
    listed_at_ns: int
    content_sha256: str | None
    modified_at: datetime
    media_type: str | None = None
    access_scope: str = "public"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    said_title: str | None = None
    error: str | None = None
    error_kind: FailureKind | None = None
    source_id: str | None = None
    page_uuid: str | None = None

    @property
    def document_key(self) -> str:
        """Return the hash of everything known about the document before it is parsed."""
        # An unreadable document has no content hash, so its listing facts replace the hash: it is
        # retried when, and only when, these facts change.
        facts = self.facts
        content = self.content_sha256 or f"{facts.size}/{facts.mtime_ns}/{facts.identity}"
        # A title is included only if there is one, so that keys of documents without a title do not
        # change.
        title = [] if self.said_title is None else [self.said_title]
        # A document's id never changes, but the page that it is attached to may. The readers of the
        # page may read the document, so moving a page does not change the key, and no entries are
        # written again.
        page = [] if self.page_uuid is None else [["page", self.page_uuid]]
        scope = self.access_scope if self.page_uuid is None else None
        return key_of(
            "document",
            content,
            stamp(self.modified_at),
            self.media_type,
            self.uri,
            scope,
            list(self.tags),
            dict(self.metadata),
            *title,
            *page,
        )


@dataclass(frozen=True, slots=True)
class CatalogDocument:
    """The columns of a document's row that are compared with a listing."""

    document_id: str
    uri: str
    facts: ListingFacts
    listed_at_ns: int
    content_sha256: str | None
    modified_at: datetime
    access_scope: str
    status: Status
    error_message: str | None
    page_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One row of `documents`.

    Attributes:
        said_title: the title that its source gives; None: the title is read from its content.
        source_id, page_uuid: see ListedDocument.
        reindex_requests: the number of reindex requests for it.
        lane: 0 for an individual change, 1 for a bulk import.
    """

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
    modified_at: datetime
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
    said_title: str | None = None
    reindex_requests: int = 0
    error_kind: FailureKind | None = None
    source_id: str | None = None
    page_uuid: str | None = None
    lane: int = 0

    @property
    def urgency(self) -> int:
        """Return its rank in the processing order; see the function urgency."""
        if self.lane:
            return 2
        is_changed = self.status == "PROCESSING" and self.facts.size <= LARGE_BYTES
        return 0 if is_changed else 1


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a quarantined or deferred document; with a retry_at, the failure is transient.

    Attributes:
        message: for operators.
        kind: for the people of the tenant.
        environment: key of the environment whose settings cause the failure; empty for other
            reasons.
    """

    document_id: str
    document_key: str
    message: str
    kind: FailureKind
    retry_at: datetime | None = None
    environment: str = ""


def row_of(ref: TenantRef, change: DocumentChange, lane: int) -> dict[str, Any]:
    """Return the columns that a change sets: status PROCESSING, or FAILED if it is unreadable."""
    key = change.document_key
    return {
        "tenant": ref.id,
        "document_id": change.document_id,
        "source": change.source,
        "source_type": change.source_type,
        "source_id": change.source_id,
        "page_uuid": change.page_uuid,
        "path": change.path,
        "uri": change.uri,
        "media_type": change.media_type,
        "size": change.facts.size,
        "mtime_ns": change.facts.mtime_ns,
        "ctime_ns": change.facts.ctime_ns,
        "inode": change.facts.inode,
        "revision": change.facts.revision,
        "version": change.facts.version,
        "listed_at_ns": change.listed_at_ns,
        "content_sha256": change.content_sha256,
        "modified_at": change.modified_at,
        "access_scope": change.access_scope,
        "tags": list(change.tags),
        "metadata": dict(change.metadata),
        "said_title": change.said_title,
        "document_key": key,
        "lane": lane,
        "status": "FAILED" if change.error else "PROCESSING",
        "error_message": change.error,
        "error_kind": change.error_kind,
        # "*" matches every configuration: no setting makes an unreadable document readable.
        "failed_document_key": key if change.error else None,
        "failed_config_key": "*" if change.error else None,
        "attempts": 0,
        "retry_at": None,
    }


def record_statement() -> Insert:
    """Return the statement that writes `row_of` rows; if the key is the same, the status stays."""
    table = documents.c
    new = upsert(documents).values(changed_at=time_to_record())
    key = numbered_key(new.excluded.document_key, table.edition)
    unreadable = new.excluded.failed_document_key.is_not(None)
    fresh = or_(
        *(table.document_key.is_distinct_from(key), table.status == "DELETED"),
        and_(unreadable, table.status == "PROCESSING"),
    )
    listed = {
        name: new.excluded[name]
        for name in (
            *("size", "mtime_ns", "ctime_ns", "inode", "revision", "version"),
            "listed_at_ns",
            *("path", "uri", "media_type", "content_sha256", "modified_at"),
            *("said_title", "access_scope", "tags", "metadata", "updated_at"),
            *("source_id", "page_uuid"),
        )
    }
    progress = {
        name: case((fresh, new.excluded[name]), else_=table[name])
        for name in (
            *("status", "lane", "changed_at", "attempts", "retry_at", "error_message"),
            *("error_kind", "failed_config_key"),
        )
    }
    failed = case((unreadable, key), else_=None)
    keys = {
        "document_key": key,
        "failed_document_key": case((fresh, failed), else_=table.failed_document_key),
    }
    return new.on_conflict_do_update(
        index_elements=["tenant", "document_id"], set_={**listed, **progress, **keys}
    )


def numbered_key(
    document_key: ColumnElement[str], requests: ColumnElement[int]
) -> ColumnElement[str]:
    """Return a document_key that changes with each request to reindex the document."""
    plain = func.split_part(document_key, ".", 1)
    return case((requests > 0, plain.concat(".").concat(cast(requests, Text))), else_=plain)


def urgency() -> Label[int]:
    """Return the rank in the processing order, as a column.

    0: a small document with an individual change. 1: another document in the lane of individual
    changes: it is large, failed before, or must be rebuilt. 2: a document of a bulk import.
    """
    table = documents.c
    is_changed = and_(table.status == "PROCESSING", table.size <= LARGE_BYTES)
    return case((table.lane != 0, 2), (is_changed, 0), else_=1).label("urgency")


def processing_order() -> tuple[ColumnElement[Any], ...]:
    """Return the columns that sort documents for processing, the most urgent first."""
    return urgency(), documents.c.changed_at, documents.c.document_id


def document_of(row: Row[Any]) -> Document:
    """Return the document in a row with all columns of `documents`."""
    return Document(
        document_id=row.document_id,
        source=row.source,
        source_type=row.source_type,
        path=row.path,
        uri=row.uri,
        title=row.title,
        media_type=row.media_type,
        facts=ListingFacts(
            row.size, row.mtime_ns, row.ctime_ns, int(row.inode), row.revision, row.version
        ),
        listed_at_ns=row.listed_at_ns,
        content_sha256=row.content_sha256,
        modified_at=row.modified_at,
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
        said_title=row.said_title,
        reindex_requests=row.edition,
        error_kind=row.error_kind,
        source_id=row.source_id,
        page_uuid=row.page_uuid,
        lane=row.lane,
    )
