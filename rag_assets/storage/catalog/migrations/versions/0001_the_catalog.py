"""The first tables of the catalog."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("incarnations", schema="rag_catalog")))
    op.create_table(
        "tenant_locks",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column(
            "holder",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "acquired_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_tenant_locks")),
        schema="rag_catalog",
    )
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column(
            "config",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("origin IN ('file', 'api')", name=op.f("ck_tenants_origin")),
        sa.CheckConstraint(
            "state IN ('ACTIVE', 'DISABLED', 'REMOVING')", name=op.f("ck_tenants_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        schema="rag_catalog",
    )
    op.create_table(
        "access_scopes",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column(
            "granted_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_access_scopes_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "scope", "principal", name=op.f("pk_access_scopes")),
        schema="rag_catalog",
    )
    op.create_table(
        "checkpoints",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("checkpoint_type", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=True),
        sa.Column(
            "requested_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("processed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_checkpoints_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_checkpoints")),
        schema="rag_catalog",
    )
    op.create_table(
        "documents",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("path", sa.LargeBinary(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("ctime_ns", sa.BigInteger(), nullable=False),
        sa.Column("inode", sa.Numeric(precision=20, scale=0), nullable=False),
        sa.Column("listed_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=True),
        sa.Column("access_scope", sa.Text(), server_default="public", nullable=False),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column(
            "metadata",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("document_key", sa.Text(), nullable=False),
        sa.Column("lane", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("failed_document_key", sa.Text(), nullable=True),
        sa.Column("failed_config_key", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("chunk_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("dropped_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "first_seen",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "changed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "status IN ('PROCESSING', 'READY', 'FAILED', 'DELETED')",
            name=op.f("ck_documents_status"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_documents_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "document_id", name=op.f("pk_documents")),
        schema="rag_catalog",
    )
    op.create_index(
        op.f("ix_documents_tenant_content_sha256"),
        "documents",
        ["tenant", "content_sha256"],
        unique=False,
        schema="rag_catalog",
    )
    op.create_index(
        op.f("ix_documents_tenant_source_status"),
        "documents",
        ["tenant", "source", "status"],
        unique=False,
        schema="rag_catalog",
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column(
            "payload",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_events_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        schema="rag_catalog",
    )
    op.create_index(
        op.f("ix_events_tenant_kind_id"),
        "events",
        ["tenant", "kind", "id"],
        unique=False,
        schema="rag_catalog",
    )
    op.create_table(
        "generations",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("generation_key", sa.Text(), nullable=False),
        sa.Column("index_name", sa.Text(), nullable=False),
        sa.Column("index_uuid", sa.Text(), nullable=False),
        sa.Column("embedder_id", sa.Text(), nullable=False),
        sa.Column(
            "embedder",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('BUILDING', 'SERVING', 'RETIRED', 'REMOVING')",
            name=op.f("ck_generations_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_generations_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "generation", name=op.f("pk_generations")),
        schema="rag_catalog",
    )
    op.create_table(
        "knowledge_staging",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("entry_type", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=True),
        sa.Column("agent_type", sa.Text(), nullable=False),
        sa.Column("task_type", sa.Text(), nullable=True),
        sa.Column("technology", sa.Text(), nullable=True),
        sa.Column("failure_description", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("solution_steps", sa.Text(), nullable=True),
        sa.Column("gate_type", sa.Text(), nullable=True),
        sa.Column("human_feedback", sa.Text(), nullable=True),
        sa.Column("revision_approach", sa.Text(), nullable=True),
        sa.Column("approved_approach", sa.Text(), nullable=True),
        sa.Column(
            "success_verified", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("embedded", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "timestamp", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("embedded_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(entry_type = 'failure_solution' AND failure_description IS NOT NULL) OR (entry_type = 'gate_rejection' AND gate_type IS NOT NULL) OR (entry_type = 'gate_approval' AND gate_type IS NOT NULL)",
            name=op.f("ck_knowledge_staging_entry_type"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_knowledge_staging_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_staging")),
        schema="rag_catalog",
    )
    op.create_index(
        op.f("ix_knowledge_staging_tenant_embedded"),
        "knowledge_staging",
        ["tenant", "embedded"],
        unique=False,
        schema="rag_catalog",
    )
    op.create_index(
        op.f("ix_knowledge_staging_tenant_project_id"),
        "knowledge_staging",
        ["tenant", "project_id"],
        unique=False,
        schema="rag_catalog",
    )
    op.create_table(
        "provider_keys",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.Column("master_key_id", sa.Text(), nullable=False),
        sa.Column("last_four", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_worked", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_provider_keys_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "provider", name=op.f("pk_provider_keys")),
        schema="rag_catalog",
    )
    op.create_table(
        "slices",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("config_key", sa.Text(), nullable=False),
        sa.Column(
            "document_ids",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "unlisted",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_slices_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_slices")),
        schema="rag_catalog",
    )
    op.create_table(
        "source_records",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column(
            "record",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_source_records_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant", "source", "source_type", "source_id", name=op.f("pk_source_records")
        ),
        schema="rag_catalog",
    )
    op.create_table(
        "syncs",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("listing_digest", sa.Text(), nullable=True),
        sa.Column("listed_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("config_key", sa.Text(), nullable=True),
        sa.Column("held_deletions", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("succeeded_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"], ["rag_catalog.tenants.id"], name=op.f("fk_syncs_tenant"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "source", name=op.f("pk_syncs")),
        schema="rag_catalog",
    )
    op.create_table(
        "tombstones",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column(
            "pruned_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_tombstones_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "document_id", name=op.f("pk_tombstones")),
        schema="rag_catalog",
    )
    op.create_table(
        "usage",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("requests", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost", sa.Numeric(precision=18, scale=8), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["rag_catalog.tenants.id"], name=op.f("fk_usage_tenant"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "day", "provider", "model", name=op.f("pk_usage")),
        schema="rag_catalog",
    )
    op.create_table(
        "document_index",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("indexed_key", sa.Text(), nullable=True),
        sa.Column("document_key", sa.Text(), nullable=True),
        sa.Column("config_key", sa.Text(), nullable=True),
        sa.Column("chunk_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("dirty", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("indexed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant", "generation"],
            ["rag_catalog.generations.tenant", "rag_catalog.generations.generation"],
            name=op.f("fk_document_index_tenant_generation"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant", "generation", "document_id", name=op.f("pk_document_index")
        ),
        schema="rag_catalog",
    )
    op.create_index(
        "ix_document_index_dirty",
        "document_index",
        ["tenant", "generation"],
        unique=False,
        schema="rag_catalog",
        postgresql_where=sa.text("dirty"),
    )
    op.create_table(
        "serving",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("index_name", sa.Text(), nullable=False),
        sa.Column("index_uuid", sa.Text(), nullable=False),
        sa.Column("embedder_id", sa.Text(), nullable=False),
        sa.Column(
            "published_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "generation"],
            ["rag_catalog.generations.tenant", "rag_catalog.generations.generation"],
            name=op.f("fk_serving_tenant_generation"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_serving_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_serving")),
        schema="rag_catalog",
    )


def downgrade() -> None:
    op.drop_table("serving", schema="rag_catalog")
    op.drop_index(
        "ix_document_index_dirty",
        table_name="document_index",
        schema="rag_catalog",
        postgresql_where=sa.text("dirty"),
    )
    op.drop_table("document_index", schema="rag_catalog")
    op.drop_table("usage", schema="rag_catalog")
    op.drop_table("tombstones", schema="rag_catalog")
    op.drop_table("syncs", schema="rag_catalog")
    op.drop_table("source_records", schema="rag_catalog")
    op.drop_table("slices", schema="rag_catalog")
    op.drop_table("provider_keys", schema="rag_catalog")
    op.drop_index(
        op.f("ix_knowledge_staging_tenant_project_id"),
        table_name="knowledge_staging",
        schema="rag_catalog",
    )
    op.drop_index(
        op.f("ix_knowledge_staging_tenant_embedded"),
        table_name="knowledge_staging",
        schema="rag_catalog",
    )
    op.drop_table("knowledge_staging", schema="rag_catalog")
    op.drop_table("generations", schema="rag_catalog")
    op.drop_index(op.f("ix_events_tenant_kind_id"), table_name="events", schema="rag_catalog")
    op.drop_table("events", schema="rag_catalog")
    op.drop_index(
        op.f("ix_documents_tenant_source_status"), table_name="documents", schema="rag_catalog"
    )
    op.drop_index(
        op.f("ix_documents_tenant_content_sha256"), table_name="documents", schema="rag_catalog"
    )
    op.drop_table("documents", schema="rag_catalog")
    op.drop_table("checkpoints", schema="rag_catalog")
    op.drop_table("access_scopes", schema="rag_catalog")
    op.drop_table("tenants", schema="rag_catalog")
    op.drop_table("tenant_locks", schema="rag_catalog")
    op.execute(sa.schema.DropSequence(sa.Sequence("incarnations", schema="rag_catalog")))
