"""Kinds of failures of providers, measured thresholds of builds, tokens of organizations."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0055"
down_revision: str | None = "0054"
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
    column = sa.Column("thresholds", JSONB(), nullable=False, server_default=sa.text("'{}'::jsonb"))
    op.add_column("generations", column, schema=SCHEMA)
    # Statistics of a column contain some of its values, and people write the reasons.
    op.execute(f"ALTER TABLE {SCHEMA}.generations ALTER COLUMN thresholds SET STATISTICS 0")
    op.alter_column("service_tokens", "tenant", nullable=True, schema=SCHEMA)
    organization = sa.Column(
        "organization",
        sa.Text(),
        sa.ForeignKey(
            f"{SCHEMA}.organizations.id",
            name="fk_service_tokens_organization",
            ondelete="CASCADE",
        ),
    )
    op.add_column("service_tokens", organization, schema=SCHEMA)
    op.create_check_constraint(
        op.f("ck_service_tokens_owner"),
        "service_tokens",
        "(tenant IS NULL) <> (organization IS NULL)",
        schema=SCHEMA,
    )
    op.create_index(
        "ix_service_tokens_organization", "service_tokens", ["organization"], schema=SCHEMA
    )


def downgrade() -> None:
    for kind, former in FORMER.items():
        op.execute(
            f"UPDATE {SCHEMA}.documents SET error_kind = '{former}'"  # noqa: S608 - constants
            f" WHERE error_kind = '{kind}'"
        )
    _allow(KINDS)
    op.drop_column("generations", "thresholds", schema=SCHEMA)
    op.execute(f"DELETE FROM {SCHEMA}.service_tokens WHERE tenant IS NULL")  # noqa: S608 - constant
    op.drop_constraint(op.f("ck_service_tokens_owner"), "service_tokens", schema=SCHEMA)
    op.drop_column("service_tokens", "organization", schema=SCHEMA)
    op.alter_column("service_tokens", "tenant", nullable=False, schema=SCHEMA)


def _allow(kinds: Sequence[str]) -> None:
    name = op.f("ck_documents_error_kind")
    op.drop_constraint(name, "documents", schema=SCHEMA)
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.create_check_constraint(name, "documents", f"error_kind IN ({listed})", schema=SCHEMA)
