"""Spending of a tenant's run: checked against its caps, and recorded as it occurs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from rag_assets.billing.spending import Cap, CapName, Spending, build_caps, require_price
from rag_assets.models.prices import split_embedder_id
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, Usage, today
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.journal.events import Event
from rag_assets.tenants.model import Tenant

EVENTS_READ: Final = 20
"""Number of latest events of stopped runs that are compared with the caps."""


def present_caps(catalog: Catalog, ref: TenantRef, tenant: Tenant, *, run: float) -> list[Cap]:
    """Return a tenant's present caps; the costs of submitted batches count as spent.

    Args:
        tenant: has the caps.
        run: dollars that the current sync has spent.
    """
    day = today()
    spent = catalog.usage.read_spending(ref.id, day)
    promised = catalog.batches.open_cost(ref.id)
    return build_caps(
        tenant.caps, SpendingTotals(run, spent.day + promised, spent.month + promised), day
    )


def caps_that_hold(caps: Iterable[Cap], events: Sequence[Event], day: date) -> set[CapName]:
    """Return the caps that stopped a run on this day or in its month and were not raised since."""
    since = {"per_day": day, "per_month": day.replace(day=1)}
    return {
        cap.name
        for cap in caps
        if any(
            event.payload["cap"] == cap.name
            and event.payload["dollars"] >= cap.most
            and event.at.date() >= since.get(cap.name, event.at.date())
            for event in events
        )
    }


class Ledger:
    """A tenant's spending in one run.

    Args:
        catalog: records usage.
        ref: the tenant.
        tenant: has the caps and the price of its embedder.
        embedder_id: id of the run's embedder.
        before: dollars that earlier runs of the same sync spent.
        generation: the build that is embedded.

    Raises:
        ConfigurationError: there are caps, but the price is unknown.
    """

    def __init__(
        self,
        catalog: Catalog,
        ref: TenantRef,
        tenant: Tenant,
        embedder_id: str,
        *,
        before: float = 0.0,
        generation: int | None = None,
    ) -> None:
        caps = present_caps(catalog, ref, tenant, run=before)
        self.budget = Spending(ref.id, require_price(tenant), caps)
        self._catalog = catalog
        self._ref = ref
        self._provider, self._model = split_embedder_id(embedder_id)
        self._before = before
        self._generation = generation

    @property
    def total(self) -> Usage:
        """Return all usage so far."""
        return self.budget.total

    @property
    def promised(self) -> float:
        """Return how many dollars the batches submitted so far will cost."""
        return self.budget.promised

    def record(self) -> None:
        """Record the usage since the last call, in one statement."""
        used = self.budget.take()
        if used:
            self._catalog.usage.add(
                self._ref,
                self._provider,
                self._model,
                used,
                run=self._run,
                generation=self._generation,
            )

    def close(self) -> None:
        """Record the remaining usage, and the cap that stopped the run, if any."""
        self.record()
        if self.promised:
            self._catalog.usage.set_run_spending(self._ref, self._run)
        cap = self.budget.stopped_by
        if cap is not None:
            note = {"cap": cap.name, "dollars": cap.most, "spent": cap.spent}
            until = None if cap.until is None else cap.until.isoformat()
            self._catalog.events.write(self._ref, "cap_reached", [{**note, "until": until}])

    @property
    def _run(self) -> float:
        """Return the dollars that the sync has spent so far, including submitted batches."""
        return self._before + self.total.cost + self.promised
