"""Catalog tables of pulled sources."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Double, ForeignKeyConstraint, Integer, Table, Text

from rag_assets.storage.catalog.tables import metadata, now_column, tenant_column, time_column

pulled_sources = Table(
    "pulled_sources",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    # End and duration of the last complete pull.
    time_column("pulled_at"),
    Column("seconds", Double),
    # End of the last comparison of all keys.
    time_column("scanned_at"),
    now_column("next_at", "retry"),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    # Number of records missing in the database that are kept until a person allows their deletion.
    Column("held_deletions", Integer, nullable=False, server_default="0"),
)
"""The state of each source's pulls."""

pulled_queries = Table(
    "pulled_queries",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    Column("source_type", Text, primary_key=True),
    # Hash of the query to which the watermark belongs.
    Column("query_key", Text, nullable=False),
    # Time of the last change that was stored.
    Column("watermark", DateTime(timezone=True), nullable=False),
)
"""The watermark of each query: how far its changes were followed."""

pulled_rows = Table(
    "pulled_rows",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    Column("source_type", Text, primary_key=True),
    # Hash of the id, because an unusable id may be any text.
    Column("row_key", Text, primary_key=True),
    Column("shown", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("problem", Text, nullable=False),
    now_column("set_aside_at"),
    # When the row's key last appeared in a comparison of all keys.
    time_column("seen_at"),
    # The unknown page that a block waits for.
    Column("awaited_page", Text),
    ForeignKeyConstraint(
        ["tenant", "source"],
        ["pulled_sources.tenant", "pulled_sources.source"],
        ondelete="CASCADE",
    ),
)
"""Rows that could not become records, with their problems."""
