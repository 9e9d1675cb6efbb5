"""Sessions of the panel, and the codes in links that start sessions."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0026"
down_revision: str | None = "0024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLES = (
    ("panel_codes", "code_sha256", "token_expires_at", None),
    ("panel_sessions", "session_sha256", "used_at", sa.text("now()")),
)


def upgrade() -> None:
    for table, key, last, default in TABLES:
        op.create_table(
            table,
            sa.Column(key, sa.LargeBinary(), nullable=False),
            sa.Column("tenant", sa.Text(), nullable=False),
            sa.Column("name", sa.Text(), nullable=False),
            sa.Column("principals", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
            sa.Column("token_id", sa.Text(), nullable=True),
            _time("created_at", sa.text("now()"), nullable=False),
            _time("expires_at", None, nullable=False),
            _time(last, default, nullable=default is None),
            sa.ForeignKeyConstraint(
                ["tenant"],
                ["rag_catalog.tenants.id"],
                name=op.f(f"fk_{table}_tenant"),
                ondelete="CASCADE",
            ),
            sa.ForeignKeyConstraint(
                ["token_id"],
                ["rag_catalog.service_tokens.token_id"],
                name=op.f(f"fk_{table}_token_id"),
                ondelete="CASCADE",
            ),
            sa.PrimaryKeyConstraint(key, name=op.f(f"pk_{table}")),
            schema=SCHEMA,
        )
        for column in ("tenant", "token_id", "expires_at"):
            op.create_index(f"ix_{table}_{column}", table, [column], schema=SCHEMA)
        # Statistics of a column contain some of its values, even from deleted rows.
        for column in (key, "name", "principals"):
            op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    for table, *_ in TABLES:
        op.drop_table(table, schema=SCHEMA)


def _time(name: str, default: sa.TextClause | None, *, nullable: bool) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=nullable)
