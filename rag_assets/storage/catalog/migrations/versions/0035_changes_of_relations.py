"""Counters that show whether relations may have changed, for processes that keep a copy of them."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0035"
down_revision: str | None = "0034"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SCHEMA = "rag_catalog"
CHANGES = "relation_changes"
TOTALS = "relation_change_totals"
KEPT = 64
"""About once in this number of changes, the former changes are added up to a total."""

COUNT_CHANGE = f"""
CREATE FUNCTION {SCHEMA}.count_relation_change(changed text, of_rows boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    counted text := changed || ' ' || of_rows || ' ' || pg_current_xact_id();
BEGIN
    -- Once in a transaction: a sync changes thousands of rows.
    IF current_setting('rag_catalog.counted', true) = counted THEN
        RETURN;
    END IF;
    PERFORM set_config('rag_catalog.counted', counted, true);
    -- The rows of a tenant that is removed go with it.
    IF NOT EXISTS (SELECT FROM {SCHEMA}.tenants WHERE id = changed) THEN
        RETURN;
    END IF;
    INSERT INTO {SCHEMA}.{CHANGES} (tenant, transaction, of_rows, nonce)
    VALUES (
        changed,
        pg_current_xact_id()::text::bigint,
        of_rows,
        hashtextextended(gen_random_uuid()::text, 0)
    )
    ON CONFLICT DO NOTHING;
    IF random() * {KEPT} < 1 AND current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM {SCHEMA}.add_up_relation_changes(changed);
    END IF;
END
$$
"""  # noqa: S608 - nothing given
ADD_UP = f"""
CREATE FUNCTION {SCHEMA}.add_up_relation_changes(changed text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever adds up already need not be waited for.
    IF NOT pg_try_advisory_xact_lock(hashtext('{CHANGES}'), hashtext(changed)) THEN
        RETURN;
    END IF;
    INSERT INTO {SCHEMA}.{TOTALS} (tenant) VALUES (changed) ON CONFLICT DO NOTHING;
    WITH added AS (
        DELETE FROM {SCHEMA}.{CHANGES} WHERE tenant = changed RETURNING of_rows, nonce
    )
    UPDATE {SCHEMA}.{TOTALS} AS t SET
        nonce = t.nonce + (SELECT coalesce(sum(a.nonce), 0) FROM added AS a),
        rows_nonce = t.rows_nonce
            + (SELECT coalesce(sum(a.nonce) FILTER (WHERE a.of_rows), 0) FROM added AS a)
    WHERE t.tenant = changed;
END
$$
"""  # noqa: S608 - nothing given
OF_ROW = f"""
CREATE FUNCTION {SCHEMA}.relations_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {SCHEMA}.count_relation_change(coalesce(NEW.tenant, OLD.tenant), false);
    RETURN NULL;
END
$$
"""
OF_ROWS = f"""
CREATE FUNCTION {SCHEMA}.relation_rows_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {SCHEMA}.count_relation_change(one.tenant, true)
    FROM (SELECT DISTINCT tenant FROM changed) AS one;
    RETURN NULL;
END
$$
"""  # noqa: S608 - nothing given


def _differ(*columns: str) -> str:
    return " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in columns)


TRIGGERS = (
    ("document_index", "INSERT", "NEW.indexed_key IS NOT NULL"),
    ("document_index", "DELETE", "OLD.indexed_key IS NOT NULL"),
    (
        "document_index",
        "UPDATE",
        _differ("chunk_set_key") + " OR (OLD.indexed_key IS NULL) <> (NEW.indexed_key IS NULL)",
    ),
    ("documents", "DELETE", "OLD.status <> 'DELETED'"),
    (
        "documents",
        "UPDATE",
        _differ("uri", "source", "source_type", "access_scope")
        + " OR (OLD.status = 'DELETED') <> (NEW.status = 'DELETED')",
    ),
    ("document_kinds", "INSERT", "true"),
    ("document_kinds", "DELETE", "true"),
    ("document_kinds", "UPDATE", _differ("kinds")),
)
"""The tables, events and conditions that determine which definitions and edges exist, by owner."""


def upgrade() -> None:
    _create(
        CHANGES,
        sa.Column("transaction", sa.BigInteger(), nullable=False),
        sa.Column("of_rows", sa.Boolean(), nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        key=("tenant", "transaction", "of_rows"),
    )
    _create(
        TOTALS,
        sa.Column("nonce", sa.Numeric(), server_default="0", nullable=False),
        sa.Column("rows_nonce", sa.Numeric(), server_default="0", nullable=False),
        key=("tenant",),
    )
    for function in (ADD_UP, COUNT_CHANGE, OF_ROW, OF_ROWS):
        op.execute(function)
    for table, event, condition in TRIGGERS:
        op.execute(
            f"CREATE TRIGGER relations_changed_by_{event.lower()} AFTER {event}"
            f" ON {SCHEMA}.{table} FOR EACH ROW WHEN ({condition})"
            f" EXECUTE FUNCTION {SCHEMA}.relations_changed()"
        )
    for table in ("symbols", "edges"):
        op.execute(
            f"CREATE TRIGGER relation_rows_changed AFTER UPDATE ON {SCHEMA}.{table}"
            " REFERENCING NEW TABLE AS changed FOR EACH STATEMENT"
            f" EXECUTE FUNCTION {SCHEMA}.relation_rows_changed()"
        )


def downgrade() -> None:
    for table in ("symbols", "edges"):
        op.execute(f"DROP TRIGGER relation_rows_changed ON {SCHEMA}.{table}")
    for table, event, _ in TRIGGERS:
        op.execute(f"DROP TRIGGER relations_changed_by_{event.lower()} ON {SCHEMA}.{table}")
    op.execute(f"DROP FUNCTION {SCHEMA}.relation_rows_changed()")
    op.execute(f"DROP FUNCTION {SCHEMA}.relations_changed()")
    op.execute(f"DROP FUNCTION {SCHEMA}.count_relation_change(text, boolean)")
    op.execute(f"DROP FUNCTION {SCHEMA}.add_up_relation_changes(text)")
    for table in (TOTALS, CHANGES):
        op.drop_table(table, schema=SCHEMA)


def _create(table: str, *columns: sa.Column[object], key: tuple[str, ...]) -> None:
    op.create_table(
        table,
        sa.Column("tenant", sa.Text(), nullable=False),
        *columns,
        sa.ForeignKeyConstraint(
            ["tenant"],
            [f"{SCHEMA}.tenants.id"],
            name=op.f(f"fk_{table}_tenant"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")),
        schema=SCHEMA,
    )
