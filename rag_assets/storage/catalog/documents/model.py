"""Documents as listings report them and as the catalog stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.failure_kinds import FailureKind
from rag_assets.common.hashing import compute_key
from rag_assets.common.times import stamp
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.storage.catalog.database import TenantRef, read_row
from rag_assets.storage.catalog.documents.status import (
    NO_FAILURE,
    TRANSITIONS,
    Status,
    build_numbered_key,
)
from rag_assets.storage.catalog.installation.clock import select_time_to_record
from rag_assets.storage.catalog.tables import documents

LARGE_BYTES = 128 * 1024
"""Larger documents are not processed before others: they may take longer than a slice."""


@dataclass(frozen=True, slots=True)
class _ListedDocument:
    """The fields of a document that a listing writes, as its source provides them.

    Attributes:
        facts: the listing facts; each of their fields is also a column of `documents`.
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
    error_kind: FailureKind | None = None
    source_id: str | None = None
    page_uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange(_ListedDocument):
    """A document that a listing found to be new, changed or touched."""

    error: str | None = None

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
        return compute_key(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(_ListedDocument):
    """One row of `documents`.

    Attributes:
        lane: 0 for an individual change, 1 for a bulk import.
    """

    title: str | None
    document_key: str
    status: Status
    error_message: str | None
    attempts: int
    retry_at: datetime | None
    chunk_count: int
    dropped_count: int
    changed_at: datetime
    updated_at: datetime
    reindex_requests: int = 0
    lane: int = 0

    @property
    def urgency(self) -> int:
        """Return the document's rank in the processing order; see the function urgency."""
        if self.lane:
            return 2
        is_changed = self.status == "PROCESSING" and self.facts.size <= LARGE_BYTES
        return 0 if is_changed else 1


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
class Failure:
    """Why a document is quarantined or deferred.

    Attributes:
        message: the reason, for operators.
        retry_at: when to try again; None if the failure is permanent.
        environment: key of the environment whose settings cause the failure; empty for other
            reasons.
    """

    document_id: str
    document_key: str
    message: str
    kind: FailureKind
    retry_at: datetime | None = None
    environment: str = ""


_FACTS = tuple(each.name for each in fields(ListingFacts))
_LISTED = tuple(each.name for each in fields(_ListedDocument) if each.name != "facts")
_IDENTITY = frozenset({"document_id", "source", "source_type"})


def list_facts_columns() -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of `documents` that read_facts reads."""
    return tuple(documents.c[name] for name in _FACTS)


def read_facts(row: Any) -> ListingFacts:
    """Return the listing facts in a row of `documents`."""
    return read_row(ListingFacts, row, inode=int(row.inode))


def read_document(row: sa.Row[Any]) -> Document:
    """Return the document in a row with all columns of `documents`."""
    return read_row(
        Document, row, facts=read_facts(row), tags=tuple(row.tags), reindex_requests=row.edition
    )


def build_row(ref: TenantRef, change: DocumentChange, lane: int) -> dict[str, Any]:
    """Return the row of `documents` for a change: PROCESSING, or FAILED if it is unreadable."""
    key = change.document_key
    return {
        "tenant": ref.id,
        **{name: getattr(change, name) for name in _LISTED},
        **{name: getattr(change.facts, name) for name in _FACTS},
        "tags": list(change.tags),
        "metadata": dict(change.metadata),
        "document_key": key,
        "lane": lane,
        "status": TRANSITIONS["unreadable" if change.error else "listed"].to,
        **NO_FAILURE,
        "error_message": change.error,
        "error_kind": change.error_kind,
        # "*" matches every configuration: no setting makes an unreadable document readable.
        "failed_document_key": key if change.error else None,
        "failed_config_key": "*" if change.error else None,
    }


def build_document_upsert() -> Insert:
    """Return the upsert of rows of build_row(); the status of a row with an unchanged key stays."""
    table = documents.c
    new = upsert(documents).values(changed_at=select_time_to_record())
    key = build_numbered_key(new.excluded.document_key, table.edition)
    unreadable = new.excluded.failed_document_key.is_not(None)
    fresh = sa.or_(
        *(table.document_key.is_distinct_from(key), table.status == "DELETED"),
        sa.and_(unreadable, table.status == "PROCESSING"),
    )
    progress = {"status", "lane", "changed_at", *NO_FAILURE}
    listed = {*_LISTED, *_FACTS, "updated_at"} - _IDENTITY - progress
    failed_key = sa.case((unreadable, key), else_=None)
    return new.on_conflict_do_update(
        index_elements=["tenant", "document_id"],
        set_={
            **{name: new.excluded[name] for name in sorted(listed)},
            **{
                name: sa.case((fresh, new.excluded[name]), else_=table[name])
                for name in sorted(progress)
            },
            "document_key": key,
            "failed_document_key": sa.case((fresh, failed_key), else_=table.failed_document_key),
        },
    )


def urgency() -> sa.Label[int]:
    """Return the SQL column with a document's rank in the processing order.

    0: a small document with an individual change. 1: another document in the lane of individual
    changes: it is large, failed before, or must be rebuilt. 2: a document of a bulk import.
    """
    table = documents.c
    is_changed = sa.and_(table.status == "PROCESSING", table.size <= LARGE_BYTES)
    return sa.case((table.lane != 0, 2), (is_changed, 0), else_=1).label("urgency")


def list_processing_order() -> tuple[sa.ColumnElement[Any], ...]:
    """Return the SQL columns that sort documents for processing, the most urgent first."""
    return urgency(), documents.c.changed_at, documents.c.document_id
