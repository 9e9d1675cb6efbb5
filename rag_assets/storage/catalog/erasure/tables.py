"""Tables of holds, erasures and receipts; receipts outlive tenants."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Identity,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)

from rag_assets.storage.catalog.tables import (
    json_column,
    metadata,
    now_column,
    tenant_column,
    time_column,
)

holds = Table(
    "holds",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    tenant_column(primary_key=False),
    # If both are null, all documents of the tenant are held.
    Column("source", Text),
    Column("document_id", Text),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    now_column("set_at"),
    UniqueConstraint("tenant", "source", "document_id", postgresql_nulls_not_distinct=True),
)

# Rows are written by a trigger, when a version of a held document leaves `document_index`.
held_texts = Table(
    "held_texts",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("parse_key", Text, primary_key=True),
    Column("chunk_set_key", Text, primary_key=True),
)

# Rows are written by a trigger, when a held record is pushed again or deleted.
held_records = Table(
    "held_records",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("source", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("content_sha256", Text, nullable=False),
    json_column("said"),
    time_column("modified_at"),
    now_column("changed_at"),
)

erasures = Table(
    "erasures",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("tenant", Text, nullable=False, index=True),
    Column("incarnation", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("by", Text, nullable=False),
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

receipts = Table(
    "receipts",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Uuid, nullable=False, unique=True),
    Column("tenant", Text, nullable=False, index=True),
    Column("incarnation", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("by", Text, nullable=False),
    now_column("at"),
    json_column("counts"),
    # Keyed hashes of document ids.
    json_column("documents", "[]"),
    json_column("proof"),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

receipt_keys = Table(
    "receipt_keys",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("key", LargeBinary, nullable=False),
)
