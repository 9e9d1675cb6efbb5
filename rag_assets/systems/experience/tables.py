"""Catalog tables of experience.

The catalog's migrations create the first three tables of this module. The migrations of this
system create the others.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
    Uuid,
    text,
)

from rag_assets.storage.catalog.tables import (
    json_column,
    metadata,
    now_column,
    tenant_column,
    time_column,
)

projects = Table(
    "projects",
    metadata,
    tenant_column(),
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    # Its owner; if both are null, all contributors of the tenant have access.
    Column("owner_token", Text),
    Column("owner_organization", Text),
    now_column("created_at"),
    now_column("updated_at"),
    CheckConstraint("state IN ('active', 'completed', 'cancelled')", name="state"),
)
"""Projects that contribute entries."""

knowledge_staging = Table(
    "knowledge_staging",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    tenant_column(primary_key=False),
    Column("entry_type", String(50), nullable=False),
    Column("project_id", Uuid),
    Column("agent_type", String(100), nullable=False),
    Column("task_type", String(100)),
    Column("technology", String(100)),
    Column("failure_description", Text),
    Column("error_message", Text),
    Column("solution_steps", Text),
    Column("gate_type", String(50)),
    Column("human_feedback", Text),
    Column("revision_approach", Text),
    Column("approved_approach", Text),
    Column("success_verified", Boolean, nullable=False, server_default=text("false")),
    Column("embedded", Boolean, nullable=False, server_default=text("false")),
    now_column("timestamp"),
    time_column("embedded_at", "event"),
    Column("when_to_try", Text),
    # Paths and symbols that the entry is about.
    json_column("about", "[]"),
    # Id chosen by the caller, so that a repeated capture has no effect.
    Column("external_id", Text),
    # Hash of all captured fields.
    Column("content_key", Text),
    # Name of the token that captured it.
    Column("contributed_by", Text),
    # Names of the rules that found credentials in the entry.
    Column("masked", ARRAY(Text), nullable=False, server_default="{}"),
    Column("checkpoint_id", Uuid),
    # Id of its document; null until a checkpoint includes the entry.
    Column("document_id", Text),
    # Hash of the problem and the solution in normal form, see wording.compute_exact_key.
    Column("exact_key", Text),
    # Hash of the problem alone in normal form, see wording.compute_problem_key.
    Column("problem_key", Text),
    # Version of the rules that built its record, see wording.WORDING_VERSION.
    Column("record_version", Integer, nullable=False, server_default="1"),
    # The entry's pattern, and its pattern if manual merges are ignored.
    Column("pattern_id", Uuid),
    Column("home_id", Uuid),
    # Hashes of texts whose vectors are kept in the lake only for comparisons.
    Column("kept_texts", ARRAY(Text), nullable=False, server_default="{}"),
    # Reason why it can never be embedded.
    Column("failure", Text),
    CheckConstraint(
        "(entry_type = 'failure_solution' AND failure_description IS NOT NULL)"
        " OR (entry_type = 'gate_rejection' AND gate_type IS NOT NULL)"
        " OR (entry_type = 'gate_approval' AND gate_type IS NOT NULL)",
        name="entry_type",
    ),
    ForeignKeyConstraint(["tenant", "project_id"], ["projects.tenant", "projects.id"]),
    Index(None, "tenant", "project_id"),
    Index(None, "tenant", "embedded"),
    Index("ix_knowledge_staging_document", "tenant", "document_id"),
    Index("ix_knowledge_staging_pattern", "tenant", "pattern_id"),
    Index("ix_knowledge_staging_exact", "tenant", "exact_key"),
    Index("ix_knowledge_staging_problem", "tenant", "problem_key"),
    Index("ix_knowledge_staging_checkpoint", "tenant", "checkpoint_id"),
    Index("ix_knowledge_staging_record_version", "tenant", "record_version"),
    # Index of the entries that a checkpoint includes but searches do not find yet. They are few,
    # and queried often.
    Index(
        "ix_knowledge_staging_left",
        "tenant",
        "checkpoint_id",
        postgresql_where=text("checkpoint_id IS NOT NULL AND NOT embedded AND failure IS NULL"),
    ),
    Index("uq_knowledge_staging_external_id", "tenant", "project_id", "external_id", unique=True),
)
"""Captured entries, staged or embedded."""

checkpoints = Table(
    "checkpoints",
    metadata,
    tenant_column(),
    Column("id", Uuid, primary_key=True),
    Column("checkpoint_type", String(50), nullable=False),
    # Null stands for all projects.
    Column("project_id", Uuid),
    Column("external_id", Text),
    Column("requested_by", Text),
    now_column("requested_at", "event"),
    Column("state", Text, nullable=False),
    Column("staged", Integer, nullable=False),
    Column("embedded", Integer, nullable=False, server_default="0"),
    Column("merged", Integer, nullable=False, server_default="0"),
    Column("failed", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    time_column("processed_at"),
    CheckConstraint("state IN ('waiting', 'running', 'done', 'stopped')", name="state"),
    ForeignKeyConstraint(["tenant", "project_id"], ["projects.tenant", "projects.id"]),
    Index(
        "ix_checkpoints_open", "tenant", postgresql_where=text("state IN ('waiting', 'running')")
    ),
    Index("uq_checkpoints_external_id", "tenant", "external_id", unique=True),
)
"""Checkpoints: requests to embed the entries that a project has staged."""

experience_patterns = Table(
    "experience_patterns",
    metadata,
    tenant_column(),
    Column("id", Uuid, primary_key=True),
    # Equal for patterns that solve the same problem in different ways.
    Column("problem_id", Uuid, nullable=False),
    # The pattern into which it was merged by hand.
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
    # The entry of the pattern that it was compared with; null for a merge by hand.
    Column("other_id", Uuid),
    Column("pattern_id", Uuid, nullable=False),
    # The former pattern; null for a new entry.
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
"""Merges of entries into patterns; `split_at` is set if the merge was undone."""

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
"""Answered questions, without their texts, to which feedback refers."""

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
"""The latest feedback on each pattern of an answer: whether it helped."""
