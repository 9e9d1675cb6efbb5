"""What answers cost: held against the tenant's caps before a model is asked, recorded after it."""

from __future__ import annotations

import asyncio
import logging
import threading

from rag_assets.billing.ledger import present_caps
from rag_assets.billing.spending import Cap, cap_that_stops
from rag_assets.common.errors import CapReached, ChatError, ChatFailed, ChatTimeout
from rag_assets.common.formatting import dollars
from rag_assets.models.chat.prices import ChatPrice
from rag_assets.models.chat.protocol import ChatModel, Completion
from rag_assets.models.chat.remote import tokens_of
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.usage import Used
from rag_assets.tenants.model import Tenant

_LOG = logging.getLogger(__name__)
_FREE = ChatPrice(input_per_million=0, output_per_million=0)


class ChatSpending:
    """What answers that are being written may cost, by tenant.

    The most that an answer can cost is set aside until what it did cost is recorded, so that
    answers that are written at once break no cap together.

    Args:
        catalog: where usage is recorded.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._under_way: dict[TenantRef, float] = {}

    def reserve(self, ref: TenantRef, tenant: Tenant, cost: float) -> None:
        """Set dollars aside.

        Raises:
            CapReached: they would break a cap of the day or the month.
        """
        with self._lock:
            under_way = self._under_way.get(ref, 0.0)
            if tenant.caps.per_day is not None or tenant.caps.per_month is not None:
                present = present_caps(self._catalog, ref, tenant, run=0.0)
                lasting = [cap.after(under_way) for cap in present if cap.until is not None]
                if (cap := cap_that_stops(lasting, cost)) is not None:
                    raise _reached(cap, cost)
            self._under_way[ref] = under_way + cost

    def settle(
        self, ref: TenantRef, reserved: float, provider: str, model: str, used: Used
    ) -> None:
        """Record what was used, then give back what was set aside for it."""
        try:
            if used:
                self._catalog.usage.add(ref, provider, model, used)
        except Exception as error:
            # The answer is paid for and written: it is not lost over a number.
            _LOG.warning(f"{ref.id}: usage was not recorded: {type(error).__name__}")
        finally:
            with self._lock:
                left = self._under_way.pop(ref, 0.0) - reserved
                if left > 0:
                    self._under_way[ref] = left


class BilledChat:
    """A chat model that a tenant pays for; see ChatModel.

    Args:
        model: writes.
        spending: of the process.
        ref: who pays.
        tenant: its caps.
        provider, name: what usage is recorded under.
        price: None if none is known, and there are no caps.
    """

    def __init__(
        self,
        model: ChatModel,
        spending: ChatSpending,
        ref: TenantRef,
        tenant: Tenant,
        *,
        provider: str,
        name: str,
        price: ChatPrice | None,
    ) -> None:
        self._model = model
        self._spending = spending
        self._ref = ref
        self._tenant = tenant
        self._name = (provider, name)
        self._price = price

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """See ChatModel.

        Raises:
            CapReached: the most that it can cost would break a cap; nothing was sent.
        """
        read = tokens_of(instructions, prompt)
        most = (self._price or _FREE).of(read, max_tokens)
        await self._reserve(most)
        used = Used()
        try:
            completion = await self._model.complete(
                instructions, prompt, max_tokens=max_tokens, seconds=seconds
            )
            used = _used(
                completion.requests, completion.input_tokens, completion.output_tokens, self._price
            )
        except ChatError as error:
            # A provider charges for what it could not deliver, too: at least for what it read.
            paid = error.requests and isinstance(error, ChatFailed | ChatTimeout)
            used = _used(error.requests, read if paid else 0, 0, self._price)
            raise
        finally:
            # Goes on where whoever asked goes away meanwhile.
            await asyncio.shield(
                asyncio.to_thread(self._spending.settle, self._ref, most, *self._name, used)
            )
        return completion

    async def close(self) -> None:
        """See ChatModel."""
        await self._model.close()

    async def _reserve(self, amount: float) -> None:
        """Set dollars aside; whoever goes away meanwhile leaves nothing set aside."""
        reserving = asyncio.ensure_future(
            asyncio.to_thread(self._spending.reserve, self._ref, self._tenant, amount)
        )
        try:
            await asyncio.shield(reserving)
        except asyncio.CancelledError:
            reserving.add_done_callback(lambda done: self._abandon(done, amount))
            raise

    def _abandon(self, reserving: asyncio.Future[None], amount: float) -> None:
        if not reserving.cancelled() and reserving.exception() is None:
            self._spending.settle(self._ref, amount, *self._name, Used())


def _used(requests: int, read: int, written: int, price: ChatPrice | None) -> Used:
    tokens = read + written
    return Used(
        requests=requests,
        retries=max(0, requests - 1),
        tokens=tokens,
        unpriced_tokens=tokens if price is None else 0,
        cost=0.0 if price is None else price.of(read, written),
        output_tokens=written,
    )


def _reached(cap: Cap, cost: float) -> CapReached:
    when = f"after {cap.until:%Y-%m-%d %H:%M} UTC there are answers again"
    return CapReached(
        f"the cap of {cap.words} is reached: {cap.gone}, and an answer may cost {dollars(cost)}",
        hint=f"{when}; to have them now, raise caps.{cap.name}",
        until=cap.until,
    )
