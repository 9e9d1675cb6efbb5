"""The version of the rules with which the record of each experience entry was written."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0053"
down_revision: str | None = "0052"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "knowledge_staging"
INDEX = "ix_knowledge_staging_record_version"


def upgrade() -> None:
    """Add the column; existing entries have records of the first version."""
    column = sa.Column("record_version", sa.Integer(), server_default="1", nullable=False)
    op.add_column(TABLE, column, schema=SCHEMA)
    op.create_index(INDEX, TABLE, ["tenant", "record_version"], schema=SCHEMA)


def downgrade() -> None:
    """Drop the column."""
    op.drop_index(INDEX, TABLE, schema=SCHEMA)
    op.drop_column(TABLE, "record_version", schema=SCHEMA)
