"""Organizations, the project of a tenant, and keys of organizations.

Existing tenants get profile, organization and project from their configurations. Each organization
in them gets a row, with the guidelines switched off. Keys stay unchanged.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0021"
down_revision: str | None = "0022"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
UNIQUE_PROJECT = "uq_tenants_organization_project_profile"
ONE_OWNER = "ck_provider_keys_owner"


def upgrade() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("rag_guidelines", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("chat_model", sa.Text(), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organizations")),
        schema=SCHEMA,
    )
    op.add_column(
        "tenants",
        sa.Column("profile", sa.Text(), server_default="documents", nullable=False),
        schema=SCHEMA,
    )
    op.add_column("tenants", sa.Column("organization", sa.Text(), nullable=True), schema=SCHEMA)
    op.add_column("tenants", sa.Column("project", sa.Text(), nullable=True), schema=SCHEMA)
    op.add_column(
        "tenants",
        sa.Column("of_project", sa.Boolean(), server_default="false", nullable=False),
        schema=SCHEMA,
    )
    # No profile of earlier versions requires a project, so they need not be unique.
    op.execute(
        f"UPDATE {SCHEMA}.tenants SET profile = coalesce(config ->> 'profile', 'documents'),"  # noqa: S608
        " organization = config ->> 'organization', project = config ->> 'project'"
    )
    op.execute(
        f"INSERT INTO {SCHEMA}.organizations (id) SELECT DISTINCT organization"  # noqa: S608
        f" FROM {SCHEMA}.tenants WHERE organization IS NOT NULL AND state <> 'REMOVING'"
    )
    op.create_index(
        UNIQUE_PROJECT,
        "tenants",
        ["organization", "project", "profile"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("of_project"),
    )
    _add_owners_of_keys()


def _add_owners_of_keys() -> None:
    op.drop_constraint(op.f("pk_provider_keys"), "provider_keys", schema=SCHEMA)
    op.add_column(
        "provider_keys",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        schema=SCHEMA,
    )
    op.create_primary_key(op.f("pk_provider_keys"), "provider_keys", ["id"], schema=SCHEMA)
    op.alter_column("provider_keys", "tenant", nullable=True, schema=SCHEMA)
    op.add_column("provider_keys", sa.Column("organization", sa.Text()), schema=SCHEMA)
    op.create_foreign_key(
        op.f("fk_provider_keys_organization"),
        "provider_keys",
        "organizations",
        ["organization"],
        ["id"],
        source_schema=SCHEMA,
        referent_schema=SCHEMA,
        ondelete="CASCADE",
    )
    for owner in ("tenant", "organization"):
        name = op.f(f"uq_provider_keys_{owner}_provider")
        op.create_unique_constraint(name, "provider_keys", [owner, "provider"], schema=SCHEMA)
    op.create_check_constraint(
        op.f(ONE_OWNER),
        "provider_keys",
        "(tenant IS NULL) <> (organization IS NULL)",
        schema=SCHEMA,
    )


def downgrade() -> None:
    # Earlier versions cannot store them.
    op.execute(f"DELETE FROM {SCHEMA}.provider_keys WHERE tenant IS NULL")  # noqa: S608
    op.drop_constraint(op.f(ONE_OWNER), "provider_keys", schema=SCHEMA)
    for owner in ("organization", "tenant"):
        unique = op.f(f"uq_provider_keys_{owner}_provider")
        op.drop_constraint(unique, "provider_keys", schema=SCHEMA)
    op.drop_column("provider_keys", "organization", schema=SCHEMA)
    op.drop_constraint(op.f("pk_provider_keys"), "provider_keys", schema=SCHEMA)
    op.drop_column("provider_keys", "id", schema=SCHEMA)
    op.create_primary_key(
        op.f("pk_provider_keys"), "provider_keys", ["tenant", "provider"], schema=SCHEMA
    )
    op.drop_index(UNIQUE_PROJECT, "tenants", schema=SCHEMA)
    for name in ("of_project", "project", "organization", "profile"):
        op.drop_column("tenants", name, schema=SCHEMA)
    op.drop_table("organizations", schema=SCHEMA)
