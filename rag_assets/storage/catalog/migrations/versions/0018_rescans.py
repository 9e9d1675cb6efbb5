"""The credential rules with which a tenant's stores were scanned, and the progress of erasures."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0018"
down_revision: str | None = "0023"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
ADDED = {"tenants": "scanned", "erasures": "progress"}


def upgrade() -> None:
    for table, name in ADDED.items():
        column = sa.Column(name, JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False)
        op.add_column(table, column, schema=SCHEMA)
        op.execute(f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{name}" SET STATISTICS 0')


def downgrade() -> None:
    for table, name in ADDED.items():
        op.drop_column(table, name, schema=SCHEMA)
