"""Accept the names of all tenant lists, also of other systems, as origins of tenants."""

from collections.abc import Sequence

from alembic import op

revision: str = "0061"
down_revision: str | None = "0060"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.drop_constraint("ck_tenants_origin", "tenants", schema="rag_catalog")
