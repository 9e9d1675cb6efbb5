"""No statistics of columns with contents; no titles, tags or metadata of deleted documents."""

from collections.abc import Mapping, Sequence

from alembic import op
from sqlalchemy import inspect

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
WITHOUT: Mapping[str, tuple[str, ...]] = {
    "documents": (
        *("path", "uri", "title", "said_title", "tags", "metadata", "error_message"),
        "source_type",
    ),
    "embedding_batches": ("error",),
    "events": ("payload",),
    "generations": ("digest_key", "embedder"),
    "knowledge_staging": (
        *("agent_type", "task_type", "technology", "failure_description", "error_message"),
        *("solution_steps", "gate_type", "human_feedback", "revision_approach"),
        "approved_approach",
    ),
    "provider_keys": ("nonce", "ciphertext", "last_four"),
    "service_tokens": ("token_sha256", "principals"),
    "slices": ("unlisted",),
    "source_records": ("source_type", "source_id", "text", "said"),
    "syncs": ("last_error",),
    "tenants": ("config",),
}


def upgrade() -> None:
    op.execute(
        f"UPDATE {SCHEMA}.documents"  # noqa: S608 - nothing in it is given
        " SET title = NULL, said_title = NULL, tags = '{}', metadata = '{}', path = ''"
        " WHERE status = 'DELETED'"
    )
    inspector = inspect(op.get_bind())
    for table, names in WITHOUT.items():
        types = {c["name"]: c["type"] for c in inspector.get_columns(table, schema=SCHEMA)}
        for name in names:
            column = f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{name}"'
            # Setting the type that the column already has rewrites no rows, but drops its current
            # statistics, which otherwise only a superuser could delete.
            op.execute(f"{column} TYPE {types[name].compile(op.get_bind().dialect)}")
            op.execute(f"{column} SET STATISTICS 0")
    index = f"{SCHEMA}.ix_events_tenant_caller"
    op.execute(f"DROP INDEX {index}")
    op.execute(
        "CREATE INDEX ix_events_tenant_caller ON rag_catalog.events"
        " (tenant, (payload ->> 'caller'), id) WHERE payload ->> 'caller' IS NOT NULL"
    )
    op.execute(f"ALTER INDEX {index} ALTER COLUMN 2 SET STATISTICS 0")


def downgrade() -> None:
    op.execute(f"ALTER INDEX {SCHEMA}.ix_events_tenant_caller ALTER COLUMN 2 SET STATISTICS -1")
    for table, names in WITHOUT.items():
        for name in names:
            op.execute(f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{name}" SET STATISTICS -1')
