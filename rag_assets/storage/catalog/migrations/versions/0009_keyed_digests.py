"""A key per generation for the digests of its entries."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # Null for existing generations: their entries were written without a key.
    column = sa.Column("digest_key", sa.LargeBinary(), nullable=True)
    op.add_column("generations", column, schema="rag_catalog")


def downgrade() -> None:
    op.drop_column("generations", "digest_key", schema="rag_catalog")
