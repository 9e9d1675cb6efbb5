"""Record which removed documents a request may index again.

Every migration ends with the grants of the service's role, which may now update the digest of a
source's listing, too.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    """Add the column; documents that were removed earlier stay out until they change."""
    column = sa.Column("invalidated", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("tombstones", column, schema=SCHEMA)


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("tombstones", "invalidated", schema=SCHEMA)
