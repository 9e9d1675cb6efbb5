"""Holds, and the data kept of held documents that change or are deleted."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
UNSAMPLED = {
    "holds": ("reason", "by"),
    "held_texts": (),
    "held_records": ("source_type", "source_id", "text", "said"),
}
IS_HELD = """
CREATE FUNCTION rag_catalog.is_held(text, text, text) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT FROM rag_catalog.holds AS hold
        WHERE hold.tenant = $1 AND (
            hold.document_id = $2 OR hold.source = $3
            OR (hold.document_id IS NULL AND hold.source IS NULL)
        )
    )
$$
"""
KEEP_TEXT = """
CREATE FUNCTION rag_catalog.keep_held_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE'
        AND NEW.parse_key IS NOT DISTINCT FROM OLD.parse_key
        AND NEW.chunk_set_key IS NOT DISTINCT FROM OLD.chunk_set_key
    THEN
        RETURN NULL;
    END IF;
    INSERT INTO rag_catalog.held_texts (tenant, document_id, parse_key, chunk_set_key)
    SELECT OLD.tenant, OLD.document_id, OLD.parse_key, OLD.chunk_set_key
    FROM rag_catalog.documents AS document
    WHERE document.tenant = OLD.tenant AND document.document_id = OLD.document_id
        AND rag_catalog.is_held(OLD.tenant, OLD.document_id, document.source)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$
"""
KEEP_RECORD = """
CREATE FUNCTION rag_catalog.keep_held_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF rag_catalog.is_held(OLD.tenant, OLD.document_id, OLD.source) THEN
        INSERT INTO rag_catalog.held_records
        SELECT OLD.tenant, OLD.document_id, OLD.revision, OLD.source, OLD.source_type,
            OLD.source_id, OLD.text, OLD.media_type, OLD.content_sha256, OLD.said,
            OLD.modified_at, OLD.changed_at
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    _create_tables()
    for table, names in UNSAMPLED.items():
        for name in names:
            op.execute(f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{name}" SET STATISTICS 0')
    for function in (IS_HELD, KEEP_TEXT, KEEP_RECORD):
        op.execute(function)
    # A version may leave `document_index` in many ways, even together with its build; this trigger
    # covers all of them.
    op.execute(
        "CREATE TRIGGER keep_held_text AFTER UPDATE OR DELETE ON rag_catalog.document_index"
        " FOR EACH ROW WHEN (OLD.parse_key IS NOT NULL)"
        " EXECUTE FUNCTION rag_catalog.keep_held_text()"
    )
    op.execute(
        "CREATE TRIGGER keep_held_record AFTER UPDATE OR DELETE ON rag_catalog.source_records"
        " FOR EACH ROW EXECUTE FUNCTION rag_catalog.keep_held_record()"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER keep_held_record ON rag_catalog.source_records")
    op.execute("DROP TRIGGER keep_held_text ON rag_catalog.document_index")
    for function in ("keep_held_record()", "keep_held_text()", "is_held(text, text, text)"):
        op.execute(f"DROP FUNCTION rag_catalog.{function}")
    for table in ("held_records", "held_texts", "holds"):
        op.drop_table(table, schema=SCHEMA)


def _create_tables() -> None:
    op.create_table(
        "holds",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("document_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        _now("set_at"),
        sa.PrimaryKeyConstraint("id", name="pk_holds"),
        sa.UniqueConstraint(
            "tenant",
            "source",
            "document_id",
            name="uq_holds_tenant_source_document_id",
            postgresql_nulls_not_distinct=True,
        ),
        _of_tenant("holds"),
        schema=SCHEMA,
    )
    op.create_table(
        "held_texts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("parse_key", sa.Text(), nullable=False),
        sa.Column("chunk_set_key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant", "document_id", "parse_key", "chunk_set_key", name="pk_held_texts"
        ),
        _of_tenant("held_texts"),
        schema=SCHEMA,
    )
    op.create_table(
        "held_records",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in (
                *("source", "source_type", "source_id", "text", "media_type"),
                "content_sha256",
            )
        ),
        sa.Column("said", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("modified_at", sa.DateTime(timezone=True), nullable=True),
        _now("changed_at"),
        sa.PrimaryKeyConstraint("tenant", "document_id", "revision", name="pk_held_records"),
        _of_tenant("held_records"),
        schema=SCHEMA,
    )


def _now(name: str) -> sa.Column[object]:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def _of_tenant(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant"], [f"{SCHEMA}.tenants.id"], name=f"fk_{table}_tenant", ondelete="CASCADE"
    )
