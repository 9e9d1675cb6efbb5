"""Judged questions, and the vectors that evaluations keep of questions."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
WITHOUT_STATISTICS = {
    "judged_questions": ("question_id", "question", "kind", "judgements", "pool"),
    "question_vectors": ("vector",),
}


def upgrade() -> None:
    op.create_table(
        "judged_questions",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), server_default="", nullable=False),
        sa.Column("relevant_from", sa.SmallInteger(), nullable=False),
        sa.Column("synthetic", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("judgements", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("pool", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column(
            "judged_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name="fk_judged_questions_tenant",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "question_id", name="pk_judged_questions"),
        schema=SCHEMA,
    )
    op.create_table(
        "question_vectors",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("embedder_id", sa.Text(), nullable=False),
        sa.Column("question_sha256", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column(
            "embedded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name="fk_question_vectors_tenant",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant", "embedder_id", "question_sha256", name="pk_question_vectors"
        ),
        schema=SCHEMA,
    )
    for table, names in WITHOUT_STATISTICS.items():
        for name in names:
            op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {name} SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("question_vectors", schema=SCHEMA)
    op.drop_table("judged_questions", schema=SCHEMA)
