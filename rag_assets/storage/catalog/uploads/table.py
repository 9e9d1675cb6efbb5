"""The catalog's data about uploaded files; their contents are blobs.

Every change gives a file a new revision, like a record. Blobs are stored and deleted in exclusive
transactions: no other transaction of the tenant runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args
from uuid import uuid4

import sqlalchemy as sa

from rag_assets.common.errors import UnknownDocument, UploadsFull
from rag_assets.common.failure_kinds import FailureKind, empty_note
from rag_assets.ingest.sources.disk import format_size
from rag_assets.ingest.sources.model import StoredUpload, compute_document_id
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    Database,
    TenantRef,
    matches_any,
    matches_document,
    notify,
    read_row,
)
from rag_assets.storage.catalog.documents.removals import delete_records, withdraw_documents
from rag_assets.storage.catalog.documents.status import NEVER
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.erasure.receipts import held_texts
from rag_assets.storage.catalog.journal.security_changes import raise_mark
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    record_revisions,
    serving,
    tenants,
)
from rag_assets.storage.catalog.uploads.model import (
    NeededBlob,
    NewUpload,
    Upload,
    UploadedFile,
    UploadResult,
    held_uploads,
    record_files,
    uploads,
)
from rag_assets.storage.catalog.uploads.rows import (
    build_upload_columns,
    delete_uploads,
    is_of_record,
)


class UploadTable(CatalogQueries):
    """Stores, disables, removes and lists uploaded files, in `uploads`."""

    def store(
        self,
        ref: TenantRef,
        new: NewUpload,
        keep: Callable[[], None],
        *,
        replaces: str | None = None,
    ) -> UploadResult:
        """Store a new file, or new content of an existing file.

        A file with the same bytes in the same source is not stored twice; if it failed, it is
        retried.

        Args:
            replaces: id of the upload to replace; searches find its former version until the new
                version is indexed.

        Raises:
            UnknownDocument: the upload to replace does not exist.
            UploadsFull: the source's limits for uploads are reached.
        """
        table = uploads.c
        with self._database.begin_exclusive(ref) as connection:
            present = _find_replaced(connection, ref, new, replaces)
            same = present is not None and present.content_sha256 == new.content_sha256
            if not same:
                _require_room(connection, ref, new, None if present is None else present.size)
            raise_mark(connection, ref)
            # Store the blob even if its bytes are already stored: this restores a blob that was
            # lost or damaged.
            keep()
            if present is None:
                path = uuid4().hex[:16]
                values = {"document_id": compute_document_id(new.source, path), "path": path}
                values |= {"tenant": ref.id, **build_upload_columns(new)}
                id_ = connection.scalar(
                    sa.insert(uploads).values(values).returning(table.document_id)
                )
                notify(connection, ref.id)
                return UploadResult(_get_upload(connection, ref.id, str(id_)), duplicate=False)
            renamed = replaces is not None and present.file_name != new.file_name
            if same and present.status != "FAILED" and not renamed:
                return UploadResult(
                    _get_upload(connection, ref.id, present.document_id), duplicate=True
                )
            changed = (
                sa.update(uploads)
                .where(table.tenant == ref.id, table.document_id == present.document_id)
                .values(**build_upload_columns(new), updated_at=sa.func.clock_timestamp())
            )
            connection.execute(changed)
            notify(connection, ref.id)
            stored = _get_upload(connection, ref.id, present.document_id)
            return UploadResult(
                stored, duplicate=False, former=None if same else present.content_sha256
            )

    def remove(self, ref: TenantRef, upload_id: str, by: str) -> list[str]:
        """Delete an upload; searches no longer return its document.

        Returns:
            hashes of its current and former contents; empty if the upload does not exist.
        """
        with self._database.begin_exclusive(ref) as connection:
            deleted = delete_uploads(connection, ref, [upload_id])
            if not deleted:
                return []
            raise_mark(connection, ref)
            delete_records(connection, ref, [upload_id])
            withdraw_documents(connection, ref, [upload_id], by)
            notify(connection, ref.id)
        return deleted

    def set_enabled(self, ref: TenantRef, upload_id: str, by: str, *, enabled: bool) -> bool:
        """Exclude an upload from searches, or include it again; return whether it was changed.

        The results of parsing and embedding a disabled upload are kept, so that its chunks need not
        be embedded again.

        Raises:
            UnknownDocument: the upload does not exist.
        """
        table = uploads.c
        the_upload = (table.tenant == ref.id, table.document_id == upload_id)
        with self._database.begin_exclusive(ref) as connection:
            _get_upload(connection, ref.id, upload_id)
            # A new revision: a sync that listed the former state does not record it.
            changed = connection.execute(
                sa.update(uploads)
                .where(*the_upload, table.enabled != enabled)
                .values(enabled=enabled, revision=record_revisions.next_value())
            ).rowcount
            if changed:
                raise_mark(connection, ref)
            if changed and not enabled:
                withdraw_documents(connection, ref, [upload_id], by)
            notify(connection, ref.id)
        return changed > 0

    def all(self, tenant_id: str, source: str | None = None) -> list[Upload]:
        """Return the uploads of a tenant, or of one of its sources, sorted by name."""
        query = _select_uploads(tenant_id).where(~is_of_record())
        query = query.order_by(uploads.c.file_name, uploads.c.document_id)
        if source is not None:
            query = query.where(uploads.c.source == source)
        return [_read_upload(row) for row in self._database.fetch_rows(query)]

    def has_any(self) -> bool:
        """Return whether any tenant has uploads."""
        return self._database.fetch_row(sa.select(uploads.c.document_id).limit(1)) is not None

    def for_tenant(self, tenant_id: str) -> TenantUploads:
        """Return the uploads of one tenant, as its sources read them."""
        return TenantUploads(self._database, tenant_id)

    def forget_texts(self, ref: TenantRef) -> None:
        """Delete the data kept while uploads were disabled, once they are indexed again."""
        indexed_again = sa.exists().where(
            matches_document(documents.c, held_texts.c),
            documents.c.status == "READY",
            matches_document(uploads.c, documents.c),
            ~is_held(),
        )
        self._database.delete(ref, held_texts, indexed_again)


def _find_replaced(
    connection: sa.Connection, ref: TenantRef, new: NewUpload, replaces: str | None
) -> sa.Row[Any] | None:
    """Return the upload to replace; without `replaces`, one with the same bytes, if any."""
    table = uploads.c
    query: sa.Select[Any] = (
        sa.select(
            *(table.document_id, table.file_name, table.content_sha256, table.size),
            documents.c.status,
        )
        .outerjoin(documents, _match_document())
        .where(table.tenant == ref.id, table.source == new.source)
    )
    if replaces is None:
        same = table.content_sha256 == new.content_sha256
        return connection.execute(query.where(same).order_by(table.created_at).limit(1)).first()
    row = connection.execute(query.where(table.document_id == replaces)).first()
    if row is None:
        raise _build_unknown_upload_error()
    return row


def _require_room(
    connection: sa.Connection, ref: TenantRef, new: NewUpload, replaced: int | None
) -> None:
    """Require that a file does not exceed the limits of its source.

    Args:
        replaced: size in bytes of the file that it replaces; None if it is an additional file.
    """
    if new.max_documents is None and new.max_total_bytes is None:
        return
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(uploads.c.size), 0)).where(
        uploads.c.tenant == ref.id, uploads.c.source == new.source
    )
    count, size = connection.execute(query).one()
    if replaced is None and new.max_documents is not None and count >= new.max_documents:
        raise _build_uploads_full_error(
            f"there are already {count:,} files, and no more are allowed"
        )
    if new.max_total_bytes is not None and size - (replaced or 0) + new.size > new.max_total_bytes:
        raise _build_uploads_full_error(
            f"all files together must not exceed {format_size(new.max_total_bytes)}"
        )


def _build_uploads_full_error(reason: str) -> UploadsFull:
    return UploadsFull(reason, hint="delete files that are not needed, or replace one of them")


def _select_uploads(tenant_id: str) -> sa.Select[Any]:
    state = documents.c
    return (
        sa.select(
            uploads,
            sa.func.coalesce(state.status, "PROCESSING").label("status"),
            sa.func.coalesce(state.chunk_count, 0).label("chunk_count"),
            sa.func.coalesce(state.dropped_count, 0).label("dropped_count"),
            state.error_message,
            state.error_kind,
            state.retry_at,
            (state.revision.is_distinct_from(uploads.c.revision)).label("waits"),
        )
        .outerjoin(documents, _match_document())
        .where(uploads.c.tenant == tenant_id)
    )


def _match_document() -> sa.ColumnElement[bool]:
    return matches_document(documents.c, uploads.c)


def _get_upload(connection: sa.Connection, tenant_id: str, upload_id: str) -> Upload:
    row = connection.execute(
        _select_uploads(tenant_id).where(uploads.c.document_id == upload_id)
    ).first()
    if row is None:
        raise _build_unknown_upload_error()
    return _read_upload(row)


def _read_upload(row: sa.Row[Any]) -> Upload:
    # A file that the next listing finds changed is being processed, whatever its former status.
    waits = row.waits and row.enabled
    is_ready = row.status == "READY" and row.enabled and not waits
    return read_row(
        Upload,
        row,
        id=row.document_id,
        status="PROCESSING" if waits else "DISABLED" if not row.enabled else row.status,
        error_message=None if waits else row.error_message,
        error_kind=None if waits else row.error_kind,
        retry_at=None if waits else row.retry_at,
        note=empty_note(row.chunk_count, row.dropped_count) if is_ready else None,
    )


def _build_unknown_upload_error() -> UnknownDocument:
    return UnknownDocument(
        "there is no upload with this id", hint="use an id from the list of uploads"
    )


_BATCH_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class TenantUploads:
    """The uploads of one tenant, as its sources list them."""

    database: Database
    tenant_id: str

    def iter_uploads(self, source: str) -> Iterator[StoredUpload]:
        """Stream the enabled uploads of one source."""
        table = uploads.c
        query = sa.select(
            *(table.path, table.document_id, table.revision, table.file_name, table.media_type),
            *(table.size, table.content_sha256, table.updated_at),
        ).where(table.tenant == self.tenant_id, table.source == source, table.enabled)
        with self.database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH_ROWS).execute(query)
            for row in rows:
                changed_ns = int(row.updated_at.timestamp() * 1e6) * 1_000
                yield read_row(StoredUpload, row, changed_ns=changed_ns)

    def content(self, source: str, path: str) -> tuple[int, str] | None:
        """Return (tenant's incarnation, content hash) of an upload; None if it does not exist."""
        table = uploads.c
        query = (
            sa.select(tenants.c.incarnation, table.content_sha256)
            .join(tenants, tenants.c.id == table.tenant)
            .where(
                table.tenant == self.tenant_id,
                table.document_id == compute_document_id(source, path),
            )
        )
        row = self.database.fetch_row(query)
        return None if row is None else (row.incarnation, row.content_sha256)

    def former(self, source: str, path: str, content_sha256: str) -> int | None:
        """Return the tenant's incarnation if this content is still kept for runs, else None."""
        former_files = record_files.c
        query = (
            sa.select(tenants.c.incarnation)
            .join(record_files, former_files.tenant == tenants.c.id)
            .where(
                former_files.tenant == self.tenant_id,
                former_files.document_id == compute_document_id(source, path),
                former_files.content_sha256 == content_sha256,
            )
        )
        incarnation: int | None = self.database.fetch_value(query)
        return incarnation


class BlobNeeds(CatalogQueries):
    """Finds the blobs that a tenant's uploads, holds and runs need."""

    def all(self, tenant_id: str) -> Iterator[NeededBlob]:
        """Stream the blobs that a tenant needs, sorted by hash."""
        needed = _select_needed_blobs(tenant_id).subquery()
        query = (
            sa.select(
                needed.c.content_sha256,
                sa.func.max(needed.c.size),
                sa.func.array_agg(needed.c.document_id.distinct()),
            )
            .group_by(needed.c.content_sha256)
            .order_by(needed.c.content_sha256)
        )
        with self._database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH_ROWS).execute(query)
            for sha256, size, document_ids in rows:
                yield NeededBlob(sha256, size, tuple(sorted(document_ids)))

    @contextmanager
    def lock_unneeded(self, ref: TenantRef, hashes: Collection[str]) -> Iterator[list[str]]:
        """Yield the hashes among these whose blobs may be deleted until the context ends.

        Until then, no other transaction can start to need one of these blobs.
        """
        with self._database.begin_exclusive(ref) as connection:
            needed = _select_needed_blobs(ref.id, hashes).subquery()
            needed_hashes = set(connection.scalars(sa.select(needed.c.content_sha256)))
            yield sorted(set(hashes) - needed_hashes)


