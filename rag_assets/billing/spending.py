"""Spending of tenants: caps, the budget of a run, and recorded usage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, TypeAlias

from rag_assets.common.batches import BackgroundBatcher
from rag_assets.common.errors import CapReached, ConfigurationError
from rag_assets.common.formatting import dollars
from rag_assets.models.embedding.protocol import Charge
from rag_assets.models.factory import find_price
from rag_assets.models.prices import FREE, Price, split_embedder_id
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, Usage, today
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.journal.events import Event
from rag_assets.tenants.model import CapsConfig, Tenant

CapName: TypeAlias = Literal["per_month", "per_day", "per_run"]

_PERIODS: dict[CapName, str] = {"per_month": "a month", "per_day": "a day", "per_run": "a run"}
_SPENT: dict[CapName, str] = {
    "per_month": "spent this month",
    "per_day": "spent today",
    "per_run": "spent by this sync",
}
# Tolerance for rounding in sums of floats, far below any price.
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Cap:
    """A spending cap of a tenant."""

    name: CapName
    most: float
    spent: float
    until: datetime | None
    """When its period ends; None if a person has to act before spending continues."""

    def would_stop(self, cost: float) -> bool:
        """Return whether this additional cost would exceed the cap."""
        return self.spent + cost > self.most + _TOLERANCE

    def add_spending(self, cost: float) -> Cap:
        """Return a copy of the cap with this cost added to its spending."""
        return Cap(self.name, self.most, self.spent + cost, self.until)

    @property
    def share(self) -> float:
        """Return the share of the cap that is spent, 0 to 1; above 1 if an estimate was too low."""
        return self.spent / self.most if self.most else 1.0

    @property
    def limit_text(self) -> str:
        """Return the limit and its period, for messages."""
        return f"{dollars(self.most)} {_PERIODS[self.name]}"

    @property
    def spent_text(self) -> str:
        """Return the amount spent in its period, for messages."""
        return f"{dollars(self.spent)} {_SPENT[self.name]}"

    def build_error(self, tenant_id: str, cost: float) -> CapReached:
        """Build the error for a request that is not sent because its cost would exceed this cap."""
        return CapReached(
            f"the cap of {self.limit_text} is reached: {self.spent_text},"
            f" and the next request would cost about {dollars(cost)}",
            hint=self._build_remedy(tenant_id, cost),
            until=self.until,
        )

    def _build_remedy(self, tenant_id: str, cost: float) -> str:
        if cost > self.most:
            return (
                f"raise caps.{self.name}: a single request costs more than the whole cap; then sync"
            )
        if self.until is None:
            more = (
                f"`rag-assets sync {tenant_id}` continues and can spend {dollars(self.most)} more"
            )
            return f"{more}; raise caps.{self.name} to spend more in one sync"
        return (
            f"after {self.until:%Y-%m-%d %H:%M} UTC the sync continues, automatically or with"
            f" `rag-assets sync {tenant_id}`; to continue now, raise caps.{self.name} and sync"
        )


def build_caps(config: CapsConfig, spent: SpendingTotals, today: date) -> list[Cap]:
    """Return a tenant's caps, the longest period first."""
    next_month = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    caps: tuple[tuple[CapName, float | None, float, datetime | None], ...] = (
        ("per_month", config.per_month, spent.month, _get_midnight(next_month)),
        ("per_day", config.per_day, spent.day, _get_midnight(today + timedelta(days=1))),
        ("per_run", config.per_run, spent.run, None),
    )
    return [Cap(name, limit, used, until) for name, limit, used, until in caps if limit is not None]


def find_stopping_cap(caps: list[Cap], cost: float) -> Cap | None:
    """Return the cap with the longest period that this cost would exceed; None if all allow it."""
    return next((cap for cap in caps if cap.would_stop(cost)), None)


def require_price(tenant: Tenant) -> Price | None:
    """Return the price of a tenant's embedder; None if it is unknown and the tenant has no caps."""
    price = find_price(tenant.embedder)
    caps = [name for name, limit in tenant.caps if limit is not None]
    if price is None and caps:
        model = " ".join(filter(None, (tenant.embedder.provider, tenant.embedder.model)))
        raise ConfigurationError(
            f"tenant {tenant.id!r}: caps.{caps[0]} cannot be enforced: the price of its"
            f" embedder is unknown ({model})",
            hint="set embedder.price: {per_million: …}, in dollars (0 for a server of your own)",
        )
    return price


