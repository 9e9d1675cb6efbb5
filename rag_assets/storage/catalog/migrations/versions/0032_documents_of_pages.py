"""The ids of pushed records in their application, and the pages that they belong to."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0032"
down_revision: str | None = "0031"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "documents"
COLUMNS = ("source_id", "page_uuid")
INDEX = "ix_documents_tenant_page_uuid"


def upgrade() -> None:
    for column in COLUMNS:
        op.add_column(TABLE, sa.Column(column, sa.Text(), nullable=True), schema=SCHEMA)
        op.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER COLUMN {column} SET STATISTICS 0")
    op.create_index(
        INDEX,
        TABLE,
        ["tenant", "page_uuid"],
        schema=SCHEMA,
        postgresql_where=sa.text("page_uuid IS NOT NULL"),
    )
    op.execute(
        f"UPDATE {SCHEMA}.{TABLE} d SET source_id = r.source_id"  # noqa: S608 - nothing is given
        f" FROM {SCHEMA}.source_records r"
        " WHERE d.tenant = r.tenant AND d.document_id = r.document_id AND d.status <> 'DELETED'"
    )


def downgrade() -> None:
    op.drop_index(INDEX, table_name=TABLE, schema=SCHEMA)
    for column in COLUMNS:
        op.drop_column(TABLE, column, schema=SCHEMA)
