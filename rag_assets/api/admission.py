"""Admission control: which requests run at once, which wait, and which are refused.

Running more requests at once than the servers can handle delays every answer. So each request needs
a turn: one of a limited number of slots, which it occupies while it runs. If no slot is free, the
request waits. It is refused as soon as it is known that it would wait too long.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from rag_assets.api.fair_queue import FairQueue
from rag_assets.api.shares import Turns
from rag_assets.common.errors import RagAssetsError
from rag_assets.search.progress import NO_LIMITS

if TYPE_CHECKING:
    from rag_assets.privacy.masker import Masker
    from rag_assets.search import AsyncRetriever
    from rag_assets.search.access import AccessPolicy
    from rag_assets.search.journal import SearchJournal
    from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
    from rag_assets.search.progress import Patience
    from rag_assets.storage.catalog.database import TenantRef

CLIENT_GONE: ContextVar[Callable[[], Awaitable[None]]] = ContextVar("client_gone")
"""Function that returns once the client of the current request has disconnected."""

_MAX_WAITING = 2_000
_MIN_SAMPLES = 32
"""Minimum number of completed turns before their average duration is used."""
_SAMPLES = 64
"""Number of latest turns whose durations are averaged; under load, these are about one second."""
_LONGEST_RETRY = 60


class Overloaded(RagAssetsError):
    """A request would wait too long for its turn.

    Args:
        retry_after: seconds after which the request may be served in time.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            "more requests wait than can be answered soon", hint=f"try again in {retry_after} s"
        )
        self.retry_after = retry_after


class ClientGone(RagAssetsError):
    """The client has disconnected, so a response is not needed."""

    def __init__(self) -> None:
        super().__init__(
            "the client has disconnected",
            hint="keep the connection open until the response arrives",
        )


@dataclass(eq=False, slots=True)
class _Waiter:
    """A waiting request.

    Attributes:
        turn: a future, done when the turn starts or the request is refused.
        until: latest time at which the turn may start.
    """

    turn: asyncio.Future[None]
    until: float