def _select_needed_blobs(
    tenant_id: str, hashes: Collection[str] | None = None
) -> sa.CompoundSelect[Any]:
    """Return the query for the blobs of uploads, holds and runs, with their documents."""
    queries = []
    for table in (uploads, held_uploads, record_files):
        columns = (table.c.content_sha256, table.c.size, table.c.document_id)
        query = sa.select(*columns).where(table.c.tenant == tenant_id)
        if hashes is not None:
            query = query.where(matches_any(table.c.content_sha256, hashes))
        queries.append(query)
    return queries[0].union_all(*queries[1:])


UploadStatus: TypeAlias = Literal["PROCESSING", "READY", "FAILED"]
UPLOAD_STATUSES: tuple[UploadStatus, ...] = get_args(UploadStatus)


@dataclass(frozen=True, slots=True)
class UploadState(UploadedFile):
    """An uploaded file, and its searchable version.

    Attributes:
        status: status of its current content. A disabled file is READY, because it needs no
            processing.
        listed: whether a listing has recorded its current content.
        answers: whether searches find a version of it, current or former.
        chunk_count, token_count: numbers for that version; None if its tokens were not counted.
    """

    status: UploadStatus
    listed: bool
    error_kind: FailureKind | None
    retry_at: datetime | None
    answers: bool
    chunk_count: int
    token_count: int | None
    dropped_count: int
    chunk_set_key: str | None

    @property
    def place(self) -> tuple[datetime, str]:
        """Return the upload's position in the list, which is sorted newest first."""
        return self.created_at, self.id


