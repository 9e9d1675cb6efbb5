"""Tenants' usage of providers, by day, provider and model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.formatting import dollars
from rag_assets.storage.catalog.accounts.tables import usage
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, matches_any
from rag_assets.storage.catalog.tables import generations, slices


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a provider, and its cost.

    Attributes:
        requests: attempts, including failed attempts.
        texts: embedded texts: chunks and questions.
        tokens: tokens as the provider counts them.
        cost: cost in dollars, without the tokens whose price is unknown (`unpriced_tokens`).
    """

    requests: int = 0
    retries: int = 0
    texts: int = 0
    tokens: int = 0
    batch_tokens: int = 0
    unpriced_tokens: int = 0
    cost: float = 0.0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            *(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))
        )

    def __bool__(self) -> bool:
        return any(astuple(self))

    @property
    def known_cost(self) -> float | None:
        """Return the cost in dollars; None if the price of every token is unknown."""
        return None if self.unpriced_tokens and self.unpriced_tokens == self.tokens else self.cost

    @property
    def cost_text(self) -> str:
        """Return the cost as text for people, with the number of unpriced tokens."""
        if self.known_cost is None:
            return "no price known"
        more = f", and {self.unpriced_tokens:,} tokens without a known price"
        return dollars(self.cost) + (more if self.unpriced_tokens else "")


_COUNTS = tuple(field.name for field in fields(Usage))


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One row of `usage`; days are in UTC."""

    tenant_id: str
    day: date
    provider: str
    model: str
    used: Usage


@dataclass(frozen=True, slots=True)
class SpendingTotals:
    """A tenant's spending in dollars.

    Attributes:
        run: spending of the running sync; if none is running, of the last sync.
    """

    run: float = 0.0
    day: float = 0.0
    month: float = 0.0


class UsageTable(CatalogQueries):
    """Records and sums the usage of providers by tenants, and their spending."""

    def add(
        self,
        ref: TenantRef,
        provider: str,
        model: str,
        used: Usage,
        *,
        day: date | None = None,
        run: float | None = None,
        generation: int | None = None,
    ) -> None:
        """Add usage to a day, by default today.

        Args:
            run: dollars that the running sync has spent so far, including this usage.
            generation: the build whose spending includes this cost; None for no build.
        """
        counts = {name: getattr(used, name) for name in _COUNTS}
        new = upsert(usage).values(
            tenant=ref.id, day=day or today(), provider=provider, model=model, **counts
        )
        added: dict[str, Any] = {name: usage.c[name] + new.excluded[name] for name in _COUNTS}
        statement = new.on_conflict_do_update(index_elements=list(usage.primary_key), set_=added)
        with self._database.begin_tenant(ref) as connection:
            connection.execute(statement)
            if run is not None:
                of_tenant = slices.c.tenant == ref.id
                connection.execute(sa.update(slices).where(of_tenant).values(spent=run))
            if generation is not None and used.cost:
                build = (generations.c.tenant == ref.id, generations.c.generation == generation)
                spent = generations.c.spent + used.cost
                connection.execute(sa.update(generations).where(*build).values(spent=spent))

    def set_run_spending(self, ref: TenantRef, dollars: float) -> None:
        """Record the running sync's spending so far, without adding usage."""
        self._database.update(ref, slices, spent=dollars)

    def read_spending(self, tenant_id: str, day: date) -> SpendingTotals:
        """Return a tenant's spending up to the end of a day, in one query."""
        cost = sa.func.sum(usage.c.cost)
        run = sa.select(slices.c.spent).where(slices.c.tenant == tenant_id).scalar_subquery()
        query = sa.select(run, cost.filter(usage.c.day == day), cost).where(
            usage.c.tenant == tenant_id, usage.c.day.between(day.replace(day=1), day)
        )
        return SpendingTotals(*(float(value or 0) for value in self._database.fetch_one(query)))

    def sum(self, tenant_ids: Iterable[str], since: date) -> Usage:
        """Return the total usage of several tenants since a day, in one query."""
        sums = (sa.func.coalesce(sa.func.sum(usage.c[name]), 0).label(name) for name in _COUNTS)
        query = sa.select(*sums).where(
            matches_any(usage.c.tenant, tenant_ids), usage.c.day >= since
        )
        with self._database.begin() as connection:
            return _read_usage(connection.execute(query).mappings().one())

    def rows(self, since: date, tenant_id: str | None = None) -> list[UsageRow]:
        """Return the usage since a day, sorted by tenant, then by day, newest first."""
        query = sa.select(usage).where(usage.c.day >= since)
        if tenant_id is not None:
            query = query.where(usage.c.tenant == tenant_id)
        ordered = query.order_by(
            usage.c.tenant, usage.c.day.desc(), usage.c.provider, usage.c.model
        )
        with self._database.begin() as connection:
            return [
                UsageRow(row["tenant"], row["day"], row["provider"], row["model"], _read_usage(row))
                for row in connection.execute(ordered).mappings()
            ]


def _read_usage(row: sa.RowMapping) -> Usage:
    counts = {name: int(row[name]) for name in _COUNTS if name != "cost"}
    return Usage(**counts, cost=float(row["cost"]))


def total(rows: Iterable[UsageRow]) -> Usage:
    """Return the total usage of several rows."""
    return sum((row.used for row in rows), Usage())


def today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()
