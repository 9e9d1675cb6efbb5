"""What tenants used of their providers, by day, provider and model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import RowMapping, Update, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.formatting import dollars
from rag_assets.storage.catalog.account_tables import usage
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import slices


@dataclass(frozen=True, slots=True)
class Used:
    """What was asked of a provider, and what it cost.

    Attributes:
        requests: attempts, failed ones included.
        retries: those of them that repeated one that had failed.
        texts: that came back as vectors; questions count as well as chunks.
        tokens: as the provider charges them.
        batch_tokens: those of them that went through its batch API.
        unpriced_tokens: those of them that no price was known for.
        cost: of all others, in dollars.
        output_tokens: those of all that a chat model wrote.
    """

    requests: int = 0
    retries: int = 0
    texts: int = 0
    tokens: int = 0
    batch_tokens: int = 0
    unpriced_tokens: int = 0
    cost: float = 0.0
    output_tokens: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def __bool__(self) -> bool:
        return any(astuple(self))

    @property
    def known_cost(self) -> float | None:
        """Its cost in dollars; None where all of it has no known price, which is not free."""
        return None if self.unpriced_tokens and self.unpriced_tokens == self.tokens else self.cost

    @property
    def cost_in_words(self) -> str:
        """Its cost, and what is not in it."""
        if self.known_cost is None:
            return "no price known"
        more = f", and {self.unpriced_tokens:,} tokens without a known price"
        return dollars(self.cost) + (more if self.unpriced_tokens else "")


_COUNTS = tuple(field.name for field in fields(Used))


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One row of `usage`; a day is one of UTC."""

    tenant_id: str
    day: date
    provider: str
    model: str
    used: Used


@dataclass(frozen=True, slots=True)
class Spent:
    """What a tenant has spent, in dollars.

    Attributes:
        run: by the sync under way, or by the last one.
        day, month: on that day, and in its month up to it.
    """

    run: float = 0.0
    day: float = 0.0
    month: float = 0.0


class UsageTable:
    """Queries on `usage`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        ref: TenantRef,
        provider: str,
        model: str,
        used: Used,
        *,
        day: date | None = None,
        run: float | None = None,
    ) -> None:
        """Add to what was used on a day, by default today.

        Args:
            ref: whose.
            provider, model: what was asked.
            used: what is not recorded yet.
            day: of UTC.
            run: dollars that the sync under way has spent by now, this included.
        """
        counts = {name: getattr(used, name) for name in _COUNTS}
        new = upsert(usage).values(
            tenant=ref.id, day=day or today(), provider=provider, model=model, **counts
        )
        added: dict[str, Any] = {name: usage.c[name] + new.excluded[name] for name in _COUNTS}
        statement = new.on_conflict_do_update(index_elements=list(usage.primary_key), set_=added)
        with self._database.begin_for(ref) as connection:
            connection.execute(statement)
            if run is not None:
                connection.execute(_of_run(ref, run))

    def note_run(self, ref: TenantRef, dollars: float) -> None:
        """Note what the sync under way has spent by now, where there is nothing else to add."""
        with self._database.begin_for(ref) as connection:
            connection.execute(_of_run(ref, dollars))

    def spent(self, tenant_id: str, day: date) -> Spent:
        """What a tenant has spent by the end of a day, in one query."""
        cost = func.sum(usage.c.cost)
        run = select(slices.c.spent).where(slices.c.tenant == tenant_id).scalar_subquery()
        query = select(run, cost.filter(usage.c.day == day), cost).where(
            usage.c.tenant == tenant_id, usage.c.day.between(day.replace(day=1), day)
        )
        with self._database.begin() as connection:
            return Spent(*(float(value or 0) for value in connection.execute(query).one()))

    def rows(self, since: date, tenant_id: str | None = None) -> list[UsageRow]:
        """What was used since a day by every tenant or one, the newest first."""
        query = select(usage).where(usage.c.day >= since)
        if tenant_id is not None:
            query = query.where(usage.c.tenant == tenant_id)
        ordered = query.order_by(
            usage.c.tenant, usage.c.day.desc(), usage.c.provider, usage.c.model
        )
        with self._database.begin() as connection:
            return [_row(row) for row in connection.execute(ordered).mappings()]


def _of_run(ref: TenantRef, dollars: float) -> Update:
    return update(slices).where(slices.c.tenant == ref.id).values(spent=dollars)


def _row(row: RowMapping) -> UsageRow:
    counts = {name: row[name] for name in _COUNTS} | {"cost": float(row["cost"])}
    return UsageRow(row["tenant"], row["day"], row["provider"], row["model"], Used(**counts))


def total(rows: Iterable[UsageRow]) -> Used:
    """All of it together."""
    return sum((row.used for row in rows), Used())


def today() -> date:
    """The day that is spent on now, of UTC."""
    return datetime.now(UTC).date()
