"""Holds: a tenant's data that must not be erased until the hold is lifted.

A held document that is deleted still leaves search results and the index. Triggers keep the data
that would be lost then: the lake keys of its versions, the texts of pushed records, and the list of
blobs that must stay. The data computed from a disabled upload is kept in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from rag_assets.common.errors import OnHold, UnknownDocument, UnknownSource
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    is_of_documents,
    matches_any,
    matches_document,
    write_event,
)
from rag_assets.storage.catalog.erasure.receipts import (
    compute_document_hashes,
    held_records,
    held_texts,
    holds,
)
from rag_assets.storage.catalog.journal.security_changes import ChangeKind, record_change
from rag_assets.storage.catalog.tables import documents, source_records
from rag_assets.storage.catalog.uploads.model import held_uploads, uploads

if TYPE_CHECKING:
    from rag_assets.storage.catalog.journal.events import EventKind


_WITH_SOURCES = (documents, source_records, uploads)


@dataclass(frozen=True, slots=True)
class HoldScope:
    """The target of a hold: one document, the documents of a source, or all of the tenant."""

    source: str | None = None
    document_id: str | None = None

    def __str__(self) -> str:
        if self.document_id is not None:
            return f"document {self.document_id}"
        return "all documents" if self.source is None else f"source {self.source!r}"


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold on documents of a tenant.

    Attributes:
        reason: a person's text, with credentials masked.
    """

    scope: HoldScope
    reason: str
    by: str
    at: datetime


def require_no_hold(covering: Sequence[Hold], tenant_id: str, what: str) -> None:
    """Require that no hold covers documents that are to be deleted permanently.

    Raises:
        OnHold: at least one hold covers them; `what` names the refused action.
    """
    if covering:
        first = covering[0]
        raise OnHold(
            f"{what} is refused: {first.scope} of tenant {tenant_id!r} is held since"
            f" {first.at:%Y-%m-%d} ({first.reason})",
            hint=f"`rag-assets hold list {tenant_id}` shows all; `rag-assets hold lift` lifts one",
        )


class HoldTable(CatalogQueries):
    """Sets, lifts and lists holds; setting and lifting need the tenant's lock."""

    def all(self, tenant_id: str) -> list[Hold]:
        """Return a tenant's holds, oldest first."""
        with self._database.begin() as connection:
            return list_holds(connection, tenant_id)

    def document_count(self, tenant_id: str) -> int:
        """Return how many documents are held; deleted documents and disabled uploads count too."""
        return self._database.count(tenant_id, documents, is_held())

    def set(self, ref: TenantRef, scope: HoldScope, *, reason: str, by: str) -> None:
        """Set a hold, or replace the reason of an existing hold."""
        row = {"source": scope.source, "document_id": scope.document_id}
        details = {"reason": reason, "by": by}
        with self._database.begin_tenant(ref) as connection:
            _require_known(connection, ref, scope)
            _record_change(connection, ref, "hold_set", scope)
            connection.execute(build_row_upsert(holds, {"tenant": ref.id, **row}, details))
            _write_event(connection, ref, "hold_set", scope, details)

    def lift(self, ref: TenantRef, scope: HoldScope, *, reason: str, by: str) -> bool:
        """Lift a hold, and delete the data kept only because of it; return whether it existed."""
        of_tenant = holds.c.tenant == ref.id
        the_hold = (
            of_tenant,
            holds.c.source.is_not_distinct_from(scope.source),
            holds.c.document_id.is_not_distinct_from(scope.document_id),
        )
        with self._database.begin_tenant(ref) as connection:
            if not connection.execute(sa.delete(holds).where(*the_hold)).rowcount:
                return False
            _record_change(connection, ref, "hold_lifted", scope)
            for table in (held_texts, held_records, held_uploads):
                covered = sa.exists().where(matches_document(documents.c, table.c), is_held())
                connection.execute(sa.delete(table).where(table.c.tenant == ref.id, ~covered))
            _write_event(connection, ref, "hold_lifted", scope, {"reason": reason, "by": by})
        return True


