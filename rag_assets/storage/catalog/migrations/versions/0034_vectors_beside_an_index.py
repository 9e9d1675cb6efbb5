"""Builds with vectors that are also in a separate vector store."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0034"
down_revision: str | None = "0033"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "generations"
NAME = "ck_generations_vectors_beside"


def upgrade() -> None:
    op.add_column(TABLE, sa.Column("vectors_beside", sa.Text(), nullable=True), schema=SCHEMA)
    op.add_column(
        TABLE,
        sa.Column("vectors_retry_at", sa.DateTime(timezone=True), nullable=True),
        schema=SCHEMA,
    )
    op.create_check_constraint(
        op.f(NAME), TABLE, "vectors_beside IN ('filling', 'answering')", schema=SCHEMA
    )


def downgrade() -> None:
    op.drop_constraint(op.f(NAME), TABLE, schema=SCHEMA, type_="check")
    op.drop_column(TABLE, "vectors_retry_at", schema=SCHEMA)
    op.drop_column(TABLE, "vectors_beside", schema=SCHEMA)
