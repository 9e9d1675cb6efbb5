"""Tenants that files of agents define."""

from collections.abc import Sequence

from alembic import op

revision: str = "0037"
down_revision: str | None = "0036"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
NAME = "ck_tenants_origin"


def upgrade() -> None:
    op.drop_constraint(op.f(NAME), "tenants", schema=SCHEMA)
    op.create_check_constraint(
        op.f(NAME), "tenants", "origin IN ('file', 'api', 'agents')", schema=SCHEMA
    )


def downgrade() -> None:
    # A newer version defines these tenants again from the files; in this version they are an
    # operator's.
    op.execute("UPDATE rag_catalog.tenants SET origin = 'file' WHERE origin = 'agents'")
    op.drop_constraint(op.f(NAME), "tenants", schema=SCHEMA)
    op.create_check_constraint(op.f(NAME), "tenants", "origin IN ('file', 'api')", schema=SCHEMA)
