"""Contents of files that were replaced, and that a run may still need."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0041"
down_revision: str | None = "0040"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "record_files"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column(
            "kept_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{TABLE}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            *("tenant", "document_id", "content_sha256"), name=op.f(f"pk_{TABLE}")
        ),
        schema=SCHEMA,
    )
    op.create_index(
        op.f(f"ix_{TABLE}_tenant_content_sha256"),
        TABLE,
        ["tenant", "content_sha256"],
        schema=SCHEMA,
    )


def downgrade() -> None:
    op.drop_table(TABLE, schema=SCHEMA)
