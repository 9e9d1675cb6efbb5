"""Receipts of erasures: when, by which rule, and how much was erased in each store.

Receipts contain no name, path or text, and outlive their tenant. Each contains the hash of its
predecessor; this chain reveals any altered, inserted or missing receipt. The tables of erasures and
holds are here, too, because the other modules of this package import this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

import sqlalchemy as sa

from rag_assets.common.hashing import canonical, keyed_digest, sha256_hex
from rag_assets.storage.catalog.database import CatalogQueries, read_row
from rag_assets.storage.catalog.tables import (
    json_column,
    metadata,
    now_column,
    tenant_column,
    time_column,
)

holds = sa.Table(
    "holds",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    tenant_column(primary_key=False),
    # If both are null, all documents of the tenant are held.
    sa.Column("source", sa.Text),
    sa.Column("document_id", sa.Text),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    now_column("set_at"),
    sa.UniqueConstraint("tenant", "source", "document_id", postgresql_nulls_not_distinct=True),
)
"""Legal holds, which prevent the deletion of documents."""

held_texts = sa.Table(
    "held_texts",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("parse_key", sa.Text, primary_key=True),
    sa.Column("chunk_set_key", sa.Text, primary_key=True),
)
"""Former versions of held documents in the lake.

A trigger writes a row when a version of a held document leaves `document_index`.
"""

held_records = sa.Table(
    "held_records",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("source_type", sa.Text, nullable=False),
    sa.Column("source_id", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("content_sha256", sa.Text, nullable=False),
    json_column("said"),
    time_column("modified_at"),
    now_column("changed_at"),
)
"""Former versions of held records.

A trigger writes a row when a held record is pushed again or deleted.
"""

erasures = sa.Table(
    "erasures",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False, index=True),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    now_column("at"),
    json_column("document_ids", "[]"),
    # Keys in the lake, recorded before the rows with these keys are deleted.
    json_column("parse_keys", "[]"),
    json_column("chunk_set_keys", "[]"),
    # Hashes of uploaded files.
    json_column("blobs", "[]"),
    json_column("counts"),
    # The state of a scan for credentials, a removal or a discard.
    json_column("progress"),
)
"""Erasures in progress: what is to be deleted in which store."""

receipts = sa.Table(
    "receipts",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Uuid, nullable=False, unique=True),
    sa.Column("tenant", sa.Text, nullable=False, index=True),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    now_column("at"),
    json_column("counts"),
    # Keyed hashes of document ids.
    json_column("documents", "[]"),
    json_column("proof"),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
"""Receipts of completed erasures; each contains the hash of the receipt before it."""

receipt_keys = sa.Table(
    "receipt_keys",
    metadata,
    sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
)
"""The key of the hashes in receipts."""


ErasureKind = Literal["prune", "purge", "removal", "discard", "secrets"]
FIRST: Final = "0" * 64
"""The predecessor's hash in the first receipt."""
_BATCH_RECEIPTS = 1_000
_CHAIN_LOCK = 0x7261675F72656370
_Shape = TypeVar("_Shape", dict[str, Any], list[str])


