"""Kinds of failures of documents, which determine the advice to the people of a tenant."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0023"
down_revision: str | None = "0019"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
KINDS = (
    *("unreadable", "encrypted", "empty", "scanned", "unsupported", "too-large", "too-slow"),
    *("too-complex", "lost", "changing", "credential", "no-key", "key-refused", "cap-reached"),
    *("provider-unavailable", "text-rejected", "queued", "installation"),
)
# Prefixes of the messages of earlier versions, in the order in which they are tried.
BEGINNINGS = (
    ("it is encrypted%", "encrypted"),
    ("a part of it is encrypted%", "encrypted"),
    ("it is empty%", "empty"),
    ("it holds no text%", "empty"),
    ("no text on any slide%", "empty"),
    ("no cell of a sheet%", "empty"),
    ("no text%", "scanned"),
    ("it took longer%", "too-slow"),
    ("scanning it for credentials took%", "too-slow"),
    ("it needs more memory%", "too-complex"),
    ("it is packed like a ZIP bomb%", "too-complex"),
    ("unpacked it is larger%", "too-complex"),
    ("over the limit%", "too-large"),
    ("its text is longer%", "too-large"),
    ("it has more than%", "too-large"),
    ("it is damaged%", "unreadable"),
    ("it is not %", "unreadable"),
    ("it is a%", "unsupported"),
    ("not in its source as listed%", "changing"),
    ("gone since it was listed%", "changing"),
    ("the uploaded file is%", "lost"),
    ("a credential was left in it%", "credential"),
    ("its access scope holds a credential%", "credential"),
    ("its texts are in batch%", "queued"),
    ("%has no key%", "no-key"),
    ("%cap%is reached%", "cap-reached"),
)


def upgrade() -> None:
    column = sa.Column("error_kind", sa.Text(), nullable=True)
    op.add_column("documents", column, schema=SCHEMA)
    whens = " ".join(f"WHEN error_message LIKE '{like}' THEN '{kind}'" for like, kind in BEGINNINGS)
    op.execute(
        f"UPDATE {SCHEMA}.documents SET error_kind = CASE {whens}"  # noqa: S608 - nothing given
        # Automatically retried documents wait for a provider; for all others, the file is the
        # cause.
        " WHEN retry_at < '9999-01-01' THEN 'provider-unavailable'"
        " WHEN retry_at IS NOT NULL THEN 'key-refused' ELSE 'unreadable' END"
        " WHERE error_message IS NOT NULL"
    )
    listed = ", ".join(f"'{kind}'" for kind in KINDS)
    op.create_check_constraint(
        op.f("ck_documents_error_kind"), "documents", f"error_kind IN ({listed})", schema=SCHEMA
    )


def downgrade() -> None:
    op.drop_constraint(op.f("ck_documents_error_kind"), "documents", schema=SCHEMA)
    op.drop_column("documents", "error_kind", schema=SCHEMA)
