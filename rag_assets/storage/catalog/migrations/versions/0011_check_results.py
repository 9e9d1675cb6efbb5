"""The last result of every asset check of every tenant."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.create_table(
        "check_results",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("severity", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("evaluated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "asset", "name", name="pk_check_results"),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name="fk_check_results_tenant",
            ondelete="CASCADE",
        ),
        schema=SCHEMA,
    )
    for column in ("description", "error"):
        op.execute(f"ALTER TABLE {SCHEMA}.check_results ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("check_results", schema=SCHEMA)
