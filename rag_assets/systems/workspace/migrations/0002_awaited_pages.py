"""Columns of rows that were set aside: when they were last seen, and the page a block waits for."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    seen = sa.Column("seen_at", sa.DateTime(timezone=True))
    op.add_column("pulled_rows", seen, schema=SCHEMA)
    op.add_column("pulled_rows", sa.Column("awaited_page", sa.Text()), schema=SCHEMA)
    # Statistics are off, because they would contain values of the column, also of deleted rows.
    op.execute(f"ALTER TABLE {SCHEMA}.pulled_rows ALTER COLUMN awaited_page SET STATISTICS 0")


def downgrade() -> None:
    for column in ("awaited_page", "seen_at"):
        op.drop_column("pulled_rows", column, schema=SCHEMA)
