"""Create the key of receipts with the catalog, so that every dump contains it.

A catalog that was restored from a dump from before the first receipt had another key. It did not
recognize the documents that the journal of security changes names by their keyed hashes.
"""

from __future__ import annotations

import secrets

from alembic import op
from sqlalchemy import text

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the key, unless it exists."""
    op.get_bind().execute(
        text(
            "INSERT INTO rag_catalog.receipt_keys (id, key) VALUES (1, :key) ON CONFLICT DO NOTHING"
        ),
        {"key": secrets.token_bytes(32)},
    )


def downgrade() -> None:
    """Keep the key, which receipts need."""
