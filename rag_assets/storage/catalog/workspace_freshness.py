"""What waits in a workspace, since when, and what is left out of it or failed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, or_, select

from rag_assets.common.failure_kinds import LEFT_OUT
from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.freshness import (
    Freshness,
    document_count,
    documents_with_entries,
    figures,
    is_processing,
    leaves_index,
    never_listed,
    unlisted_rows,
)
from rag_assets.storage.catalog.index_rows import is_excluded
from rag_assets.storage.catalog.rag_setting_tables import rag_settings
from rag_assets.storage.catalog.record_states import placed_records
from rag_assets.storage.catalog.record_writes import expires_at
from rag_assets.storage.catalog.records import is_found
from rag_assets.storage.catalog.tables import documents, generations, serving, source_records
from rag_assets.storage.catalog.tree_tables import pages
from rag_assets.storage.catalog.upload_rows import is_pushed_again
from rag_assets.storage.catalog.upload_tables import uploads
from rag_assets.workspace.tree import NOBODY


@dataclass(frozen=True, slots=True)
class WorkspaceFreshness:
    """The freshness of a workspace, and what is not found in it.

    Attributes:
        freshness: of its serving generation.
        excluded: documents and records that are left out as they are.
        failed: documents that cannot be indexed.
        oldest_wait_seconds: for how long the first of what waits has waited; None: nothing waits.
        backfilled: whether its vectors are in the store beside the index, too, all of them.
    """

    freshness: Freshness
    excluded: int
    failed: int
    oldest_wait_seconds: float | None
    backfilled: bool


class WorkspaceFreshnessQuery:
    """Reads `documents`, `document_index` and `source_records`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self, tenant_id: str, sources: Collection[str], *, readers: Collection[str] | None
    ) -> WorkspaceFreshness:
        """The freshness of a workspace, in one query; see FreshnessQuery.of()."""
        waits = [*_waiting()]
        first: ColumnElement[Any] = func.min(case(*waits))
        depth: ColumnElement[Any] = document_count().filter(or_(*(one for one, _ in waits)))
        if readers is None:
            depth += never_listed(tenant_id, sources)
            came = [
                rows.with_only_columns(
                    func.min(rows.selected_columns[0]), maintain_column_froms=True
                ).scalar_subquery()
                for rows in unlisted_rows(tenant_id, sources)
            ]
            first = func.least(first, *came)
        stays = and_(documents.c.status != "DELETED", ~_is_left_out())
        settled = and_(stays, documents.c.status == "FAILED", ~is_excluded(), ~is_pushed_again())
        no_fault = documents.c.error_kind.in_(LEFT_OUT)
        query = documents_with_entries(
            tenant_id,
            readers,
            *figures(),
            depth.label("depth"),
            func.extract("epoch", func.now() - first).label("waited"),
            document_count().filter(or_(and_(stays, is_excluded()), and_(settled, no_fault))),
            _records_left_out(tenant_id, readers),
            document_count().filter(settled, func.coalesce(~no_fault, True)),
            _vectors_beside(tenant_id),
        )
        with self._database.begin() as connection:
            row = connection.execute(query).one()
        chunks, stale, last, depth_now, waited, out, records_out, failed, vectors = row
        return WorkspaceFreshness(
            Freshness(int(chunks), int(stale), last, int(depth_now)),
            excluded=int(out) + int(records_out),
            failed=int(failed),
            oldest_wait_seconds=None if waited is None else max(0.0, float(waited)),
            backfilled=vectors == "answering",
        )


def _waiting() -> list[tuple[ColumnElement[bool], ColumnElement[Any]]]:
    """The conditions that a document waits, each with since when."""
    row, record = documents.c, source_records.c
    of_document = (record.tenant == row.tenant, record.document_id == row.document_id)
    pushed_at = func.coalesce(
        _value(select(record.changed_at).where(*of_document)),
        _value(
            select(uploads.c.updated_at).where(
                uploads.c.tenant == row.tenant, uploads.c.document_id == row.document_id
            )
        ),
    )
    expired_at = _value(select(func.greatest(record.changed_at, expires_at())).where(*of_document))
    taken_out_at = _value(
        select(func.max(pages.c.updated_at)).where(
            pages.c.tenant == row.tenant, or_(pages.c.archived, ~pages.c.ai)
        )
    )
    set_at = _value(select(rag_settings.c.updated_at).where(rag_settings.c.tenant == row.tenant))
    is_back = and_(row.status == "DELETED", _has_record(is_found()))
    return [
        # What was asked for again is unchanged since, but not since then.
        (is_processing(), case((row.edition > 0, row.updated_at), else_=row.changed_at)),
        (
            leaves_index(),
            case((row.status == "DELETED", row.updated_at), else_=taken_out_at),
        ),
        (and_(_is_left_out(), row.status != "DELETED"), expired_at),
        (and_(is_pushed_again(), ~_is_left_out()), pushed_at),
        (is_back, func.greatest(pushed_at, set_at)),
    ]


def _is_left_out() -> ColumnElement[bool]:
    """The condition that a document is of a record which is kept, and not listed."""
    return _has_record(~is_found())


def _has_record(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    record = source_records.c
    return exists().where(
        record.tenant == documents.c.tenant,
        record.document_id == documents.c.document_id,
        condition,
    )


def _records_left_out(tenant_id: str, readers: Collection[str] | None) -> ColumnElement[Any]:
    """The number of records that are kept, and not listed."""
    if readers is None:
        kept = select(func.count()).where(source_records.c.tenant == tenant_id, ~is_found())
        return _value(kept)
    # They all hang on pages: only comments and files are kept so.
    placed = placed_records(tenant_id, NOBODY).where(~is_found()).subquery()
    return _value(select(func.count()).select_from(placed).where(is_readable(placed, [*readers])))


def _vectors_beside(tenant_id: str) -> ColumnElement[Any]:
    return _value(
        select(generations.c.vectors_beside)
        .join(
            serving,
            and_(
                serving.c.tenant == generations.c.tenant,
                serving.c.generation == generations.c.generation,
            ),
        )
        .where(generations.c.tenant == tenant_id)
    )


def _value(query: Select[Any]) -> ColumnElement[Any]:
    return query.scalar_subquery()
