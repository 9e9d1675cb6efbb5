"""The latest time and version of the writes of each pushed record."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0051"
down_revision: str | None = "0050"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.create_table(
        "record_clocks",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), server_default="", nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f("fk_record_clocks_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "document_id", "part", name=op.f("pk_record_clocks")),
        schema=SCHEMA,
    )
    op.execute(
        f"INSERT INTO {SCHEMA}.record_clocks (tenant, document_id, updated_at)"  # noqa: S608 - ours
        f" SELECT tenant, document_id, modified_at FROM {SCHEMA}.source_records"
        " WHERE modified_at IS NOT NULL"
    )


def downgrade() -> None:
    op.drop_table("record_clocks", schema=SCHEMA)
