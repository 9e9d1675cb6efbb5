"""Former versions, in one build, of documents whose present content cannot be indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.tables import document_index, documents

_FORMER = document_index.alias("former")
_OWN = document_index.alias("own")


@dataclass(frozen=True, slots=True)
class FormerVersion:
    """A version of a document that searches can find in another build.

    Attributes:
        document_key: key of the inputs from which it was built.
        parse_key: key of its text in the lake.
        content_sha256: hash of the content among these inputs; None if it was not recorded.
    """

    document_id: str
    document_key: str
    parse_key: str
    content_sha256: str | None


class FormerVersionTable:
    """Queries on `document_index` and `documents`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self, tenant_id: str, answering: int, lacking: int, document_ids: Sequence[str]
    ) -> list[FormerVersion]:
        """Return the versions of failed documents that one build has and another lacks.

        Args:
            answering: the build that has the versions.
            lacking: the build that lacks them.
            document_ids: only versions of these documents.
        """
        # A rejected text that is retried may be rejected again.
        failed = or_(documents.c.retry_at.is_(None), documents.c.error_kind == "text-rejected")
        row = _FORMER.c
        columns = (row.document_id, _document_key(), row.parse_key, row.content_sha256)
        query = _lacking(tenant_id, answering, lacking, *columns)
        with self._database.begin() as connection:
            rows = connection.execute(
                query.where(failed, among(_FORMER.c.document_id, document_ids))
            )
            return [FormerVersion(*row) for row in rows]

    def try_again(self, ref: TenantRef, answering: int, lacking: int) -> int:
        """Retry the permanently failed documents of all such versions; return their number."""
        final = documents.c.retry_at.is_(None)
        ids = _lacking(ref.id, answering, lacking, _FORMER.c.document_id).where(final)
        statement = (
            update(documents)
            .where(documents.c.tenant == ref.id, documents.c.document_id.in_(ids))
            .values(retry_at=func.now())
        )
        with self._database.begin_for(ref) as connection:
            return connection.execute(statement).rowcount

    def give_up(self, ref: TenantRef, lacking: int, document_id: str, document_key: str) -> None:
        """Record that a build cannot hold a former version of a document."""
        row = {"tenant": ref.id, "generation": lacking, "document_id": document_id}
        failed = {"failed_document_key": document_key}
        statement = upsert(document_index).values(**row, dirty=False, **failed)
        with self._database.begin_for(ref) as connection:
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["tenant", "generation", "document_id"], set_=failed
                )
            )


def _document_key() -> ColumnElement[str]:
    # Null if the version is to be written again.
    return func.coalesce(_FORMER.c.document_key, _FORMER.c.indexed_key)


def _lacking(
    tenant_id: str, answering: int, lacking: int, *columns: ColumnElement[Any]
) -> Select[Any]:
    state = documents.c
    own = and_(
        _OWN.c.tenant == _FORMER.c.tenant,
        _OWN.c.document_id == _FORMER.c.document_id,
        _OWN.c.generation == lacking,
    )
    its_document = and_(
        state.tenant == _FORMER.c.tenant, state.document_id == _FORMER.c.document_id
    )
    return (
        select(*columns)
        .select_from(_FORMER)
        .join(documents, its_document)
        .outerjoin(_OWN, own)
        .where(
            _FORMER.c.tenant == tenant_id,
            _FORMER.c.generation == answering,
            _FORMER.c.indexed_key.is_not(None),
            _FORMER.c.parse_key.is_not(None),
            state.status == "FAILED",
            state.failed_document_key == state.document_key,
            # A document that its source cannot provide is not parsed, and therefore never retried.
            state.content_sha256.is_not(None),
            _OWN.c.indexed_key.is_(None),
            _OWN.c.failed_document_key.is_distinct_from(_document_key()),
        )
    )
