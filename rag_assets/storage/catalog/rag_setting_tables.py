"""The table of the settings that applications make for their workspaces."""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, Column, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.storage.catalog.columns import (
    json_column,
    metadata,
    now_column,
    tenant_column,
)

rag_settings = Table(
    "rag_settings",
    metadata,
    tenant_column(),
    # The operator's configuration below the settings; tenants.config combines both.
    json_column("operator_config"),
    Column("operator_enabled", Boolean, nullable=False),
    Column("enabled", Boolean),
    Column("provider", Text),
    Column("embedding_model", Text),
    Column("base_url", Text),
    Column("dimensions", Integer),
    Column("vector_backend", Text),
    Column("resolved_comment_days", Integer),
    # The embedder that is in force, as in tenants.yaml; null: the operator's.
    Column("embedder", JSONB(none_as_null=True)),
    now_column("updated_at"),
    Column("updated_by", Text, nullable=False),
    CheckConstraint(
        "provider IN ('openai', 'gemini', 'localai', 'ollama', 'local')", name="provider"
    ),
    CheckConstraint("vector_backend IN ('elasticsearch', 'pgvector')", name="vector_backend"),
)
