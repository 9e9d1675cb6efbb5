"""The keys in the lake of each version in a build."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    # Null for existing rows: only the program knows the hashed values. Compaction fills them in.
    for name in ("parse_key", "chunk_set_key"):
        op.add_column("document_index", sa.Column(name, sa.Text(), nullable=True), schema=SCHEMA)


def downgrade() -> None:
    for name in ("parse_key", "chunk_set_key"):
        op.drop_column("document_index", name, schema=SCHEMA)
