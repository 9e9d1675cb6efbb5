"""Kinds of failures that name what a provider of models refuses, or returns wrongly."""

from collections.abc import Sequence

from alembic import op

revision: str = "0055"
down_revision: str | None = "0052"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
KINDS = (
    *("unreadable", "encrypted", "empty", "scanned", "unsupported", "too-large", "too-slow"),
    *("too-complex", "lost", "changing", "credential", "no-key", "key-refused", "cap-reached"),
    *("provider-unavailable", "text-rejected", "queued", "installation", "switched-off"),
    "source-unavailable",
)
FORMER = {
    "key-unreadable": "installation",
    "model-refused": "key-refused",
    "quota-exhausted": "key-refused",
    "address-refused": "key-refused",
    "request-refused": "key-refused",
    "provider-limits": "provider-unavailable",
    "wrong-vectors": "installation",
    "bad-response": "provider-unavailable",
}
"""New kinds, with the kind that an earlier version recorded for each."""


def upgrade() -> None:
    _allow((*KINDS, *FORMER))


def downgrade() -> None:
    for kind, former in FORMER.items():
        op.execute(
            f"UPDATE {SCHEMA}.documents SET error_kind = '{former}'"  # noqa: S608 - constants
            f" WHERE error_kind = '{kind}'"
        )
    _allow(KINDS)


def _allow(kinds: Sequence[str]) -> None:
    name = op.f("ck_documents_error_kind")
    op.drop_constraint(name, "documents", schema=SCHEMA)
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.create_check_constraint(name, "documents", f"error_kind IN ({listed})", schema=SCHEMA)
