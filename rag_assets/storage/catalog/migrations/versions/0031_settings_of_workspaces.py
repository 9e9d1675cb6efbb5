"""The settings that applications make for their workspaces; they override the operator's."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0031"
down_revision: str | None = "0030"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "rag_settings"
UNSAMPLED = ("operator_config", "embedding_model", "base_url", "embedder", "updated_by")


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column(
            "operator_config", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("operator_enabled", sa.Boolean(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=True),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("embedding_model", sa.Text(), nullable=True),
        sa.Column("base_url", sa.Text(), nullable=True),
        sa.Column("dimensions", sa.Integer(), nullable=True),
        sa.Column("vector_backend", sa.Text(), nullable=True),
        sa.Column("resolved_comment_days", sa.Integer(), nullable=True),
        sa.Column("embedder", JSONB(none_as_null=True), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "provider IN ('openai', 'gemini', 'localai', 'ollama', 'local')",
            name=op.f(f"ck_{TABLE}_provider"),
        ),
        sa.CheckConstraint(
            "vector_backend IN ('elasticsearch', 'pgvector')",
            name=op.f(f"ck_{TABLE}_vector_backend"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{TABLE}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", name=op.f(f"pk_{TABLE}")),
        schema=SCHEMA,
    )
    for column in UNSAMPLED:
        op.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table(TABLE, schema=SCHEMA)
