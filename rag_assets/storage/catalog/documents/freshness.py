"""Freshness: how far a tenant's index lags behind its documents, and what it leaves out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from rag_assets.common.failure_kinds import LEFT_OUT
from rag_assets.ingest.sources.records import NOBODY
from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import CatalogQueries, matches_any, matches_document
from rag_assets.storage.catalog.documents.status import (
    is_behind_source,
    is_excluded,
    is_excluded_from_builds,
    is_same_document,
)
from rag_assets.storage.catalog.records.model import build_expiry_time, is_found
from rag_assets.storage.catalog.records.pages import select_excluded_pages
from rag_assets.storage.catalog.records.states import (
    add_excluded_scopes,
    is_awaiting_build,
    select_answering_versions,
    select_placed_records,
)
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    generations,
    serving,
    source_records,
)
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.storage.catalog.uploads.rows import is_of_record, is_pushed_again


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of a tenant's serving generation.

    Attributes:
        queue_depth: the number of documents that wait to be indexed or to be removed from the
            index. Records and uploads count from their arrival, other documents from their listing.
    """

    chunks: int = 0
    stale: int = 0
    last_indexed_at: datetime | None = None
    queue_depth: int = 0


class FreshnessQuery(CatalogQueries):
    """Computes a tenant's freshness from `documents` and `document_index`."""

    def read(
        self, tenant_id: str, sources: Collection[str], *, readers: Collection[str] | None = None
    ) -> Freshness:
        """Return a tenant's freshness, in one query.

        Args:
            sources: names of the tenant's sources; records of other (removed) sources are not
                counted.
            readers: count only documents that one of these principals may read, so that the figures
                do not reveal other documents; None for all.
        """
        waits = sa.or_(is_processing(), is_leaving_index(), is_pushed_again())
        # The readers of documents that were never listed are not known yet.
        unlisted = sa.literal(0) if readers is not None else count_never_listed(tenant_id, sources)
        query = select_documents(
            tenant_id,
            readers,
            *list_freshness_columns(),
            build_document_count().filter(waits) + unlisted,
        )
        chunks, stale, last, waiting = tuple(self._database.fetch_one(query))
        return Freshness(int(chunks), int(stale), last, int(waiting))


@dataclass(frozen=True, slots=True)
class RecordFreshness:
    """The freshness of a tenant whose documents are typed records (such as pages and comments).

    Attributes:
        excluded: the number of documents and records that are left out on purpose.
        oldest_wait_seconds: how long the oldest waiting item has waited; None if none is waiting.
        backfilled: whether the separate vector store also has all of the tenant's vectors.
    """

    freshness: Freshness
    excluded: int
    failed: int
    oldest_wait_seconds: float | None
    backfilled: bool


class RecordFreshnessQuery(CatalogQueries):
    """Computes the freshness of a tenant whose documents are typed records.

    Records that no sync has listed yet count, too.
    """

    def read(
        self, tenant_id: str, sources: Collection[str], *, readers: Collection[str] | None
    ) -> RecordFreshness:
        """Return a tenant's freshness, in one query; see FreshnessQuery.read()."""
        record, answering = _select_records(tenant_id), select_answering_versions(tenant_id)
        waits = _list_wait_conditions(record, answering)
        # Use this once per statement: each further use would walk the tree again.
        out = select_excluded_pages(tenant_id)
        unlisted = _select_unlisted_by_readers(tenant_id, sources, readers, out)
        arrival_times = [sa.select(sa.func.min(rows.c[0])).scalar_subquery() for rows in unlisted]
        first = sa.func.least(sa.func.min(sa.case(*waits)), *arrival_times)
        depth: sa.ColumnElement[Any] = build_document_count().filter(
            sa.or_(*(condition for condition, _ in waits))
        )
        for rows in unlisted:
            depth += sa.select(sa.func.count()).select_from(rows).scalar_subquery()
        is_kept = sa.and_(documents.c.status != "DELETED", ~_is_left_out(record))
        kept = sa.and_(is_kept, ~is_excluded(), ~_is_pushed_again(record))
        settled = sa.and_(kept, documents.c.status == "FAILED")
        no_fault = documents.c.error_kind.in_(LEFT_OUT)
        query = select_documents(
            tenant_id,
            None,
            *list_freshness_columns(),
            depth.label("depth"),
            sa.func.extract("epoch", sa.func.now() - first).label("waited"),
            build_document_count().filter(
                sa.or_(sa.and_(is_kept, is_excluded()), sa.and_(settled, no_fault))
            ),
            _count_left_out(tenant_id, readers, out),
            build_document_count().filter(settled, sa.func.coalesce(~no_fault, True)),
            _select_separate_vectors(tenant_id),
        )
        query = query.outerjoin(record, record.c.document_id == documents.c.document_id)
        query = query.outerjoin(answering, answering.c.document_id == documents.c.document_id)
        if readers is not None:
            query = query.where(_may_be_known(tenant_id, readers, out))
        row = tuple(self._database.fetch_one(query))
        chunks, stale, last, depth_now, waited, left_out, records_left, failed, vectors = row
        return RecordFreshness(
            Freshness(int(chunks), int(stale), last, int(depth_now)),
            excluded=int(left_out) + int(records_left),
            failed=int(failed),
            oldest_wait_seconds=None if waited is None else max(0.0, float(waited)),
            backfilled=vectors == "answering",
        )


