"""Record how long the last listing of each source took."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from rag_assets.storage.catalog.tables import SCHEMA

revision: str = "0060"
down_revision: str | None = "0059"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    column = sa.Column("listing_seconds", sa.Double, nullable=False, server_default="0")
    op.add_column("syncs", column, schema=SCHEMA)