@dataclass(frozen=True, slots=True)
class Receipt:
    """A record of the data erased for one reason at one time.

    Attributes:
        number: counted from 1, over all tenants.
        kind: what was erased: documents past their retention (prune), documents on request (purge),
            a tenant (removal), a build (discard), or credentials that new rules found (secrets).
        rule: the setting, or the request, that demanded the erasure.
        proof: the search for traces afterwards: its scope, its results, and the locations that
            cannot be reached.
    """

    number: int
    id: UUID
    tenant: str
    incarnation: int
    kind: str
    rule: str
    by: str
    at: datetime
    counts: Mapping[str, Any]
    documents: tuple[str, ...]
    proof: Mapping[str, Any]
    previous: str

    @property
    def hash(self) -> str:
        """Return the hash of all its fields."""
        return sha256_hex(
            canonical(
                [
                    *(self.number, str(self.id), self.tenant, self.incarnation, self.kind),
                    *(self.rule, self.by, self.at.astimezone(UTC).isoformat()),
                    *(dict(self.counts), list(self.documents), dict(self.proof), self.previous),
                ]
            )
        )


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The result of verifying the chain.

    Attributes:
        broken: numbers of receipts that were altered, or whose predecessor is missing or altered.
        last: hash of the last receipt. Somebody who keeps a copy of it elsewhere can later detect
            whether a receipt was removed.
    """

    receipts: int
    broken: tuple[int, ...]
    last: str


class ReceiptTable(CatalogQueries):
    """Lists receipts and verifies their chain, in `receipts`."""

    def all(self, tenant_id: str | None = None) -> list[Receipt]:
        """Return the receipts of one tenant, or of all, in order."""
        query = sa.select(receipts).order_by(receipts.c.number)
        if tenant_id is not None:
            query = query.where(receipts.c.tenant == tenant_id)
        return [_read_receipt(row) for row in self._database.fetch_rows(query)]

    def find_removed_tenants(self, tenant_ids: Collection[str]) -> set[str]:
        """Return the tenants with a receipt of their removal."""
        query = sa.select(receipts.c.tenant).where(
            receipts.c.kind == "removal", receipts.c.tenant.in_(tenant_ids)
        )
        return set(self._database.fetch_values(query.distinct()))

    def verify(self) -> ChainReport:
        """Verify every receipt and that no earlier receipt is missing; return the result."""
        with self._database.begin() as connection:
            return verify_chain(connection)

    def map_ids_by_hash(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Return the ids of these documents by the keyed hashes that stand for them in receipts."""
        with self._database.begin() as connection:
            return dict(
                zip(compute_document_hashes(connection, document_ids), document_ids, strict=True)
            )


def verify_chain(connection: sa.Connection) -> ChainReport:
    """Verify, in a transaction, every receipt and that no earlier receipt is missing."""
    query = sa.select(receipts).order_by(receipts.c.number)
    broken = []
    count = number = 0
    previous = FIRST
    for row in connection.execute(query, execution_options={"yield_per": _BATCH_RECEIPTS}):
        receipt = _read_receipt(row)
        follows = (receipt.number, receipt.previous) == (number + 1, previous)
        if not follows or receipt.hash != row.hash:
            broken.append(receipt.number)
        count, number, previous = count + 1, receipt.number, row.hash
    return ChainReport(count, tuple(broken), previous)


def append_receipt(
    connection: sa.Connection, erasure: sa.Row[Any], proof: Mapping[str, Any]
) -> Receipt:
    """Append the receipt of an erasure to the chain, in the transaction that ends the erasure.

    Args:
        proof: see Receipt.
    """
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CHAIN_LOCK})
    last = connection.execute(
        sa.select(receipts.c.number, receipts.c.hash).order_by(receipts.c.number.desc()).limit(1)
    ).first()
    receipt = read_row(
        Receipt,
        erasure,
        number=1 if last is None else last.number + 1,
        documents=tuple(sorted(compute_document_hashes(connection, erasure.document_ids))),
        proof=proof,
        previous=FIRST if last is None else last.hash,
    )
    row = {**asdict(receipt), "documents": list(receipt.documents), "hash": receipt.hash}
    connection.execute(sa.insert(receipts).values(row))
    return receipt


def compute_document_hashes(connection: sa.Connection, document_ids: Sequence[str]) -> list[str]:
    """Return the keyed hashes that stand for documents in receipts and in the journal."""
    key = fetch_receipt_key(connection)
    return [keyed_digest(key, "document", document_id) for document_id in document_ids]


def fetch_receipt_key(connection: sa.Connection) -> bytes:
    """Return the key of the keyed hashes in receipts, which is stored only in the catalog."""
    return bytes(connection.execute(sa.select(receipt_keys.c.key)).scalar_one())


def _read_receipt(row: sa.Row[Any]) -> Receipt:
    """Return the receipt in a row; a JSON value of the wrong type is replaced by an empty one.

    The hash of such a receipt does not match, so that verify_chain() reports it.
    """
    return read_row(
        Receipt,
        row,
        counts=_ensure_type(row.counts, {}),
        documents=tuple(_ensure_type(row.documents, [])),
        proof=_ensure_type(row.proof, {}),
    )


def _ensure_type(value: Any, empty: _Shape) -> _Shape:
    return value if isinstance(value, type(empty)) else empty
