"""A column for the revisions of pushed records, which were stored as inodes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.add_column("documents", sa.Column("revision", sa.BigInteger(), nullable=True), schema=SCHEMA)
    # The revision that was listed; the record itself may have a newer one.
    op.execute(
        f"UPDATE {SCHEMA}.documents AS document"  # noqa: S608 - nothing in it is given
        " SET revision = document.inode, inode = 0"
        f" FROM {SCHEMA}.source_records AS record"
        " WHERE record.tenant = document.tenant AND record.document_id = document.document_id"
    )


def downgrade() -> None:
    op.execute(
        f"UPDATE {SCHEMA}.documents SET inode = revision WHERE revision IS NOT NULL"  # noqa: S608
    )
    op.drop_column("documents", "revision", schema=SCHEMA)
