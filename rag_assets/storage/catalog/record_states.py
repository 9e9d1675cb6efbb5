"""What became of a pushed record, as far as the catalog knows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, case, func, literal, select

from rag_assets.common.failure_kinds import FailureKind
from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.record_writes import is_expired
from rag_assets.storage.catalog.records import is_found
from rag_assets.storage.catalog.tables import documents, source_records
from rag_assets.storage.catalog.tree_tables import pages
from rag_assets.storage.catalog.upload_tables import uploads
from rag_assets.workspace.tree import NOBODY


@dataclass(frozen=True, slots=True)
class RecordState:
    """A record, and its document.

    Attributes:
        sha256: of its text, or of its content where that is put by itself.
        is_found: whether it is listed; else it is left out.
        is_expired: whether it is a comment that was resolved too long ago.
        is_listed: whether the last listing found it as it is now.
        status: of its document; None before its first listing.
        error_kind: why it failed, if it did.
        dropped: passages that were dropped for a credential.
    """

    updated_at: datetime | None
    sha256: str
    is_found: bool
    is_expired: bool
    is_listed: bool
    status: str | None
    error_kind: FailureKind | None
    dropped: int


class RecordStateQuery:
    """Reads `source_records` and `documents`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self,
        tenant_id: str,
        document_id: str,
        principals: Collection[str],
        *,
        scope: str,
    ) -> RecordState | None:
        """The state of a record; None where there is none that one of the principals may read.

        Args:
            tenant_id: the tenant.
            document_id: of the record.
            principals: the caller's.
            scope: the access scope of records that name none, and hang on no page.
        """
        record, row = source_records.c, documents.c
        of_page = func.coalesce(
            select(pages.c.scope)
            .where(pages.c.tenant == record.tenant, pages.c.uuid == record.page_uuid)
            .scalar_subquery(),
            NOBODY,
        )
        unlisted = func.coalesce(
            record.said["access_scope"].astext,
            case((record.page_uuid.is_not(None), of_page)),
            literal(scope),
        )
        content = select(uploads.c.content_sha256).where(
            uploads.c.tenant == record.tenant, uploads.c.document_id == record.document_id
        )
        placed = (
            select(
                record.tenant,
                record.modified_at,
                func.coalesce(content.scalar_subquery(), record.content_sha256).label("sha256"),
                is_found().label("is_found"),
                is_expired().label("is_expired"),
                (record.revision == row.revision).label("is_listed"),
                row.status,
                row.error_kind,
                row.dropped_count,
                func.coalesce(row.access_scope, unlisted).label("access_scope"),
            )
            .select_from(source_records)
            .outerjoin(
                documents,
                and_(row.tenant == record.tenant, row.document_id == record.document_id),
            )
            .where(record.tenant == tenant_id, record.document_id == document_id)
            .subquery()
        )
        query = select(placed).where(is_readable(placed, [*principals]))
        with self._database.begin() as connection:
            found = connection.execute(query).first()
        if found is None:
            return None
        return RecordState(
            updated_at=found.modified_at,
            sha256=found.sha256,
            is_found=found.is_found,
            is_expired=bool(found.is_expired),
            is_listed=bool(found.is_listed),
            status=found.status,
            error_kind=found.error_kind,
            dropped=found.dropped_count or 0,
        )
