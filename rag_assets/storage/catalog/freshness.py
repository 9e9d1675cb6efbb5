"""How far a tenant's index is behind its documents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, case, exists, func, literal, or_, select

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.index_rows import (
    has_left,
    is_behind_source,
    is_excluded,
    same_document,
)
from rag_assets.storage.catalog.records import is_found
from rag_assets.storage.catalog.tables import document_index, documents, serving, source_records
from rag_assets.storage.catalog.upload_rows import is_of_record, is_pushed_again
from rag_assets.storage.catalog.upload_tables import uploads


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of a tenant's serving generation.

    Attributes:
        chunks: in the serving generation.
        stale: documents whose indexed content differs from that of their source.
        last_indexed_at: when a document was last indexed; None before the first.
        queue_depth: documents that wait to be indexed or to be removed from the index. Records
            and uploads count from when they came, other documents from their listing.
    """

    chunks: int = 0
    stale: int = 0
    last_indexed_at: datetime | None = None
    queue_depth: int = 0


class FreshnessQuery:
    """Reads `documents` and `document_index`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self,
        tenant_id: str,
        sources: Collection[str],
        *,
        readers: Collection[str] | None = None,
    ) -> Freshness:
        """A tenant's freshness, in one query.

        Args:
            tenant_id: the tenant.
            sources: names of its sources; records of a removed source are not counted.
            readers: principals: only documents that one of them may read are counted, so that
                nothing is told of others; None: all.
        """
        held, listed = document_index.c, documents.c
        is_serving = and_(
            serving.c.tenant == listed.tenant,
            serving.c.generation == held.generation,
        )
        left = has_left()
        indexed = and_(serving.c.tenant.is_not(None), held.indexed_key.is_not(None))
        waits = or_(
            and_(listed.status == "PROCESSING", ~is_excluded()),
            and_(left, held.document_id.is_not(None)),
            is_pushed_again(),
        )
        document_count = func.count(listed.document_id.distinct())
        # Who reads what was never listed is not known yet.
        unlisted = literal(0) if readers is not None else _never_listed(tenant_id, sources)
        told = () if readers is None else (is_readable(documents, readers),)
        query = (
            select(
                func.coalesce(func.sum(held.chunk_count).filter(indexed, ~left), 0),
                document_count.filter(indexed, ~left, is_behind_source()),
                func.max(case((indexed, held.indexed_at))),
                document_count.filter(waits) + unlisted,
            )
            .select_from(documents)
            .outerjoin(document_index, same_document())
            .outerjoin(serving, is_serving)
            .where(listed.tenant == tenant_id, *told)
        )
        with self._database.begin() as connection:
            chunks, stale, last, waiting = connection.execute(query).one()
        return Freshness(int(chunks), int(stale), last, int(waiting))


def _never_listed(tenant_id: str, sources: Collection[str]) -> ColumnElement[int]:
    """The number of records and uploads that the next listing finds, and none has found yet."""
    counts = []
    of_files = (uploads.c.enabled, ~is_of_record())
    for table, which in ((source_records, (is_found(),)), (uploads, of_files)):
        pushed = table.c
        known = exists().where(
            documents.c.tenant == pushed.tenant, documents.c.document_id == pushed.document_id
        )
        of_sources = (pushed.tenant == tenant_id, among(pushed.source, sources))
        query = select(func.count()).select_from(table).where(*of_sources, ~known, *which)
        counts.append(query.scalar_subquery())
    return counts[0] + counts[1]
