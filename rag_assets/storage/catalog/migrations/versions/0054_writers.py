"""Allow service tokens of the role `writer`, which push records and cannot read."""

from __future__ import annotations

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

SCHEMA = "rag_catalog"
ROLE = "ck_service_tokens_role"
ROLES = ("admin", "member", "guest", "orchestrator")


def upgrade() -> None:
    """Add the role to the allowed roles."""
    _replace_roles(*ROLES, "writer")


def downgrade() -> None:
    """Delete tokens of the role, and remove it from the allowed roles."""
    op.execute(f"DELETE FROM {SCHEMA}.service_tokens WHERE role = 'writer'")  # noqa: S608
    _replace_roles(*ROLES)


def _replace_roles(*roles: str) -> None:
    op.drop_constraint(op.f(ROLE), "service_tokens", schema=SCHEMA)
    named = ", ".join(f"'{role}'" for role in roles)
    op.create_check_constraint(op.f(ROLE), "service_tokens", f"role IN ({named})", schema=SCHEMA)
