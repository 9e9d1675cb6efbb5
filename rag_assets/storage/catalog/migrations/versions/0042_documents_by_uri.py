"""An index of documents by the hash of their URI: URIs may be too long for an index."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0042"
down_revision: str | None = "0041"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
INDEX = "ix_documents_tenant_uri"


def upgrade() -> None:
    op.create_index(INDEX, "documents", ["tenant", sa.text("md5(uri)")], schema=SCHEMA)
    # Hashes of URIs reveal whether a document with a known name existed.
    op.execute(f"ALTER INDEX {SCHEMA}.{INDEX} ALTER COLUMN 2 SET STATISTICS 0")


def downgrade() -> None:
    op.drop_index(INDEX, "documents", schema=SCHEMA)
