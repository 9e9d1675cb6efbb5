"""Admission control: which requests run at once, which wait, and which are refused.

Each request needs a turn: one of a limited number of slots, which it occupies while it runs. If no
slot is free, the request waits. It is refused as soon as its expected wait is too long.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Generic, TypeVar

from rag_assets.api.rate_limits import RetryLater
from rag_assets.api.settings import ServiceSettings
from rag_assets.common.errors import RagAssetsError
from rag_assets.search.progress import NO_LIMITS

if TYPE_CHECKING:
    from rag_assets.search import AsyncRetriever
    from rag_assets.search.model import SearchAnswer, SearchRequest
    from rag_assets.search.progress import Patience


@dataclass(frozen=True, slots=True)
class Turns:
    """The maximum number of requests that a worker runs at once; each running one has a turn."""

    total: int
    per_tenant: int

    @classmethod
    def for_worker(cls, turns: int, worker: int = 0, workers: int = 1) -> Turns:
        """Return a worker's share of all turns.

        A tenant gets at most three quarters of all turns, and with several workers, never all
        turns of one worker.
        """
        total, per_tenant = (
            whole // workers + (worker < whole % workers) for whole in (turns, turns - turns // 4)
        )
        return cls(total, per_tenant if workers == 1 else max(1, min(per_tenant, total - 1)))


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits on the concurrent work of one worker."""

    searches: Turns
    reads: Turns
    uploads: Turns

    @classmethod
    def from_settings(cls, settings: ServiceSettings, worker: int = 0) -> WorkerLimits:
        """Return one worker's share of the limits in the settings."""
        workers = settings.workers
        return cls(
            Turns.for_worker(settings.searches, worker, workers),
            Turns.for_worker(settings.threads, worker, workers),
            Turns.for_worker(settings.uploads, worker, workers),
        )


T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue of requests that serves tenants in rotation, and the callers of a tenant in rotation.

    Many requests of one caller delay each other, but not requests of other callers.

    Args:
        max_busy: maximum number of concurrent turns of one tenant.
    """

    def __init__(self, max_busy: int) -> None:
        self._max_busy = max_busy
        self._busy: Counter[str] = Counter()
        self._waiting: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        """Return the number of waiters."""
        return self._count

    def can_start(self, tenant: str) -> bool:
        """Return whether the tenant has fewer running turns than one tenant may have."""
        return self._busy[tenant] < self._max_busy

    def start(self, tenant: str) -> None:
        """Record that a turn of the tenant has started."""
        self._busy[tenant] += 1

    def end(self, tenant: str) -> None:
        """Record that a turn of the tenant has ended."""
        self._busy[tenant] -= 1
        if not self._busy[tenant]:
            del self._busy[tenant]

    def add(self, tenant: str, caller: str, waiter: T) -> None:
        """Add a waiter to the end of its caller's queue."""
        callers = self._waiting.setdefault(tenant, OrderedDict())
        callers.setdefault(caller, deque()).append(waiter)
        self._count += 1

    def discard(self, tenant: str, caller: str, waiter: T) -> None:
        """Remove a waiter from its caller's queue; do nothing if it no longer waits."""
        queue = self._waiting.get(tenant, OrderedDict()).get(caller)
        if queue is None:
            return
        try:
            queue.remove(waiter)
        except ValueError:
            return
        self._forget(tenant, caller, queue)

    def pop(self) -> tuple[str, T] | None:
        """Remove the waiter whose turn is next.

        Returns:
            The tenant and the waiter; None if no waiter may start a turn now.
        """
        for tenant, callers in self._waiting.items():
            if self.can_start(tenant):
                caller, queue = next(iter(callers.items()))
                waiter = queue.popleft()
                self._waiting.move_to_end(tenant)
                callers.move_to_end(caller)
                self._forget(tenant, caller, queue)
                return tenant, waiter
        return None

    def count_ahead(self, tenant: str, caller: str) -> int:
        """Return the number of waiters that would be served before a new waiter of this caller."""
        callers = self._waiting.get(tenant, OrderedDict())
        own = len(callers.get(caller, ()))
        others = len(callers) - (caller in callers)
        of_tenant = sum(map(len, callers.values()))
        before = min(of_tenant, own + (own + 1) * others)
        tenants = len(self._waiting) - (tenant in self._waiting)
        return min(self._count, before + (before + 1) * tenants)

    def find_longest(self) -> tuple[str, str, deque[T]] | None:
        """Return the tenant with the most waiters, its busiest caller, and that caller's waiters.

        Returns None if nobody waits.
        """
        if not self._count:
            return None
        tenant, callers = max(
            self._waiting.items(), key=lambda item: sum(map(len, item[1].values()))
        )
        caller, queue = max(callers.items(), key=lambda item: len(item[1]))
        return tenant, caller, queue

    def _forget(self, tenant: str, caller: str, queue: deque[T]) -> None:
        self._count -= 1
        callers = self._waiting[tenant]
        if not queue:
            del callers[caller]
        if not callers:
            del self._waiting[tenant]


CLIENT_GONE: ContextVar[Callable[[], Awaitable[None]]] = ContextVar("client_gone")
"""Function that returns once the client of the current request has disconnected."""

_MAX_WAITING_REQUESTS = 2_000
_MIN_DURATIONS = 32
"""Minimum number of completed turns before their average duration is used."""
_MAX_DURATIONS = 64
"""Number of latest turns whose durations are averaged; under load, these are about one second."""
_MAX_RETRY_SECONDS = 60


