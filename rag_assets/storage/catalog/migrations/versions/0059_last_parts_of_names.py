"""An index of definitions by the last part of their names, without marks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

SCHEMA = "rag_catalog"
INDEX = "ix_symbols_tenant_last_part"
LAST_PART = "translate(regexp_replace(short, '^.*[.]', ''), '_-?!$=', '')"


def upgrade() -> None:
    """Create the index without statistics, which would contain names."""
    op.create_index(INDEX, "symbols", ["tenant", sa.text(LAST_PART)], schema=SCHEMA)
    op.execute(f"ALTER INDEX {SCHEMA}.{INDEX} ALTER COLUMN 2 SET STATISTICS 0")


def downgrade() -> None:
    """Drop the index."""
    op.drop_index(INDEX, "symbols", schema=SCHEMA)
