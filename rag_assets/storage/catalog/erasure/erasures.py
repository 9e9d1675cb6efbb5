"""Open erasures: documents that some store still contains, and the receipt to be written.

An erasure is recorded in the transaction that decides it, with all the facts for its receipt. If
the process is killed, the erasure stays open. The tenant's next run completes it, and writes the
same receipt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from rag_assets.common.batches import batched
from rag_assets.common.errors import UnknownDocument
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.judgements import forget_judgements
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    notify,
    read_row,
)
from rag_assets.storage.catalog.documents.removals import (
    add_sealed_tombstones,
    add_tombstones,
    delete_records,
    seal_tombstones,
)
from rag_assets.storage.catalog.documents.status import (
    build_deletion_update,
    build_withholding_update,
    is_of_generation,
    select_entry_count,
)
from rag_assets.storage.catalog.erasure.holds import list_holds, require_no_hold
from rag_assets.storage.catalog.erasure.receipts import (
    ErasureKind,
    Receipt,
    append_receipt,
    erasures,
    held_texts,
)
from rag_assets.storage.catalog.erasure.retention import (
    Cutoffs,
    count_staged,
    delete_staged,
    find_due_documents,
)
from rag_assets.storage.catalog.journal.security_changes import (
    raise_mark,
    record_change,
    record_removal,
)
from rag_assets.storage.catalog.tables import (
    SCHEMA,
    document_index,
    documents,
    generations,
    list_all_tables,
    source_records,
    tenants,
    tombstones,
)
from rag_assets.storage.catalog.uploads.model import uploads
from rag_assets.storage.catalog.uploads.rows import delete_uploads

_BATCH_DOCUMENTS = 2_000
_MAX_DOCUMENTS_PER_ENTRY = 100
"""Maximum number of purged documents per entry in the journal of security changes."""
_FORGET_SLICES = sa.text(
    f"UPDATE {SCHEMA}.slices SET document_ids = document_ids - :ids"  # noqa: S608 - nothing given
    " WHERE tenant = :tenant AND document_ids ?| :ids"
).bindparams(sa.bindparam("ids", type_=sa.ARRAY(sa.Text)))


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure of documents from every store: a row of `erasures`.

    Attributes:
        id: id of the erasure, and also of its receipt.
        counts: the numbers of erased objects, by store; complete when every store has counted.
    """

    id: UUID
    ref: TenantRef
    kind: ErasureKind
    rule: str
    by: str
    at: datetime
    document_ids: tuple[str, ...]
    parse_keys: frozenset[str]
    chunk_set_keys: frozenset[str]
    counts: Mapping[str, Mapping[str, int]]
    blobs: frozenset[str] = frozenset()
    progress: Mapping[str, Any] = field(default_factory=dict)


