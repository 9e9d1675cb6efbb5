"""Lanes, each a thread that runs one sync at a time, and the processes that do the syncs."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Protocol

from rag_assets.watch.marks import Marks

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

    def follow(self, tenant_id: str) -> float | None:
        """Sync a tenant if it is due, and wait until the sync ends.

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
        marks: the tenants to sync.
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
                again = follower.follow(tenant_id)
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
