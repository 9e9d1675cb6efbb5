"""Removal of documents: on request or after a move, and tombstones that keep them out.

A sync holds the tenant's lock for minutes, which is too long for a request to wait. A deletion
therefore only excludes the sync's transactions for the duration of its own transaction
(Database.begin_exclusive). Later transactions see its result: a tombstone, a missing record, the
document's status. A sync that listed a document before its deletion therefore neither records it
again nor publishes it.

A document is identified by its location, so a moved document is deleted and added. Until the
document at the new location is indexed, searches return the former document. So a renamed folder
can be found at any moment.

A tombstone is the hash of a pruned or purged document whose content may still be in a source. The
journal of security changes, which the stores keep outside the catalog, also contains the tombstones
of purged documents, encrypted with a key of the catalog. So a catalog that was restored from a dump
made before a purge can still prevent the documents from returning.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.common.errors import UnknownDocument
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    is_of_documents,
    matches_any,
    matches_document,
)
from rag_assets.storage.catalog.documents.model import DocumentChange
from rag_assets.storage.catalog.documents.status import (
    build_deletion_update,
    build_withholding_update,
)
from rag_assets.storage.catalog.erasure.receipts import compute_document_hashes, fetch_receipt_key
from rag_assets.storage.catalog.records.contents import find_readable_contents
from rag_assets.storage.catalog.tables import (
    documents,
    events,
    metadata,
    record_texts,
    source_records,
    tombstones,
)
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.storage.catalog.uploads.rows import delete_uploads

UNREADABLE = ""
"""The content hash in the tombstone of a document that could not be read."""


class RemovalTable(CatalogQueries):
    """Deletes documents on request."""

    def remove(
        self, ref: TenantRef, document_id: str, by: str, *, invalidate: bool = False
    ) -> bool:
        """Mark a document deleted: searches omit it immediately, the next sync deletes its entries.

        A document that its source still has is not added again until it changes.

        Args:
            invalidate: whether a later request may add the document again unchanged. If it was
                removed before, it can be added again only if both removals allow this.

        Returns:
            whether the document existed; False if it was deleted before.

        Raises:
            UnknownDocument: no document has that id, not even a recently deleted one.
        """
        table = documents.c
        known = sa.select(table.content_sha256, table.status).where(
            table.tenant == ref.id, table.document_id == document_id
        )
        with self._database.begin_exclusive(ref) as connection:
            pushed = bool(delete_records(connection, ref, [document_id]))
            pushed = bool(delete_uploads(connection, ref, [document_id])) or pushed
            row = connection.execute(known).first()
            if row is None and not pushed:
                raise UnknownDocument(
                    f"tenant {ref.id!r} has no such document",
                    hint="use an id from the list of documents",
                )
            is_present = row is not None and row.status != "DELETED"
            if row is not None and is_present and not pushed:
                content = row.content_sha256 or UNREADABLE
                key = {"tenant": ref.id, "document_id": document_id}
                values = {"content_sha256": content, "pruned_at": sa.func.now()}
                statement = build_row_upsert(tombstones, key, {**values, "invalidated": invalidate})
                connection.execute(statement)
            elif not invalidate:
                # Requests can no longer add it again unchanged.
                former = is_of_documents(tombstones.c, ref.id, [document_id])
                connection.execute(sa.update(tombstones).where(former).values(invalidated=False))
            withdraw_documents(connection, ref, [document_id], by)
        return is_present or pushed


def delete_records(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> frozenset[str]:
    """Delete pushed records and their former texts; return the documents whose record existed."""
    delete_former_texts(connection, ref, document_ids)
    record = source_records.c
    is_record = is_of_documents(record, ref.id, document_ids)
    deletion = sa.delete(source_records).where(is_record).returning(record.document_id)
    return frozenset(connection.scalars(deletion))


def delete_former_texts(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> None:
    """Delete the former texts of these records, which were kept for runs."""
    text = record_texts.c
    is_record = is_of_documents(text, ref.id, document_ids)
    connection.execute(sa.delete(record_texts).where(is_record))


def withdraw_documents(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str], by: str
) -> None:
    """Mark documents deleted, and withhold their versions from searches."""
    if not document_ids:
        return
    ids = sorted(document_ids)
    marked = build_deletion_update(ref, ids).returning(documents.c.document_id, documents.c.uri)
    rows = connection.execute(marked).all()
    if rows:
        connection.execute(build_withholding_update(ref, [row.document_id for row in rows]))
        payloads = [
            {"tenant": ref.id, "kind": "document_removed", "payload": {"uri": row.uri, "by": by}}
            for row in rows
        ]
        connection.execute(sa.insert(events), payloads)


def drop_superseded(
    connection: sa.Connection, ref: TenantRef, changes: Sequence[DocumentChange]
) -> list[DocumentChange]:
    """Return a listing's changes without those that later deletions or pushes have superseded.

    A record that was pushed again is recorded as it was listed, if that content is kept and its
    page and access scope are unchanged. So, however often it is pushed, each run indexes it once.
    """
    tombstoned = _find_tombstone_contents(
        connection, ref, [change.document_id for change in changes]
    )
    pushed = [change.document_id for change in changes if change.facts.revision is not None]
    present = _find_pushed(connection, ref, pushed) if pushed else {}
    pushed_again = [
        change
        for change in changes
        if (found := present.get(change.document_id)) is not None
        and found.revision != change.facts.revision
    ]
    ids = [change.document_id for change in pushed_again]
    kept = (
        find_readable_contents(connection, ref, ids)
        if pushed_again
        else frozenset[tuple[str, str]]()
    )
    return [
        change
        for change in changes
        if _may_be_recorded(change, present.get(change.document_id), kept)
        and tombstoned.get(change.document_id) != (change.content_sha256 or UNREADABLE)
    ]


def _may_be_recorded(
    change: DocumentChange, present: sa.Row[Any] | None, kept: Collection[tuple[str, str]]
) -> bool:
    if change.facts.revision is None:
        return present is None
    if present is None:
        return False
    if present.revision == change.facts.revision:
        return True
    readable = (change.document_id, change.content_sha256) in kept
    return readable and present.place in {None, change.page_uuid or change.access_scope}


def _find_tombstone_contents(
    connection: sa.Connection, ref: TenantRef, document_ids: Sequence[str]
) -> dict[str, str]:
    """Return, for each deleted document, the hash of the content that must not be added again."""
    table = tombstones.c
    is_living = documents.c.document_id.is_not(None) & (documents.c.status != "DELETED")
    query = (
        sa.select(table.document_id, table.content_sha256)
        .outerjoin(documents, matches_document(documents.c, table))
        .where(is_of_documents(table, ref.id, document_ids), ~is_living)
    )
    return dict(connection.execute(query).all())


def _find_pushed(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, sa.Row[Any]]:
    """Return the revision and the `place` of each of these pushed records and uploads.

    The `place` of a record determines who may read it: its page, or else its own access scope. The
    place of an upload is None.
    """
    columns = source_records.c
    records = sa.select(
        columns.document_id,
        columns.revision,
        sa.func.coalesce(columns.page_uuid, columns.said["access_scope"].astext).label("place"),
    ).where(is_of_documents(columns, ref.id, document_ids))
    files = sa.select(uploads.c.document_id, uploads.c.revision, sa.null().label("place")).where(
        is_of_documents(uploads.c, ref.id, document_ids), uploads.c.enabled
    )
    # The content of a file record is an upload, but the listing listed the record.
    uploaded = {row.document_id: row for row in connection.execute(files)}
    return uploaded | {row.document_id: row for row in connection.execute(records)}


_BATCH_DOCUMENTS = 2_000

moved_documents = sa.Table(
    "moved_documents",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True),
    # The document at its new location; a listing records it right afterwards.
    sa.Column("successor", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(
        ["tenant", "document_id"], ["documents.tenant", "documents.document_id"], ondelete="CASCADE"
    ),
)
"""Documents that are at another location now, until the new location is indexed."""


class MovedDocuments(CatalogQueries):
    """Records moved documents, and deletes them once their new location is indexed."""

    def record(self, ref: TenantRef, successors: Mapping[str, str]) -> None:
        """Record documents that their source moved to another location."""
        moved = moved_documents.c
        new = upsert(moved_documents)
        statement = new.on_conflict_do_update(
            index_elements=["tenant", "document_id"], set_={"successor": new.excluded.successor}
        )
        for batch in batched(sorted(successors), _BATCH_DOCUMENTS):
            with self._database.begin_tenant(ref) as connection:
                rows = [
                    {"tenant": ref.id, "document_id": id_, "successor": successors[id_]}
                    for id_ in batch
                ]
                connection.execute(statement, rows)
                # Documents that moved to one of these locations have now moved on from it.
                moved_here = (moved.tenant == ref.id, matches_any(moved.successor, batch))
                query = sa.select(moved.successor).where(*moved_here).distinct()
                for id_ in connection.scalars(query).all():
                    connection.execute(
                        sa.update(moved_documents)
                        .where(moved.tenant == ref.id, moved.successor == id_)
                        .values(successor=successors[id_])
                    )

    def end(self, ref: TenantRef) -> int:
        """Mark moved documents deleted whose successor is no longer being processed; count them."""
        moved = moved_documents.c
        waits = sa.exists().where(
            documents.c.tenant == moved.tenant,
            documents.c.document_id == moved.successor,
            documents.c.status == "PROCESSING",
        )
        query = sa.select(moved.document_id).where(moved.tenant == ref.id, ~waits)
        ended = sorted(self._database.fetch_values(query))
        for batch in batched(ended, _BATCH_DOCUMENTS):
            ids = list(batch)
            with self._database.begin_tenant(ref) as connection:
                connection.execute(build_deletion_update(ref, ids))
                forget_moves(connection, ref, ids)
        return len(ended)


def is_moved() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's content is now at another location."""
    moved = moved_documents.c
    return sa.exists().where(matches_document(moved, documents.c))


