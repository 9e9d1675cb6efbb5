"""The version of a document's content, if its source states one."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0028"
down_revision: str | None = "0027"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.add_column("documents", sa.Column("version", sa.Text(), nullable=True), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("documents", "version", schema=SCHEMA)
