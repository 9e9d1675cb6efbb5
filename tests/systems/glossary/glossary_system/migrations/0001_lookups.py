"""Create the table of lookups."""

from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Identity, Text

from rag_assets.storage.catalog.tables import SCHEMA

revision = "0001"
down_revision = None


def upgrade() -> None:
    tenant = ForeignKey(f"{SCHEMA}.tenants.id", ondelete="CASCADE")
    op.create_table(
        "glossary_lookups",
        Column("tenant", Text, tenant, primary_key=True),
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("term", Text, nullable=False),
        schema=SCHEMA,
    )


def downgrade() -> None:
    op.drop_table("glossary_lookups", schema=SCHEMA)