class Spending:
    """The budget of one run of a tenant; safe for concurrent use.

    The estimated cost of a request is reserved before the request is sent. So concurrent requests
    exceed a cap at most by the error of the estimates. Requests are sent in one thread, and their
    usage is taken in another. Without caps, the price may be unknown.
    """

    def __init__(self, tenant_id: str, price: Price | None, caps: list[Cap]) -> None:
        self._tenant_id = tenant_id
        self._price = price
        self._caps = caps
        self._lock = threading.Lock()
        self._reserved_tokens = 0
        self._new = Usage()
        self.total = Usage()
        """All usage so far."""
        self.promised = 0.0
        """Dollars that the batches submitted so far will cost."""
        self.stopped_by: Cap | None = None

    def reserve(self, tokens: int) -> None:
        """Reserve the estimated cost of a request with this number of tokens.

        Raise CapReached if it would exceed a cap, together with the requests in progress.
        """
        with self._lock:
            self._require_budget((self._price or FREE).compute_cost(tokens))
            self._reserved_tokens += tokens

    def promise(self, tokens: int) -> float | None:
        """Count the batch price of texts as spent; it is charged when their batch has ended.

        Return the price in dollars; None if it is unknown.
        """
        with self._lock:
            cost = (self._price or FREE).compute_cost(tokens, is_batch=True)
            self._require_budget(cost)
            self.promised += cost
        return None if self._price is None else cost

    def settle(self, reserved: int, charge: Charge) -> None:
        """Release the reservation of a request, and add its charge."""
        used = build_usage(charge, self._price)
        with self._lock:
            self._reserved_tokens -= reserved
            self._new += used
            self.total += used

    def _require_budget(self, cost: float) -> None:
        in_progress = (
            self.total.cost
            + self.promised
            + (self._price or FREE).compute_cost(self._reserved_tokens)
        )
        cap = find_stopping_cap([cap.add_spending(in_progress) for cap in self._caps], cost)
        if cap is not None:
            self.stopped_by = cap
            raise cap.build_error(self._tenant_id, cost)

    def take(self) -> Usage:
        """Return the usage since the last call, which the caller must record."""
        with self._lock:
            new, self._new = self._new, Usage()
            return new


def build_usage(charge: Charge, price: Price | None, *, is_batch: bool = False) -> Usage:
    """Return the usage of a finished request."""
    return Usage(
        requests=charge.requests,
        retries=max(0, charge.requests - 1),
        texts=charge.texts,
        tokens=charge.tokens,
        batch_tokens=charge.tokens if is_batch else 0,
        unpriced_tokens=charge.tokens if price is None else 0,
        cost=0.0 if price is None else price.compute_cost(charge.tokens, is_batch=is_batch),
    )


def _get_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


MAX_COMPARED_EVENTS: Final = 20
"""Number of latest events of stopped runs that are compared with the caps."""


def find_present_caps(catalog: Catalog, ref: TenantRef, tenant: Tenant, *, run: float) -> list[Cap]:
    """Return a tenant's caps with the spending so far, open batches included."""
    day = today()
    spent = catalog.usage.read_spending(ref.id, day)
    promised = catalog.batches.open_cost(ref.id)
    return build_caps(
        tenant.caps, SpendingTotals(run, spent.day + promised, spent.month + promised), day
    )


def find_holding_caps(caps: Iterable[Cap], events: Sequence[Event], day: date) -> set[CapName]:
    """Return the names of the caps that still hold back a tenant's runs.

    Such a cap has stopped a run in its current day or month, and was not raised since. A cap per
    run has no period, so it holds back runs until it is raised.
    """
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
    """A tenant's spending in one run; `before` is the spending of earlier runs of the same sync."""

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
        caps = find_present_caps(catalog, ref, tenant, run=before)
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
                run=self._spent_in_sync,
                generation=self._generation,
            )

    def close(self) -> None:
        """Record the usage that is not recorded yet, and the cap that stopped the run, if any."""
        self.record()
        if self.promised:
            self._catalog.usage.set_run_spending(self._ref, self._spent_in_sync)
        cap = self.budget.stopped_by
        if cap is not None:
            note = {"cap": cap.name, "dollars": cap.most, "spent": cap.spent}
            until = None if cap.until is None else cap.until.isoformat()
            self._catalog.events.write(self._ref, "cap_reached", [{**note, "until": until}])

    @property
    def _spent_in_sync(self) -> float:
        """Return the dollars that the sync has spent so far, including submitted batches."""
        return self._before + self.total.cost + self.promised


_LOG = logging.getLogger(__name__)

_Account: TypeAlias = tuple[TenantRef, str]


class Meter:
    """Records the usage of tenants in a background thread, summed up for each statement."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._batcher: BackgroundBatcher[tuple[_Account, Usage]] = BackgroundBatcher(
            self._write, name="usage of searches"
        )

    def count(self, ref: TenantRef, embedder_id: str, charge: Charge, price: Price | None) -> None:
        """Record the charge of one question in the background; free questions are not recorded."""
        if price != FREE:
            self._batcher.put(((ref, embedder_id), build_usage(charge, price)))

    def close(self) -> None:
        """Wait until everything is recorded."""
        self._batcher.close()

    def _write(self, batch: Sequence[tuple[_Account, Usage]]) -> None:
        sums: dict[_Account, Usage] = {}
        for account, used in batch:
            sums[account] = sums.get(account, Usage()) + used
        for (ref, embedder_id), used in sums.items():
            try:
                self._catalog.usage.add(ref, *split_embedder_id(embedder_id), used)
            except Exception as error:
                _LOG.warning(f"{ref.id}: usage was not recorded: {type(error).__name__}")
