"""Documents that answer until their content is found at its new location."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0038"
down_revision: str | None = "0037"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "moved_documents"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), primary_key=True),
        sa.Column("document_id", sa.Text(), primary_key=True),
        sa.Column("successor", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "document_id"],
            [f"{SCHEMA}.documents.tenant", f"{SCHEMA}.documents.document_id"],
            ondelete="CASCADE",
        ),
        schema=SCHEMA,
    )


def downgrade() -> None:
    op.drop_table(TABLE, schema=SCHEMA)
