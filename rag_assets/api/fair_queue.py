"""A fair queue: tenants are served in rotation, and so are the callers of one tenant."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue in which many requests of one caller delay each other, but not other callers.

    Args:
        max_busy: maximum number of turns that one tenant may have at once; its other requests wait.
    """

    def __init__(self, max_busy: int) -> None:
        self._max_busy = max_busy
        self._busy: Counter[str] = Counter()
        self._waiting: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        """Return the number of waiters."""
        return self._count

    def may_begin(self, tenant: str) -> bool:
        """Return whether a tenant has fewer running turns than max_busy."""
        return self._busy[tenant] < self._max_busy

    def begin(self, tenant: str) -> None:
        """Count a turn of the tenant as running."""
        self._busy[tenant] += 1

    def end(self, tenant: str) -> None:
        """Count a turn of the tenant as ended."""
        self._busy[tenant] -= 1
        if not self._busy[tenant]:
            del self._busy[tenant]

    def add(self, tenant: str, caller: str, waiter: T) -> None:
        """Add a waiter."""
        callers = self._waiting.setdefault(tenant, OrderedDict())
        callers.setdefault(caller, deque()).append(waiter)
        self._count += 1

    def discard(self, tenant: str, caller: str, waiter: T) -> None:
        """Remove a waiter if it still waits."""
        queue = self._waiting.get(tenant, OrderedDict()).get(caller)
        if queue is None:
            return
        try:
            queue.remove(waiter)
        except ValueError:
            return
        self._forget(tenant, caller, queue)

    def next(self) -> tuple[str, T] | None:
        """Remove and return the next waiter and its tenant; None if no turn may start."""
        for tenant, callers in self._waiting.items():
            if self.may_begin(tenant):
                caller, queue = next(iter(callers.items()))
                waiter = queue.popleft()
                self._waiting.move_to_end(tenant)
                callers.move_to_end(caller)
                self._forget(tenant, caller, queue)
                return tenant, waiter
        return None

    def ahead(self, tenant: str, caller: str) -> int:
        """Return the number of waiters that would be served before a new waiter of this caller."""
        callers = self._waiting.get(tenant, OrderedDict())
        own = len(callers.get(caller, ()))
        others = len(callers) - (caller in callers)
        of_tenant = sum(map(len, callers.values()))
        before = min(of_tenant, own + (own + 1) * others)
        tenants = len(self._waiting) - (tenant in self._waiting)
        return min(self._count, before + (before + 1) * tenants)

    def longest(self) -> tuple[str, str, deque[T]] | None:
        """Return the tenant with the most waiters, its busiest caller, and the caller's waiters."""
        if not self._count:
            return None
        tenant, callers = max(self._waiting.items(), key=lambda item: _size(item[1]))
        caller, queue = max(callers.items(), key=lambda item: len(item[1]))
        return tenant, caller, queue

    def _forget(self, tenant: str, caller: str, queue: deque[T]) -> None:
        self._count -= 1
        callers = self._waiting[tenant]
        if not queue:
            del callers[caller]
        if not callers:
            del self._waiting[tenant]


def _size(callers: OrderedDict[str, deque[T]]) -> int:
    return sum(map(len, callers.values()))
