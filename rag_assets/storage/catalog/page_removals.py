"""Documents removed together with pages: all documents attached to them and to the pages below."""

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
    """Return the pages with their own records among the records of some documents."""
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
    """Return the pages with a record that is not being removed.

    Args:
        connection: of the transaction that removes the others.
        uuids: the pages.
        removals: documents with records to remove.
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
    """Return the documents to remove with pages: all attached to these or to pages below.

    A page that still has another record stays, with the documents attached to it.

    Args:
        connection: of the transaction that removes the records.
        uuids: the pages.
        removals: documents with records to remove, including the pages' own.
        spared: pages below that stay, with their documents and the pages below them.
        keep_stored: whether to keep all pages with stored records that are not being removed.
    """
    if not uuids:
        return set()
    gone = {*uuids} - standing_pages(connection, ref, uuids, removals)
    # A record may have the id of the root: everything else in the workspace stays.
    below = _below(connection, ref, gone - {ROOT}) - gone
    kept = below & {*spared}
    if keep_stored:
        kept |= standing_pages(connection, ref, below, removals)
    below -= kept | _below(connection, ref, kept)
    return {*hanging_documents(connection, ref, [*gone, *below])} - {*removals}


def _below(connection: Connection, ref: TenantRef, uuids: Collection[str]) -> set[str]:
    """Return all pages below some pages."""
    if not uuids:
        return set()
    tree = below_query(ref.id, [*uuids])
    return {*connection.scalars(select(tree.c.uuid))}
