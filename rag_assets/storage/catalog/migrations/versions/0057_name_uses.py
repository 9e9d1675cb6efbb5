"""Add the table of the names that each text of source code defines and uses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

SCHEMA = "rag_catalog"
TABLE = "name_uses"
FORGET_CODE = """
CREATE OR REPLACE FUNCTION {schema}.forget_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM {schema}.document_index
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key
    ) THEN
{deletions}
    END IF;
    RETURN NULL;
END
$$
"""
DELETION = """        DELETE FROM {schema}.{table}
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key;"""


def upgrade() -> None:
    """Create the table; a text has its row once it is read again."""
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("chunk_set_key", sa.Text(), nullable=False),
        sa.Column("numbers", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{TABLE}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "chunk_set_key", name=op.f(f"pk_{TABLE}")),
        schema=SCHEMA,
    )
    for column in ("numbers", "names"):
        op.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER COLUMN {column} SET STATISTICS 0")
    op.create_index(
        "ix_name_uses_numbers", TABLE, ["numbers"], schema=SCHEMA, postgresql_using="gin"
    )
    _forget("symbols", "edges", TABLE)


def downgrade() -> None:
    """Drop the table."""
    _forget("symbols", "edges")
    op.drop_table(TABLE, schema=SCHEMA)


def _forget(*tables: str) -> None:
    deletions = "\n".join(DELETION.format(schema=SCHEMA, table=table) for table in tables)
    op.execute(FORGET_CODE.format(schema=SCHEMA, deletions=deletions))
