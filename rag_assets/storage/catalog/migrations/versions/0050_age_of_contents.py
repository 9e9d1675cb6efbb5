"""When a content was first embedded, in any document; sources that do not answer."""

from collections.abc import Sequence

from alembic import op

revision: str = "0050"
down_revision: str | None = "0049"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
INDEX = "ix_documents_tenant_embedded_sha256_embedded_at"
KINDS = (
    *("unreadable", "encrypted", "empty", "scanned", "unsupported", "too-large", "too-slow"),
    *("too-complex", "lost", "changing", "credential", "no-key", "key-refused", "cap-reached"),
    *("provider-unavailable", "text-rejected", "queued", "installation", "switched-off"),
)


def upgrade() -> None:
    columns = ["tenant", "embedded_sha256", "embedded_at"]
    op.create_index(INDEX, "documents", columns, schema=SCHEMA)
    _allow((*KINDS, "source-unavailable"))


def downgrade() -> None:
    op.execute(
        f"UPDATE {SCHEMA}.documents SET error_kind = 'changing'"  # noqa: S608 - nothing given
        " WHERE error_kind = 'source-unavailable'"
    )
    _allow(KINDS)
    op.drop_index(INDEX, "documents", schema=SCHEMA)


def _allow(kinds: Sequence[str]) -> None:
    name = op.f("ck_documents_error_kind")
    op.drop_constraint(name, "documents", schema=SCHEMA)
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.create_check_constraint(name, "documents", f"error_kind IN ({listed})", schema=SCHEMA)
