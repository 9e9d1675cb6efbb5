"""The owner of an experience project, and external ids of entries by project.

A project with a single contributing token becomes that token's; other projects stay shared.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0049"
down_revision: str | None = "0047"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
INDEX = "uq_knowledge_staging_external_id"


def upgrade() -> None:
    for name in ("owner_token", "owner_organization"):
        op.add_column("projects", sa.Column(name, sa.Text(), nullable=True), schema=SCHEMA)
        # Postgres samples no names of people into its statistics.
        op.execute(f"ALTER TABLE {SCHEMA}.projects ALTER COLUMN {name} SET STATISTICS 0")
    op.execute(f"""
        UPDATE {SCHEMA}.projects p SET owner_token = e.token FROM (
          SELECT tenant, project_id, min(contributed_by) AS token
          FROM {SCHEMA}.knowledge_staging GROUP BY 1, 2
          HAVING count(DISTINCT contributed_by) = 1 AND bool_and(contributed_by IS NOT NULL)
        ) e
        WHERE p.tenant = e.tenant AND p.id = e.project_id
          AND (e.token LIKE 'token:%' OR e.token LIKE 'jwt:%')
    """)  # noqa: S608 - a constant
    op.drop_index(INDEX, table_name="knowledge_staging", schema=SCHEMA)
    columns = ["tenant", "project_id", "external_id"]
    op.create_index(INDEX, "knowledge_staging", columns, unique=True, schema=SCHEMA)


def downgrade() -> None:
    op.drop_index(INDEX, table_name="knowledge_staging", schema=SCHEMA)
    op.create_index(
        INDEX, "knowledge_staging", ["tenant", "external_id"], unique=True, schema=SCHEMA
    )
    op.drop_column("projects", "owner_organization", schema=SCHEMA)
    op.drop_column("projects", "owner_token", schema=SCHEMA)
