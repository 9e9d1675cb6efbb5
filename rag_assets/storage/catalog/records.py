"""Records that applications push, kept here until they are taken back.

A record has a revision that is new whenever anything of it changes, so that a listing need not
read texts, and a sync that is under way can tell whether what it listed is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Update, case, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.hashing import key_of, sha256_hex
from rag_assets.common.times import FIRST_DAY, LAST_DAY
from rag_assets.ingest.sources.model import SourceMetadata, StoredRecord
from rag_assets.ingest.sources.records import record_document_id
from rag_assets.storage.catalog.access import PUBLIC
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.removals import forget_record, take_out
from rag_assets.storage.catalog.tables import documents, record_revisions, source_records

_BATCH = 2_000
_METADATA_FIELDS = ("title", "uri", "access_scope", "tags", "metadata")


@dataclass(frozen=True, slots=True)
class PushedRecord:
    """A record as an application pushes it.

    Attributes:
        source: the name of the source that it belongs to.
        source_type: what kind of thing it is to the application: page, comment.
        source_id: which one of that kind.
        media_type: how its text is to be read.
    """

    source: str
    source_type: str
    source_id: str
    text: str
    media_type: str
    source_metadata: SourceMetadata

    @property
    def document_id(self) -> str:
        """Of the document that it is."""
        return record_document_id(self.source, self.source_type, self.source_id)

    @property
    def key(self) -> str:
        """Hash of all that makes it this record; when it was made is none of it."""
        told = self.source_metadata
        return key_of(
            *("record", sha256_hex(self.text), self.media_type),
            *(told.title, told.uri, told.access_scope, list(told.tags), dict(told.metadata)),
        )


class RecordTable:
    """Queries on `source_records`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, ref: TenantRef, record: PushedRecord, *, scope: str) -> bool:
        """Keep a record; returns whether anything of it is new.

        Where its scope is another than before, who may not read that is shown no former version
        either, from now on.

        Args:
            ref: whose.
            record: as it was pushed.
            scope: the one it has, by its own word or its source's or tenant's.

        Raises:
            TenantGone: the tenant was removed.
        """
        data = record.text.encode()
        row = {
            "document_id": record.document_id,
            "record_key": record.key,
            "revision": record_revisions.next_value(),
            "text": record.text,
            "media_type": record.media_type,
            "size": len(data),
            "content_sha256": sha256_hex(data),
            "said": _as_json(record.source_metadata),
            "modified_at": record.source_metadata.modified_at,
            "changed_at": func.clock_timestamp(),
        }
        statement = (
            upsert(source_records)
            .values(
                tenant=ref.id,
                source=record.source,
                source_type=record.source_type,
                source_id=record.source_id,
                **row,
            )
            .on_conflict_do_update(
                index_elements=["tenant", "source", "source_type", "source_id"],
                set_=row,
                where=source_records.c.record_key != record.key,
            )
            .returning(source_records.c.revision)
        )
        with self._database.begin_exclusive(ref) as connection:
            new = connection.scalar(statement) is not None
            if new and scope != PUBLIC:
                connection.execute(_moved(ref, record, scope))
        return new

    def remove(self, ref: TenantRef, document_id: str, by: str) -> bool:
        """Forget a record, and leave its document out of answers from now on.

        Args:
            ref: whose.
            document_id: of the document that the record is.
            by: who asked for it, for the event.

        Returns:
            whether there was one.
        """
        with self._database.begin_exclusive(ref) as connection:
            found = forget_record(connection, ref, document_id)
            take_out(connection, ref, document_id, by)
        return found

    def of(self, tenant_id: str) -> TenantRecords:
        """The records of one tenant, as a source reads them."""
        return TenantRecords(self._database, tenant_id)


@dataclass(frozen=True, slots=True)
class TenantRecords:
    """The records of one tenant; see RecordStore."""

    database: Database
    tenant_id: str

    def listed(self, source: str) -> Iterator[StoredRecord]:
        """Every record of one source, streamed, without the texts."""
        kept = source_records.c
        # One that cannot be read here would keep all the others from being listed.
        readable = func.least(func.greatest(kept.modified_at, FIRST_DAY), LAST_DAY)
        dated = case((kept.modified_at.is_not(None), readable))
        query = select(
            *(kept.source_type, kept.source_id, kept.document_id, kept.revision, kept.size),
            *(kept.media_type, kept.content_sha256, kept.said, dated, kept.changed_at),
        ).where(kept.tenant == self.tenant_id, kept.source == source)
        with self.database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH).execute(query)
            for type_, id_, document_id, revision, size, media_type, content, *rest in rows:
                said, modified_at, changed_at = rest
                yield StoredRecord(
                    source_type=type_,
                    source_id=id_,
                    document_id=document_id,
                    revision=revision,
                    size=size,
                    changed_ns=int(changed_at.timestamp() * 1e6) * 1_000,
                    media_type=media_type,
                    content_sha256=content,
                    source_metadata=_source_metadata(said, modified_at),
                )

    def text(self, source: str, document_id: str) -> str | None:
        """The text of one record; None if there is none any more."""
        kept = source_records.c
        query = select(kept.text).where(
            kept.tenant == self.tenant_id, kept.source == source, kept.document_id == document_id
        )
        with self.database.begin() as connection:
            text: str | None = connection.scalar(query)
        return text


def _moved(ref: TenantRef, record: PushedRecord, scope: str) -> Update:
    """Says of a record's document that it has another scope, whatever version of it is held."""
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            documents.c.document_id == record.document_id,
            documents.c.access_scope != scope,
        )
        # No listing gives it this key, so what is made under it meanwhile is made anew.
        .values(access_scope=scope, document_key=key_of("moved", record.key))
    )


def _as_json(metadata: SourceMetadata) -> dict[str, Any]:
    return {name: value for name in _METADATA_FIELDS if (value := getattr(metadata, name))}


def _source_metadata(fields: dict[str, Any], modified_at: datetime | None) -> SourceMetadata:
    tags = tuple(fields.pop("tags", ()))
    return SourceMetadata(**fields, tags=tags, modified_at=modified_at)