class Overloaded(RetryLater):
    """The request would wait too long for its turn."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests are waiting", retry_after)


class ClientGone(RagAssetsError):
    """The client has disconnected, so a response is not needed."""

    def __init__(self) -> None:
        super().__init__(
            "the client has disconnected",
            hint="keep the connection open until the response arrives",
        )


@dataclass(eq=False, slots=True)
class _Waiter:
    """A request that waits for a turn.

    Attributes:
        turn: a future, done when the turn starts or the request is refused.
        deadline: latest time at which the turn may start, by the clock of Admission.
    """

    turn: asyncio.Future[None]
    deadline: float


class Admission:
    """A limit on concurrent requests in one event loop, in total and for each tenant."""

    def __init__(
        self, turns: Turns, wait_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = self._turns = turns.total
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._queue: FairQueue[_Waiter] = FairQueue(turns.per_tenant)
        self._durations: deque[float] = deque(maxlen=_MAX_DURATIONS)
        self._average = 0.0

    @asynccontextmanager
    async def turn(self, tenant: str, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the context ends.

        Args:
            tenant: waiting tenants are served in rotation.
            caller: waiting callers of one tenant are served in rotation.

        Raises:
            Overloaded: the turn would start too late, or did not start in time.
            ClientGone: the client has disconnected.
        """
        if self._free and not len(self._queue) and self._queue.can_start(tenant):
            self._start(tenant)
        else:
            await self._wait_for_turn(tenant, caller)
        started = self._clock()
        try:
            yield
        finally:
            self._durations.append(self._clock() - started)
            if len(self._durations) >= _MIN_DURATIONS:
                self._average = fmean(self._durations)
            self._end(tenant)

    async def _wait_for_turn(self, tenant: str, caller: str) -> None:
        expected = self._estimate_seconds(self._queue.count_ahead(tenant, caller))
        if expected > self._wait_seconds:
            raise self._build_overloaded(expected)
        if len(self._queue) >= _MAX_WAITING_REQUESTS:
            self._refuse_last()
        turn = asyncio.get_running_loop().create_future()
        waiter = _Waiter(turn, self._clock() + self._wait_seconds)
        self._queue.add(tenant, caller, waiter)
        self._start_next_waiters()
        disconnected = asyncio.ensure_future(_wait_for_disconnect())
        try:
            await asyncio.wait(
                {turn, disconnected},
                timeout=self._wait_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not turn.done() and disconnected.done():
                raise ClientGone
            if not turn.done():
                raise self._build_overloaded(self._estimate_seconds())
            turn.result()
        except asyncio.CancelledError:
            if turn.done() and turn.exception() is None:
                self._end(tenant)
            raise
        finally:
            disconnected.cancel()
            self._queue.discard(tenant, caller, waiter)

    def _start(self, tenant: str) -> None:
        self._free -= 1
        self._queue.start(tenant)

    def _end(self, tenant: str) -> None:
        self._free += 1
        self._queue.end(tenant)
        self._start_next_waiters()
        self._refuse_late()

    def _start_next_waiters(self) -> None:
        while self._free and (taken := self._queue.pop()) is not None:
            tenant, waiter = taken
            self._start(tenant)
            waiter.turn.set_result(None)

    def _estimate_seconds(self, ahead: int | None = None) -> float:
        """Return the expected seconds until a turn starts; 0 while the average duration is unknown.

        Args:
            ahead: number of turns that come first; by default, the number of all waiting requests.
        """
        running = max(1, self._turns - self._free)
        return (len(self._queue) if ahead is None else ahead) * self._average / running

    def _refuse_late(self) -> None:
        """Refuse the last request of the busiest caller if its turn would start too late."""
        if self._estimate_seconds() <= self._wait_seconds:
            return
        if (longest := self._queue.find_longest()) is None:
            return
        tenant, caller, queue = longest
        expected = self._estimate_seconds(self._queue.count_ahead(tenant, caller))
        if self._clock() + expected > queue[-1].deadline:
            self._refuse_last()

    def _refuse_last(self) -> None:
        if (longest := self._queue.find_longest()) is not None:
            tenant, caller, queue = longest
            last = queue[-1]
            self._queue.discard(tenant, caller, last)
            last.turn.set_exception(self._build_overloaded(self._estimate_seconds()))

    def _build_overloaded(self, expected: float) -> Overloaded:
        return Overloaded(min(_MAX_RETRY_SECONDS, max(1, math.ceil(expected))))


class AdmittedRetriever:
    """A retriever whose searches wait for a turn; see AsyncRetriever for its members."""

    def __init__(self, retriever: AsyncRetriever, admission: Admission) -> None:
        self._retriever = retriever
        self._admission = admission
        self.masker, self.policy = retriever.masker, retriever.policy
        self.journal = retriever.journal
        # These do not wait: a search has waited before them, or they take almost no time.
        self.can_still_read = retriever.can_still_read
        self.mask_question = retriever.mask_question
        self.load, self.close = retriever.load, retriever.close

    async def search(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience = NO_LIMITS
    ) -> SearchAnswer:
        """Wait for a turn, then search one tenant's knowledge."""
        async with self._admission.turn(tenant_id, request.caller.name or ""):
            return await self._retriever.search(tenant_id, request, patience=patience)


async def _wait_for_disconnect() -> None:
    watch = CLIENT_GONE.get(None)
    if watch is None:
        await asyncio.get_running_loop().create_future()
    else:
        await watch()
