"""The time at which a document's current content was written."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    column = sa.Column("modified_at", sa.DateTime(timezone=True), nullable=True)
    op.add_column("documents", column, schema="rag_catalog")
    # For documents that were already listed, the file's modification time is the best known value.
    op.execute(
        "UPDATE rag_catalog.documents SET modified_at ="
        " timestamptz 'epoch' + (mtime_ns / 1000000) * interval '1 millisecond'"
    )
    op.alter_column("documents", "modified_at", nullable=False, schema="rag_catalog")


def downgrade() -> None:
    op.drop_column("documents", "modified_at", schema="rag_catalog")
