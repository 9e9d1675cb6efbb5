"""Pages of records, resolved comments, lanes, and former texts that runs still need."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0036"
down_revision: str | None = "0035"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE, TEXTS = "source_records", "record_texts"
INDEX = "ix_source_records_tenant_page_uuid"
UNSAMPLED = ((TABLE, "page_uuid"), (TEXTS, "text"))


def upgrade() -> None:
    op.add_column(TABLE, sa.Column("page_uuid", sa.Text(), nullable=True), schema=SCHEMA)
    resolved = sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True)
    op.add_column(TABLE, resolved, schema=SCHEMA)
    lane = sa.Column("lane", sa.SmallInteger(), server_default="0", nullable=False)
    op.add_column(TABLE, lane, schema=SCHEMA)
    op.create_index(
        INDEX,
        TABLE,
        ["tenant", "page_uuid"],
        schema=SCHEMA,
        postgresql_where=sa.text("page_uuid IS NOT NULL"),
    )
    op.create_table(
        TEXTS,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("content_sha256", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "kept_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{TEXTS}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            *("tenant", "document_id", "content_sha256"), name=op.f(f"pk_{TEXTS}")
        ),
        schema=SCHEMA,
    )
    for table, column in UNSAMPLED:
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table(TEXTS, schema=SCHEMA)
    op.drop_index(INDEX, table_name=TABLE, schema=SCHEMA)
    for column in ("lane", "resolved_at", "page_uuid"):
        op.drop_column(TABLE, column, schema=SCHEMA)