def select_documents(
    tenant_id: str, readers: Collection[str] | None, *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """Return a query on a tenant's documents and their versions; see FreshnessQuery.read()."""
    is_serving = sa.and_(
        serving.c.tenant == documents.c.tenant, serving.c.generation == document_index.c.generation
    )
    conditions = () if readers is None else (is_readable(documents, readers),)
    return (
        sa.select(*columns)
        .select_from(documents)
        .outerjoin(document_index, is_same_document())
        .outerjoin(serving, is_serving)
        .where(documents.c.tenant == tenant_id, *conditions)
    )


def list_freshness_columns() -> tuple[sa.ColumnElement[Any], ...]:
    """Return columns for select_documents(): chunks, stale documents, last indexing time."""
    indexed_columns, is_leaving = document_index.c, is_excluded_from_builds()
    indexed = sa.and_(serving.c.tenant.is_not(None), indexed_columns.indexed_key.is_not(None))
    return (
        sa.func.coalesce(sa.func.sum(indexed_columns.chunk_count).filter(indexed, ~is_leaving), 0),
        build_document_count().filter(indexed, ~is_leaving, is_behind_source()),
        sa.func.max(sa.case((indexed, indexed_columns.indexed_at))),
    )


def build_document_count() -> Any:
    """Return the SQL count of distinct documents; a document in several builds counts once."""
    return sa.func.count(documents.c.document_id.distinct())


def is_processing() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a listed document waits to be indexed."""
    return sa.and_(documents.c.status == "PROCESSING", ~is_excluded())


def is_leaving_index() -> sa.ColumnElement[bool]:
    """Return the SQL condition that entries of a document must still be removed from a build."""
    return sa.and_(is_excluded_from_builds(), document_index.c.document_id.is_not(None))


def count_never_listed(tenant_id: str, sources: Collection[str]) -> sa.ColumnElement[int]:
    """Return the SQL count of records and uploads that no listing has found yet."""
    counts = [
        rows.with_only_columns(sa.func.count(), maintain_column_froms=True).scalar_subquery()
        for rows in select_unlisted(tenant_id, sources)
    ]
    return counts[0] + counts[1]


def select_unlisted(
    tenant_id: str, sources: Collection[str]
) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Return queries for the arrival times of records, and of uploads, that were never listed."""
    of_files = (uploads.c.enabled, ~is_of_record())
    arrival_columns = source_records.c.waiting_since, uploads.c.updated_at
    found = (is_found(),), of_files
    rows = []
    for table, at, conditions in zip(
        (source_records, uploads), arrival_columns, found, strict=True
    ):
        pushed = table.c
        known = sa.exists().where(matches_document(documents.c, pushed))
        of_sources = (pushed.tenant == tenant_id, matches_any(pushed.source, sources))
        rows.append(sa.select(at).select_from(table).where(*of_sources, ~known, *conditions))
    return rows[0], rows[1]


def _select_records(tenant_id: str) -> sa.FromClause:
    """Return the subquery of a tenant's records.

    Its columns `is_found` and `expires_at` state whether a record is listed, and until when.
    """
    record = source_records.c
    return (
        sa.select(
            *(record.document_id, record.revision, record.waiting_since),
            is_found().label("is_found"),
            build_expiry_time().label("expires_at"),
        )
        .where(record.tenant == tenant_id)
        .subquery("record")
    )


def _select_unlisted_by_readers(
    tenant_id: str, sources: Collection[str], readers: Collection[str] | None, out: sa.FromClause
) -> list[sa.FromClause]:
    """Return queries for the arrival times of records and uploads that the next listing will find.

    With `readers`, only the times of records that they may read are returned; the readers of an
    upload are unknown until it is listed.
    """
    if readers is None:
        return [rows.subquery() for rows in select_unlisted(tenant_id, sources)]
    rows = select_placed_records(tenant_id, sa.literal(NOBODY)).where(
        documents.c.document_id.is_(None), is_found(), matches_any(source_records.c.source, sources)
    )
    placed = add_excluded_scopes(rows.add_columns(source_records.c.waiting_since), out)
    return [sa.select(placed.c.waiting_since).where(is_readable(placed, readers)).subquery()]


def _may_be_known(
    tenant_id: str, readers: Collection[str], out: sa.FromClause
) -> sa.ColumnElement[bool]:
    """Return the SQL condition that one of these principals may know that a document exists.

    They may read it, or could read it before its page was archived or switched off.
    """
    placed = sa.select(sa.literal(tenant_id).label("tenant"), out.c.uuid, out.c.scope).subquery()
    theirs = sa.select(placed.c.uuid).where(is_readable(placed, readers, column="scope"))
    of_page_out = sa.and_(is_excluded(), documents.c.page_uuid.in_(theirs))
    return sa.or_(is_readable(documents, readers), of_page_out)


def _list_wait_conditions(
    record: sa.FromClause, answering: sa.FromClause
) -> list[tuple[sa.ColumnElement[bool], sa.ColumnElement[Any]]]:
    """Return the SQL conditions under which a document waits, each with the start of the wait."""
    row, own = documents.c, record.c
    uploaded_at = sa.select(uploads.c.updated_at).where(*_match_upload()).scalar_subquery()
    pushed_at = sa.func.coalesce(own.waiting_since, uploaded_at)
    is_back = sa.and_(row.status == "DELETED", own.document_id.is_not(None), own.is_found)
    is_held = sa.or_(row.status != "DELETED", document_index.c.document_id.is_not(None))
    left_at = sa.func.greatest(own.waiting_since, own.expires_at)
    return [
        (sa.and_(_is_left_out(record), is_held), left_at),
        (is_processing(), row.waiting_since),
        (is_leaving_index(), row.waiting_since),
        (sa.and_(_is_pushed_again(record), ~_is_left_out(record)), pushed_at),
        (is_back, pushed_at),
        (is_awaiting_build(answering), sa.func.coalesce(row.waiting_since, row.updated_at)),
    ]


def _is_left_out(record: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's record is stored, but left out of listings."""
    return sa.and_(record.c.document_id.is_not(None), ~record.c.is_found)


def _is_pushed_again(record: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's record or upload changed since it was listed."""
    own, revision = record.c, documents.c.revision
    changed = sa.exists().where(
        *_match_upload(), uploads.c.enabled, uploads.c.revision.is_distinct_from(revision)
    )
    return sa.or_(
        sa.and_(own.document_id.is_not(None), own.revision.is_distinct_from(revision)),
        # The content of a file record has the record's revision.
        sa.and_(own.document_id.is_(None), changed),
    )


def _match_upload() -> tuple[sa.ColumnElement[bool], ...]:
    own = uploads.c
    return own.tenant == documents.c.tenant, own.document_id == documents.c.document_id


def _count_left_out(
    tenant_id: str, readers: Collection[str] | None, out: sa.FromClause
) -> sa.ColumnElement[Any]:
    """Return the SQL count of records that are stored, but left out of listings."""
    if readers is None:
        left_out_records = sa.select(sa.func.count()).where(
            source_records.c.tenant == tenant_id, ~is_found()
        )
        return left_out_records.scalar_subquery()
    # All of these are attached to pages: only comments and files are stored but not listed.
    rows = select_placed_records(tenant_id, sa.literal(NOBODY)).where(~is_found())
    placed = add_excluded_scopes(rows, out)
    count = sa.select(sa.func.count()).select_from(placed).where(is_readable(placed, [*readers]))
    return count.scalar_subquery()


def _select_separate_vectors(tenant_id: str) -> sa.ColumnElement[Any]:
    its_build = sa.and_(
        serving.c.tenant == generations.c.tenant, serving.c.generation == generations.c.generation
    )
    query = sa.select(generations.c.vectors_beside).join(serving, its_build)
    return query.where(generations.c.tenant == tenant_id).scalar_subquery()
