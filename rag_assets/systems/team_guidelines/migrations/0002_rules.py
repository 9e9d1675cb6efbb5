"""Where each document applies by its front matter."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "guideline_rules"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("parse_key", sa.Text(), nullable=False),
        sa.Column("is_always", sa.Boolean(), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "document_id", name=f"pk_{TABLE}"),
        sa.ForeignKeyConstraint(
            ["tenant"], [f"{SCHEMA}.tenants.id"], name=f"fk_{TABLE}_tenant", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "document_id"],
            [f"{SCHEMA}.uploads.tenant", f"{SCHEMA}.uploads.document_id"],
            name=f"fk_{TABLE}_tenant_document_id",
            ondelete="CASCADE",
        ),
        schema=SCHEMA,
    )
    # Statistics of a column hold values of it, also of rows that were replaced.
    op.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER COLUMN paths SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table(TABLE, schema=SCHEMA)
