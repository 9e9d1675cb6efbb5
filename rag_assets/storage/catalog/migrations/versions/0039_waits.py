"""The start of the wait of documents and records."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0039"
down_revision: str | None = "0038"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
BEGIN_WAIT = """
CREATE FUNCTION rag_catalog.begin_wait() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE pushed timestamptz;
BEGIN
    IF NEW.revision IS NOT NULL AND NEW.status <> 'DELETED' AND (
        TG_OP = 'INSERT' OR OLD.status = 'DELETED' OR NEW.revision IS DISTINCT FROM OLD.revision
    ) THEN
        SELECT waiting_since INTO pushed FROM rag_catalog.source_records AS record
        WHERE record.tenant = NEW.tenant AND record.document_id = NEW.document_id;
    END IF;
    NEW.waiting_since := coalesce(pushed, now());
    RETURN NEW;
END
$$
"""
BEGINS = """
NEW.status <> OLD.status AND NEW.status IN ('PROCESSING', 'DELETED')
OR (NEW.access_scope = 'tree:excluded') <> (OLD.access_scope = 'tree:excluded')
"""


def upgrade() -> None:
    for table in ("documents", "source_records"):
        op.add_column(
            table,
            sa.Column(
                "waiting_since",
                sa.DateTime(timezone=True),
                server_default=sa.text("now()"),
                nullable=False,
            ),
            schema=SCHEMA,
        )
    op.execute("UPDATE rag_catalog.source_records SET waiting_since = changed_at")
    op.execute(
        "UPDATE rag_catalog.documents SET waiting_since ="
        " CASE WHEN edition > 0 OR status = 'DELETED' THEN updated_at ELSE changed_at END"
    )
    op.execute(BEGIN_WAIT)
    # A document starts to wait in many ways; this trigger covers all of them.
    for event, condition in (("INSERT", "NEW.revision IS NOT NULL"), ("UPDATE", BEGINS)):
        op.execute(
            f"CREATE TRIGGER begin_wait_on_{event.lower()} BEFORE {event}"
            f" ON {SCHEMA}.documents FOR EACH ROW WHEN ({condition})"
            f" EXECUTE FUNCTION {SCHEMA}.begin_wait()"
        )


def downgrade() -> None:
    for event in ("update", "insert"):
        op.execute(f"DROP TRIGGER begin_wait_on_{event} ON {SCHEMA}.documents")
    op.execute(f"DROP FUNCTION {SCHEMA}.begin_wait()")
    for table in ("source_records", "documents"):
        op.drop_column(table, "waiting_since", schema=SCHEMA)
