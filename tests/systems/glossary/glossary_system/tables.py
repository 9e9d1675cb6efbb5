"""The table of lookups, next to the catalog's own tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text, func, select
from sqlalchemy.dialects.postgresql import insert

from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import metadata, tenant_column

LOOKUPS = Table(
    "glossary_lookups",
    metadata,
    tenant_column(),
    Column("term", Text, primary_key=True),
    Column("count", BigInteger, nullable=False),
)


def record_lookup(database: Database, ref: TenantRef, term: str) -> int:
    """Count a lookup; return the number of lookups of this term."""
    added = insert(LOOKUPS).values(tenant=ref.id, term=term, count=1)
    counted = added.on_conflict_do_update(
        index_elements=["tenant", "term"], set_={"count": LOOKUPS.c.count + 1}
    )
    with database.begin_tenant(ref) as connection:
        return int(connection.execute(counted.returning(LOOKUPS.c.count)).scalar_one())


def lookups(database: Database, tenant_id: str | None = None) -> dict[str, int]:
    """Return the number of lookups of each term."""
    query = select(LOOKUPS.c.term, func.sum(LOOKUPS.c.count)).group_by(LOOKUPS.c.term)
    if tenant_id is not None:
        query = query.where(LOOKUPS.c.tenant == tenant_id)
    with database.begin() as connection:
        return {row[0]: int(row[1]) for row in connection.execute(query).all()}
