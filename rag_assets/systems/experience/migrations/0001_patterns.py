"""Patterns, merges, questions and feedback."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
JSONB = sa.dialects.postgresql.JSONB


def upgrade() -> None:
    _table(
        "experience_patterns",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("problem_id", sa.Uuid(), nullable=False),
        sa.Column("merged_into", sa.Uuid()),
        _now("created_at"),
        key=("tenant", "id"),
    )
    _table(
        "experience_merges",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("entry_id", sa.Uuid(), nullable=False),
        sa.Column("other_id", sa.Uuid()),
        sa.Column("pattern_id", sa.Uuid(), nullable=False),
        sa.Column("former_id", sa.Uuid()),
        sa.Column("way", sa.String(20), nullable=False),
        sa.Column("problem_cosine", sa.Double()),
        sa.Column("solution_cosine", sa.Double()),
        sa.Column("bounds", JSONB(), server_default="{}", nullable=False),
        sa.Column("merged_by", sa.Text(), nullable=False),
        _now("merged_at"),
        sa.Column("split_at", sa.DateTime(timezone=True)),
        sa.Column("split_by", sa.Text()),
        sa.CheckConstraint("way IN ('exact', 'near', 'manual')", name="ck_experience_merges_way"),
        key=("tenant", "id"),
    )
    _table(
        "experience_questions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("use", sa.String(20), nullable=False),
        sa.Column("asked_by", sa.Text()),
        _now("asked_at"),
        sa.Column("patterns", JSONB(), server_default="[]", nullable=False),
        key=("tenant", "id"),
    )
    _table(
        "experience_feedback",
        sa.Column("query_id", sa.Uuid(), nullable=False),
        sa.Column("pattern_id", sa.Uuid(), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("given_by", sa.Text()),
        _now("given_at"),
        sa.ForeignKeyConstraint(
            ["tenant", "query_id"],
            [f"{SCHEMA}.experience_questions.tenant", f"{SCHEMA}.experience_questions.id"],
            name="fk_experience_feedback_tenant_query_id",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "outcome IN ('helped', 'did_not_help')", name="ck_experience_feedback_outcome"
        ),
        key=("tenant", "query_id", "pattern_id"),
    )
    for table, column in (
        ("experience_patterns", "merged_into"),
        ("experience_merges", "entry_id"),
        ("experience_merges", "pattern_id"),
        ("experience_questions", "asked_at"),
        ("experience_feedback", "pattern_id"),
    ):
        op.create_index(f"ix_{table}_tenant_{column}", table, ["tenant", column], schema=SCHEMA)
    # Statistics of a column hold values of it, also of rows that are gone.
    for table, column in (
        ("experience_merges", "merged_by"),
        ("experience_merges", "split_by"),
        ("experience_questions", "asked_by"),
        ("experience_feedback", "given_by"),
    ):
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    for table in ("feedback", "questions", "merges", "patterns"):
        op.drop_table(f"experience_{table}", schema=SCHEMA)


def _table(name: str, *parts: Any, key: Sequence[str]) -> None:
    op.create_table(
        name,
        sa.Column("tenant", sa.Text(), nullable=False),
        *parts,
        sa.ForeignKeyConstraint(
            ["tenant"], [f"{SCHEMA}.tenants.id"], name=f"fk_{name}_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"),
        schema=SCHEMA,
    )


def _now(name: str) -> sa.Column[Any]:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )
