"""Work that is done beside other work, which neither waits for it nor fails by it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_LOG = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")


class Aside(Generic[ItemT]):
    """Hands items over, many at a time, to a thread that lives while there are any.

    What comes while one lot is worked off waits for the next: a lot grows with what there is to
    do, and costs its way to the database once.

    Args:
        work: is given items in the order they came; an error of it is logged by its kind alone.
        name: of the thread, and of the work in warnings.
        gather_seconds: how long the thread waits for more before it begins.
        most: items that may wait; those beyond are dropped, and counted. None: any number.
    """

    def __init__(
        self,
        work: Callable[[list[ItemT]], None],
        *,
        name: str,
        gather_seconds: float = 0.0,
        most: int | None = None,
    ) -> None:
        self._work = work
        self._name = name
        self._gather_seconds = gather_seconds
        self._most = most
        self._lock = threading.Lock()
        self._hurry = threading.Event()
        self._waiting: list[ItemT] = []
        self._thread: threading.Thread | None = None
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Items that came while too many waited."""
        return self._dropped

    def put(self, item: ItemT) -> None:
        """Have an item worked on soon; returns at once."""
        with self._lock:
            if self._most is not None and len(self._waiting) >= self._most:
                self._dropped += 1
                return
            self._waiting.append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name)
                self._thread.start()

    def close(self) -> None:
        """Wait until everything is worked off."""
        self._hurry.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        if self._dropped:
            _LOG.warning(f"{self._name}: {self._dropped} were dropped: too many came at once")

    def _run(self) -> None:
        while True:
            if self._gather_seconds:
                self._hurry.wait(self._gather_seconds)
            with self._lock:
                lot, self._waiting = self._waiting, []
                if not lot:
                    self._thread = None
                    return
            try:
                self._work(lot)
            except Exception as error:
                _LOG.warning(f"{self._name}: {len(lot)} were lost: {type(error).__name__}")