def list_holds(
    connection: sa.Connection, tenant_id: str, document_ids: Sequence[str] | None = None
) -> list[Hold]:
    """Return a tenant's holds, oldest first."""
    query = sa.select(holds).where(holds.c.tenant == tenant_id).order_by(holds.c.id)
    if document_ids is not None:
        sources = [
            sa.select(table.c.source).where(is_of_documents(table.c, tenant_id, document_ids))
            for table in _WITH_SOURCES
        ]
        query = query.where(
            sa.or_(
                matches_any(holds.c.document_id, document_ids),
                *(holds.c.source.in_(of_table) for of_table in sources),
                holds.c.document_id.is_(None) & holds.c.source.is_(None),
            )
        )
    return [
        Hold(HoldScope(row.source, row.document_id), row.reason, row.by, row.set_at)
        for row in connection.execute(query)
    ]


def is_held() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document is covered by a hold, or is a disabled upload."""
    disabled = sa.exists().where(matches_document(uploads.c, documents.c), ~uploads.c.enabled)
    return sa.or_(is_row_held(documents), disabled.correlate(documents))


def is_row_held(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a hold covers a row; every deletion by age must check it.

    A hold on all documents covers every row of the tenant. A hold on a document or a source covers
    the rows of its documents.

    Args:
        table: with a column `tenant`, and `document_id` if its rows belong to documents.
    """
    scopes: list[sa.ColumnElement[bool]] = [
        holds.c.document_id.is_(None) & holds.c.source.is_(None)
    ]
    if "document_id" in table.c:
        scopes.append(holds.c.document_id == table.c.document_id)
        scopes.append(holds.c.source == select_source(table))
    return sa.exists().where(holds.c.tenant == table.c.tenant, sa.or_(*scopes)).correlate(table)


def select_source(table: sa.FromClause) -> sa.ColumnElement[str | None]:
    """Return the SQL expression of the source of a row's document; null without a document."""
    if "source" in table.c:
        return table.c.source
    return (
        sa.select(documents.c.source)
        .where(matches_document(documents.c, table.c))
        .correlate(table)
        .scalar_subquery()
    )


def _require_known(connection: sa.Connection, ref: TenantRef, scope: HoldScope) -> None:
    if scope.document_id is not None:
        known = sa.select(sa.literal(1)).where(
            is_of_documents(documents.c, ref.id, [scope.document_id])
        )
        if connection.scalar(known) is None:
            raise UnknownDocument(
                f"tenant {ref.id!r} has no such document",
                hint=f"`rag-assets documents {ref.id} --json` shows their ids",
            )
    elif scope.source is not None:
        of_source = [
            sa.exists().where(table.c.tenant == ref.id, table.c.source == scope.source)
            for table in _WITH_SOURCES
        ]
        if not connection.scalar(sa.select(sa.or_(*of_source))):
            raise UnknownSource(
                f"tenant {ref.id!r} has no data of a source named {scope.source!r}",
                hint=f"`rag-assets documents {ref.id}` shows its documents and their sources",
            )


def _record_change(
    connection: sa.Connection, ref: TenantRef, kind: ChangeKind, scope: HoldScope
) -> None:
    document_ids = () if scope.document_id is None else (scope.document_id,)
    about = (scope.source or "", *compute_document_hashes(connection, document_ids))
    record_change(connection, ref, kind, "", about)


def _write_event(
    connection: sa.Connection,
    ref: TenantRef,
    kind: EventKind,
    scope: HoldScope,
    details: dict[str, str],
) -> None:
    named = {"source": scope.source, "document_id": scope.document_id}
    payload = details | {name: value for name, value in named.items() if value is not None}
    write_event(connection, ref.id, kind, payload)
