"""When contents were embedded; erasures with their receipts."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
UNSAMPLED = {
    "erasures": ("by", "document_ids", "parse_keys", "chunk_set_keys", "counts"),
    "receipts": ("by", "counts", "documents", "proof"),
    "receipt_keys": ("key",),
}


def upgrade() -> None:
    for column in (
        sa.Column("embedded_sha256", sa.Text(), nullable=True),
        sa.Column("embedded_at", sa.DateTime(timezone=True), nullable=True),
    ):
        op.add_column("documents", column, schema=SCHEMA)
    held = sa.Column("held_prunes", sa.Integer(), nullable=False, server_default="0")
    op.add_column("syncs", held, schema=SCHEMA)
    # The earliest time at which the current content is known to have existed.
    op.execute(
        f"UPDATE {SCHEMA}.documents AS document"  # noqa: S608 - nothing in it is given
        " SET embedded_sha256 = document.content_sha256,"
        " embedded_at = LEAST(document.changed_at, indexed.at)"
        " FROM (SELECT held.tenant, held.document_id, min(held.indexed_at) AS at"
        f" FROM {SCHEMA}.document_index AS held JOIN {SCHEMA}.documents AS listed"
        " USING (tenant, document_id)"
        " WHERE held.indexed_key IS NOT NULL AND held.document_key = listed.document_key"
        " GROUP BY 1, 2) AS indexed"
        " WHERE indexed.tenant = document.tenant AND indexed.document_id = document.document_id"
        " AND document.status <> 'DELETED'"
    )
    _create_tables()
    for table, names in UNSAMPLED.items():
        for name in names:
            op.execute(f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{name}" SET STATISTICS 0')


def downgrade() -> None:
    for table in UNSAMPLED:
        op.drop_table(table, schema=SCHEMA)
    op.drop_column("syncs", "held_prunes", schema=SCHEMA)
    for name in ("embedded_at", "embedded_sha256"):
        op.drop_column("documents", name, schema=SCHEMA)


def _create_tables() -> None:
    op.create_table(
        "erasures",
        sa.Column("id", sa.Uuid(), nullable=False),
        *_what(),
        _json("document_ids", "[]"),
        _json("parse_keys", "[]"),
        _json("chunk_set_keys", "[]"),
        _json("counts"),
        sa.PrimaryKeyConstraint("id", name="pk_erasures"),
        schema=SCHEMA,
    )
    op.create_index("ix_erasures_tenant", "erasures", ["tenant"], schema=SCHEMA)
    op.create_table(
        "receipts",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        *_what(),
        _json("counts"),
        _json("documents", "[]"),
        _json("proof"),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_receipts"),
        sa.UniqueConstraint("id", name="uq_receipts_id"),
        schema=SCHEMA,
    )
    op.create_index("ix_receipts_tenant", "receipts", ["tenant"], schema=SCHEMA)
    op.create_table(
        "receipt_keys",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_receipt_keys"),
        schema=SCHEMA,
    )


def _what() -> list[sa.Column[object]]:
    return [
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
    ]


def _json(name: str, default: str = "{}") -> sa.Column[object]:
    return sa.Column(name, JSONB(), server_default=sa.text(f"'{default}'::jsonb"), nullable=False)
