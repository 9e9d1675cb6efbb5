"""The uploads of one tenant, as its sources list and read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import select

from rag_assets.ingest.sources.model import StoredUpload, document_id
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.tables import tenants
from rag_assets.storage.catalog.upload_tables import record_files, uploads

_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class TenantUploads:
    """The uploads of one tenant, as its sources list them."""

    database: Database
    tenant_id: str

    def listed(self, source: str) -> Iterator[StoredUpload]:
        """Stream every enabled upload of one source."""
        table = uploads.c
        query = select(
            *(table.path, table.document_id, table.revision, table.file_name, table.media_type),
            *(table.size, table.content_sha256, table.updated_at),
        ).where(table.tenant == self.tenant_id, table.source == source, table.enabled)
        with self.database.begin() as connection:
            rows = connection.execution_options(yield_per=_BATCH).execute(query)
            for row in rows:
                yield StoredUpload(
                    path=row.path,
                    document_id=row.document_id,
                    revision=row.revision,
                    file_name=row.file_name,
                    media_type=row.media_type,
                    size=row.size,
                    content_sha256=row.content_sha256,
                    changed_ns=int(row.updated_at.timestamp() * 1e6) * 1_000,
                )

    def content(self, source: str, path: str) -> tuple[int, str] | None:
        """Return the tenant's incarnation and the hash of an upload's content, if it exists."""
        table = uploads.c
        query = (
            select(tenants.c.incarnation, table.content_sha256)
            .join(tenants, tenants.c.id == table.tenant)
            .where(
                table.tenant == self.tenant_id,
                table.document_id == document_id(source, path),
            )
        )
        with self.database.begin() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row.incarnation, row.content_sha256)

    def former(self, source: str, path: str, content_sha256: str) -> int | None:
        """Return the tenant's incarnation, if a run may still read this content of an upload."""
        kept = record_files.c
        query = (
            select(tenants.c.incarnation)
            .join(record_files, kept.tenant == tenants.c.id)
            .where(
                kept.tenant == self.tenant_id,
                kept.document_id == document_id(source, path),
                kept.content_sha256 == content_sha256,
            )
        )
        with self.database.begin() as connection:
            incarnation: int | None = connection.scalar(query)
        return incarnation
