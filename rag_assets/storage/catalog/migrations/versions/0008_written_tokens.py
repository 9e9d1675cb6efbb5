"""The number of tokens that chat models wrote."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    column = sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False)
    op.add_column("usage", column, schema="rag_catalog")


def downgrade() -> None:
    op.drop_column("usage", "output_tokens", schema="rag_catalog")
