"""Open erasures: documents that some store still contains, and the receipt to be written.

An erasure is recorded in the transaction that decides it, with all the facts for its receipt. If
the process is killed, the erasure stays open. The tenant's next run completes it, and writes the
same receipt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, func, insert, select, update

from rag_assets.storage.catalog.changes import notify
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.erasure_rows import (
    Erasure,
    begin_erasure,
    delete_documents,
    end_erasure,
    erasure_of,
    forget_embedding,
    forget_slice,
    require_known,
)
from rag_assets.storage.catalog.erasure_tables import erasures
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.holds import holds_on, require_no_hold
from rag_assets.storage.catalog.receipts import Receipt
from rag_assets.storage.catalog.retention import Cutoffs, due_documents
from rag_assets.storage.catalog.security_changes import record_removal
from rag_assets.storage.catalog.system_tables import all_tables, count_staged, delete_staged
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    generations,
    source_records,
    tenants,
)
from rag_assets.storage.catalog.tombstones import bury_sealed
from rag_assets.storage.catalog.upload_tables import uploads

_OUTLIVING = frozenset(
    {"dagster_histories", "erasures", "receipts", "security_changes", "tenant_locks"}
)
"""Tables whose rows outlive a removed tenant."""


class ErasureTable:
    """Queries on `erasures`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, tenant_id: str) -> list[Erasure]:
        """Return the open erasures of a tenant, oldest first."""
        query = (
            select(erasures)
            .where(erasures.c.tenant == tenant_id)
            .order_by(erasures.c.at, erasures.c.id)
        )
        with self._database.begin() as connection:
            return [erasure_of(row) for row in connection.execute(query)]

    def begin_prune(
        self,
        ref: TenantRef,
        cutoffs: Cutoffs,
        held: Collection[str],
        *,
        rule: str,
        by: str,
        at: datetime,
    ) -> Erasure | None:
        """Start to delete documents past their retention; searches omit them from now on.

        Tombstones, which contain only hashes, prevent a document from being added again until it
        changes in its source. Pushed records and staged rows are deleted at once.

        Args:
            cutoffs: the tenant's retention.
            held: names of the sources with documents that stay until a person confirms.
            rule, by, at: recorded in the receipt.

        Returns:
            the erasure; None if nothing is due.
        """
        with self._database.begin_exclusive(ref) as connection:
            due = [
                document
                for document in due_documents(connection, ref.id, cutoffs)
                if document.source not in held
            ]
            staged = delete_staged(connection, ref, cutoffs, held)
            if not due and not staged:
                return None
            whole = [document.document_id for document in due if not document.former]
            former = [document.document_id for document in due if document.former]
            made = begin_erasure(
                connection, ref, whole, former, kind="prune", rule=rule, by=by, at=at, staged=staged
            )
            forget_embedding(connection, ref, former)
            return made

    def begin_purge(
        self, ref: TenantRef, document_ids: Collection[str], *, by: str, at: datetime
    ) -> Erasure:
        """Start to delete documents permanently, on request; searches omit them from now on.

        A document that its source still has is not added again until it changes.

        Args:
            document_ids: the documents. They may have been deleted before, if a row or tombstone is
                left.
            by, at: recorded in the receipt.

        Raises:
            UnknownDocument: the tenant does not know one of the documents.
            OnHold: one of the documents is held.
        """
        wanted = sorted(set(document_ids))
        with self._database.begin_exclusive(ref) as connection:
            require_known(connection, ref, wanted)
            require_no_hold(holds_on(connection, ref.id, wanted), ref.id, "the purge")
            made = begin_erasure(
                connection, ref, wanted, (), kind="purge", rule="request", by=by, at=at
            )
            notify(connection, ref.id)
            return made

    def bury_again(self, ref: TenantRef, sealed: Sequence[str]) -> None:
        """Prevent documents that were purged after the dump of a restored catalog from returning.

        Args:
            sealed: the tombstones of the documents, as stored in the journal.
        """
        with self._database.begin_exclusive(ref) as connection:
            bury_sealed(connection, ref, sealed)

    def begin_removal(self, ref: TenantRef, *, by: str, at: datetime) -> Erasure:
        """Start the removal of a tenant, or return the removal that was started before.

        Args:
            ref: the tenant, in the state REMOVING.
            by, at: who asked, and when; recorded in the receipt.
        """
        begun = select(erasures).where(
            erasures.c.tenant == ref.id,
            erasures.c.incarnation == ref.incarnation,
            erasures.c.kind == "removal",
        )
        ids = select(documents.c.document_id).where(documents.c.tenant == ref.id)
        entries = select(func.coalesce(func.sum(document_index.c.chunk_count), 0)).where(
            document_index.c.tenant == ref.id
        )
        records = select(func.count()).where(source_records.c.tenant == ref.id)
        blobs = select(func.count(uploads.c.content_sha256.distinct())).where(
            uploads.c.tenant == ref.id
        )
        indexes = select(generations.c.index_name).where(generations.c.tenant == ref.id).distinct()
        with self._database.begin() as connection:
            row = connection.execute(begun).first()
            if row is not None:
                return erasure_of(row)
            document_ids = list(connection.scalars(ids))
            counts = {
                "documents": {"documents": len(document_ids)},
                "index": {"entries": int(connection.scalar(entries) or 0)},
                "records": {
                    "records": connection.scalar(records) or 0,
                    "staged": count_staged(connection, ref.id),
                },
            }
            if found := connection.scalar(blobs):
                counts["blobs"] = {"blobs": found}
            made = insert(erasures).values(
                id=uuid4(),
                tenant=ref.id,
                incarnation=ref.incarnation,
                kind="removal",
                rule="request",
                by=by,
                at=at,
                document_ids=document_ids,
                counts=counts,
                progress={"indexes": sorted(connection.scalars(indexes))},
            )
            return erasure_of(connection.execute(made.returning(erasures)).one())

    def begin_discard(
        self, ref: TenantRef, generation: Generation, *, by: str, at: datetime
    ) -> Erasure:
        """Start to delete a build that does not serve searches, or return its open erasure.

        Args:
            by, at: who asked, and when; recorded in the receipt.
        """
        number = generation.number
        entries = select(func.coalesce(func.sum(document_index.c.chunk_count), 0)).where(
            document_index.c.tenant == ref.id, document_index.c.generation == number
        )
        begun = select(erasures).where(
            erasures.c.tenant == ref.id,
            erasures.c.kind == "discard",
            erasures.c.progress["generation"].as_integer() == number,
            # The number of a deleted build may be used again.
            erasures.c.progress["made_at"].as_string() == generation.created_at.isoformat(),
        )
        with self._database.begin_for(ref) as connection:
            if (row := connection.execute(begun).first()) is not None:
                return erasure_of(row)
            connection.execute(
                update(generations)
                .where(generations.c.tenant == ref.id, generations.c.generation == number)
                .values(state="REMOVING")
            )
            counts = {"index": {"builds": 1, "entries": int(connection.scalar(entries) or 0)}}
            made = insert(erasures).values(
                id=uuid4(),
                tenant=ref.id,
                incarnation=ref.incarnation,
                kind="discard",
                rule="request",
                by=by,
                at=at,
                counts=counts,
                progress={"generation": number, "made_at": generation.created_at.isoformat()},
            )
            return erasure_of(connection.execute(made.returning(erasures)).one())

    def note(self, erasure: Erasure, store: str, counts: Mapping[str, int]) -> Erasure:
        """Record how much an erasure will delete from a store, before it is deleted."""
        added = {**erasure.counts, store: dict(counts)}
        with self._database.begin() as connection:
            connection.execute(
                update(erasures).where(erasures.c.id == erasure.id).values(counts=added)
            )
            row = connection.execute(select(erasures).where(erasures.c.id == erasure.id)).one()
            return erasure_of(row)

    def record_progress(self, erasure: Erasure, progress: Mapping[str, Any]) -> Erasure:
        """Record the progress of an erasure; return the changed erasure."""
        with self._database.begin() as connection:
            connection.execute(
                update(erasures).where(erasures.c.id == erasure.id).values(progress=progress)
            )
        return replace(erasure, progress=progress)

    def forget(self, erasure: Erasure) -> None:
        """Delete the documents' rows, and their ids in the slice of the last run."""
        with self._database.begin_for(erasure.ref) as connection:
            delete_documents(connection, erasure)
            forget_slice(connection, erasure)

    def end(self, erasure: Erasure, proof: Mapping[str, Any] | None = None) -> Receipt:
        """Delete the documents' rows, and write the receipt."""
        with self._database.begin_for(erasure.ref) as connection:
            delete_documents(connection, erasure)
            return end_erasure(connection, erasure, proof or {})

    def forget_tenant(self, erasure: Erasure) -> None:
        """Delete a removed tenant's rows in all tables but `tenants` and those in _OUTLIVING."""
        ref = erasure.ref
        with self._database.begin() as connection:
            for table in reversed(all_tables()):
                if "tenant" in table.c and table.name not in _OUTLIVING:
                    connection.execute(delete(table).where(table.c.tenant == ref.id))

    def end_removal(self, erasure: Erasure, proof: Mapping[str, Any] | None = None) -> Receipt:
        """Delete a tenant with all of its rows, and write the receipt.

        The tenant's other open erasures end with it.
        """
        ref = erasure.ref
        others = select(erasures).where(erasures.c.tenant == ref.id, erasures.c.id != erasure.id)
        with self._database.begin() as connection:
            connection.execute(
                delete(tenants).where(
                    tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation
                )
            )
            record_removal(connection, ref)
            for row in connection.execute(others.order_by(erasures.c.at, erasures.c.id)).all():
                end_erasure(connection, erasure_of(row), {})
            return end_erasure(connection, erasure, proof or {})