def forget_moves(connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]) -> None:
    """Delete the recorded moves of documents that are gone or back at their former location."""
    moved = moved_documents.c
    wanted = is_of_documents(moved, ref.id, [*document_ids])
    connection.execute(sa.delete(moved_documents).where(wanted))


_NONCE_BYTES: Final = 12


def add_tombstones(connection: sa.Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    """Add tombstones for documents, with the hashes of their current contents."""
    content = sa.func.coalesce(documents.c.content_sha256, "")
    buried = sa.select(documents.c.tenant, documents.c.document_id, content).where(
        is_of_documents(documents.c, ref.id, document_ids)
    )
    new = upsert(tombstones).from_select(["tenant", "document_id", "content_sha256"], buried)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant", "document_id"],
            set_={
                "content_sha256": new.excluded.content_sha256,
                "pruned_at": sa.func.now(),
                "invalidated": False,
            },
        )
    )


def seal_tombstones(
    connection: sa.Connection, ref: TenantRef, document_ids: Sequence[str]
) -> list[str]:
    """Return a journal entry for each purged document: "<keyed hash>.<encrypted tombstone>"."""
    query = sa.select(tombstones.c.document_id, tombstones.c.content_sha256).where(
        is_of_documents(tombstones.c, ref.id, document_ids)
    )
    contents = {row.document_id: row.content_sha256 for row in connection.execute(query)}
    cipher = _build_cipher(connection)
    sealed = []
    for hash_, id_ in zip(
        compute_document_hashes(connection, document_ids), document_ids, strict=True
    ):
        nonce = os.urandom(_NONCE_BYTES)
        text = json.dumps([id_, contents.get(id_, "")]).encode()
        ciphertext = nonce + cipher.encrypt(nonce, text, ref.id.encode())
        sealed.append(f"{hash_}.{base64.urlsafe_b64encode(ciphertext).decode()}")
    return sealed


