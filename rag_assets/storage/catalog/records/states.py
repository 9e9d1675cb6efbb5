"""States of pushed records according to the catalog, and their differences from the documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA

from rag_assets.common.failure_kinds import LEFT_OUT, FailureKind
from rag_assets.common.hashing import HashRange
from rag_assets.ingest.sources.records import EXCLUDED, NOBODY
from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    matches_any,
    matches_document,
    read_row,
)
from rag_assets.storage.catalog.records.model import is_expired, is_found
from rag_assets.storage.catalog.records.pages import select_excluded_pages
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    pages,
    serving,
    source_records,
)
from rag_assets.storage.catalog.uploads.model import uploads

RecordStatus: TypeAlias = Literal["queued", "indexed", "excluded", "failed"]


@dataclass(frozen=True, slots=True)
class RecordState:
    """A record and its state.

    Attributes:
        sha256: hash of its text, or of its content if that was uploaded separately.
        is_expired: whether it is a comment that was resolved too long ago.
        page_is: why its page is excluded from search; None if it is not excluded.
        is_placed: whether the tree contains the page that it is attached to, and all pages above
            that page.
    """

    source: str
    source_type: str
    source_id: str
    document_id: str
    page_uuid: str | None
    title: str | None
    status: RecordStatus
    sha256: str
    is_expired: bool
    is_found: bool
    page_is: Literal["archived", "off"] | None
    is_placed: bool
    chunk_count: int
    error_kind: FailureKind | None
    dropped: int
    updated_at: datetime | None
    pushed_at: datetime
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Which records to list, and where the list continues; see RecordStateQuery.page.

    Attributes:
        after: source, type and id of the last record of the previous page; None for the first page.
    """

    status: RecordStatus | None = None
    source_type: str | None = None
    page_uuid: str | None = None
    after: tuple[str, str, str] | None = None


class RecordStateQuery(CatalogQueries):
    """Finds pushed records with their states, from `source_records` and `documents`."""

    def find(
        self, tenant_id: str, document_id: str, principals: Collection[str] | None, *, scope: str
    ) -> RecordState | None:
        """Return the state of a record; None if it does not exist or may not be read.

        Args:
            principals: the caller's principals; None: do not check access.
            scope: the access scope of records without their own scope and page.
        """
        rows = select_placed_records(tenant_id, sa.literal(scope))
        rows = rows.where(source_records.c.document_id == document_id)
        its_page = sa.select(source_records.c.page_uuid).where(
            source_records.c.tenant == tenant_id, source_records.c.document_id == document_id
        )
        placed = add_excluded_scopes(rows, select_excluded_pages(tenant_id, its_page))
        query = sa.select(placed).where(_may_see(placed, principals))
        row = self._database.fetch_row(query)
        return None if row is None else _read_state(row)

    def page(
        self,
        tenant_id: str,
        principals: Collection[str] | None,
        chosen: RecordFilter,
        *,
        scopes: Mapping[str, str],
        limit: int,
    ) -> list[RecordState]:
        """Return a page of the records that the principals may read, sorted by source, type and id.

        Args:
            scopes: by source, the access scope of records without their own scope and page; records
                of other sources are unreadable.
        """
        columns = source_records.c
        conditions = [
            (columns.source == source, sa.literal(scope)) for source, scope in scopes.items()
        ]
        rows = select_placed_records(
            tenant_id, sa.case(*conditions, else_=NOBODY) if conditions else sa.literal(NOBODY)
        )
        if chosen.source_type is not None:
            rows = rows.where(columns.source_type == chosen.source_type)
        if chosen.page_uuid is not None:
            rows = rows.where(columns.page_uuid == chosen.page_uuid)
        if chosen.after is not None:
            place = sa.tuple_(columns.source, columns.source_type, columns.source_id)
            rows = rows.where(place > sa.tuple_(*map(sa.literal, chosen.after)))
        of_page = None if chosen.page_uuid is None else sa.select(sa.literal(chosen.page_uuid))
        placed = add_excluded_scopes(rows, select_excluded_pages(tenant_id, of_page))
        query = sa.select(placed).where(_may_see(placed, principals))
        if chosen.status is not None:
            query = query.where(placed.c.state == chosen.status)
        order = (placed.c.source, placed.c.source_type, placed.c.source_id)
        record_rows = self._database.fetch_rows(query.order_by(*order).limit(limit))
        return [_read_state(row) for row in record_rows]


def _may_see(placed: sa.FromClause, principals: Collection[str] | None) -> sa.ColumnElement[bool]:
    return sa.true() if principals is None else is_readable(placed, [*principals])


def add_excluded_scopes(rows: sa.Select[Any], excluded: sa.FromClause) -> sa.FromClause:
    """Return the query for records with their scopes, also on excluded pages.

    A record on an excluded page has the scope that it would have if the page were not excluded.
    """
    placed = rows.subquery()
    is_out = placed.c.access_scope == EXCLUDED
    columns = [column for column in placed.c if column.name not in {"state", "access_scope"}]
    return (
        sa.select(
            *columns,
            sa.case((is_out, "excluded"), else_=placed.c.state).label("state"),
            sa.case(
                (is_out, sa.func.coalesce(excluded.c.scope, NOBODY)), else_=placed.c.access_scope
            ).label("access_scope"),
            sa.case((sa.and_(is_out, excluded.c.is_archived), "archived"), (is_out, "off")).label(
                "page_is"
            ),
        )
        .select_from(placed)
        .outerjoin(excluded, sa.and_(is_out, excluded.c.uuid == placed.c.page_uuid))
        .subquery()
    )


