"""The content of each version in a build."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0043"
down_revision: str | None = "0042"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    column = sa.Column("content_sha256", sa.Text(), nullable=True)
    op.add_column("document_index", column, schema=SCHEMA)
    # A content listed since then may differ, so the content in the index is no longer known.
    op.execute(
        f"UPDATE {SCHEMA}.document_index AS held"  # noqa: S608 - nothing in it is given
        f" SET content_sha256 = listed.content_sha256 FROM {SCHEMA}.documents AS listed"
        " WHERE listed.tenant = held.tenant AND listed.document_id = held.document_id"
        " AND held.indexed_key IS NOT NULL AND listed.status <> 'DELETED'"
        " AND split_part(held.document_key, '.', 1) = split_part(listed.document_key, '.', 1)"
    )


def downgrade() -> None:
    op.drop_column("document_index", "content_sha256", schema=SCHEMA)
