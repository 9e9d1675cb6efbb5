"""How fast a build's texts were embedded and its entries written, in its largest slice."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0022"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
COLUMNS: Mapping[str, sa.types.TypeEngine[Any]] = {
    "embedded_texts": sa.Integer(),
    "embedding_seconds": sa.Double(),
    "written_entries": sa.Integer(),
    "writing_seconds": sa.Double(),
}


def upgrade() -> None:
    for name, kind in COLUMNS.items():
        column = sa.Column(name, kind, nullable=False, server_default="0")
        op.add_column("generations", column, schema=SCHEMA)


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("generations", name, schema=SCHEMA)
