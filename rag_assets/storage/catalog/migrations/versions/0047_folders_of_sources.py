"""The folders that a source's last listing read, and why deletions are held back."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0047"
down_revision: str | None = "0046"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.add_column("syncs", sa.Column("held_reason", sa.Text(), nullable=True), schema=SCHEMA)
    op.execute(
        f"UPDATE {SCHEMA}.syncs SET held_reason = 'too many are gone at once'"  # noqa: S608 - a constant
        " WHERE held_deletions > 0"
    )
    op.add_column("syncs", sa.Column("folders", postgresql.JSONB(), nullable=True), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("syncs", "folders", schema=SCHEMA)
    op.drop_column("syncs", "held_reason", schema=SCHEMA)
