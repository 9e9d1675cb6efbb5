"""What the definitions in documents of source code are."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0028"
down_revision: str | None = "0027"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "document_kinds"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column(
            "kinds", sa.dialects.postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "document_id"],
            [f"{SCHEMA}.documents.tenant", f"{SCHEMA}.documents.document_id"],
            name=op.f(f"fk_{TABLE}_tenant_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "document_id", name=op.f(f"pk_{TABLE}")),
        schema=SCHEMA,
    )
    op.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER COLUMN kinds SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table(TABLE, schema=SCHEMA)
