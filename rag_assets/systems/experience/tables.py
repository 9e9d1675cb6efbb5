"""The tables of experience in the catalog's schema, beside those of entries and checkpoints."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    String,
    Table,
    Text,
    Uuid,
)

from rag_assets.storage.catalog.columns import (
    json_column,
    metadata,
    now_column,
    tenant_column,
    time_column,
)

experience_patterns = Table(
    "experience_patterns",
    metadata,
    tenant_column(),
    Column("id", Uuid, primary_key=True),
    # Equal for patterns that solve the same problem in different ways.
    Column("problem_id", Uuid, nullable=False),
    # The pattern that somebody made it a part of.
    Column("merged_into", Uuid),
    now_column("created_at"),
    Index(None, "tenant", "merged_into"),
)
"""Patterns: one problem solved in one way, by any number of entries."""

experience_merges = Table(
    "experience_merges",
    metadata,
    tenant_column(),
    Column("id", Uuid, primary_key=True),
    Column("entry_id", Uuid, nullable=False),
    # The entry of the pattern that it was compared with, or null where somebody merged by hand.
    Column("other_id", Uuid),
    Column("pattern_id", Uuid, nullable=False),
    # That it was part of before; null for an entry that was part of none.
    Column("former_id", Uuid),
    Column("way", String(20), nullable=False),
    Column("problem_cosine", Double),
    Column("solution_cosine", Double),
    json_column("bounds"),
    Column("merged_by", Text, nullable=False),
    now_column("merged_at"),
    time_column("split_at"),
    Column("split_by", Text),
    CheckConstraint("way IN ('exact', 'near', 'manual')", name="way"),
    Index(None, "tenant", "entry_id"),
    Index(None, "tenant", "pattern_id"),
)
"""Why an entry is one of its pattern; with `split_at`, why it is none any more."""

experience_questions = Table(
    "experience_questions",
    metadata,
    tenant_column(),
    Column("id", Uuid, primary_key=True),
    Column("use", String(20), nullable=False),
    Column("asked_by", Text),
    now_column("asked_at", "event"),
    json_column("patterns", "[]"),
    Index(None, "tenant", "asked_at"),
)
"""Questions that were answered, without their words, for the feedback on them."""

experience_feedback = Table(
    "experience_feedback",
    metadata,
    tenant_column(),
    Column("query_id", Uuid, primary_key=True),
    Column("pattern_id", Uuid, primary_key=True),
    Column("outcome", String(20), nullable=False),
    Column("given_by", Text),
    now_column("given_at"),
    ForeignKeyConstraint(
        ["tenant", "query_id"],
        ["experience_questions.tenant", "experience_questions.id"],
        ondelete="CASCADE",
    ),
    CheckConstraint("outcome IN ('helped', 'did_not_help')", name="outcome"),
    Index(None, "tenant", "pattern_id"),
)
"""Whether a pattern helped who asked: the last word on each answer."""
