"""The table of lookups, next to the catalog's own tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Table, Text, func, insert, select

from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import metadata, tenant_column

LOOKUPS = Table(
    "glossary_lookups",
    metadata,
    tenant_column(),
    # The term is a person's text. It is not in a key, because masked terms can be equal.
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("term", Text, nullable=False),
)


def record_lookup(database: Database, ref: TenantRef, term: str) -> int:
    """Count a lookup; return the number of lookups of this term."""
    counted = select(func.count()).where(LOOKUPS.c.tenant == ref.id, LOOKUPS.c.term == term)
    with database.begin_tenant(ref) as connection:
        connection.execute(insert(LOOKUPS).values(tenant=ref.id, term=term))
        return int(connection.execute(counted).scalar_one())


def lookups(database: Database, tenant_id: str | None = None) -> dict[str, int]:
    """Return the number of lookups of each term."""
    query = select(LOOKUPS.c.term, func.count()).group_by(LOOKUPS.c.term)
    if tenant_id is not None:
        query = query.where(LOOKUPS.c.tenant == tenant_id)
    with database.begin() as connection:
        return {row[0]: int(row[1]) for row in connection.execute(query).all()}