class Admission:
    """A limit on the requests that run at once in one event loop.

    A tenant with slow requests cannot occupy all turns.

    Args:
        turns: maximum concurrent turns, in total and for one tenant.
        wait_seconds: longest wait for a turn.
        clock: returns the current time in seconds.
    """

    def __init__(
        self, turns: Turns, wait_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = self._turns = turns.at_once
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._queue: FairQueue[_Waiter] = FairQueue(turns.of_one_tenant)
        self._samples: deque[float] = deque(maxlen=_SAMPLES)
        self._average = 0.0

    @asynccontextmanager
    async def turn(self, tenant: str, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the context ends.

        Args:
            tenant: the tenant of the request; waiting tenants are served in rotation.
            caller: the caller; the waiting callers of one tenant are also served in rotation.

        Raises:
            Overloaded: the turn would start too late, or did not start in time.
            ClientGone: the client has disconnected.
        """
        if self._free and not len(self._queue) and self._queue.may_begin(tenant):
            self._begin(tenant)
        else:
            await self._wait(tenant, caller)
        began = self._clock()
        try:
            yield
        finally:
            self._sample(self._clock() - began)
            self._end(tenant)

    async def _wait(self, tenant: str, caller: str) -> None:
        expected = self._estimate_seconds(self._queue.ahead(tenant, caller))
        if expected > self._wait_seconds:
            raise self._build_overloaded(expected)
        if len(self._queue) >= _MAX_WAITING:
            self._refuse_last()
        turn = asyncio.get_running_loop().create_future()
        waiter = _Waiter(turn, self._clock() + self._wait_seconds)
        self._queue.add(tenant, caller, waiter)
        self._begin_waiting()
        disconnected = asyncio.ensure_future(_client_gone())
        try:
            await asyncio.wait(
                {turn, disconnected},
                timeout=self._wait_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not turn.done():
                raise (
                    ClientGone
                    if disconnected.done()
                    else self._build_overloaded(self._estimate_seconds())
                )
            turn.result()
        except asyncio.CancelledError:
            if turn.done() and turn.exception() is None:
                self._end(tenant)
            raise
        finally:
            disconnected.cancel()
            self._queue.discard(tenant, caller, waiter)

    def _begin(self, tenant: str) -> None:
        self._free -= 1
        self._queue.begin(tenant)

    def _end(self, tenant: str) -> None:
        self._free += 1
        self._queue.end(tenant)
        self._begin_waiting()
        self._refuse_late()

    def _begin_waiting(self) -> None:
        while self._free and (taken := self._queue.next()) is not None:
            tenant, waiter = taken
            self._begin(tenant)
            waiter.turn.set_result(None)

    def _sample(self, seconds: float) -> None:
        self._samples.append(seconds)
        if len(self._samples) >= _MIN_SAMPLES:
            self._average = fmean(self._samples)

    def _estimate_seconds(self, ahead: int | None = None) -> float:
        """Return the expected seconds until a turn starts; 0 while the average duration is unknown.

        Args:
            ahead: number of turns that come first; by default, the number of all waiting requests.
        """
        under_way = max(1, self._turns - self._free)
        return (len(self._queue) if ahead is None else ahead) * self._average / under_way

    def _refuse_late(self) -> None:
        """Refuse the last request in the longest line if its turn will start too late."""
        if self._estimate_seconds() <= self._wait_seconds:
            return
        longest = self._queue.longest()
        if longest is None:
            return
        tenant, caller, line = longest
        last = line[-1]
        expected = self._estimate_seconds(self._queue.ahead(tenant, caller))
        if self._clock() + expected > last.until:
            self._refuse_last()

    def _refuse_last(self) -> None:
        longest = self._queue.longest()
        if longest is not None:
            tenant, caller, line = longest
            last = line[-1]
            self._queue.discard(tenant, caller, last)
            last.turn.set_exception(self._build_overloaded(self._estimate_seconds()))

    def _build_overloaded(self, expected: float) -> Overloaded:
        return Overloaded(min(_LONGEST_RETRY, max(1, math.ceil(expected))))


class AdmittedRetriever:
    """A retriever whose searches wait for a turn."""

    def __init__(self, retriever: AsyncRetriever, admission: Admission) -> None:
        self._retriever = retriever
        self._admission = admission

    async def search(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience = NO_LIMITS
    ) -> SearchAnswer:
        """Wait for a turn, then search one tenant's knowledge.

        Raises:
            Overloaded, ClientGone: see Admission.
            RagAssetsError: see AsyncRetriever.
        """
        async with self._admission.turn(tenant_id, request.caller.name or ""):
            return await self._retriever.search(tenant_id, request, patience=patience)

    async def still_readable(self, ref: TenantRef, caller: Caller, answer: SearchAnswer) -> bool:
        """See AsyncRetriever; does not wait for a turn: the search has already waited for one."""
        return await self._retriever.still_readable(ref, caller, answer)

    async def masked(self, question: str) -> str:
        """See AsyncRetriever; does not wait for a turn, because it takes almost no time."""
        return await self._retriever.masked(question)

    @property
    def masker(self) -> Masker:
        """See AsyncRetriever."""
        return self._retriever.masker

    @property
    def journal(self) -> SearchJournal:
        """See AsyncRetriever."""
        return self._retriever.journal

    @property
    def policy(self) -> AccessPolicy:
        """See AsyncRetriever."""
        return self._retriever.policy

    async def load(self) -> None:
        """See AsyncRetriever."""
        await self._retriever.load()

    async def close(self) -> None:
        """See AsyncRetriever."""
        await self._retriever.close()


async def _client_gone() -> None:
    watch = CLIENT_GONE.get(None)
    if watch is None:
        await asyncio.get_running_loop().create_future()
    else:
        await watch()
