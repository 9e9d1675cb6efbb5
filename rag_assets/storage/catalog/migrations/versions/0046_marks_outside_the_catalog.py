"""Marks that are kept in every store, and the journal of security changes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0046"
down_revision: str | None = "0045"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def _false(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), server_default="false", nullable=False)


def upgrade() -> None:
    for table, column in (
        ("catalog_marks", sa.Column("tag", sa.Text(), nullable=True)),
        ("catalog_marks", _false("kept")),
        (
            "installation",
            sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        ),
        ("installation", _false("epoch_kept")),
    ):
        op.add_column(table, column, schema=SCHEMA)
    op.create_table(
        "security_changes",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("about", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_security_changes"),
        schema=SCHEMA,
    )
    op.create_index("ix_security_changes_epoch", "security_changes", ["epoch"], schema=SCHEMA)


def downgrade() -> None:
    op.drop_table("security_changes", schema=SCHEMA)
    op.drop_column("installation", "epoch_kept", schema=SCHEMA)
    op.drop_column("installation", "epoch", schema=SCHEMA)
    op.drop_column("catalog_marks", "kept", schema=SCHEMA)
    op.drop_column("catalog_marks", "tag", schema=SCHEMA)
