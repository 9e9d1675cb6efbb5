"""Pushed records: their fields, planned changes, whether they are listed, and how long they wait.

A record waits from its first unlisted push, no matter how often it was pushed since. When it is
listed, its document waits instead: a trigger on `documents` keeps the start of the wait, whatever
is written to the row in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.common.times import stamp
from rag_assets.ingest.parsing.media_types import TYPED_RECORD
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.storage.catalog.database import TenantRef, is_of_documents, matches_document
from rag_assets.storage.catalog.installation.clock import select_latest_trusted_time
from rag_assets.storage.catalog.tables import documents, source_records, tenants
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.tenants.application_settings import SECTION

METADATA_FIELDS = ("title", "uri", "access_scope", "tags", "metadata")


@dataclass(frozen=True)
class PushedRecord:
    """A record as an application pushes it.

    Attributes:
        source_type: the application's kind of record, such as page or comment.
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
        return compute_record_document_id(self.source, self.source_type, self.source_id)

    @cached_property
    def content_sha256(self) -> str:
        """Return the hash of its text."""
        return sha256_hex(self.text)

    @cached_property
    def key(self) -> str:
        """Return the hash of the record's text and metadata, without its modification time."""
        metadata = self.source_metadata
        # Only if there are any: the keys of other records must not change.
        resolved = None if self.resolved_at is None else stamp(self.resolved_at)
        placed = [["of", self.page_uuid, resolved]] if self.page_uuid or resolved else []
        return compute_key(
            *("record", self.content_sha256, self.media_type),
            *(metadata.title, metadata.uri, metadata.access_scope),
            *(list(metadata.tags), dict(metadata.metadata)),
            *placed,
        )


def build_record_row(ref: TenantRef, record: PushedRecord) -> dict[str, Any]:
    """Return the row of a record, except for its revision and the time of its change."""
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


@dataclass(frozen=True, slots=True)
class WriteClock:
    """The time of a write according to its application; it orders the writes of one record."""

    updated_at: datetime | None = None
    version: int | None = None

    def is_before(self, other: WriteClock) -> bool:
        """Return whether this write is older than another one, by version or else by time.

        False if the writes cannot be compared: they neither both have a version nor both have a
        time.
        """
        if self.version is not None and other.version is not None:
            return self.version < other.version
        if self.updated_at is None or other.updated_at is None:
            return False
        return self.updated_at < other.updated_at

    def merge(self, other: WriteClock) -> WriteClock:
        """Return a clock with the latest time and the highest version of two writes."""
        times = [at for at in (self.updated_at, other.updated_at) if at is not None]
        versions = [number for number in (self.version, other.version) if number is not None]
        return WriteClock(max(times, default=None), max(versions, default=None))


UNORDERED: Final = WriteClock()
"""A write without a time and a version: it never counts as older than another."""


@dataclass(frozen=True, slots=True)
class RecordPut:
    """A record to store.

    Attributes:
        scope: its access scope, given by the record itself, its source or the tenant; None: its
            page's scope.
        lane: 0 if a person waits for it, 1 for bulk writes.
    """

    record: PushedRecord
    scope: str | None
    lane: int = 0
    secret_blocks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RecordChanges:
    """The changes that one write makes to records and pages.

    Attributes:
        pages: uuids of pages to delete. Documents attached to them are deleted, too, unless they
            are in `puts`.
        pages_deleted_at: the earliest time at which one of these pages was deleted.
        clocks: the time of the latest write to each record, by document and part; see
            `record_clocks`.
    """

    puts: Sequence[RecordPut] = ()
    removals: Collection[str] = ()
    pages: Collection[str] = ()
    pages_deleted_at: datetime | None = None
    clocks: Mapping[str, dict[str, WriteClock]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The stored state from which a plan computes the changes of records.

    Attributes:
        standing: pages that the plan must not delete, because they still have another record; their
            documents stay.
        etags: ETags of the records to which conditional writes refer, by document.
    """

    records: Mapping[str, PushedRecord]
    below: Mapping[str, Collection[str]]
    standing: Collection[str] = ()
    clocks: Mapping[str, dict[str, WriteClock]] = field(default_factory=dict)
    etags: Mapping[str, str] = field(default_factory=dict)


RecordPlan: TypeAlias = Callable[[CurrentState], RecordChanges]
"""Computes the changes of records and pages from the current state."""


RESOLVED_DAYS = 30
"""Days for which a resolved comment can be found, unless the tenant sets another number."""


def is_found() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a record is listed: not expired, and its content exists."""
    columns = source_records.c
    content = uploads.alias("content")
    has_content = sa.exists().where(matches_document(content.c, columns))
    is_whole = sa.or_(
        columns.media_type != TYPED_RECORD, columns.source_type != "file", has_content
    )
    return sa.and_(sa.or_(columns.resolved_at.is_(None), ~is_expired()), is_whole)


def is_expired() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a record is a comment resolved too long ago to be found."""
    return sa.and_(
        source_records.c.resolved_at.is_not(None),
        build_expiry_time() < select_latest_trusted_time(),
    )


def build_expiry_time() -> sa.ColumnElement[datetime]:
    """Return the SQL time from which a resolved comment can no longer be found; null: never."""
    columns = source_records.c
    set_days = tenants.c.config[(SECTION, "resolved_comment_days")].astext
    days = (
        sa.select(sa.func.coalesce(sa.cast(set_days, sa.Integer), RESOLVED_DAYS))
        .where(tenants.c.id == columns.tenant)
        .scalar_subquery()
    )
    return columns.resolved_at + days * sa.literal(timedelta(days=1))


def find_wait_starts(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, datetime]:
    """Return, by document, the start of the wait of records whose current version is not listed."""
    record, row = source_records.c, documents.c
    living = sa.exists().where(matches_document(row, record), row.status != "DELETED")
    listed = sa.exists().where(
        matches_document(row, record), row.status != "DELETED", row.revision == record.revision
    )
    query = sa.select(record.document_id, record.waiting_since).where(
        is_of_documents(record, ref.id, document_ids),
        ~listed,
        # A record that is left out and not indexed does not wait.
        sa.or_(is_found(), living),
    )
    return {row.document_id: row.waiting_since for row in connection.execute(query)}


def find_waiting_lanes(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, int]:
    """Return the lane of each record whose current version is not indexed yet, by document."""
    record = source_records.c
    query = sa.select(record.document_id, record.lane).where(
        is_of_documents(record, ref.id, document_ids), ~_is_settled()
    )
    return {row.document_id: row.lane for row in connection.execute(query)}


def prioritize_waiting(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> None:
    """Give the waiting records among these records priority over bulk pushes."""
    if not document_ids:
        return
    record, row = source_records.c, documents.c
    waiting = connection.scalars(
        sa.update(source_records)
        .where(is_of_documents(record, ref.id, document_ids), record.lane != 0)
        .where(~_is_settled())
        .values(lane=0)
        .returning(record.document_id)
    ).all()
    if waiting:
        listed = is_of_documents(row, ref.id, waiting)
        connection.execute(
            sa.update(documents).where(listed, row.status == "PROCESSING").values(lane=0)
        )


def _is_settled() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a record's current version was listed and processed."""
    record, row = source_records.c, documents.c
    return sa.exists().where(
        matches_document(row, record),
        row.revision == record.revision,
        row.status.not_in(("PROCESSING", "DELETED")),
    )


def restart_waits(connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]) -> None:
    """Restart the wait of records that were pushed again during a listing, from the last push."""
    record, row = source_records.c, documents.c
    connection.execute(
        sa.update(source_records)
        .where(
            is_of_documents(record, ref.id, document_ids),
            matches_document(row, record),
            row.revision != record.revision,
        )
        .values(waiting_since=record.changed_at)
    )


def start_waits_of_comments(
    connection: sa.Connection, tenant_id: str, former: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    """Start the wait of resolved comments that enter or leave listings with a new configuration.

    Listings contain a resolved comment for the configured number of days.
    """
    before, after = _read_resolved_days(former), _read_resolved_days(config)
    if before == after:
        return
    record = source_records.c
    was_out, is_out = (
        record.resolved_at + days < select_latest_trusted_time() for days in (before, after)
    )
    connection.execute(
        sa.update(source_records)
        .where(record.tenant == tenant_id, record.resolved_at.is_not(None), was_out != is_out)
        .values(waiting_since=sa.func.clock_timestamp())
    )


def _read_resolved_days(config: Mapping[str, Any]) -> timedelta:
    days = config.get(SECTION, {}).get("resolved_comment_days")
    return timedelta(days=RESOLVED_DAYS if days is None else days)
