"""Records that applications push, stored until they are removed.

A record gets a new revision with every change, so that a listing need not read texts and a running
sync can tell whether a record that it listed is still current.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Update, case, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.hashing import key_of, sha256_hex
from rag_assets.common.times import FIRST_DAY, LAST_DAY
from rag_assets.ingest.sources.model import SourceMetadata, StoredRecord
from rag_assets.ingest.sources.records import record_document_id
from rag_assets.storage.catalog.access import PUBLIC
from rag_assets.storage.catalog.changes import notify
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.removals import delete_record, withdraw_document
from rag_assets.storage.catalog.tables import (
    documents,
    record_revisions,
    source_records,
    tombstones,
)

_BATCH = 2_000
_IDENTITY = frozenset({"tenant", "source", "source_type", "source_id"})
_METADATA_FIELDS = ("title", "uri", "access_scope", "tags", "metadata")


@dataclass(frozen=True, slots=True)
class PushedRecord:
    """A record as an application pushes it.

    Attributes:
        source: name of the source that it belongs to.
        source_type: the application's kind of record, such as page or comment.
        source_id: its id among records of that kind.
        media_type: the format of its text.
    """

    source: str
    source_type: str
    source_id: str
    text: str
    media_type: str
    source_metadata: SourceMetadata

    @property
    def document_id(self) -> str:
        """The id of the record's document."""
        return record_document_id(self.source, self.source_type, self.source_id)

    @property
    def key(self) -> str:
        """Hash of the record's text and metadata, without its time of modification."""
        metadata = self.source_metadata
        return key_of(
            *("record", sha256_hex(self.text), self.media_type),
            *(metadata.title, metadata.uri, metadata.access_scope),
            *(list(metadata.tags), dict(metadata.metadata)),
        )


