"""Service tokens of applications that use the HTTP API."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "service_tokens",
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("token_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("principals", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("role IN ('admin', 'member')", name=op.f("ck_service_tokens_role")),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["rag_catalog.tenants.id"],
            name=op.f("fk_service_tokens_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_service_tokens")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_service_tokens_token_sha256")),
        schema="rag_catalog",
    )
    op.create_index("ix_service_tokens_tenant", "service_tokens", ["tenant"], schema="rag_catalog")


def downgrade() -> None:
    op.drop_table("service_tokens", schema="rag_catalog")
