"""Documents derived from the files of a source, and the location of an edge's evidence."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0030"
down_revision: str | None = "0029"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "derivations"
UNSAMPLED = {"edges": "path", TABLE: "unresolved"}


def upgrade() -> None:
    op.add_column("edges", sa.Column("path", sa.Text(), nullable=True), schema=SCHEMA)
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column(
            "unresolved",
            sa.dialects.postgresql.JSONB(),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{TABLE}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "source", name=op.f(f"pk_{TABLE}")),
        schema=SCHEMA,
    )
    for table, column in UNSAMPLED.items():
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table(TABLE, schema=SCHEMA)
    op.drop_column("edges", "path", schema=SCHEMA)
