"""The tables of team guidelines in the catalog's schema."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from rag_assets.storage.catalog.columns import metadata, now_column, tenant_column

guideline_texts = Table(
    "guideline_texts",
    metadata,
    tenant_column(),
    Column("text", Text, nullable=False),
    Column("updated_by", Text, nullable=False),
    now_column("updated_at"),
)
"""The plain text of each project, as it is now: former ones are not kept."""
