"""Catalog tables of team guidelines."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Table, Text

from rag_assets.storage.catalog.tables import metadata, now_column, tenant_column

guideline_texts = Table(
    "guideline_texts",
    metadata,
    tenant_column(),
    Column("text", Text, nullable=False),
    Column("updated_by", Text, nullable=False),
    now_column("updated_at"),
)
"""The current plain text of each project."""

guideline_rules = Table(
    "guideline_rules",
    metadata,
    tenant_column(),
    # A trigger deletes the row with the upload.
    Column("document_id", Text, primary_key=True),
    # Parse key of the version with this front matter.
    Column("parse_key", Text, nullable=False),
    Column("is_always", Boolean, nullable=False),
    # Globs, one per line.
    Column("paths", Text, nullable=False),
)
"""The rule in the front matter of each Markdown document."""
