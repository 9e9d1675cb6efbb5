"""Costs of answers: checked against the tenant's caps before a request, recorded after it."""

from __future__ import annotations

import asyncio
import logging
import threading

from rag_assets.billing.ledger import present_caps
from rag_assets.billing.spending import Cap, cap_that_stops
from rag_assets.common.errors import CapReached, ChatError, ChatFailed, ChatTimeout
from rag_assets.common.formatting import dollars
from rag_assets.models.chat import ChatModel, Completion, estimate_input_tokens
from rag_assets.models.prices import ChatPrice
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.model import Tenant

_LOG = logging.getLogger(__name__)
_FREE = ChatPrice(input_per_million=0, output_per_million=0)


class ChatSpending:
    """The costs reserved for answers in progress, by tenant.

    The highest possible cost of an answer is reserved until its real cost is recorded. So
    concurrent answers cannot exceed a cap together.

    Args:
        catalog: records usage.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._in_progress: dict[TenantRef, float] = {}

    def reserve(self, ref: TenantRef, tenant: Tenant, cost: float) -> None:
        """Reserve an amount of dollars.

        Raises:
            CapReached: the amount would exceed a cap of the day or the month.
        """
        with self._lock:
            in_progress = self._in_progress.get(ref, 0.0)
            if tenant.caps.per_day is not None or tenant.caps.per_month is not None:
                present = present_caps(self._catalog, ref, tenant, run=0.0)
                periodic = [cap.after(in_progress) for cap in present if cap.until is not None]
                if (cap := cap_that_stops(periodic, cost)) is not None:
                    raise _build_cap_error(cap, cost)
            self._in_progress[ref] = in_progress + cost

    def settle(
        self, ref: TenantRef, reserved: float, provider: str, model: str, used: Usage
    ) -> None:
        """Record the usage of an answer, then release its reservation."""
        try:
            if used:
                self._catalog.usage.add(ref, provider, model, used)
        except Exception as error:
            # The answer is complete and charged, so a failed record must not discard it.
            _LOG.warning(f"{ref.id}: usage was not recorded: {type(error).__name__}")
        finally:
            with self._lock:
                left = self._in_progress.pop(ref, 0.0) - reserved
                if left > 0:
                    self._in_progress[ref] = left


class BilledChat:
    """A chat model that bills its costs to a tenant; see ChatModel.

    Args:
        model: the model that answers.
        spending: the reservations of the process.
        ref: the tenant billed.
        tenant: has the caps.
        provider, name: the names under which usage is recorded.
        price: the model's price; None if it is unknown, which requires that the tenant has no caps.
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
            CapReached: the answer's highest possible cost would exceed a cap; no request was sent.
        """
        read = estimate_input_tokens(instructions, prompt)
        most = (self._price or _FREE).of(read, max_tokens)
        await self._reserve(most)
        used = Usage()
        try:
            completion = await self._model.complete(
                instructions, prompt, max_tokens=max_tokens, seconds=seconds
            )
            used = _build_usage(
                completion.requests, completion.input_tokens, completion.output_tokens, self._price
            )
        except ChatError as error:
            # A provider also charges for an answer that failed, at least for its input.
            paid = error.requests and isinstance(error, ChatFailed | ChatTimeout)
            used = _build_usage(error.requests, read if paid else 0, 0, self._price)
            raise
        finally:
            # This continues if the caller is cancelled in the meantime.
            await asyncio.shield(
                asyncio.to_thread(self._spending.settle, self._ref, most, *self._name, used)
            )
        return completion

    async def close(self) -> None:
        """See ChatModel."""
        await self._model.close()

    async def _reserve(self, amount: float) -> None:
        """Reserve dollars, and release them again if the caller is cancelled meanwhile."""
        reserving = asyncio.ensure_future(
            asyncio.to_thread(self._spending.reserve, self._ref, self._tenant, amount)
        )
        try:
            await asyncio.shield(reserving)
        except asyncio.CancelledError:
            reserving.add_done_callback(lambda done: self._release(done, amount))
            raise

    def _release(self, reserving: asyncio.Future[None], amount: float) -> None:
        if not reserving.cancelled() and reserving.exception() is None:
            self._spending.settle(self._ref, amount, *self._name, Usage())


def _build_usage(requests: int, read: int, written: int, price: ChatPrice | None) -> Usage:
    tokens = read + written
    return Usage(
        requests=requests,
        retries=max(0, requests - 1),
        tokens=tokens,
        unpriced_tokens=tokens if price is None else 0,
        cost=0.0 if price is None else price.of(read, written),
        output_tokens=written,
    )


def _build_cap_error(cap: Cap, cost: float) -> CapReached:
    when = f"answers are available again after {cap.until:%Y-%m-%d %H:%M} UTC"
    return CapReached(
        f"the cap of {cap.limit_text} is reached: {cap.spent_text},"
        f" and an answer may cost {dollars(cost)}",
        hint=f"{when}; to get answers now, raise caps.{cap.name}",
        until=cap.until,
    )