class UploadStates(CatalogQueries):
    """Lists uploads with the state of their documents and their searchable versions."""

    def page(
        self,
        tenant_id: str,
        *,
        status: UploadStatus | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int | None = None,
    ) -> list[UploadState]:
        """Return a page of a tenant's uploads, newest first, in one query."""
        table = uploads.c
        query = _select_states(tenant_id).order_by(
            table.created_at.desc(), table.document_id.desc()
        )
        if status is not None:
            query = query.where(_select_status() == status)
        if after is not None:
            query = query.where(sa.tuple_(table.created_at, table.document_id) < sa.tuple_(*after))
        return [_read_state(row) for row in self._database.fetch_rows(query.limit(limit))]

    def find(self, tenant_id: str, upload_id: str) -> UploadState | None:
        """Return one upload of a tenant; None if it does not exist."""
        query = _select_states(tenant_id).where(uploads.c.document_id == upload_id)
        row = self._database.fetch_row(query)
        return None if row is None else _read_state(row)


def _select_states(tenant_id: str) -> sa.Select[Any]:
    state, indexed = documents.c, document_index.c
    return (
        sa.select(
            uploads,
            _select_status().label("status"),
            (~_is_unlisted()).label("listed"),
            state.error_kind,
            state.retry_at,
            state.dropped_count,
            indexed.indexed_key,
            indexed.chunk_count,
            indexed.token_count,
            indexed.chunk_set_key,
        )
        .outerjoin(documents, matches_document(state, uploads.c))
        .outerjoin(serving, serving.c.tenant == uploads.c.tenant)
        .outerjoin(
            document_index,
            sa.and_(
                indexed.tenant == uploads.c.tenant,
                indexed.generation == serving.c.generation,
                indexed.document_id == uploads.c.document_id,
            ),
        )
        .where(uploads.c.tenant == tenant_id)
    )


def _is_unlisted() -> sa.ColumnElement[bool]:
    """Return the SQL condition that an upload changed since its source was last listed."""
    return documents.c.revision.is_distinct_from(uploads.c.revision)


def _select_status() -> sa.ColumnElement[str]:
    return sa.case(
        (~uploads.c.enabled, "READY"),
        (_is_unlisted(), "PROCESSING"),
        (documents.c.status.in_(UPLOAD_STATUSES), documents.c.status),
        else_="PROCESSING",
    )


def _read_state(row: sa.Row[Any]) -> UploadState:
    settled = row.listed and row.enabled
    answers = row.enabled and row.indexed_key is not None
    retry_at = row.retry_at if settled and row.retry_at and row.retry_at < NEVER else None
    return read_row(
        UploadState,
        row,
        id=row.document_id,
        listed=settled,
        error_kind=row.error_kind if settled else None,
        retry_at=retry_at,
        answers=answers,
        chunk_count=row.chunk_count if answers else 0,
        token_count=row.token_count if answers else None,
        dropped_count=row.dropped_count if answers else 0,
        chunk_set_key=row.chunk_set_key if answers else None,
    )
