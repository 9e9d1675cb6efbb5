"""Data about the documents of projects: their tokens, their owners, the reasons for waiting."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0024"
down_revision: str | None = "0018"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
KINDS = (
    *("unreadable", "encrypted", "empty", "scanned", "unsupported", "too-large", "too-slow"),
    *("too-complex", "lost", "changing", "credential", "no-key", "key-refused", "cap-reached"),
    *("provider-unavailable", "text-rejected", "queued", "installation"),
)


def upgrade() -> None:
    column = sa.Column("token_count", sa.Integer(), nullable=True)
    op.add_column("document_index", column, schema=SCHEMA)
    _allow((*KINDS, "switched-off"))
    # The documents are listed again, with the ids of organization and project in their metadata.
    # They are not embedded again.
    op.execute(
        f"UPDATE {SCHEMA}.uploads SET revision = nextval('{SCHEMA}.record_revisions')"  # noqa: S608
        f" WHERE tenant IN (SELECT id FROM {SCHEMA}.tenants WHERE of_project)"
    )


def downgrade() -> None:
    op.execute(
        f"UPDATE {SCHEMA}.documents SET error_kind = 'key-refused'"  # noqa: S608 - nothing given
        " WHERE error_kind = 'switched-off'"
    )
    _allow(KINDS)
    op.drop_column("document_index", "token_count", schema=SCHEMA)


def _allow(kinds: Sequence[str]) -> None:
    name = op.f("ck_documents_error_kind")
    op.drop_constraint(name, "documents", schema=SCHEMA)
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.create_check_constraint(name, "documents", f"error_kind IN ({listed})", schema=SCHEMA)
