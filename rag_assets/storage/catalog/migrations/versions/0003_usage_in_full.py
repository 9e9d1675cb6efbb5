"""Counts of retries, texts and tokens in usage; the spending of a sync."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_COUNTS = ("retries", "texts", "batch_tokens", "unpriced_tokens")


def upgrade() -> None:
    for name in _COUNTS:
        column = sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)
        op.add_column("usage", column, schema="rag_catalog")
    spent = sa.Column("spent", sa.Numeric(18, 8), server_default="0", nullable=False)
    op.add_column("slices", spent, schema="rag_catalog")


def downgrade() -> None:
    op.drop_column("slices", "spent", schema="rag_catalog")
    for name in _COUNTS:
        op.drop_column("usage", name, schema="rag_catalog")
