"""Record which Dagster instances have run jobs for each tenant."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

SCHEMA = "rag_catalog"
TABLE = "dagster_histories"


def upgrade() -> None:
    """Create the table; earlier runs are added with their tenants' next run."""
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.Integer(), nullable=False),
        sa.Column("instance", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column(
            "last_run_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("tenant", "incarnation", "instance", name=f"pk_{TABLE}"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table(TABLE, schema=SCHEMA)
