"""Pushed records with revisions; titles from sources; numbers of reindex requests."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("record_revisions", schema=_SCHEMA)))
    # No release wrote to this table.
    op.drop_table("source_records", schema=_SCHEMA)
    op.create_table(
        "source_records",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("record_key", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column(
            "said", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("modified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "changed_at",
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
            *("tenant", "source", "source_type", "source_id"), name=op.f("pk_source_records")
        ),
        schema=_SCHEMA,
    )
    op.create_index(
        "ix_source_records_tenant_document_id",
        "source_records",
        ["tenant", "document_id"],
        unique=True,
        schema=_SCHEMA,
    )
    op.create_index("ix_events_tenant_id", "events", ["tenant", "id"], schema=_SCHEMA)
    op.create_index(
        "ix_events_tenant_caller",
        "events",
        ["tenant", sa.text("(payload ->> 'caller')"), "id"],
        postgresql_where=sa.text("payload ->> 'caller' IS NOT NULL"),
        schema=_SCHEMA,
    )
    op.add_column("documents", sa.Column("said_title", sa.Text()), schema=_SCHEMA)
    edition = sa.Column("edition", sa.Integer(), server_default="0", nullable=False)
    op.add_column("documents", edition, schema=_SCHEMA)


def downgrade() -> None:
    op.drop_column("documents", "edition", schema=_SCHEMA)
    op.drop_column("documents", "said_title", schema=_SCHEMA)
    op.drop_index("ix_events_tenant_caller", "events", schema=_SCHEMA)
    op.drop_index("ix_events_tenant_id", "events", schema=_SCHEMA)
    op.drop_table("source_records", schema=_SCHEMA)
    op.create_table(
        "source_records",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column(
            "record", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
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
            *("tenant", "source", "source_type", "source_id"), name=op.f("pk_source_records")
        ),
        schema=_SCHEMA,
    )
    op.execute(sa.schema.DropSequence(sa.Sequence("record_revisions", schema=_SCHEMA)))
