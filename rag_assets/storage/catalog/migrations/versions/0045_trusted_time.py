"""The installation's trusted time: the latest time at which its clock was known to be right."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0045"
down_revision: str | None = "0044"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.create_table(
        "installation_clock",
        sa.Column("singleton", sa.Boolean(), server_default="true", nullable=False),
        sa.Column(
            "trusted_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("boot_seconds", sa.Double(), nullable=True),
        sa.CheckConstraint("singleton", name="ck_installation_clock_singleton"),
        sa.PrimaryKeyConstraint("singleton", name="pk_installation_clock"),
        schema=SCHEMA,
    )
    # The clock may be wrong now: a catalog with data takes the latest time in it.
    op.execute(
        f"""
        INSERT INTO {SCHEMA}.installation_clock (trusted_at)
        SELECT coalesce(greatest(
            (SELECT max(evaluated_at) FROM {SCHEMA}.check_results),
            (SELECT max(succeeded_at) FROM {SCHEMA}.syncs),
            (SELECT max(updated_at) FROM {SCHEMA}.documents),
            (SELECT at FROM {SCHEMA}.events ORDER BY id DESC LIMIT 1)
        ), now())
        """  # noqa: S608 - nothing given
    )


def downgrade() -> None:
    op.drop_table("installation_clock", schema=SCHEMA)
