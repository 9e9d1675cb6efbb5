"""Batches of texts submitted to a provider's batch API."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "embedding_batches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("batch_id", sa.Text(), nullable=True),
        sa.Column("embedder_id", sa.Text(), nullable=False),
        sa.Column(
            "embedder",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.Column("texts", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Numeric(18, 8), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column(
            "submitted_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "polled_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('SUBMITTING', 'UNDER_WAY', 'ENDED', 'COLLECTED', 'FAILED')",
            name=op.f("ck_embedding_batches_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_embedding_batches_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding_batches")),
        sa.UniqueConstraint("tag", name=op.f("uq_embedding_batches_tag")),
        schema="rag_catalog",
    )
    op.create_index(
        "ix_embedding_batches_tenant_state",
        "embedding_batches",
        ["tenant", "state"],
        schema="rag_catalog",
    )


def downgrade() -> None:
    op.drop_table("embedding_batches", schema="rag_catalog")
