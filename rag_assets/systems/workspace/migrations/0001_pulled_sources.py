"""Tables of pulled sources: how far their queries were followed, and rows that were set aside."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    _table(
        "pulled_sources",
        _time("pulled_at"),
        sa.Column("seconds", sa.Double()),
        _time("scanned_at"),
        _now("next_at"),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("held_deletions", sa.Integer(), server_default="0", nullable=False),
        key=("tenant", "source"),
    )
    _table(
        "pulled_queries",
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("query_key", sa.Text(), nullable=False),
        sa.Column("watermark", sa.DateTime(timezone=True), nullable=False),
        key=("tenant", "source", "source_type"),
    )
    _table(
        "pulled_rows",
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("row_key", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        _now("set_aside_at"),
        sa.ForeignKeyConstraint(
            ["tenant", "source"],
            [f"{SCHEMA}.pulled_sources.tenant", f"{SCHEMA}.pulled_sources.source"],
            name="fk_pulled_rows_tenant_source",
            ondelete="CASCADE",
        ),
        key=("tenant", "source", "source_type", "row_key"),
    )
    # Statistics are off, because they would contain values of the column, also of deleted rows.
    for table, column in (
        ("pulled_sources", "error"),
        ("pulled_rows", "shown"),
        ("pulled_rows", "field"),
        ("pulled_rows", "problem"),
    ):
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    for table in ("rows", "queries", "sources"):
        op.drop_table(f"pulled_{table}", schema=SCHEMA)


def _table(name: str, *parts: Any, key: Sequence[str]) -> None:
    op.create_table(
        name,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        *parts,
        sa.ForeignKeyConstraint(
            ["tenant"], [f"{SCHEMA}.tenants.id"], name=f"fk_{name}_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"),
        schema=SCHEMA,
    )


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True))


def _now(name: str) -> sa.Column[Any]:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )
