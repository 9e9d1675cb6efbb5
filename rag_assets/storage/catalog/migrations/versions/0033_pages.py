"""A workspace's tree of pages, scopes that inherit from others, and the role of guests."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision: str = "0033"
down_revision: str | None = "0032"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
ROLE = "ck_service_tokens_role"
ROLES = ("admin", "member", "orchestrator")


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("page_moves", schema=SCHEMA)))
    op.create_table(
        "pages",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("inherit", sa.Boolean(), nullable=False),
        sa.Column("readers", ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("archived", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("ai", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("moved", sa.BigInteger(), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("kind IN ('root', 'page', 'database')", name=op.f("ck_pages_kind")),
        _of_tenant("pages"),
        sa.PrimaryKeyConstraint("tenant", "uuid", name=op.f("pk_pages")),
        schema=SCHEMA,
    )
    op.execute(f"ALTER TABLE {SCHEMA}.pages ALTER COLUMN readers SET STATISTICS 0")
    op.create_index("ix_pages_tenant_parent", "pages", ["tenant", "parent"], schema=SCHEMA)
    op.create_index(
        "ix_pages_moved",
        "pages",
        ["tenant"],
        schema=SCHEMA,
        postgresql_where=sa.text("moved IS NOT NULL"),
    )
    op.create_table(
        "scope_ancestors",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("tenant", "scope", "ancestor")),
        _of_tenant("scope_ancestors"),
        sa.PrimaryKeyConstraint("tenant", "scope", "ancestor", name=op.f("pk_scope_ancestors")),
        schema=SCHEMA,
    )
    op.create_index(
        "ix_scope_ancestors_tenant_ancestor",
        "scope_ancestors",
        ["tenant", "ancestor"],
        schema=SCHEMA,
    )
    _replace_roles(*ROLES, "guest")


def downgrade() -> None:
    op.execute(f"DELETE FROM {SCHEMA}.service_tokens WHERE role = 'guest'")  # noqa: S608
    _replace_roles(*ROLES)
    op.drop_table("scope_ancestors", schema=SCHEMA)
    op.drop_table("pages", schema=SCHEMA)
    op.execute(sa.schema.DropSequence(sa.Sequence("page_moves", schema=SCHEMA)))


def _of_tenant(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant"], [f"{SCHEMA}.tenants.id"], name=op.f(f"fk_{table}_tenant"), ondelete="CASCADE"
    )


def _replace_roles(*roles: str) -> None:
    op.drop_constraint(op.f(ROLE), "service_tokens", schema=SCHEMA)
    named = ", ".join(f"'{role}'" for role in roles)
    op.create_check_constraint(op.f(ROLE), "service_tokens", f"role IN ({named})", schema=SCHEMA)
