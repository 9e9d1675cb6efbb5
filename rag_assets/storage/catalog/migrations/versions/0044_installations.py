"""The identity of the installation, the places of its stores, and its home folders."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0044"
down_revision: str | None = "0043"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"


def upgrade() -> None:
    op.create_table(
        "installation",
        sa.Column("singleton", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("database", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("singleton", name="ck_installation_singleton"),
        sa.PrimaryKeyConstraint("singleton", name="pk_installation"),
        schema=SCHEMA,
    )
    op.create_table(
        "installation_places",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("left_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('lake', 'blobs', 'index', 'vectors', 'cluster')",
            name="ck_installation_places_kind",
        ),
        sa.PrimaryKeyConstraint("kind", "address", name="pk_installation_places"),
        schema=SCHEMA,
    )
    op.create_table(
        "installation_homes",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column(
            "seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name="pk_installation_homes"),
        schema=SCHEMA,
    )
    # The home folder that lists the tenant; null for tenants of the API, and of earlier versions.
    op.add_column("tenants", sa.Column("home", sa.Uuid(), nullable=True), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("tenants", "home", schema=SCHEMA)
    for name in ("installation_homes", "installation_places", "installation"):
        op.drop_table(name, schema=SCHEMA)