def parse_hash(sealed: str) -> str:
    """Return the keyed hash in a document's journal entry (see seal_tombstones)."""
    return sealed.partition(".")[0]


def add_sealed_tombstones(connection: sa.Connection, ref: TenantRef, sealed: Sequence[str]) -> int:
    """Add tombstones from a journal to the catalog; return how many could be decrypted.

    The journal of a different catalog or an earlier version has no tombstones for this catalog.
    """
    cipher = _build_cipher(connection)
    rows = []
    for entry in sealed:
        try:
            ciphertext = base64.urlsafe_b64decode(entry.partition(".")[2])
            nonce, rest = ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:]
            id_, content = json.loads(cipher.decrypt(nonce, rest, ref.id.encode()))
        except (binascii.Error, ValueError, InvalidTag):
            continue
        rows.append({"tenant": ref.id, "document_id": id_, "content_sha256": content})
    if rows:
        keep_out = upsert(tombstones).on_conflict_do_update(
            index_elements=["tenant", "document_id"], set_={"invalidated": False}
        )
        connection.execute(keep_out, rows)
    return len(rows)


def _build_cipher(connection: sa.Connection) -> AESGCM:
    return AESGCM(
        hmac.digest(fetch_receipt_key(connection), b"tombstones of the journal", "sha256")
    )
