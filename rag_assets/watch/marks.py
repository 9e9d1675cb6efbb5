"""Marks: the tenants that wait for a sync, each handed out once at a time."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Condition


class Marks:
    """The marked tenants, in the order of their marks; safe to use from several threads.

    A tenant that is marked while it is synced is handed out again afterwards: the sync may have
    listed its sources before the change.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, float] = {}
        self._under_way: set[str] = set()
        self._resting: dict[str, float] = {}
        self._changed = Condition()

    def mark(self, tenants: Iterable[str], *, after: float = 0.0) -> None:
        """Mark tenants.

        Args:
            tenants: their ids.
            after: the time before which they are not handed out; an earlier mark stays.
        """
        with self._changed:
            for tenant in tenants:
                self._waiting[tenant] = min(after, self._waiting.get(tenant, after))
            self._changed.notify()

    def take(self, most: int, now: float) -> list[str]:
        """Hand out tenants that wait and are not under way.

        Args:
            most: their largest number.
            now: the time.
        """
        with self._changed:
            taken = [
                tenant
                for tenant, after in self._waiting.items()
                if max(after, self._resting.get(tenant, 0.0)) <= now
                and tenant not in self._under_way
            ][:most]
            for tenant in taken:
                del self._waiting[tenant]
            self._under_way.update(taken)
        return taken

    def finish(self, tenants: Iterable[str], *, rest_until: float = 0.0) -> None:
        """Take note that the syncs of tenants have ended.

        Args:
            tenants: their ids.
            rest_until: the time before which they are not handed out again.
        """
        with self._changed:
            for tenant in tenants:
                self._under_way.discard(tenant)
                self._resting[tenant] = rest_until
            self._changed.notify()

    def wait(self, timeout: float) -> None:
        """Wait until something is marked or finished."""
        with self._changed:
            self._changed.wait(timeout)