def begin_erasure(
    connection: sa.Connection,
    ref: TenantRef,
    whole: Sequence[str],
    former: Sequence[str],
    *,
    kind: ErasureKind,
    rule: str,
    by: str,
    at: datetime,
    staged: int = 0,
) -> Erasure:
    """Record an erasure, mark its documents deleted, and withhold them from searches.

    Args:
        whole: documents to erase completely. former: documents that stay, and whose indexed former
        version is erased.
    """
    indexed = document_index.c
    keys = sa.select(
        sa.func.array_agg(indexed.parse_key.distinct()).filter(indexed.parse_key.is_not(None)),
        sa.func.array_agg(indexed.chunk_set_key.distinct()).filter(
            indexed.chunk_set_key.is_not(None)
        ),
        sa.func.coalesce(sa.func.sum(indexed.chunk_count), 0),
    ).where(is_of_documents(indexed, ref.id, [*whole, *former]))
    parse_keys, chunk_set_keys, entries = connection.execute(keys).one()
    judgements = forget_judgements(connection, ref, whole)
    records = len(delete_records(connection, ref, whole))
    # Uploads that are disabled are in no build.
    of_disabled = sa.select(held_texts.c.parse_key, held_texts.c.chunk_set_key).where(
        is_of_documents(held_texts.c, ref.id, whole)
    )
    kept = connection.execute(of_disabled).all()
    blobs = delete_uploads(connection, ref, whole)
    add_tombstones(connection, ref, whole)
    for batch in batched(whole, _BATCH_DOCUMENTS):
        connection.execute(build_deletion_update(ref, batch))
    for batch in batched([*whole, *former], _BATCH_DOCUMENTS):
        connection.execute(build_withholding_update(ref, batch))
    erasure = insert_erasure(
        connection,
        ref,
        kind,
        rule=rule,
        by=by,
        at=at,
        document_ids=list(whole),
        parse_keys=sorted({*(parse_keys or []), *(row.parse_key for row in kept)}),
        chunk_set_keys=sorted({*(chunk_set_keys or []), *(row.chunk_set_key for row in kept)}),
        blobs=sorted(set(blobs)),
        counts={
            "documents": {"documents": len(whole), "former versions": len(former)},
            "index": {"entries": int(entries)},
            "records": {"records": records, "staged": staged},
            **({"blobs": {"blobs": len(set(blobs))}} if blobs else {}),
            **({"judgements": {"judgements": judgements}} if judgements else {}),
        },
    )
    if kind == "purge":
        for batch in batched(whole, _MAX_DOCUMENTS_PER_ENTRY):
            record_change(connection, ref, "purged", "", seal_tombstones(connection, ref, batch))
    else:
        raise_mark(connection, ref)
    return erasure


