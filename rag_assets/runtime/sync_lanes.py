"""Marks of tenants that wait for a sync, and the lanes that sync them."""

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
    """The mark of a tenant that waits for a sync; times are seconds of the clock of Marks.

    Attributes:
        due: when the sync of the tenant may start.
        latest: latest time to which further changes may postpone `due`.
        is_change: whether the tenant was marked because of a change.
    """

    due: float
    latest: float
    is_change: bool = False


class Marks:
    """A queue of the tenants that are marked for a sync; several threads may use it.

    A tenant that is marked during its sync is handed out again afterwards, because the sync may
    have listed its sources before the change.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Mark] = {}
        self._syncing: dict[str, bool] = {}
        self._resting: dict[str, float] = {}
        self._changed = Condition()
        self._stopped = False

    def stop(self) -> None:
        """Stop handing out tenants; `take` returns None from now on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def mark(self, tenants: Iterable[str], *, after: float = 0.0) -> None:
        """Mark tenants for a sync.

        Args:
            after: seconds before which they are not handed out; an earlier mark stays.
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

    def mark_changed(
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

        Returns:
            The tenant; None if none was due within `timeout`, or after `stop`.
        """
        deadline = self._clock() + timeout
        with self._changed:
            while not self._stopped:
                now = self._clock()
                tenant, due = self._find_next()
                if tenant is not None and due <= now:
                    self._syncing[tenant] = self._waiting.pop(tenant).is_change
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
            self._syncing.pop(tenant, None)
            self._resting[tenant] = self._clock() + rest
            self._changed.notify_all()

    def list_waiting(self) -> set[str]:
        """Return the tenants that wait or are being synced."""
        with self._changed:
            return self._syncing.keys() | self._waiting.keys()

    def list_changed_since_start(self) -> set[str]:
        """Return the tenants that were marked during their current sync."""
        with self._changed:
            return self._syncing.keys() & self._waiting.keys()

    def is_changed(self, tenant: str) -> bool:
        """Return whether a tenant was marked for its current sync because of a change."""
        with self._changed:
            return self._syncing.get(tenant, True)

    def get_delay(self) -> float:
        """Return for how many seconds the next tenant has been due; 0 if no tenant is due."""
        with self._changed:
            return max(0.0, self._clock() - self._find_next()[1])

    def _find_next(self) -> tuple[str | None, float]:
        best: tuple[str | None, float] = None, math.inf
        for tenant, mark in self._waiting.items():
            due = max(mark.due, self._resting.get(tenant, 0.0))
            if due < best[1] and tenant not in self._syncing:
                best = tenant, due
        return best


_MIN_LANES, _MAX_LANES = 2, 4
"""Number of permanent lanes, and maximum with temporary lanes, which are added if changes wait."""
_MAX_DELAY_SECONDS = 1.5
_IDLE_SECONDS = 10.0
_MAX_LIFE_SECONDS = 300.0
"""Seconds after which a follower is replaced, to free its memory and load current code."""
_PAUSE_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_MAX_RETRY_SECONDS = 300.0
_MAX_REST_SECONDS = 2.0
"""Maximum rest of a tenant after a sync; it rests as long as the sync took.

Otherwise constant writes would occupy a core.
"""


class Follower(Protocol):
    """A process that syncs tenants one after the other, on request of a lane."""

    def follow(self, tenant_id: str, *, is_changed: bool) -> float | None:
        """Sync a tenant if it is due, and wait until the sync ends.

        Args:
            is_changed: whether a change was reported since the tenant's last sync started.

        Returns:
            Seconds until the next check of the tenant; None if no further check is needed.

        Raises:
            OSError: the process has ended.
        """
        ...

    def close(self) -> None:
        """Stop using the process, so that it may end."""
        ...


OpenFollower = Callable[[], "Follower | None"]
"""Starts a follower; returns None if no follower can be started now."""


class Lanes:
    """Threads that sync the marked tenants until stopped; each thread has its own Follower.

    A tenant is synced in one lane at a time.
    """

    def __init__(self, marks: Marks, open_follower: OpenFollower, log: Callable[[str], None]):
        self._marks = marks
        self._open = open_follower
        self._log = log
        self._stopped = Event()
        self._lock = Lock()
        self._count = 0
        self._failures: dict[str, int] = {}
        self.can_sync = True
        """Whether the last follower could be started."""

    def start(self) -> list[Thread]:
        """Start the lanes, and return their threads."""
        return [self._add_lane(is_permanent=True) for _ in range(_MIN_LANES)]

    def stop(self) -> None:
        """Start no further syncs; syncs in progress continue."""
        self._stopped.set()
        self._marks.stop()

    def add_lane_if_late(self) -> None:
        """Add a temporary lane if a tenant has waited too long because all lanes are busy."""
        if _MIN_LANES <= self._count < _MAX_LANES and self._marks.get_delay() > _MAX_DELAY_SECONDS:
            self._add_lane(is_permanent=False)

    def _add_lane(self, *, is_permanent: bool) -> Thread:
        with self._lock:
            self._count += 1
        thread = Thread(target=self._run_lane, args=(is_permanent,), daemon=True)
        thread.start()
        return thread

    def _run_lane(self, is_permanent: bool) -> None:
        follower: Follower | None = None
        opened_at = 0.0
        while not self._stopped.is_set():
            tenant_id = self._marks.take(_IDLE_SECONDS if follower else 1.0)
            if follower and (tenant_id is None or time.monotonic() - opened_at > _MAX_LIFE_SECONDS):
                follower.close()
                follower = None
            if tenant_id is None:
                if not is_permanent:
                    break
                continue
            if follower is None:
                follower, opened_at = self._open_follower(), time.monotonic()
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
        except Exception as error:  # the lane must continue
            self._log(f"no process for the sync could be started ({type(error).__name__})")
            follower = None
        self.can_sync = follower is not None
        if follower is None:
            self._stopped.wait(_PAUSE_SECONDS)
        return follower

    def _follow(self, follower: Follower | None, tenant_id: str) -> bool:
        """Sync a tenant, and mark it for its next check or attempt.

        Returns:
            Whether the follower can be used again.
        """
        started = time.monotonic()
        seconds_to_next: float | None = _RETRY_SECONDS
        is_usable = False
        try:
            if follower is not None:
                is_changed = self._marks.is_changed(tenant_id)
                seconds_to_next = follower.follow(tenant_id, is_changed=is_changed)
                is_usable = True
                self._failures.pop(tenant_id, None)
        except Exception as error:  # the lane must continue
            failures = self._failures[tenant_id] = self._failures.get(tenant_id, 0) + 1
            seconds_to_next = min(_MAX_RETRY_SECONDS, _RETRY_SECONDS * 2 ** min(failures - 1, 10))
            self._log(
                f"syncing failed ({type(error).__name__}); next attempt in {seconds_to_next:.0f} s"
            )
        finally:
            if seconds_to_next is not None:
                self._marks.mark([tenant_id], after=seconds_to_next)
            rest = (
                0.0 if seconds_to_next == 0 else min(_MAX_REST_SECONDS, time.monotonic() - started)
            )
            self._marks.finish(tenant_id, rest=rest)
        return is_usable
