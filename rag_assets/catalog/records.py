"""Records that applications push, kept here until they are taken back.

A record has a revision that is new whenever anything of it changes, so that a listing need not
read texts, and a sync that is under way can tell whether what it listed is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.catalog.database import Database, TenantRef
from rag_assets.catalog.removals import forget_record, take_out
from rag_assets.catalog.tables import record_revisions, source_records
from rag_assets.hashing import key_of, sha256_hex
from rag_assets.sources.model import SaidOfDocument
from rag_assets.sources.records import KeptRecord, record_document_id

_BATCH = 2_000
_SAID = ("title", "uri", "access_scope", "tags", "metadata")


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
    said: SaidOfDocument

    @property
    def document_id(self) -> str:
        """Of the document that it is."""
        return record_document_id(self.source, self.source_type, self.source_id)

    @property
    def key(self) -> str:
        """Hash of all that makes it this record; when it was made is none of it."""
        told = [self.said.title, self.said.uri, self.said.access_scope, list(self.said.tags)]
        return key_of(
            "record", sha256_hex(self.text), self.media_type, *told, dict(self.said.metadata)
        )


class RecordTable:
    """Queries on `source_records`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, ref: TenantRef, record: PushedRecord) -> bool:
        """Keep a record; returns whether anything of it is new.

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
            "said": _as_json(record.said),
            "modified_at": record.said.modified_at,
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
        with self._database.begin_alone(ref) as connection:
            return connection.scalar(statement) is not None

    def remove(self, ref: TenantRef, document_id: str, by: str) -> bool:
        """Forget a record, and leave its document out of answers from now on.

        Args:
            ref: whose.
            document_id: of the document that the record is.
            by: who asked for it, for the event.

        Returns:
            whether there was one.
        """
        with self._database.begin_alone(ref) as connection:
            found = forget_record(connection, ref, document_id)
            take_out(connection, ref, document_id, by)
        return found

    def of(self, tenant_id: str) -> TenantShelf:
        """The records of one tenant, as a source reads them."""
        return TenantShelf(self._database, tenant_id)


@dataclass(frozen=True, slots=True)
class TenantShelf:
    """The records of one tenant; see RecordShelf."""

    database: Database
    tenant_id: str

    def listed(self, source: str) -> Iterator[KeptRecord]:
        """Every record of one source, streamed, without the texts."""
        kept = source_records.c
        query = select(
            *(kept.source_type, kept.source_id, kept.document_id, kept.revision, kept.size),
            *(kept.media_type, kept.content_sha256, kept.said, kept.modified_at, kept.changed_at),
        ).where(kept.tenant == self.tenant_id, kept.source == source)
        with self.database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH).execute(query)
            for type_, id_, document_id, revision, size, media_type, content, *rest in rows:
                said, modified_at, changed_at = rest
                yield KeptRecord(
                    source_type=type_,
                    source_id=id_,
                    document_id=document_id,
                    revision=revision,
                    size=size,
                    changed_ns=int(changed_at.timestamp() * 1e6) * 1_000,
                    media_type=media_type,
                    content_sha256=content,
                    said=_said(said, modified_at),
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


def _as_json(said: SaidOfDocument) -> dict[str, Any]:
    return {name: value for name in _SAID if (value := getattr(said, name))}


def _said(fields: dict[str, Any], modified_at: datetime | None) -> SaidOfDocument:
    tags = tuple(fields.pop("tags", ()))
    return SaidOfDocument(**fields, tags=tags, modified_at=modified_at)
