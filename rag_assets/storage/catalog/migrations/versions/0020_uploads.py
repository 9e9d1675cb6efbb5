"""Uploaded files, and the data kept of held files."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0020"
down_revision: str | None = "0021"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
UNSAMPLED = {
    "uploads": ("file_name", "uploaded_by"),
    "held_uploads": ("file_name", "uploaded_by"),
    "erasures": ("blobs",),
}
IS_HELD = """
CREATE OR REPLACE FUNCTION rag_catalog.is_held(text, text, text) RETURNS boolean STABLE
LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT FROM rag_catalog.holds AS hold
        WHERE hold.tenant = $1 AND (
            hold.document_id = $2 OR hold.source = $3
            OR (hold.document_id IS NULL AND hold.source IS NULL)
        )
    ){more}
$$
"""
OR_DISABLED = """ OR EXISTS (
        SELECT FROM rag_catalog.uploads AS upload
        WHERE upload.tenant = $1 AND upload.document_id = $2 AND NOT upload.enabled
    )"""
# Only holds keep the file itself: if a disabled file is deleted, its content is deleted.
KEEP_UPLOAD = """
CREATE FUNCTION rag_catalog.keep_held_upload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM rag_catalog.holds AS hold
        WHERE hold.tenant = OLD.tenant AND (
            hold.document_id = OLD.document_id OR hold.source = OLD.source
            OR (hold.document_id IS NULL AND hold.source IS NULL)
        )
    ) THEN
        INSERT INTO rag_catalog.held_uploads
        SELECT OLD.tenant, OLD.document_id, OLD.revision, OLD.source, OLD.file_name,
            OLD.media_type, OLD.size, OLD.content_sha256, OLD.uploaded_by, OLD.updated_at
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    _create_tables()
    blobs = sa.Column("blobs", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False)
    op.add_column("erasures", blobs, schema=SCHEMA)
    for table, names in UNSAMPLED.items():
        for name in names:
            op.execute(f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{name}" SET STATISTICS 0')
    op.execute(IS_HELD.format(more=OR_DISABLED))
    op.execute(KEEP_UPLOAD)
    op.execute(
        "CREATE TRIGGER keep_held_upload AFTER DELETE ON rag_catalog.uploads"
        " FOR EACH ROW EXECUTE FUNCTION rag_catalog.keep_held_upload()"
    )
    op.execute(
        "CREATE TRIGGER keep_held_former_upload AFTER UPDATE ON rag_catalog.uploads"
        " FOR EACH ROW WHEN (OLD.content_sha256 <> NEW.content_sha256)"
        " EXECUTE FUNCTION rag_catalog.keep_held_upload()"
    )


def downgrade() -> None:
    for trigger in ("keep_held_former_upload", "keep_held_upload"):
        op.execute(f"DROP TRIGGER {trigger} ON {SCHEMA}.uploads")
    op.execute(f"DROP FUNCTION {SCHEMA}.keep_held_upload()")
    op.execute(IS_HELD.format(more=""))
    op.drop_column("erasures", "blobs", schema=SCHEMA)
    for table in ("held_uploads", "uploads"):
        op.drop_table(table, schema=SCHEMA)


def _create_tables() -> None:
    op.create_table(
        "uploads",
        *_texts("tenant", "document_id", "source", "path"),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        *_texts("file_name", "media_type"),
        sa.Column("size", sa.BigInteger(), nullable=False),
        *_texts("content_sha256", "uploaded_by"),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        _now("created_at"),
        _now("updated_at"),
        sa.PrimaryKeyConstraint("tenant", "document_id", name="pk_uploads"),
        _of_tenant("uploads"),
        schema=SCHEMA,
    )
    op.create_index(
        "ix_uploads_tenant_content_sha256", "uploads", ["tenant", "content_sha256"], schema=SCHEMA
    )
    op.create_table(
        "held_uploads",
        *_texts("tenant", "document_id"),
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        *_texts("source", "file_name", "media_type"),
        sa.Column("size", sa.BigInteger(), nullable=False),
        *_texts("content_sha256", "uploaded_by"),
        _now("updated_at"),
        sa.PrimaryKeyConstraint("tenant", "document_id", "revision", name="pk_held_uploads"),
        _of_tenant("held_uploads"),
        schema=SCHEMA,
    )


def _texts(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _now(name: str) -> sa.Column[object]:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def _of_tenant(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant"], [f"{SCHEMA}.tenants.id"], name=f"fk_{table}_tenant", ondelete="CASCADE"
    )
