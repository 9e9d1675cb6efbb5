"""Records that applications push, stored until they are removed.

Every change gives a record a new revision. A listing therefore need not read texts, and a running
sync can detect whether a listed record is still current.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.hashing import compute_key
from rag_assets.common.times import FIRST_DAY, LAST_DAY
from rag_assets.ingest.sources.model import SourceMetadata, StoredRecord
from rag_assets.ingest.sources.records import NOBODY, ROOT
from rag_assets.storage.catalog.accounts.access import PUBLIC
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
from rag_assets.storage.catalog.documents.removals import (
    delete_former_texts,
    delete_records,
    withdraw_documents,
)
from rag_assets.storage.catalog.records.contents import (
    delete_unneeded_contents,
    find_pages_with_blocks,
    keep_texts,
)
from rag_assets.storage.catalog.records.model import (
    UNORDERED,
    CurrentState,
    PushedRecord,
    RecordChanges,
    RecordPlan,
    RecordPut,
    WriteClock,
    build_record_row,
    find_wait_starts,
    find_waiting_lanes,
    is_expired,
    is_found,
    prioritize_waiting,
)
from rag_assets.storage.catalog.records.pages import (
    find_descendants,
    find_documents_of_removed_pages,
    find_remaining_pages,
)
from rag_assets.storage.catalog.tables import (
    documents,
    record_clocks,
    record_revisions,
    record_texts,
    source_records,
    tombstones,
)
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.storage.catalog.uploads.rows import delete_uploads

_BATCH_RECORDS = 2_000


@dataclass(frozen=True, slots=True)
class RecordVersion:
    """The stored version of a record."""

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
            above: pages that the plan may delete, so that it needs to know the pages below them.
                Each page maps to the document of the page's own record, which may be deleted.

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
            changes = plan(CurrentState(records, below, standing, clocks, etags))
            written = write_records(connection, ref, changes, by)
            if written.changed or changes.removals or written.expired:
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
        query = sa.select(columns.document_id, columns.record_key, columns.modified_at).where(
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
        """Make the next listing update records with a new modification time; return their number.

        A push that changes only the time of a record has no effect until then.
        """
        record, row = source_records.c, documents.c
        clamped = sa.func.least(sa.func.greatest(record.modified_at, FIRST_DAY), LAST_DAY)
        stale = (
            sa.update(source_records)
            .where(
                record.tenant == ref.id,
                matches_document(row, record),
                row.status == "READY",
                row.revision == record.revision,
                record.modified_at.is_not(None),
                sa.func.date_trunc("milliseconds", clamped) != row.modified_at,
            )
            .values(revision=record_revisions.next_value(), waiting_since=sa.func.clock_timestamp())
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
        clamped = sa.func.least(sa.func.greatest(columns.modified_at, FIRST_DAY), LAST_DAY)
        modified_at = sa.case((columns.modified_at.is_not(None), clamped))
        query = sa.select(
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
            rows = connection.execution_options(yield_per=_BATCH_RECORDS).execute(query)
            for row in rows:
                is_file = row.file_sha256 is not None
                yield read_row(
                    StoredRecord,
                    row,
                    size=row.file_size if is_file else row.size,
                    changed_ns=int(row.changed_at.timestamp() * 1e6) * 1_000,
                    media_type=row.file_type if is_file else row.media_type,
                    content_sha256=row.file_sha256 if is_file else row.content_sha256,
                    source_metadata=_build_source_metadata(row.said, row.modified_at),
                )

    def list_withheld(self, source: str) -> frozenset[str]:
        """Return the document ids of a source's records that are not listed."""
        columns = source_records.c
        query = sa.select(columns.document_id).where(
            columns.tenant == self.tenant_id, columns.source == source, ~is_found()
        )
        return frozenset(self.database.fetch_values(query))

    def state(self, source: str) -> str:
        """Return a text that changes whenever a source's records change, or one of them expires.

        It consists of the newest revision and the number of records. A revision is never used
        again.
        """
        columns = source_records.c
        query = sa.select(
            sa.func.max(columns.revision),
            sa.func.count(),
            sa.func.count().filter(columns.resolved_at.is_not(None) & is_expired()),
        ).where(columns.tenant == self.tenant_id, columns.source == source)
        newest, count, expired = self.database.fetch_one(query)
        return f"{newest or 0:x}-{count - expired:x}"

    def find_former_text(self, document_id: str, content_sha256: str) -> str | None:
        """Return a record's former text with this hash; None if it is not kept."""
        columns = record_texts.c
        query = sa.select(columns.text).where(
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
        query = sa.select(columns.text).where(
            columns.tenant == self.tenant_id, columns.document_id == document_id
        )
        text: str | None = self.database.fetch_value(query)
        return text


def _find_etags(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, str]:
    if not document_ids:
        return {}
    columns = source_records.c
    query = sa.select(columns.document_id, columns.record_key).where(
        is_of_documents(columns, ref.id, document_ids)
    )
    return {row.document_id: row.record_key for row in connection.execute(query)}


def _select_records(tenant_id: str) -> sa.Select[Any]:
    return sa.select(source_records).where(source_records.c.tenant == tenant_id)


def _read_record(row: sa.Row[Any]) -> PushedRecord:
    metadata = _build_source_metadata(dict(row.said), row.modified_at)
    return read_row(PushedRecord, row, source_metadata=metadata)


def _build_source_metadata(fields: dict[str, Any], modified_at: datetime | None) -> SourceMetadata:
    tags = tuple(fields.pop("tags", ()))
    return SourceMetadata(**fields, tags=tags, modified_at=modified_at)


_IDENTITY = frozenset({"tenant", "source", "source_type", "source_id"})


def apply_new_scopes(connection: sa.Connection, ref: TenantRef, puts: Sequence[RecordPut]) -> None:
    """Restrict documents of changed records immediately, without waiting for the next listing.

    If the access scope of a record changed, its document gets the new scope now. If the page of a
    record changed, its document is hidden until it is listed there. Both documents get a
    document_key that no listing computes, so that the next listing finds a change.
    """
    row, record = documents.c, source_records.c
    of_pages = [put.record.document_id for put in puts if put.scope is None]
    if of_pages:
        connection.execute(
            sa.update(documents)
            .where(
                is_of_documents(row, ref.id, of_pages),
                matches_document(record, row),
                record.page_uuid.is_distinct_from(row.page_uuid),
            )
            .values(access_scope=NOBODY, document_key=sa.func.concat("moved ", row.document_key))
        )
    rows = [
        {
            "of_record": put.record.document_id,
            "scope": put.scope,
            "key": compute_key("moved", put.record.key),
        }
        for put in puts
        if put.scope not in {None, PUBLIC}
    ]
    if rows:
        scope: sa.ColumnElement[str] = sa.bindparam("scope")
        is_record = row.document_id == sa.bindparam("of_record")
        statement = sa.update(documents).where(
            row.tenant == ref.id, is_record, row.access_scope != scope
        )
        statement = statement.values(access_scope=scope, document_key=sa.bindparam("key"))
        connection.execute(statement, rows)


@dataclass(frozen=True, slots=True)
class RecordsWritten:
    """The result of writing records, by the ids of their documents."""

    changed: frozenset[str]
    removed: frozenset[str]
    expired: frozenset[str]
    blobs: tuple[str, ...] = ()


def write_records(
    connection: sa.Connection, ref: TenantRef, changes: RecordChanges, by: str
) -> RecordsWritten:
    """Store and remove records.

    Removing pages also removes the documents attached to them and to the pages below, unless these
    are being stored. If the former text of a page has a newly secret block, the page is withheld
    until it is indexed without the block.

    Args:
        connection: a connection in a transaction that excludes all others of the tenant.
    """
    puts = changes.puts
    ids = {put.record.document_id for put in puts}
    removed = {*changes.removals, *ids}
    going = find_documents_of_removed_pages(connection, ref, changes.pages, removed) - ids
    removals = {*changes.removals, *going}
    deletion = {"": WriteClock(changes.pages_deleted_at)}
    _advance_clocks(connection, ref, {**dict.fromkeys(going, deletion), **changes.clocks})
    pruned = _find_pruned(connection, ref, puts)
    stored = [put for put in puts if put.record.document_id not in pruned]
    contents = {put.record.document_id: put.record.content_sha256 for put in stored}
    marks = {put.record.document_id: put.secret_blocks for put in stored if put.secret_blocks}
    betrayed = find_pages_with_blocks(connection, ref, marks)
    keep_texts(connection, ref, contents)
    changed = _store_records(connection, ref, stored)
    _mark_changed(connection, ref, betrayed - changed)
    changed |= betrayed
    delete_former_texts(connection, ref, betrayed)
    apply_new_scopes(connection, ref, [put for put in stored if put.record.document_id in changed])
    deleted, blobs = delete_records_with_contents(connection, ref, [*removals, *pruned])
    expired = _find_expired(connection, ref, [put.record.document_id for put in stored])
    withdraw_documents(connection, ref, {*removals, *expired, *betrayed}, by)
    return RecordsWritten(
        frozenset(changed | (deleted & pruned)), deleted & frozenset(removals), expired, blobs
    )


def delete_records_with_contents(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Delete pushed records, their former texts and their contents.

    Returns:
        the documents whose record existed, and the hashes of the deleted contents.
    """
    if not document_ids:
        return frozenset(), ()
    deleted = delete_records(connection, ref, document_ids)
    return deleted, tuple(delete_uploads(connection, ref, document_ids))


def _store_records(
    connection: sa.Connection, ref: TenantRef, puts: Sequence[RecordPut]
) -> set[str]:
    """Store records; return the documents whose record is new or changed."""
    if not puts:
        return set()
    ids = [put.record.document_id for put in puts]
    since = find_wait_starts(connection, ref, ids)
    lanes = find_waiting_lanes(connection, ref, ids)
    rows = [
        {
            **build_record_row(ref, put.record),
            "lane": min(put.lane, lanes.get(put.record.document_id, put.lane)),
            "since": since.get(put.record.document_id),
        }
        for put in puts
    ]
    new = upsert(source_records).values(
        revision=record_revisions.next_value(),
        changed_at=sa.func.clock_timestamp(),
        waiting_since=sa.func.coalesce(
            sa.bindparam("since", type_=sa.DateTime(timezone=True)), sa.func.clock_timestamp()
        ),
    )
    written = {*rows[0], "revision", "changed_at", "waiting_since"} - _IDENTITY - {"since"}
    statement = new.on_conflict_do_update(
        index_elements=["tenant", "source", "source_type", "source_id"],
        set_={name: new.excluded[name] for name in sorted(written)},
        where=source_records.c.record_key != new.excluded.record_key,
    ).returning(source_records.c.document_id)
    changed = set(connection.scalars(statement, rows))
    same = [put for put in puts if put.record.document_id not in changed]
    _record_pushes(connection, ref, [put.record for put in same])
    prioritize_waiting(connection, ref, [put.record.document_id for put in same if put.lane == 0])
    return changed


def read_clocks(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, dict[str, WriteClock]]:
    """Return the time of the latest write to each record, by document and part."""
    clocks: dict[str, dict[str, WriteClock]] = {}
    if document_ids:
        query = sa.select(record_clocks).where(
            is_of_documents(record_clocks.c, ref.id, document_ids)
        )
        for row in connection.execute(query):
            parts = clocks.setdefault(row.document_id, {})
            parts[row.part] = WriteClock(row.updated_at, row.version)
    return clocks


def _advance_clocks(
    connection: sa.Connection, ref: TenantRef, clocks: Mapping[str, Mapping[str, WriteClock]]
) -> None:
    """Store the times and versions of writes, except values older than the stored ones."""
    rows = [
        {
            "tenant": ref.id,
            "document_id": document_id,
            "part": part,
            "updated_at": clock.updated_at,
            "version": clock.version,
        }
        for document_id, parts in clocks.items()
        for part, clock in parts.items()
        if clock != UNORDERED
    ]
    if not rows:
        return
    new = upsert(record_clocks)
    later = {
        name: sa.func.greatest(record_clocks.c[name], new.excluded[name])
        for name in ("updated_at", "version")
    }
    keys = ["tenant", "document_id", "part"]
    connection.execute(new.on_conflict_do_update(index_elements=keys, set_=later), rows)


def _mark_changed(connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]) -> None:
    """Make the next listing treat unchanged records as changed."""
    if not document_ids:
        return
    connection.execute(
        sa.update(source_records)
        .where(is_of_documents(source_records.c, ref.id, document_ids))
        .values(
            revision=record_revisions.next_value(),
            changed_at=sa.func.clock_timestamp(),
            waiting_since=sa.func.clock_timestamp(),
        )
    )


def _record_pushes(
    connection: sa.Connection, ref: TenantRef, records: Sequence[PushedRecord]
) -> None:
    """Update, for unchanged records, the time of the push and the modification time."""
    if not records:
        return
    new = sa.func.unnest(
        sa.literal([record.document_id for record in records], sa.ARRAY(sa.Text)),
        sa.literal(
            [record.source_metadata.modified_at for record in records],
            sa.ARRAY(sa.DateTime(timezone=True)),
        ),
    )
    at = new.table_valued("document_id", "modified_at", name="at").render_derived()
    connection.execute(
        sa.update(source_records)
        .where(source_records.c.tenant == ref.id, source_records.c.document_id == at.c.document_id)
        .values(
            pushed_at=sa.func.clock_timestamp(),
            modified_at=sa.func.coalesce(at.c.modified_at, source_records.c.modified_at),
        )
    )


def _find_expired(
    connection: sa.Connection, ref: TenantRef, document_ids: Sequence[str]
) -> frozenset[str]:
    if not document_ids:
        return frozenset()
    query = sa.select(source_records.c.document_id).where(
        is_of_documents(source_records.c, ref.id, document_ids), is_expired()
    )
    return frozenset(connection.scalars(query))


def _find_pruned(connection: sa.Connection, ref: TenantRef, puts: Sequence[RecordPut]) -> set[str]:
    """Return documents that were pruned with exactly the pushed content and are still gone."""
    contents = {put.record.document_id: put.record.content_sha256 for put in puts}
    if not contents:
        return set()
    buried, row = tombstones.c, documents.c
    living = sa.exists().where(matches_document(row, buried), row.status != "DELETED")
    query = sa.select(buried.document_id, buried.content_sha256).where(
        is_of_documents(buried, ref.id, contents), ~living
    )
    rows = connection.execute(query)
    return {id_ for id_, content_sha256 in rows if contents[id_] == content_sha256}
