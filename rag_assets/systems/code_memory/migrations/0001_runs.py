"""Runs of agents, and the ids of their events."""

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
        "code_runs",
        sa.Column("rag_enabled", sa.Boolean(), nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("updated_by", sa.Text()),
        _now("updated_at"),
        key=("tenant", "run_id"),
    )
    _table(
        "code_run_events",
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        _now("received_at"),
        sa.ForeignKeyConstraint(
            ["tenant", "run_id"],
            [f"{SCHEMA}.code_runs.tenant", f"{SCHEMA}.code_runs.run_id"],
            name="fk_code_run_events_tenant_run_id",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "kind IN ('file_created', 'file_updated', 'file_deleted', 'final_summary')",
            name="ck_code_run_events_kind",
        ),
        key=("tenant", "run_id", "external_id"),
    )
    # The statistics of a column contain values, including those of deleted rows.
    for table, column in (
        ("code_runs", "run_id"),
        ("code_runs", "model"),
        ("code_runs", "updated_by"),
        ("code_run_events", "run_id"),
        ("code_run_events", "external_id"),
    ):
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    for table in ("code_run_events", "code_runs"):
        op.drop_table(table, schema=SCHEMA)


def _table(name: str, *parts: Any, key: Sequence[str]) -> None:
    op.create_table(
        name,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
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