class RecordTable:
    """Queries on `source_records`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, ref: TenantRef, record: PushedRecord, *, scope: str) -> bool:
        """Store a record; returns whether it is new or changed.

        A new access scope applies at once to the record's former version, too. Nothing is kept of a
        record that was pruned and is pushed again as it was.

        Args:
            ref: the tenant.
            record: as it was pushed.
            scope: its access scope, given by the record itself, its source or the tenant.

        Raises:
            TenantGone: the tenant was removed.
        """
        row = {
            **record_values(ref, record),
            "revision": record_revisions.next_value(),
            "changed_at": func.clock_timestamp(),
        }
        statement = (
            upsert(source_records)
            .values(**row)
            .on_conflict_do_update(
                index_elements=["tenant", "source", "source_type", "source_id"],
                set_={name: value for name, value in row.items() if name not in _IDENTITY},
                where=source_records.c.record_key != record.key,
            )
            .returning(source_records.c.revision)
        )
        with self._database.begin_exclusive(ref) as connection:
            if _is_pruned(connection, ref, record.document_id, str(row["content_sha256"])):
                return delete_record(connection, ref, record.document_id)
            changed = connection.scalar(statement) is not None
            if changed and scope != PUBLIC:
                connection.execute(_change_scope_statement(ref, record, scope))
            if changed:
                notify(connection, ref.id)
        return changed

    def remove(self, ref: TenantRef, document_id: str, by: str) -> bool:
        """Delete a record; searches no longer return its document.

        Args:
            ref: the tenant.
            document_id: of the record's document.
            by: the caller's name, for the event.

        Returns:
            whether the record existed.
        """
        with self._database.begin_exclusive(ref) as connection:
            found = delete_record(connection, ref, document_id)
            withdraw_document(connection, ref, document_id, by)
            notify(connection, ref.id)
        return found

    def of(self, tenant_id: str) -> TenantRecords:
        """The records of one tenant, for its sources."""
        return TenantRecords(self._database, tenant_id)


@dataclass(frozen=True, slots=True)
class TenantRecords:
    """The records of one tenant (see RecordStore)."""

    database: Database
    tenant_id: str

    def listed(self, source: str) -> Iterator[StoredRecord]:
        """Stream every record of one source, without the texts."""
        columns = source_records.c
        # A time outside Python's range would make the whole listing fail.
        clamped = func.least(func.greatest(columns.modified_at, FIRST_DAY), LAST_DAY)
        modified_at = case((columns.modified_at.is_not(None), clamped))
        query = select(
            *(columns.source_type, columns.source_id, columns.document_id, columns.revision),
            *(columns.size, columns.media_type, columns.content_sha256, columns.said),
            *(modified_at.label("modified_at"), columns.changed_at),
        ).where(columns.tenant == self.tenant_id, columns.source == source)
        with self.database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH).execute(query)
            for row in rows:
                yield StoredRecord(
                    source_type=row.source_type,
                    source_id=row.source_id,
                    document_id=row.document_id,
                    revision=row.revision,
                    size=row.size,
                    changed_ns=int(row.changed_at.timestamp() * 1e6) * 1_000,
                    media_type=row.media_type,
                    content_sha256=row.content_sha256,
                    source_metadata=_source_metadata(row.said, row.modified_at),
                )

    def state(self, source: str) -> str:
        """The newest revision and the number of records: a revision is never used again."""
        columns = source_records.c
        query = select(func.max(columns.revision), func.count()).where(
            columns.tenant == self.tenant_id, columns.source == source
        )
        with self.database.begin() as connection:
            newest, count = connection.execute(query).one()
        return f"{newest or 0:x}-{count:x}"

    def text(self, source: str, document_id: str) -> str | None:
        """The text of one record; None if the record no longer exists."""
        columns = source_records.c
        query = select(columns.text).where(
            columns.tenant == self.tenant_id,
            columns.source == source,
            columns.document_id == document_id,
        )
        with self.database.begin() as connection:
            text: str | None = connection.scalar(query)
        return text


def record_values(ref: TenantRef, record: PushedRecord) -> dict[str, Any]:
    """The row of a record, but for its revision and the time of its change."""
    data = record.text.encode()
    return {
        "tenant": ref.id,
        "source": record.source,
        "source_type": record.source_type,
        "source_id": record.source_id,
        "document_id": record.document_id,
        "record_key": record.key,
        "text": record.text,
        "media_type": record.media_type,
        "size": len(data),
        "content_sha256": sha256_hex(data),
        "said": _as_json(record.source_metadata),
        "modified_at": record.source_metadata.modified_at,
    }


def _is_pruned(
    connection: Connection, ref: TenantRef, document_id: str, content_sha256: str
) -> bool:
    """Whether a document was pruned with this content, and is not back with another."""
    living = exists().where(
        documents.c.tenant == tombstones.c.tenant,
        documents.c.document_id == tombstones.c.document_id,
        documents.c.status != "DELETED",
    )
    query = select(tombstones.c.document_id).where(
        tombstones.c.tenant == ref.id,
        tombstones.c.document_id == document_id,
        tombstones.c.content_sha256 == content_sha256,
        ~living,
    )
    return connection.execute(query).first() is not None


def _change_scope_statement(ref: TenantRef, record: PushedRecord, scope: str) -> Update:
    """The statement that gives a record's document another access scope."""
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            documents.c.document_id == record.document_id,
            documents.c.access_scope != scope,
        )
        # No listing produces this key, so the next listing finds the document changed.
        .values(access_scope=scope, document_key=key_of("moved", record.key))
    )


def _as_json(metadata: SourceMetadata) -> dict[str, Any]:
    return {name: value for name in _METADATA_FIELDS if (value := getattr(metadata, name))}


def _source_metadata(fields: dict[str, Any], modified_at: datetime | None) -> SourceMetadata:
    tags = tuple(fields.pop("tags", ()))
    return SourceMetadata(**fields, tags=tags, modified_at=modified_at)
