"""The tables of pulled sources in the catalog's schema."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Double, ForeignKeyConstraint, Integer, Table, Text

from rag_assets.storage.catalog.columns import metadata, now_column, tenant_column, time_column

pulled_sources = Table(
    "pulled_sources",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    # The end of the last pull that was whole, and how long it took.
    time_column("pulled_at"),
    Column("seconds", Double),
    # The end of the last comparison of all keys.
    time_column("scanned_at"),
    now_column("next_at", "retry"),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    # Records that the database does not have, and that are kept until a person lets them go.
    Column("held_deletions", Integer, nullable=False, server_default="0"),
)
"""How the pulls of a source went."""

pulled_queries = Table(
    "pulled_queries",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    Column("source_type", Text, primary_key=True),
    # Of the query that the time is about.
    Column("query_key", Text, nullable=False),
    # Of the last change that was stored.
    Column("watermark", DateTime(timezone=True), nullable=False),
)
"""How far each query was followed."""

pulled_rows = Table(
    "pulled_rows",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    Column("source_type", Text, primary_key=True),
    # Hash of the id: an id that cannot be used may be anything.
    Column("row_key", Text, primary_key=True),
    Column("shown", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("problem", Text, nullable=False),
    now_column("set_aside_at"),
    # When its key was among all keys last.
    time_column("seen_at"),
    # Of a block: the page that was not known.
    Column("awaited_page", Text),
    ForeignKeyConstraint(
        ["tenant", "source"],
        ["pulled_sources.tenant", "pulled_sources.source"],
        ondelete="CASCADE",
    ),
)
"""Rows that are no records, with what is wrong with them."""
