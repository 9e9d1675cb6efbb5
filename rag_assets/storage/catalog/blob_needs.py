"""Which blobs of a tenant are needed: by uploads, by records that are files, by holds, by runs.

That is decided in transactions that exclude each other: a blob is put in its place, or deleted,
while no other transaction of the tenant is under way.
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
        """Those of some blobs that nothing needs: to be deleted before the context ends.

        Nothing can begin to need one meanwhile.

        Args:
            ref: the tenant.
            hashes: of the blobs.
        """
        with self._database.begin_exclusive(ref) as connection:
            needed = _needed(ref.id, hashes).subquery()
            kept = set(connection.scalars(select(needed.c.content_sha256)))
            yield sorted(set(hashes) - kept)


def _needed(tenant_id: str, hashes: Collection[str] | None = None) -> CompoundSelect[Any]:
    """The blobs of uploads, and those that holds or runs need, with their documents."""
    queries = []
    for table in (uploads, held_uploads, record_files):
        columns = (table.c.content_sha256, table.c.size, table.c.document_id)
        query = select(*columns).where(table.c.tenant == tenant_id)
        if hashes is not None:
            query = query.where(among(table.c.content_sha256, hashes))
        queries.append(query)
    return queries[0].union_all(*queries[1:])
