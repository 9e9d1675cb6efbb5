"""Marks: the tenants that wait for a sync; each is handed to one worker at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition
from time import monotonic

QUIET_SECONDS = 0.1
"""Seconds to wait for further changes, since an editor saves a file in several steps."""
LATEST_SECONDS = 1.0
"""Longest delay in seconds after the first change, however many changes follow."""


@dataclass
class _Mark:
    """When a marked tenant is due, and until when later changes may delay that."""

    due: float
    latest: float


class Marks:
    """The marked tenants; safe to use from several threads.

    A tenant that is marked during its sync is handed out again afterwards: the sync may have listed
    its sources before the change.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Mark] = {}
        self._under_way: set[str] = set()
        self._resting: dict[str, float] = {}
        self._changed = Condition()
        self._stopped = False

    def stop(self) -> None:
        """Hand out no further tenant."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def mark(self, tenants: Iterable[str], *, after: float = 0.0) -> None:
        """Mark tenants.

        Args:
            after: seconds before which they are not handed out; an existing mark with an earlier
                time stays.
        """
        due = self._clock() + after
        with self._changed:
            for tenant in tenants:
                present = self._waiting.get(tenant)
                if present is None or due < present.due:
                    self._waiting[tenant] = _Mark(due, due)
            self._changed.notify_all()

    def changed(
        self,
        tenants: Iterable[str],
        *,
        quiet: float = QUIET_SECONDS,
        latest: float = LATEST_SECONDS,
    ) -> None:
        """Mark tenants with changed sources, which may change again.

        Args:
            quiet: seconds without a further change before the tenants are handed out.
            latest: seconds after which they are handed out despite further changes.
        """
        now = self._clock()
        with self._changed:
            for tenant in tenants:
                present = self._waiting.setdefault(tenant, _Mark(math.inf, math.inf))
                present.latest = min(present.latest, now + latest)
                present.due = min(now + quiet, present.latest)
            self._changed.notify_all()

    def take(self, timeout: float) -> str | None:
        """Hand out the tenant that has been due longest and is not being synced.

        Args:
            timeout: seconds to wait for a tenant. If none is due by then, or when stopped, the
                result is None.
        """
        deadline = self._clock() + timeout
        with self._changed:
            while not self._stopped:
                now = self._clock()
                tenant, due = self._next()
                if tenant is not None and due <= now:
                    del self._waiting[tenant]
                    self._under_way.add(tenant)
                    return tenant
                if now >= deadline:
                    break
                self._changed.wait(min(due, deadline) - now)
        return None

    def finish(self, tenant: str, *, rest: float = 0.0) -> None:
        """Record that the sync of a tenant has ended.

        Args:
            rest: seconds before which the tenant is not handed out again.
        """
        with self._changed:
            self._under_way.discard(tenant)
            self._resting[tenant] = self._clock() + rest
            self._changed.notify_all()

    def waiting(self) -> set[str]:
        """Return the tenants that wait or are being synced."""
        with self._changed:
            return self._under_way | self._waiting.keys()

    def changed_since(self) -> set[str]:
        """Return the tenants that were marked during their current sync."""
        with self._changed:
            return self._under_way & self._waiting.keys()

    def delay(self) -> float:
        """Return for how many seconds the next tenant has been due."""
        with self._changed:
            return max(0.0, self._clock() - self._next()[1])

    def _next(self) -> tuple[str | None, float]:
        best: tuple[str | None, float] = None, math.inf
        for tenant, mark in self._waiting.items():
            due = max(mark.due, self._resting.get(tenant, 0.0))
            if due < best[1] and tenant not in self._under_way:
                best = tenant, due
        return best
