"""Changes of rows in the transactions that start and end an erasure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ARRAY,
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from rag_assets.common.batches import batched
from rag_assets.common.errors import UnknownDocument
from rag_assets.storage.catalog.columns import SCHEMA
from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.erasure_tables import erasures, held_texts
from rag_assets.storage.catalog.index_rows import withhold_statement
from rag_assets.storage.catalog.judgements import forget_judgements
from rag_assets.storage.catalog.marks import next_mark
from rag_assets.storage.catalog.receipts import (
    ErasureKind,
    Receipt,
    append_receipt,
)
from rag_assets.storage.catalog.removals import mark_deleted_statement
from rag_assets.storage.catalog.security_changes import record_change
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    record_texts,
    source_records,
    tombstones,
)
from rag_assets.storage.catalog.tombstones import bury, seal
from rag_assets.storage.catalog.upload_rows import delete_uploads
from rag_assets.storage.catalog.upload_tables import uploads

_BATCH = 2_000
_NAMED_DOCUMENTS = 100
"""Maximum number of purged documents per entry in the journal of security changes."""
_FORGET_SLICES = text(
    f"UPDATE {SCHEMA}.slices SET document_ids = document_ids - :ids"  # noqa: S608 - nothing given
    " WHERE tenant = :tenant AND document_ids ?| :ids"
).bindparams(bindparam("ids", type_=ARRAY(Text)))


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure of documents from every store.

    Attributes:
        id: id of the erasure, and also of its receipt.
        kind, rule, by, at: see Receipt.
        document_ids: its documents.
        parse_keys, chunk_set_keys: keys of their texts and chunks in the lake.
        blobs: hashes of their uploaded files.
        counts: the numbers of erased objects, by store; complete when every store has counted.
        progress: the state of a scan for credentials, a removal or a discard.
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
    connection: Connection,
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
    """Record an erasure, and withhold its documents from searches."""
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
    kept = _keys_of_disabled(connection, ref, whole)
    blobs = delete_uploads(connection, ref, whole)
    bury(connection, ref, whole)
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
        .returning(erasures)
    ).one()
    if kind == "purge":
        for batch in batched(whole, _NAMED_DOCUMENTS):
            record_change(connection, ref, "purged", "", seal(connection, ref, batch))
    else:
        next_mark(connection, ref)
    return erasure_of(row)


def require_known(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    """Raise UnknownDocument if a document has no row, record, upload or tombstone."""
    known: set[str] = set()
    # Tombstones count: a person who doubts that a document was deleted may purge it again.
    for table in (documents, source_records, uploads, tombstones):
        query = select(table.c.document_id).where(
            table.c.tenant == ref.id, among(table.c.document_id, document_ids)
        )
        known.update(connection.scalars(query))
    if unknown := [id_ for id_ in document_ids if id_ not in known]:
        raise UnknownDocument(
            f"tenant {ref.id!r} has no document {unknown[0]}",
            hint=f"`rag-assets documents {ref.id} --json` shows their ids",
        )


def end_erasure(connection: Connection, erasure: Erasure, proof: Mapping[str, Any]) -> Receipt:
    """Replace an erasure's row with its receipt."""
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


def delete_documents(connection: Connection, erasure: Erasure) -> None:
    """Delete the rows of the documents, unless they were added again."""
    for batch in batched(erasure.document_ids, _BATCH):
        connection.execute(
            delete(documents).where(
                documents.c.tenant == erasure.ref.id,
                among(documents.c.document_id, batch),
                documents.c.status == "DELETED",
            )
        )


def forget_slice(connection: Connection, erasure: Erasure) -> None:
    """Delete the documents' ids from the slice of the tenant's last run."""
    given = {"tenant": erasure.ref.id, "ids": list(erasure.document_ids)}
    connection.execute(_FORGET_SLICES, given)


def _delete_records(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> int:
    for table in (record_texts, source_records):
        gone = connection.execute(
            delete(table).where(table.c.tenant == ref.id, among(table.c.document_id, document_ids))
        ).rowcount
    return gone


def _keys_of_disabled(
    connection: Connection, ref: TenantRef, document_ids: Sequence[str]
) -> Sequence[Row[Any]]:
    """Return the lake keys of uploads that are in no build, because they are disabled."""
    query: Select[Any] = select(held_texts.c.parse_key, held_texts.c.chunk_set_key).where(
        held_texts.c.tenant == ref.id, among(held_texts.c.document_id, document_ids)
    )
    return connection.execute(query).all()


def forget_embedding(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    """Clear the embedding times and hashes of documents whose former version is withheld."""
    connection.execute(
        update(documents)
        .where(documents.c.tenant == ref.id, among(documents.c.document_id, document_ids))
        .values(embedded_at=None, embedded_sha256=None)
    )


def erasure_of(row: Row[Any]) -> Erasure:
    """Return the erasure in a row of `erasures`."""
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
        blobs=frozenset(row.blobs),
        progress=row.progress,
    )
