"""Tenants that wait for a sync, and the lanes that sync them, each tenant in one lane at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread
from time import monotonic
from typing import Protocol

QUIET_SECONDS = 0.1
"""Seconds to wait for further changes, since an editor saves a file in several steps."""
LATEST_SECONDS = 1.0
"""Longest delay in seconds after the first change, however many changes follow."""


@dataclass
class _Mark:
    """When a marked tenant is due, and until when later changes may delay that.

    Attributes:
        is_change: whether the tenant was marked because of a change.
    """

    due: float
    latest: float
    is_change: bool = False


class Marks:
    """The marked tenants; safe to use from several threads.

    A tenant that is marked during its sync is handed out again afterwards: the sync may have listed
    its sources before the change.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Mark] = {}
        self._under_way: dict[str, bool] = {}
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
                if present is None:
                    self._waiting[tenant] = _Mark(due, due)
                elif due < present.due:
                    present.due = present.latest = due
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
                present.is_change = True
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
                    self._under_way[tenant] = self._waiting.pop(tenant).is_change
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
            self._under_way.pop(tenant, None)
            self._resting[tenant] = self._clock() + rest
            self._changed.notify_all()

    def waiting(self) -> set[str]:
        """Return the tenants that wait or are being synced."""
        with self._changed:
            return self._under_way.keys() | self._waiting.keys()

    def changed_since(self) -> set[str]:
        """Return the tenants that were marked during their current sync."""
        with self._changed:
            return self._under_way.keys() & self._waiting.keys()

    def is_changed(self, tenant: str) -> bool:
        """Return whether a tenant that is being synced was marked because of a change."""
        with self._changed:
            return self._under_way.get(tenant, True)

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


_LANES, _MOST_LANES = 2, 4
"""Normal and maximum number of lanes: two keep two cores busy.

More are added temporarily, so that a change waits only briefly behind long syncs.
"""
_MOST_DELAY_SECONDS = 1.5
_IDLE_SECONDS = 10.0
_LIFE_SECONDS = 300.0
"""Seconds after which a follower is replaced, since its memory and code date from its start."""
_PAUSE_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_MOST_RETRY_SECONDS = 300.0
_MOST_REST_SECONDS = 2.0
"""Maximum rest of a tenant after a sync; it rests for as long as the sync took.

Without a rest, constant writes would occupy a core.
"""


class Follower(Protocol):
    """A process that syncs tenants one after the other."""

    def follow(self, tenant_id: str, *, is_changed: bool) -> float | None:
        """Sync a tenant if it is due, and wait until the sync ends.

        Args:
            is_changed: whether a change was reported since the tenant's last sync started.

        Returns:
            seconds until the tenant must be checked again; None if no further check is needed.

        Raises:
            OSError: the process has ended.
        """
        ...

    def close(self) -> None:
        """Allow the process to end."""
        ...


OpenFollower = Callable[[], "Follower | None"]
"""Starts a follower; returns None if that is not possible at the moment."""


class Lanes:
    """Syncs marked tenants until stopped.

    Args:
        open_follower: starts a process that syncs.
        log: called with a line about a failure.
    """

    def __init__(self, marks: Marks, open_follower: OpenFollower, log: Callable[[str], None]):
        self._marks = marks
        self._open = open_follower
        self._log = log
        self._stopped = Event()
        self._lock = Lock()
        self._count = 0
        self._failures: dict[str, int] = {}
        self.able = True
        """Whether the last follower could be started."""

    def start(self) -> list[Thread]:
        """Start the lanes, and return their threads."""
        return [self._add(lasting=True) for _ in range(_LANES)]

    def stop(self) -> None:
        """Start no further sync."""
        self._stopped.set()
        self._marks.stop()

    def relieve(self) -> None:
        """Add a temporary lane if changes wait because all lanes are busy."""
        if _LANES <= self._count < _MOST_LANES and self._marks.delay() > _MOST_DELAY_SECONDS:
            self._add(lasting=False)

    def _add(self, *, lasting: bool) -> Thread:
        with self._lock:
            self._count += 1
        thread = Thread(target=self._work, args=(lasting,), daemon=True)
        thread.start()
        return thread

    def _work(self, lasting: bool) -> None:
        follower: Follower | None = None
        born = 0.0
        while not self._stopped.is_set():
            tenant_id = self._marks.take(_IDLE_SECONDS if follower else 1.0)
            if follower and (tenant_id is None or time.monotonic() - born > _LIFE_SECONDS):
                follower.close()
                follower = None
            if tenant_id is None:
                if not lasting:
                    break
                continue
            if follower is None:
                follower, born = self._open_follower(), time.monotonic()
            if not self._follow(follower, tenant_id) and follower is not None:
                follower.close()
                follower = None
        if follower is not None:
            follower.close()
        with self._lock:
            self._count -= 1

    def _open_follower(self) -> Follower | None:
        try:
            follower = self._open()
        except Exception as error:  # a lane that ended would sync no more tenants
            self._log(f"no process for the sync could be started ({type(error).__name__})")
            follower = None
        self.able = follower is not None
        if follower is None:
            self._stopped.wait(_PAUSE_SECONDS)
        return follower

    def _follow(self, follower: Follower | None, tenant_id: str) -> bool:
        """Sync a tenant; return False if the follower can no longer be used."""
        started = time.monotonic()
        again: float | None = _RETRY_SECONDS
        worked = False
        try:
            if follower is not None:
                is_changed = self._marks.is_changed(tenant_id)
                again = follower.follow(tenant_id, is_changed=is_changed)
                worked = True
                self._failures.pop(tenant_id, None)
        except Exception as error:  # as above
            failures = self._failures[tenant_id] = self._failures.get(tenant_id, 0) + 1
            again = min(_MOST_RETRY_SECONDS, _RETRY_SECONDS * 2 ** min(failures - 1, 10))
            self._log(f"syncing failed ({type(error).__name__}): tried again in {again:.0f} s")
        finally:
            if again is not None:
                self._marks.mark([tenant_id], after=again)
            rest = 0.0 if again == 0 else min(_MOST_REST_SECONDS, time.monotonic() - started)
            self._marks.finish(tenant_id, rest=rest)
        return worked
