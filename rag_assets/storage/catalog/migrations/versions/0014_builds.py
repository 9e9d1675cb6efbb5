"""How each build is made, its state, dates, checks and cost; and a pin next to the serving build.

The recipe of an existing build is filled in from the configuration that it was made with: before
another configuration replaces it, or at the next sync.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0014"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
COLUMNS: Mapping[str, Mapping[str, sa.types.TypeEngine[Any]]] = {
    "document_index": {
        "failed_document_key": sa.Text(),
        "failed_config_key": sa.Text(),
        "error_message": sa.Text(),
        "retry_at": sa.DateTime(timezone=True),
    },
    "generations": {
        "recipe": postgresql.JSONB(),
        "reason": sa.Text(),
        "completed_at": sa.DateTime(timezone=True),
        "published_at": sa.DateTime(timezone=True),
        "checks": postgresql.JSONB(),
    },
    "serving": {
        "pinned_generation": sa.Integer(),
        "pinned_at": sa.DateTime(timezone=True),
        "pinned_by": sa.Text(),
        "pin_reason": sa.Text(),
    },
}
WITHOUT: Mapping[str, tuple[str, ...]] = {
    "document_index": ("error_message",),
    "generations": ("recipe", "reason", "checks"),
    "serving": ("pinned_by", "pin_reason"),
}
INDEX = "ix_document_index_waiting"
CONSTRAINT = "ck_generations_state"
FORMER = "state IN ('BUILDING', 'SERVING', 'RETIRED', 'REMOVING')"
PRESENT = "state IN ('BUILDING', 'COMPLETE', 'HELD', 'SERVING', 'RETIRED', 'REMOVING')"


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for name, kind in columns.items():
            op.add_column(table, sa.Column(name, kind), schema=SCHEMA)
    spent = sa.Column("spent", sa.Numeric(18, 8), nullable=False, server_default="0")
    op.add_column("generations", spent, schema=SCHEMA)
    for table, names in WITHOUT.items():
        for name in names:
            op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {name} SET STATISTICS 0")
    op.create_index(
        INDEX,
        "document_index",
        ["tenant", "generation"],
        schema=SCHEMA,
        postgresql_where=sa.text("retry_at IS NOT NULL"),
    )
    op.drop_constraint(op.f(CONSTRAINT), "generations", schema=SCHEMA)
    op.create_check_constraint(op.f(CONSTRAINT), "generations", PRESENT, schema=SCHEMA)
    # A retired build answered before; the time when it started is known only for the current build.
    op.execute(
        f"UPDATE {SCHEMA}.generations SET published_at = created_at"  # noqa: S608
        " WHERE state IN ('SERVING', 'RETIRED')"
    )
    op.execute(
        f"UPDATE {SCHEMA}.generations AS build SET published_at = serving.published_at"  # noqa: S608
        f" FROM {SCHEMA}.serving AS serving WHERE serving.tenant = build.tenant"
        " AND serving.generation = build.generation"
    )


def downgrade() -> None:
    op.execute(
        f"UPDATE {SCHEMA}.generations SET state = 'BUILDING'"  # noqa: S608 - nothing is given
        " WHERE state IN ('COMPLETE', 'HELD')"
    )
    op.drop_constraint(op.f(CONSTRAINT), "generations", schema=SCHEMA)
    op.create_check_constraint(op.f(CONSTRAINT), "generations", FORMER, schema=SCHEMA)
    op.drop_index(INDEX, "document_index", schema=SCHEMA)
    op.drop_column("generations", "spent", schema=SCHEMA)
    for table, columns in COLUMNS.items():
        for name in columns:
            op.drop_column(table, name, schema=SCHEMA)
