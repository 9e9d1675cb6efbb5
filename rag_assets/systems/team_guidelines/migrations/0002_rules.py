"""The table of rules: where each document applies according to its front matter."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
TABLE = "guideline_rules"
FORGET = f"{SCHEMA}.forget_guideline_rule"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("parse_key", sa.Text(), nullable=False),
        sa.Column("is_always", sa.Boolean(), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "document_id", name=f"pk_{TABLE}"),
        sa.ForeignKeyConstraint(
            ["tenant"], [f"{SCHEMA}.tenants.id"], name=f"fk_{TABLE}_tenant", ondelete="CASCADE"
        ),
        schema=SCHEMA,
    )
    # Statistics of a column hold values of it, also of rows that were replaced.
    op.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER COLUMN paths SET STATISTICS 0")
    # There is no foreign key, because a table of the core must not depend on a table of a system.
    op.execute(
        f"CREATE FUNCTION {FORGET}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"  # noqa: S608
        f" DELETE FROM {SCHEMA}.{TABLE} WHERE tenant = OLD.tenant"
        " AND document_id = OLD.document_id; RETURN NULL; END $$"
    )
    op.execute(
        f"CREATE TRIGGER forget_guideline_rule AFTER DELETE ON {SCHEMA}.uploads"
        f" FOR EACH ROW EXECUTE FUNCTION {FORGET}()"
    )


def downgrade() -> None:
    op.execute(f"DROP FUNCTION IF EXISTS {FORGET}() CASCADE")
    op.drop_table(TABLE, schema=SCHEMA)
