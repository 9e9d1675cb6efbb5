"""Erasures under way: what is still to be removed from some store, and the receipt to be written.

An erasure is recorded in the transaction that decides it, with all that its receipt will say. Who
is killed in between leaves it open; the next run of the tenant ends it, with the same receipt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.erasure_tables import erasures
from rag_assets.storage.catalog.index_rows import withhold_statement
from rag_assets.storage.catalog.judgements import forget_judgements
from rag_assets.storage.catalog.receipts import ErasureKind, Receipt, append_receipt
from rag_assets.storage.catalog.removals import mark_deleted_statement
from rag_assets.storage.catalog.retention import Cutoffs, delete_staged, due_documents
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    knowledge_staging,
    source_records,
    tenants,
    tombstones,
)

_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure of documents from every store.

    Attributes:
        id: of its receipt, too.
        kind, rule, by, at: see Receipt.
        document_ids: its documents.
        parse_keys, chunk_set_keys: of their texts and chunks in the lake.
        counts: what it erases, by store; complete once every store has counted.
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


class ErasureTable:
    """Queries on `erasures`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, tenant_id: str) -> list[Erasure]:
        """The erasures of a tenant that are not ended, oldest first."""
        query = (
            select(erasures)
            .where(erasures.c.tenant == tenant_id)
            .order_by(erasures.c.at, erasures.c.id)
        )
        with self._database.begin() as connection:
            return [_erasure(row) for row in connection.execute(query)]

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
        """Delete what is past its retention: searches omit it from now on.

        Tombstones prevent that documents are added again while they are unchanged in their source;
        they hold hashes alone. Pushed records and staged knowledge go at once.

        Args:
            ref: the tenant.
            cutoffs: its retention.
            held: names of the sources whose documents stay until a person confirms.
            rule, by, at: for the receipt.

        Returns:
            the erasure; None if nothing is due.
        """
        with self._database.begin_exclusive(ref) as connection:
            due = [
                document
                for document in due_documents(connection, ref.id, cutoffs)
                if document.source not in held
            ]
            staged = delete_staged(connection, ref, cutoffs)
            if not due and not staged:
                return None
            whole = [document.document_id for document in due if not document.former]
            former = [document.document_id for document in due if document.former]
            made = _begin(
                connection, ref, whole, former, kind="prune", rule=rule, by=by, at=at, staged=staged
            )
            _forget_embedding(connection, ref, former)
            return made

    def begin_removal(self, ref: TenantRef, *, by: str, at: datetime) -> Erasure:
        """Begin the removal of a tenant, or return the one that was begun.

        Args:
            ref: the tenant, whose state is REMOVING.
            by, at: for the receipt.
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
        staged = select(func.count()).where(knowledge_staging.c.tenant == ref.id)
        with self._database.begin() as connection:
            row = connection.execute(begun).first()
            if row is not None:
                return _erasure(row)
            document_ids = list(connection.scalars(ids))
            counts = {
                "documents": {"documents": len(document_ids)},
                "index": {"entries": int(connection.scalar(entries) or 0)},
                "records": {
                    "records": connection.scalar(records) or 0,
                    "staged": connection.scalar(staged) or 0,
                },
            }
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
            )
            return _erasure(connection.execute(made.returning(erasures)).one())

    def note(self, erasure: Erasure, store: str, counts: Mapping[str, int]) -> Erasure:
        """Record what an erasure takes from a store, before it is taken."""
        added = {**erasure.counts, store: dict(counts)}
        with self._database.begin() as connection:
            connection.execute(
                update(erasures).where(erasures.c.id == erasure.id).values(counts=added)
            )
            row = connection.execute(select(erasures).where(erasures.c.id == erasure.id)).one()
            return _erasure(row)

    def end(self, erasure: Erasure, proof: Mapping[str, Any] | None = None) -> Receipt:
        """Delete the documents' rows, and write the receipt."""
        with self._database.begin_for(erasure.ref) as connection:
            for batch in batched(erasure.document_ids, _BATCH):
                connection.execute(
                    delete(documents).where(
                        documents.c.tenant == erasure.ref.id,
                        among(documents.c.document_id, batch),
                        documents.c.status == "DELETED",
                    )
                )
            return _end(connection, erasure, proof or {})

    def end_removal(self, erasure: Erasure, proof: Mapping[str, Any] | None = None) -> Receipt:
        """Delete a tenant with all of its rows, and write the receipt.

        Erasures of its documents that were under way end with it.
        """
        ref = erasure.ref
        others = select(erasures).where(erasures.c.tenant == ref.id, erasures.c.id != erasure.id)
        with self._database.begin() as connection:
            connection.execute(
                delete(tenants).where(
                    tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation
                )
            )
            for row in connection.execute(others.order_by(erasures.c.at, erasures.c.id)).all():
                _end(connection, _erasure(row), {})
            return _end(connection, erasure, proof or {})


