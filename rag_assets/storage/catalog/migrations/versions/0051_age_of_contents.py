"""Find when a content was first embedded, whichever document has it."""

from collections.abc import Sequence

from alembic import op

revision: str = "0051"
down_revision: str | None = "0047"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
NAME = "ix_documents_tenant_embedded_sha256_embedded_at"


def upgrade() -> None:
    columns = ["tenant", "embedded_sha256", "embedded_at"]
    op.create_index(NAME, "documents", columns, schema=SCHEMA)


def downgrade() -> None:
    op.drop_index(NAME, "documents", schema=SCHEMA)
