"""Projects that contribute entries, the input and output of checkpoints, and the orchestrator role.

`knowledge_staging` and `checkpoints` were unused before.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0027"
down_revision: str | None = "0026"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
STAGING = "knowledge_staging"
LENGTHS = {
    "entry_type": 50,
    "agent_type": 100,
    "task_type": 100,
    "technology": 100,
    "gate_type": 50,
}
INDEXES = {
    "ix_knowledge_staging_document": "document_id",
    "ix_knowledge_staging_pattern": "pattern_id",
    "ix_knowledge_staging_exact": "exact_key",
    "ix_knowledge_staging_problem": "problem_key",
    "ix_knowledge_staging_checkpoint": "checkpoint_id",
}
UNSAMPLED = {
    STAGING: ("when_to_try", "about", "external_id", "contributed_by", "failure"),
    "projects": ("name",),
    "checkpoints": ("external_id", "requested_by", "error"),
}
FORGET_ENTRY = f"""
CREATE FUNCTION {SCHEMA}.forget_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM {SCHEMA}.knowledge_staging
    WHERE tenant = OLD.tenant AND document_id = OLD.document_id;
    RETURN NULL;
END
$$
"""  # noqa: S608 - nothing given
LEFT = "checkpoint_id IS NOT NULL AND NOT embedded AND failure IS NULL"
ROLE = "ck_service_tokens_role"


def upgrade() -> None:
    _create_projects()
    _alter_staging()
    _create_checkpoints()
    for table, names in UNSAMPLED.items():
        for name in names:
            op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {name} SET STATISTICS 0")
    op.execute(FORGET_ENTRY)
    # A record may be removed in many ways, by a purge, a deletion or its retention; this trigger
    # covers all of them.
    op.execute(
        f"CREATE TRIGGER forget_entry AFTER DELETE ON {SCHEMA}.source_records"
        f" FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.forget_entry()"
    )
    _replace_roles("admin", "member", "orchestrator")


def downgrade() -> None:
    op.execute(f"DELETE FROM {SCHEMA}.service_tokens WHERE role = 'orchestrator'")  # noqa: S608
    _replace_roles("admin", "member")
    op.execute(f"DROP TRIGGER forget_entry ON {SCHEMA}.source_records")
    op.execute(f"DROP FUNCTION {SCHEMA}.forget_entry()")
    op.drop_table("checkpoints", schema=SCHEMA)
    _create_former_checkpoints()
    op.drop_constraint(op.f(f"fk_{STAGING}_tenant_project_id"), STAGING, schema=SCHEMA)
    for name in ("ix_knowledge_staging_left", "uq_knowledge_staging_external_id", *INDEXES):
        op.drop_index(name, STAGING, schema=SCHEMA)
    for column in _added():
        op.drop_column(STAGING, column.name, schema=SCHEMA)
    for name in LENGTHS:
        op.alter_column(STAGING, name, type_=sa.Text(), schema=SCHEMA)
    op.drop_table("projects", schema=SCHEMA)


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        _time("created_at", now=True),
        _time("updated_at", now=True),
        sa.CheckConstraint(
            "state IN ('active', 'completed', 'cancelled')", name=op.f("ck_projects_state")
        ),
        _of_tenant("projects"),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_projects")),
        schema=SCHEMA,
    )


def _alter_staging() -> None:
    for name, length in LENGTHS.items():
        op.alter_column(STAGING, name, type_=sa.String(length), schema=SCHEMA)
    for column in _added():
        op.add_column(STAGING, column, schema=SCHEMA)
    for name, column_name in INDEXES.items():
        op.create_index(name, STAGING, ["tenant", column_name], schema=SCHEMA)
    op.create_index(
        "ix_knowledge_staging_left",
        STAGING,
        ["tenant", "checkpoint_id"],
        postgresql_where=sa.text(LEFT),
        schema=SCHEMA,
    )
    op.create_index(
        "uq_knowledge_staging_external_id",
        STAGING,
        ["tenant", "external_id"],
        unique=True,
        schema=SCHEMA,
    )
    _of_project(STAGING)


def _added() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("when_to_try", sa.Text()),
        sa.Column("about", sa.dialects.postgresql.JSONB(), server_default="[]", nullable=False),
        sa.Column("external_id", sa.Text()),
        sa.Column("content_key", sa.Text()),
        sa.Column("contributed_by", sa.Text()),
        sa.Column("masked", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("checkpoint_id", sa.Uuid()),
        sa.Column("document_id", sa.Text()),
        sa.Column("exact_key", sa.Text()),
        sa.Column("problem_key", sa.Text()),
        sa.Column("pattern_id", sa.Uuid()),
        sa.Column("home_id", sa.Uuid()),
        sa.Column("kept_texts", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("failure", sa.Text()),
    )


def _create_checkpoints() -> None:
    op.drop_table("checkpoints", schema=SCHEMA)
    op.create_table(
        "checkpoints",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("checkpoint_type", sa.String(50), nullable=False),
        sa.Column("project_id", sa.Uuid()),
        sa.Column("external_id", sa.Text()),
        sa.Column("requested_by", sa.Text()),
        _time("requested_at", now=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("staged", sa.Integer(), nullable=False),
        sa.Column("embedded", sa.Integer(), server_default="0", nullable=False),
        sa.Column("merged", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text()),
        _time("processed_at", now=False),
        sa.CheckConstraint(
            "state IN ('waiting', 'running', 'done', 'stopped')", name=op.f("ck_checkpoints_state")
        ),
        _of_tenant("checkpoints"),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_checkpoints")),
        schema=SCHEMA,
    )
    op.create_index(
        "ix_checkpoints_open",
        "checkpoints",
        ["tenant"],
        schema=SCHEMA,
        postgresql_where=sa.text("state IN ('waiting', 'running')"),
    )
    op.create_index(
        "uq_checkpoints_external_id",
        "checkpoints",
        ["tenant", "external_id"],
        unique=True,
        schema=SCHEMA,
    )
    _of_project("checkpoints")


def _create_former_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("checkpoint_type", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid()),
        _time("requested_at", now=True),
        _time("processed_at", now=False),
        _of_tenant("checkpoints"),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_checkpoints")),
        schema=SCHEMA,
    )


def _of_tenant(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant"], [f"{SCHEMA}.tenants.id"], name=op.f(f"fk_{table}_tenant"), ondelete="CASCADE"
    )


def _of_project(table: str) -> None:
    op.create_foreign_key(
        op.f(f"fk_{table}_tenant_project_id"),
        table,
        "projects",
        ["tenant", "project_id"],
        ["tenant", "id"],
        source_schema=SCHEMA,
        referent_schema=SCHEMA,
    )


def _replace_roles(*roles: str) -> None:
    op.drop_constraint(op.f(ROLE), "service_tokens", schema=SCHEMA)
    named = ", ".join(f"'{role}'" for role in roles)
    op.create_check_constraint(op.f(ROLE), "service_tokens", f"role IN ({named})", schema=SCHEMA)


def _time(name: str, *, now: bool) -> sa.Column[Any]:
    default = sa.text("now()") if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=not now)