def _begin(
    connection: Connection,
    ref: TenantRef,
    whole: Sequence[str],
    former: Sequence[str],
    *,
    kind: ErasureKind,
    rule: str,
    by: str,
    at: datetime,
    staged: int,
) -> Erasure:
    """Record an erasure, and withhold its documents."""
    held = document_index.c
    of_documents = (held.tenant == ref.id, among(held.document_id, [*whole, *former]))
    keys = select(
        func.array_agg(held.parse_key.distinct()).filter(held.parse_key.is_not(None)),
        func.array_agg(held.chunk_set_key.distinct()).filter(held.chunk_set_key.is_not(None)),
        func.coalesce(func.sum(held.chunk_count), 0),
    ).where(*of_documents)
    parse_keys, chunk_set_keys, entries = connection.execute(keys).one()
    judgements = forget_judgements(connection, ref, whole)
    records = _delete_records(connection, ref, whole)
    _bury(connection, ref, whole)
    for batch in batched(whole, _BATCH):
        connection.execute(mark_deleted_statement(ref, batch))
    for batch in batched([*whole, *former], _BATCH):
        connection.execute(withhold_statement(ref, batch))
    row = connection.execute(
        insert(erasures)
        .values(
            id=uuid4(),
            tenant=ref.id,
            incarnation=ref.incarnation,
            kind=kind,
            rule=rule,
            by=by,
            at=at,
            document_ids=list(whole),
            parse_keys=parse_keys or [],
            chunk_set_keys=chunk_set_keys or [],
            counts={
                "documents": {"documents": len(whole), "former versions": len(former)},
                "index": {"entries": int(entries)},
                "records": {"records": records, "staged": staged},
                **({"judgements": {"judgements": judgements}} if judgements else {}),
            },
        )
        .returning(erasures)
    ).one()
    return _erasure(row)


def _end(connection: Connection, erasure: Erasure, proof: Mapping[str, Any]) -> Receipt:
    connection.execute(delete(erasures).where(erasures.c.id == erasure.id))
    return append_receipt(
        connection,
        id_=erasure.id,
        tenant=erasure.ref.id,
        incarnation=erasure.ref.incarnation,
        kind=erasure.kind,
        rule=erasure.rule,
        by=erasure.by,
        at=erasure.at,
        counts=erasure.counts,
        document_ids=erasure.document_ids,
        proof=proof,
    )


def _delete_records(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> int:
    statement = delete(source_records).where(
        source_records.c.tenant == ref.id, among(source_records.c.document_id, document_ids)
    )
    return connection.execute(statement).rowcount


def _bury(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    """Leave tombstones with the contents that the documents have now."""
    content = func.coalesce(documents.c.content_sha256, "")
    buried = select(documents.c.tenant, documents.c.document_id, content).where(
        documents.c.tenant == ref.id, among(documents.c.document_id, document_ids)
    )
    new = upsert(tombstones).from_select(["tenant", "document_id", "content_sha256"], buried)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant", "document_id"],
            set_={"content_sha256": new.excluded.content_sha256, "pruned_at": func.now()},
        )
    )


def _forget_embedding(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    connection.execute(
        update(documents)
        .where(documents.c.tenant == ref.id, among(documents.c.document_id, document_ids))
        .values(embedded_at=None, embedded_sha256=None)
    )


def _erasure(row: Row[Any]) -> Erasure:
    return Erasure(
        id=row.id,
        ref=TenantRef(row.tenant, row.incarnation),
        kind=row.kind,
        rule=row.rule,
        by=row.by,
        at=row.at,
        document_ids=tuple(row.document_ids),
        parse_keys=frozenset(row.parse_keys),
        chunk_set_keys=frozenset(row.chunk_set_keys),
        counts=row.counts,
    )