def select_placed_records(tenant_id: str, scope: sa.ColumnElement[str]) -> sa.Select[Any]:
    """Return the query for a tenant's records, each with its access scope and state."""
    record, row = source_records.c, documents.c
    answering = select_answering_versions(tenant_id)
    of_page = sa.func.coalesce(
        sa.select(pages.c.scope)
        .where(pages.c.tenant == record.tenant, pages.c.uuid == record.page_uuid)
        .scalar_subquery(),
        NOBODY,
    )
    unlisted = sa.func.coalesce(
        record.said["access_scope"].astext, sa.case((record.page_uuid.is_not(None), of_page)), scope
    )
    # A deleted document does not follow the page that it was attached to.
    listed = sa.case((row.status != "DELETED", row.access_scope))
    waits = sa.or_(
        row.revision.is_distinct_from(record.revision),
        row.status.in_(("PROCESSING", "DELETED")),
        is_awaiting_build(answering),
    )
    content = sa.select(uploads.c.content_sha256).where(matches_document(uploads.c, record))
    state = sa.case(
        (sa.or_(~is_found(), is_expired()), "excluded"),
        (sa.func.coalesce(waits, True), "queued"),
        (sa.and_(row.status == "FAILED", row.error_kind.in_(LEFT_OUT)), "excluded"),
        (row.status == "FAILED", "failed"),
        else_="indexed",
    )
    return (
        sa.select(
            *(record.tenant, record.source, record.source_type, record.source_id),
            record.record_key,
            *(record.document_id, record.page_uuid, record.modified_at, record.changed_at),
            *(row.title, row.error_kind, row.dropped_count),
            sa.func.coalesce(content.scalar_subquery(), record.content_sha256).label("sha256"),
            is_found().label("is_found"),
            is_expired().label("is_expired"),
            state.label("state"),
            sa.func.coalesce(answering.c.chunk_count, 0).label("chunk_count"),
            sa.func.coalesce(listed, unlisted).label("access_scope"),
        )
        .select_from(source_records)
        .outerjoin(documents, matches_document(row, record))
        .outerjoin(answering, answering.c.document_id == record.document_id)
        .where(record.tenant == tenant_id)
    )


def select_answering_versions(tenant_id: str) -> sa.FromClause:
    """Return the query for documents with a version in the serving build, and its chunk count."""
    indexed = document_index.c
    return (
        sa.select(indexed.document_id, indexed.chunk_count)
        .join(
            serving,
            sa.and_(serving.c.tenant == indexed.tenant, serving.c.generation == indexed.generation),
        )
        .where(indexed.tenant == tenant_id, indexed.indexed_key.is_not(None))
        .subquery("answering")
    )


def is_awaiting_build(answering: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document becomes searchable with the next build."""
    is_out = documents.c.access_scope == EXCLUDED
    return sa.and_(documents.c.status == "READY", ~is_out, answering.c.document_id.is_(None))


def _read_state(row: sa.Row[Any]) -> RecordState:
    return read_row(
        RecordState,
        row,
        status=row.state,
        is_expired=bool(row.is_expired),
        is_placed=row.access_scope != NOBODY,
        dropped=row.dropped_count or 0,
        updated_at=row.modified_at,
        pushed_at=row.changed_at,
        etag=row.record_key,
    )


@dataclass(frozen=True, slots=True)
class RecordDrift:
    """Differences between records and the catalog's documents.

    Attributes:
        missing: ids of documents without their record. This should not occur: removing a record
            withdraws its document in the same transaction.
        nobodys: names of sources that have records, but do not belong to the tenant.
    """

    compared: int = 0
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    nobodys: tuple[str, ...] = ()


class RecordDriftQuery(CatalogQueries):
    """Compares pushed records with the catalog's documents."""

    def find(self, tenant_id: str, sources: Collection[str], compared: HashRange) -> RecordDrift:
        """Return the differences between a tenant's records and its documents.

        Args:
            compared: the range of document ids whose texts Postgres hashes again, to compare them.
        """
        record, row = source_records.c, documents.c
        mine = sa.exists().where(matches_document(record, row))
        missing = sa.select(row.document_id).where(
            row.tenant == tenant_id,
            matches_any(row.source, sources),
            row.status != "DELETED",
            row.content_sha256.is_not(None),
            ~mine,
        )
        within = [record.tenant == tenant_id, record.document_id >= compared.first]
        if compared.end is not None:
            within.append(record.document_id < compared.end)
        content = sa.func.convert_to(record.text, "UTF8", type_=BYTEA)
        digest = sa.cast(sa.func.encode(sa.func.sha256(content), "hex"), sa.Text)
        altered = sa.select(record.document_id).where(
            *within,
            sa.or_(
                sa.func.octet_length(record.text) != record.size, digest != record.content_sha256
            ),
        )
        nobodys = (
            sa.select(record.source)
            .where(record.tenant == tenant_id, sa.not_(matches_any(record.source, sources)))
            .distinct()
        )
        count = sa.select(sa.func.count()).select_from(source_records).where(*within)
        with self._database.begin() as connection:
            return RecordDrift(
                compared=connection.scalar(count) or 0,
                missing=tuple(sorted(connection.scalars(missing))),
                altered=tuple(sorted(connection.scalars(altered))),
                nobodys=tuple(sorted(connection.scalars(nobodys))),
            )
