"""States of uploaded files, as pages of a list, for the people of a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from sqlalchemy import ColumnElement, Row, Select, and_, case, select, tuple_

from rag_assets.common.failure_kinds import FailureKind
from rag_assets.storage.catalog.database import CatalogQueries, matches_document, read_row
from rag_assets.storage.catalog.documents.status import NEVER
from rag_assets.storage.catalog.tables import document_index, documents, serving
from rag_assets.storage.catalog.uploads.model import UploadedFile, uploads

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
        dropped_count: number of its passages that were withheld because of a credential.
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
        """Return a page of a tenant's uploads, newest first, in one query.

        Args:
            after: the position (`place`) of the last upload of the previous page.
        """
        table = uploads.c
        query = _select_states(tenant_id).order_by(
            table.created_at.desc(), table.document_id.desc()
        )
        if status is not None:
            query = query.where(_status() == status)
        if after is not None:
            query = query.where(tuple_(table.created_at, table.document_id) < tuple_(*after))
        return [_read_state(row) for row in self._database.fetch_rows(query.limit(limit))]

    def find(self, tenant_id: str, upload_id: str) -> UploadState | None:
        """Return one upload of a tenant; None if it does not exist."""
        query = _select_states(tenant_id).where(uploads.c.document_id == upload_id)
        row = self._database.fetch_row(query)
        return None if row is None else _read_state(row)


def _select_states(tenant_id: str) -> Select[Any]:
    state, held = documents.c, document_index.c
    return (
        select(
            uploads,
            _status().label("status"),
            (~_is_waiting()).label("listed"),
            state.error_kind,
            state.retry_at,
            state.dropped_count,
            held.indexed_key,
            held.chunk_count,
            held.token_count,
            held.chunk_set_key,
        )
        .outerjoin(documents, matches_document(state, uploads.c))
        .outerjoin(serving, serving.c.tenant == uploads.c.tenant)
        .outerjoin(
            document_index,
            and_(
                held.tenant == uploads.c.tenant,
                held.generation == serving.c.generation,
                held.document_id == uploads.c.document_id,
            ),
        )
        .where(uploads.c.tenant == tenant_id)
    )


def _is_waiting() -> ColumnElement[bool]:
    """Return the SQL condition that an upload changed after its last listing."""
    return documents.c.revision.is_distinct_from(uploads.c.revision)


def _status() -> ColumnElement[str]:
    return case(
        (~uploads.c.enabled, "READY"),
        (_is_waiting(), "PROCESSING"),
        (documents.c.status.in_(UPLOAD_STATUSES), documents.c.status),
        else_="PROCESSING",
    )


def _read_state(row: Row[Any]) -> UploadState:
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
