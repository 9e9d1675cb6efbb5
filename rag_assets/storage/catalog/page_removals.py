"""What goes with the records of pages: all that hangs on them, and on the pages below."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.page_rows import below_query, hanging_documents
from rag_assets.storage.catalog.tables import source_records
from rag_assets.workspace.bodies import PageBody
from rag_assets.workspace.tree import ROOT


def pages_of_records(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> set[str]:
    """The pages whose own records are among those of some documents."""
    record = source_records.c
    query = select(record.page_uuid).where(
        record.tenant == ref.id,
        among(record.document_id, [*document_ids]),
        record.source_type == PageBody.TYPE,
        record.page_uuid.is_not(None),
    )
    return {*connection.scalars(query)}


def standing_pages(
    connection: Connection, ref: TenantRef, uuids: Collection[str], removals: Collection[str]
) -> set[str]:
    """Those of some pages that have a record which does not go.

    Args:
        connection: of the transaction that removes the others.
        ref: the tenant.
        uuids: the pages.
        removals: documents whose records go.
    """
    if not uuids:
        return set()
    record = source_records.c
    query = select(record.page_uuid).where(
        record.tenant == ref.id,
        among(record.page_uuid, [*uuids]),
        record.source_type == PageBody.TYPE,
        ~among(record.document_id, [*removals]),
    )
    return {*connection.scalars(query)}


def going_with_pages(
    connection: Connection,
    ref: TenantRef,
    uuids: Collection[str],
    removals: Collection[str],
    *,
    spared: Collection[str] = (),
    keep_stored: bool = False,
) -> set[str]:
    """Documents that go with the records of pages: what hangs on these, or on a page below.

    A page that another record stands for as well is still there, and takes nothing along.

    Args:
        connection: of the transaction that removes the records.
        ref: the tenant.
        uuids: the pages.
        removals: documents whose records go, those of the pages among them.
        spared: pages below that stay, with what hangs on them or is below them.
        keep_stored: whether all pages stay whose records are stored and do not go.
    """
    if not uuids:
        return set()
    gone = {*uuids} - standing_pages(connection, ref, uuids, removals)
    # A record may be called as the root is: all else in the workspace stays.
    below = _below(connection, ref, gone - {ROOT}) - gone
    kept = below & {*spared}
    if keep_stored:
        kept |= standing_pages(connection, ref, below, removals)
    below -= kept | _below(connection, ref, kept)
    return {*hanging_documents(connection, ref, [*gone, *below])} - {*removals}


def _below(connection: Connection, ref: TenantRef, uuids: Collection[str]) -> set[str]:
    """All pages below some."""
    if not uuids:
        return set()
    tree = below_query(ref.id, [*uuids])
    return {*connection.scalars(select(tree.c.uuid))}
