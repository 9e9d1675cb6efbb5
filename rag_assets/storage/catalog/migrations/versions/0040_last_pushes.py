"""When a record was last pushed, even if unchanged."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0040"
down_revision: str | None = "0039"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "source_records"


def upgrade() -> None:
    op.add_column(TABLE, sa.Column("pushed_at", sa.DateTime(timezone=True)), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column(TABLE, "pushed_at", schema=SCHEMA)
