"""Tables of erasures and their receipts, which outlive the tenants that they are about."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, SmallInteger, Table, Text, Uuid

from rag_assets.storage.catalog.columns import json_column, metadata, now_column

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
    # Of the lake, recorded before the rows that tell them go.
    json_column("parse_keys", "[]"),
    json_column("chunk_set_keys", "[]"),
    json_column("counts"),
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
