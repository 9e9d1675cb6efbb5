"""The tables of code memory in the catalog's schema."""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, Column, ForeignKeyConstraint, Table, Text

from rag_assets.storage.catalog.columns import metadata, now_column, tenant_column

code_runs = Table(
    "code_runs",
    metadata,
    tenant_column(),
    Column("run_id", Text, primary_key=True),
    Column("rag_enabled", Boolean, nullable=False),
    # The language model that the run prompts; null if unknown.
    Column("model", Text),
    Column("updated_by", Text),
    now_column("updated_at"),
)
"""Runs of agents in a project's repositories."""

code_run_events = Table(
    "code_run_events",
    metadata,
    tenant_column(),
    Column("run_id", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    now_column("received_at"),
    ForeignKeyConstraint(
        ["tenant", "run_id"], ["code_runs.tenant", "code_runs.run_id"], ondelete="CASCADE"
    ),
    CheckConstraint(
        "kind IN ('file_created', 'file_updated', 'file_deleted', 'final_summary')", name="kind"
    ),
)
"""Received events without their contents, so that no event is stored twice."""
