"""The tables of team guidelines in the catalog's schema."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Table, Text

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

guideline_rules = Table(
    "guideline_rules",
    metadata,
    tenant_column(),
    # Deleting the upload deletes the row, by a trigger.
    Column("document_id", Text, primary_key=True),
    # Of the version whose front matter was read.
    Column("parse_key", Text, nullable=False),
    Column("is_always", Boolean, nullable=False),
    # Globs, one a line.
    Column("paths", Text, nullable=False),
)
"""Where each Markdown document applies by its front matter."""
