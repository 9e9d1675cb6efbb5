"""Definitions in source code, their kinds, and their edges to other definitions."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0029"
down_revision: str | None = "0028"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
UNSAMPLED = {
    "document_kinds": ("kinds",),
    "symbols": ("symbol", "short"),
    "edges": ("stated_of", "target", "evidence"),
}
INDEXES = {
    "symbols": ("symbol", "short"),
    "edges": ("stated_of", "target"),
}
FORGET_CODE = f"""
CREATE FUNCTION {SCHEMA}.forget_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM {SCHEMA}.document_index
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key
    ) THEN
        DELETE FROM {SCHEMA}.symbols
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key;
        DELETE FROM {SCHEMA}.edges
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key;
    END IF;
    RETURN NULL;
END
$$
"""  # noqa: S608 - nothing given


def upgrade() -> None:
    _create_kinds()
    _create(
        "symbols",
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("short", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=True),
    )
    _create(
        "edges",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("stated_of", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("confidence", sa.REAL(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
    )
    for table, names in UNSAMPLED.items():
        for name in names:
            op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {name} SET STATISTICS 0")
    op.create_index(
        "ix_document_index_tenant_chunk_set_key",
        "document_index",
        ["tenant", "chunk_set_key"],
        schema=SCHEMA,
    )
    op.execute(FORGET_CODE)
    # A version may be removed in many ways: by a change, a deletion, a removed build.
    forget = f"FOR EACH ROW WHEN (%s) EXECUTE FUNCTION {SCHEMA}.forget_code()"
    op.execute(
        f"CREATE TRIGGER forget_code AFTER DELETE ON {SCHEMA}.document_index "
        + forget % "OLD.chunk_set_key IS NOT NULL"
    )
    changed = (
        "OLD.chunk_set_key IS NOT NULL AND OLD.chunk_set_key IS DISTINCT FROM NEW.chunk_set_key"
    )
    op.execute(
        "CREATE TRIGGER forget_changed_code AFTER UPDATE OF chunk_set_key"
        f" ON {SCHEMA}.document_index " + forget % changed
    )


def downgrade() -> None:
    op.execute(f"DROP TRIGGER forget_changed_code ON {SCHEMA}.document_index")
    op.execute(f"DROP TRIGGER forget_code ON {SCHEMA}.document_index")
    op.execute(f"DROP FUNCTION {SCHEMA}.forget_code()")
    op.drop_index("ix_document_index_tenant_chunk_set_key", "document_index", schema=SCHEMA)
    for table in ("edges", "symbols", "document_kinds"):
        op.drop_table(table, schema=SCHEMA)


def _create_kinds() -> None:
    table = "document_kinds"
    op.create_table(
        table,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column(
            "kinds", sa.dialects.postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "document_id"],
            [f"{SCHEMA}.documents.tenant", f"{SCHEMA}.documents.document_id"],
            name=op.f(f"fk_{table}_tenant_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "document_id", name=op.f(f"pk_{table}")),
        schema=SCHEMA,
    )


def _create(table: str, *columns: sa.Column[Any]) -> None:
    op.create_table(
        table,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("chunk_set_key", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        *columns,
        sa.Column("line_start", sa.Integer(), nullable=False),
        sa.Column("line_end", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{table}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "chunk_set_key", "position", name=op.f(f"pk_{table}")),
        schema=SCHEMA,
    )
    for name in INDEXES[table]:
        op.create_index(f"ix_{table}_tenant_{name}", table, ["tenant", name], schema=SCHEMA)