def require_known(connection: sa.Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    """Raise UnknownDocument if a document has no row, record, upload or tombstone."""
    known: set[str] = set()
    # Tombstones count: a person who doubts that a document was deleted may purge it again.
    for table in (documents, source_records, uploads, tombstones):
        query = sa.select(table.c.document_id).where(is_of_documents(table.c, ref.id, document_ids))
        known.update(connection.scalars(query))
    if unknown := [id_ for id_ in document_ids if id_ not in known]:
        raise UnknownDocument(
            f"tenant {ref.id!r} has no document {unknown[0]}",
            hint=f"`rag-assets documents {ref.id} --json` shows their ids",
        )


def end_erasure(connection: sa.Connection, erasure: Erasure, proof: Mapping[str, Any]) -> Receipt:
    """Delete an erasure's row, and write its receipt."""
    row = connection.execute(
        sa.delete(erasures).where(erasures.c.id == erasure.id).returning(erasures)
    ).one()
    return append_receipt(connection, row, proof)


def delete_documents(connection: sa.Connection, erasure: Erasure) -> None:
    """Delete the rows of an erasure's documents, unless they were added again."""
    for batch in batched(erasure.document_ids, _BATCH_DOCUMENTS):
        connection.execute(
            sa.delete(documents).where(
                is_of_documents(documents.c, erasure.ref.id, batch), documents.c.status == "DELETED"
            )
        )


def read_erasure(row: sa.Row[Any]) -> Erasure:
    """Return the erasure in a row of `erasures`."""
    return read_row(
        Erasure,
        row,
        ref=TenantRef(row.tenant, row.incarnation),
        document_ids=tuple(row.document_ids),
        parse_keys=frozenset(row.parse_keys),
        chunk_set_keys=frozenset(row.chunk_set_keys),
        blobs=frozenset(row.blobs),
    )


def insert_erasure(
    connection: sa.Connection, ref: TenantRef, kind: ErasureKind, **columns: Any
) -> Erasure:
    """Insert the row of a new erasure; `columns` must contain `rule`, `by` and `at`."""
    row = sa.insert(erasures).values(
        id=uuid4(), tenant=ref.id, incarnation=ref.incarnation, kind=kind, **columns
    )
    return read_erasure(connection.execute(row.returning(erasures)).one())


_OUTLIVING_TABLES = frozenset(
    {"dagster_histories", "erasures", "receipts", "security_changes", "tenant_locks"}
)
"""Tables whose rows outlive a removed tenant."""


class ErasureTable(CatalogQueries):
    """Starts, records and ends erasures, in `erasures`.

    The arguments `rule`, `by` and `at` are recorded in the receipt.
    """

    def list_open(self, tenant_id: str) -> list[Erasure]:
        """Return the open erasures of a tenant, oldest first."""
        query = (
            sa.select(erasures)
            .where(erasures.c.tenant == tenant_id)
            .order_by(erasures.c.at, erasures.c.id)
        )
        return [read_erasure(row) for row in self._database.fetch_rows(query)]

    def begin_prune(
        self,
        ref: TenantRef,
        cutoffs: Cutoffs,
        held_sources: Collection[str],
        *,
        rule: str,
        by: str,
        at: datetime,
    ) -> Erasure | None:
        """Start to erase the documents past their retention; return None if there are none.

        Tombstones, which contain only hashes, prevent a document from being added again until it
        changes in its source. Pushed records and staged rows are deleted immediately.

        Args:
            held_sources: names of the sources whose documents stay until a person confirms their
                deletion.
        """
        with self._database.begin_exclusive(ref) as connection:
            due = [
                document
                for document in find_due_documents(connection, ref.id, cutoffs)
                if document.source not in held_sources
            ]
            staged = delete_staged(connection, ref, cutoffs, held_sources)
            if not due and not staged:
                return None
            whole = [document.document_id for document in due if not document.former]
            former = [document.document_id for document in due if document.former]
            erasure = begin_erasure(
                connection, ref, whole, former, kind="prune", rule=rule, by=by, at=at, staged=staged
            )
            connection.execute(
                sa.update(documents)
                .where(is_of_documents(documents.c, ref.id, former))
                .values(embedded_at=None, embedded_sha256=None)
            )
            return erasure

    def begin_purge(
        self, ref: TenantRef, document_ids: Collection[str], *, by: str, at: datetime
    ) -> Erasure:
        """Start an erasure of documents, on request; searches omit them from now on.

        A document that its source still has is not added again until it changes.

        Args:
            document_ids: the documents. They may have been deleted before, if a row or tombstone
                remains.

        Raises:
            UnknownDocument: the tenant does not know one of the documents.
            OnHold: one of the documents is held.
        """
        wanted = sorted(set(document_ids))
        with self._database.begin_exclusive(ref) as connection:
            require_known(connection, ref, wanted)
            require_no_hold(list_holds(connection, ref.id, wanted), ref.id, "the purge")
            erasure = begin_erasure(
                connection, ref, wanted, (), kind="purge", rule="request", by=by, at=at
            )
            notify(connection, ref.id)
            return erasure

    def restore_tombstones(self, ref: TenantRef, sealed: Sequence[str]) -> None:
        """Restore the tombstones of documents that were purged after the catalog was dumped."""
        with self._database.begin_exclusive(ref) as connection:
            add_sealed_tombstones(connection, ref, sealed)

    def begin_removal(self, ref: TenantRef, *, by: str, at: datetime) -> Erasure:
        """Start the erasure of a tenant; if it was already started, return the open erasure.

        Args:
            ref: the tenant, in the state REMOVING.
        """
        open_erasure = sa.select(erasures).where(
            erasures.c.tenant == ref.id,
            erasures.c.incarnation == ref.incarnation,
            erasures.c.kind == "removal",
        )
        ids = sa.select(documents.c.document_id).where(documents.c.tenant == ref.id)
        entries = select_entry_count(document_index.c.tenant == ref.id)
        records = sa.select(sa.func.count()).where(source_records.c.tenant == ref.id)
        blobs = sa.select(sa.func.count(uploads.c.content_sha256.distinct())).where(
            uploads.c.tenant == ref.id
        )
        indexes = (
            sa.select(generations.c.index_name).where(generations.c.tenant == ref.id).distinct()
        )
        with self._database.begin() as connection:
            row = connection.execute(open_erasure).first()
            if row is not None:
                return read_erasure(row)
            document_ids = list(connection.scalars(ids))
            counts = {
                "documents": {"documents": len(document_ids)},
                "index": {"entries": connection.scalar(entries) or 0},
                "records": {
                    "records": connection.scalar(records) or 0,
                    "staged": count_staged(connection, ref.id),
                },
            }
            if found := connection.scalar(blobs):
                counts["blobs"] = {"blobs": found}
            return insert_erasure(
                connection,
                ref,
                "removal",
                rule="request",
                by=by,
                at=at,
                document_ids=document_ids,
                counts=counts,
                progress={"indexes": sorted(connection.scalars(indexes))},
            )

    def begin_discard(
        self, ref: TenantRef, generation: Generation, *, by: str, at: datetime
    ) -> Erasure:
        """Start the erasure of a build that does not serve searches."""
        number = generation.number
        entries = select_entry_count(is_of_generation(ref.id, number))
        open_erasure = sa.select(erasures).where(
            erasures.c.tenant == ref.id,
            erasures.c.kind == "discard",
            erasures.c.progress["generation"].as_integer() == number,
            # The number of a deleted build may be used again.
            erasures.c.progress["made_at"].as_string() == generation.created_at.isoformat(),
        )
        with self._database.begin_tenant(ref) as connection:
            if (row := connection.execute(open_erasure).first()) is not None:
                return read_erasure(row)
            connection.execute(
                sa.update(generations)
                .where(generations.c.tenant == ref.id, generations.c.generation == number)
                .values(state="REMOVING")
            )
            counts = {"index": {"builds": 1, "entries": connection.scalar(entries) or 0}}
            return insert_erasure(
                connection,
                ref,
                "discard",
                rule="request",
                by=by,
                at=at,
                counts=counts,
                progress={"generation": number, "made_at": generation.created_at.isoformat()},
            )

    def record_counts(self, erasure: Erasure, store: str, counts: Mapping[str, int]) -> Erasure:
        """Record how many items will be deleted from a store; return the changed erasure."""
        return self._update(erasure, counts={**erasure.counts, store: dict(counts)})

    def record_progress(self, erasure: Erasure, progress: Mapping[str, Any]) -> Erasure:
        """Record the progress of an erasure; return the changed erasure."""
        return self._update(erasure, progress=progress)

    def _update(self, erasure: Erasure, **values: Any) -> Erasure:
        changed = sa.update(erasures).where(erasures.c.id == erasure.id).values(values)
        with self._database.begin() as connection:
            return read_erasure(connection.execute(changed.returning(erasures)).one())

    def forget(self, erasure: Erasure) -> None:
        """Delete the rows of an erasure's documents, and their ids in the last run's slice."""
        with self._database.begin_tenant(erasure.ref) as connection:
            delete_documents(connection, erasure)
            parameters = {"tenant": erasure.ref.id, "ids": list(erasure.document_ids)}
            connection.execute(_FORGET_SLICES, parameters)

    def end(self, erasure: Erasure, proof: Mapping[str, Any] | None = None) -> Receipt:
        """End an erasure: delete the rows of its documents, and write the receipt."""
        with self._database.begin_tenant(erasure.ref) as connection:
            delete_documents(connection, erasure)
            return end_erasure(connection, erasure, proof or {})

    def forget_tenant(self, erasure: Erasure) -> None:
        """Delete a removed tenant's rows, except in `tenants` and in the _OUTLIVING_TABLES."""
        ref = erasure.ref
        with self._database.begin() as connection:
            for table in reversed(list_all_tables()):
                if "tenant" in table.c and table.name not in _OUTLIVING_TABLES:
                    connection.execute(sa.delete(table).where(table.c.tenant == ref.id))

    def end_removal(self, erasure: Erasure, proof: Mapping[str, Any] | None = None) -> Receipt:
        """Delete a tenant with all of its rows, and write the receipt."""
        ref = erasure.ref
        others = sa.select(erasures).where(erasures.c.tenant == ref.id, erasures.c.id != erasure.id)
        is_tenant = tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation
        with self._database.begin() as connection:
            connection.execute(sa.delete(tenants).where(*is_tenant))
            record_removal(connection, ref)
            for row in connection.execute(others.order_by(erasures.c.at, erasures.c.id)).all():
                end_erasure(connection, read_erasure(row), {})
            return end_erasure(connection, erasure, proof or {})
