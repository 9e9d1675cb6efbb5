"""Records that applications push, stored until they are removed.

Every change gives a record a new revision. A listing therefore need not read texts, and a running
sync can detect whether a listed record is still current.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, select, update

from rag_assets.common.times import FIRST_DAY, LAST_DAY
from rag_assets.ingest.sources.model import SourceMetadata, StoredRecord
from rag_assets.ingest.sources.records import ROOT
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    Database,
    TenantRef,
    is_of_documents,
    matches_any,
    matches_document,
    notify,
    read_row,
)
from rag_assets.storage.catalog.records.contents import delete_unneeded_contents
from rag_assets.storage.catalog.records.model import (
    CurrentState,
    PushedRecord,
    RecordPlan,
    is_expired,
    is_found,
)
from rag_assets.storage.catalog.records.pages import find_descendants, find_remaining_pages
from rag_assets.storage.catalog.records.writes import RecordsWritten, read_clocks, write_records
from rag_assets.storage.catalog.tables import (
    documents,
    record_revisions,
    record_texts,
    source_records,
)
from rag_assets.storage.catalog.uploads.model import uploads

_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class RecordVersion:
    """The stored version of a record.

    Attributes:
        key: see PushedRecord.key.
    """

    key: str
    modified_at: datetime | None


class RecordTable(CatalogQueries):
    """Stores, removes and finds pushed records, in `source_records`."""

    def write(
        self,
        ref: TenantRef,
        plan: RecordPlan,
        *,
        by: str,
        read: Collection[str] = (),
        above: Mapping[str, str] = MappingProxyType({}),
        ordered: Collection[str] = (),
        conditional: Collection[str] = (),
    ) -> RecordsWritten:
        """Store and remove records, in one transaction.

        Args:
            read: ids of documents whose records the plan depends on.
            above: pages that the plan may delete, so that it needs to know the pages below them.
                Each maps to the document of its record that may be deleted.
            ordered: ids of documents for which the plan compares the times of writes.
            conditional: ids of documents for which the plan compares ETags.

        Raises:
            TenantBusy: other transactions of the tenant did not end in time.
        """
        with self._database.begin_exclusive(ref) as connection:
            query = _select_records(ref.id).where(matches_any(source_records.c.document_id, read))
            rows = connection.execute(query) if read else ()
            records = {row.document_id: _read_record(row) for row in rows}
            standing = find_remaining_pages(connection, ref, above.keys(), above.values())
            below = find_descendants(connection, ref, above.keys() - standing - {ROOT})
            clocks = read_clocks(connection, ref, ordered)
            etags = _find_etags(connection, ref, conditional)
            done = plan(CurrentState(records, below, standing, clocks, etags))
            written = write_records(connection, ref, done, by)
            if written.changed or done.removals or written.expired:
                notify(connection, ref.id)
        return written

    def find(self, tenant_id: str, document_id: str) -> PushedRecord | None:
        """Return the record of a document; None if it does not exist."""
        query = _select_records(tenant_id).where(source_records.c.document_id == document_id)
        row = self._database.fetch_row(query)
        return None if row is None else _read_record(row)

    def keys(self, tenant_id: str, document_ids: Collection[str]) -> dict[str, RecordVersion]:
        """Return the stored versions of records, by the ids of their documents."""
        columns = source_records.c
        query = select(columns.document_id, columns.record_key, columns.modified_at).where(
            is_of_documents(columns, tenant_id, document_ids)
        )
        rows = self._database.fetch_rows(query)
        return {row.document_id: RecordVersion(row.record_key, row.modified_at) for row in rows}

    def forget_former_contents(self, ref: TenantRef) -> list[str]:
        """Delete the former texts and files that no document of a tenant needs any more.

        Call it only while the caller's run is the only active run of the tenant.

        Returns:
            hashes of the files.
        """
        with self._database.begin_tenant(ref) as connection:
            return delete_unneeded_contents(connection, ref)

    def renew_stale(self, ref: TenantRef) -> int:
        """Make the next listing update records whose modification time changed; return how many.

        A push that changes only the time of a record has no effect until then.
        """
        record, row = source_records.c, documents.c
        clamped = func.least(func.greatest(record.modified_at, FIRST_DAY), LAST_DAY)
        stale = (
            update(source_records)
            .where(
                record.tenant == ref.id,
                matches_document(row, record),
                row.status == "READY",
                row.revision == record.revision,
                record.modified_at.is_not(None),
                func.date_trunc("milliseconds", clamped) != row.modified_at,
            )
            .values(revision=record_revisions.next_value(), waiting_since=func.clock_timestamp())
        )
        with self._database.begin_tenant(ref) as connection:
            renewed = connection.execute(stale).rowcount
            if renewed:
                notify(connection, ref.id)
        return renewed

    def for_tenant(self, tenant_id: str) -> TenantRecords:
        """Return the records of one tenant, as its sources read them."""
        return TenantRecords(self._database, tenant_id)


@dataclass(frozen=True, slots=True)
class TenantRecords:
    """The records of one tenant (see RecordStore)."""

    database: Database
    tenant_id: str

    def iter_records(self, source: str) -> Iterator[StoredRecord]:
        """Stream the records of one source that are to be listed, without their texts.

        The content of a file is an upload of the same document. A file without the upload is left
        out.
        """
        columns, files = source_records.c, uploads.c
        # A time outside Python's range would make the whole listing fail.
        clamped = func.least(func.greatest(columns.modified_at, FIRST_DAY), LAST_DAY)
        modified_at = case((columns.modified_at.is_not(None), clamped))
        query = select(
            *(columns.source_type, columns.source_id, columns.document_id, columns.revision),
            *(columns.size, columns.media_type, columns.content_sha256, columns.said),
            *(modified_at.label("modified_at"), columns.changed_at),
            *(columns.page_uuid, columns.lane),
            *(files.media_type.label("file_type"), files.size.label("file_size")),
            files.content_sha256.label("file_sha256"),
        )
        query = query.outerjoin(uploads, matches_document(files, columns)).where(
            columns.tenant == self.tenant_id, columns.source == source, is_found()
        )
        with self.database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH).execute(query)
            for row in rows:
                is_file = row.file_sha256 is not None
                yield read_row(
                    StoredRecord,
                    row,
                    size=row.file_size if is_file else row.size,
                    changed_ns=int(row.changed_at.timestamp() * 1e6) * 1_000,
                    media_type=row.file_type if is_file else row.media_type,
                    content_sha256=row.file_sha256 if is_file else row.content_sha256,
                    source_metadata=_source_metadata(row.said, row.modified_at),
                )

    def list_withheld(self, source: str) -> frozenset[str]:
        """Return the document ids of a source's records that are not listed."""
        columns = source_records.c
        query = select(columns.document_id).where(
            columns.tenant == self.tenant_id, columns.source == source, ~is_found()
        )
        return frozenset(self.database.fetch_values(query))

    def state(self, source: str) -> str:
        """Return a text that changes whenever a source's records change, or one of them expires.

        It consists of the newest revision and the number of records. A revision is never used
        again.
        """
        columns = source_records.c
        query = select(
            func.max(columns.revision),
            func.count(),
            func.count().filter(columns.resolved_at.is_not(None) & is_expired()),
        ).where(columns.tenant == self.tenant_id, columns.source == source)
        newest, count, expired = self.database.fetch_one(query)
        return f"{newest or 0:x}-{count - expired:x}"

    def find_former_text(self, document_id: str, content_sha256: str) -> str | None:
        """Return a record's former text with this hash; None if it is not kept."""
        columns = record_texts.c
        query = select(columns.text).where(
            columns.tenant == self.tenant_id,
            columns.document_id == document_id,
            columns.content_sha256 == content_sha256,
        )
        text: str | None = self.database.fetch_value(query)
        return text

    def text(self, document_id: str) -> str | None:
        """Return the text of one record; None if the record no longer exists."""
        columns = source_records.c
        # Not filtered by source: without statistics, Postgres would read all records of the source.
        query = select(columns.text).where(
            columns.tenant == self.tenant_id, columns.document_id == document_id
        )
        text: str | None = self.database.fetch_value(query)
        return text


def _find_etags(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, str]:
    if not document_ids:
        return {}
    columns = source_records.c
    query = select(columns.document_id, columns.record_key).where(
        is_of_documents(columns, ref.id, document_ids)
    )
    return {row.document_id: row.record_key for row in connection.execute(query)}


def _select_records(tenant_id: str) -> Select[Any]:
    return select(source_records).where(source_records.c.tenant == tenant_id)


def _read_record(row: Row[Any]) -> PushedRecord:
    metadata = _source_metadata(dict(row.said), row.modified_at)
    return read_row(PushedRecord, row, source_metadata=metadata)


def _source_metadata(fields: dict[str, Any], modified_at: datetime | None) -> SourceMetadata:
    tags = tuple(fields.pop("tags", ()))
    return SourceMetadata(**fields, tags=tags, modified_at=modified_at)
