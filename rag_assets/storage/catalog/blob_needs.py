"""The blobs that a tenant needs for uploads, for records that are files, for holds and for runs.

Blobs are stored and deleted in exclusive transactions: no other transaction of the tenant runs at
the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import CompoundSelect, func, select

from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.upload_model import NeededBlob
from rag_assets.storage.catalog.upload_tables import held_uploads, record_files, uploads

_BATCH = 2_000


class BlobNeeds:
    """Queries on all tables that name blobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, tenant_id: str) -> Iterator[NeededBlob]:
        """Stream the blobs that a tenant needs, by hash."""
        needed = _needed(tenant_id).subquery()
        query = (
            select(
                needed.c.content_sha256,
                func.max(needed.c.size),
                func.array_agg(needed.c.document_id.distinct()),
            )
            .group_by(needed.c.content_sha256)
            .order_by(needed.c.content_sha256)
        )
        with self._database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH).execute(query)
            for sha256, size, document_ids in rows:
                yield NeededBlob(sha256, size, tuple(sorted(document_ids)))

    @contextmanager
    def unneeded(self, ref: TenantRef, hashes: Collection[str]) -> Iterator[list[str]]:
        """Yield the hashes of blobs that may be deleted before the context ends.

        Until the context ends, no other transaction can start to need one of these blobs.

        Args:
            hashes: the blobs to choose from.
        """
        with self._database.begin_exclusive(ref) as connection:
            needed = _needed(ref.id, hashes).subquery()
            kept = set(connection.scalars(select(needed.c.content_sha256)))
            yield sorted(set(hashes) - kept)


def _needed(tenant_id: str, hashes: Collection[str] | None = None) -> CompoundSelect[Any]:
    """Return the query for the blobs of uploads, holds and runs, with their documents."""
    queries = []
    for table in (uploads, held_uploads, record_files):
        columns = (table.c.content_sha256, table.c.size, table.c.document_id)
        query = select(*columns).where(table.c.tenant == tenant_id)
        if hashes is not None:
            query = query.where(among(table.c.content_sha256, hashes))
        queries.append(query)
    return queries[0].union_all(*queries[1:])
