"""Split iterables into batches by length and weight; process items in batches in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


def batched(
    items: Iterable[_T],
    size: int | None,
    *,
    weight: Callable[[_T], int] | None = None,
    max_weight: int | None = None,
) -> Iterator[list[_T]]:
    """Split items into non-empty batches, in order; each item is read only when it is needed.

    Args:
        weight: returns the weight of an item, in any unit; required with `max_weight`.
        max_weight: limit of a batch's weight; None: no limit. A heavier item has its own batch.
    """
    if size is not None and size < 1:
        raise ValueError("the size of a batch must be positive")
    batch: list[_T] = []
    total = 0
    for item in items:
        heavy = 0 if weight is None else weight(item)
        if batch and max_weight is not None and total + heavy > max_weight:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += heavy
        if len(batch) == size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


_LOG = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")


class BackgroundBatcher(Generic[ItemT]):
    """Processes items in batches in a thread, which runs only while there are items.

    Items that arrive during a batch form the next batch. So batches grow with the load, and each
    costs a single round trip to the database.

    Args:
        work: processes a batch, in order of arrival; only the type of its errors is logged.
        name: name of the thread, and of the work in warnings.
        gather_seconds: time that the thread waits for more items before it takes a batch.
        max_waiting: limit of waiting items; later items are dropped and counted. None: no limit.
    """

    def __init__(
        self,
        work: Callable[[list[ItemT]], None],
        *,
        name: str,
        gather_seconds: float = 0.0,
        max_waiting: int | None = None,
    ) -> None:
        self._work = work
        self._name = name
        self._gather_seconds = gather_seconds
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._waiting: list[ItemT] = []
        self._thread: threading.Thread | None = None
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Return the number of items dropped because too many were waiting."""
        return self._dropped

    def put(self, item: ItemT) -> None:
        """Queue an item without blocking."""
        with self._lock:
            if self._max_waiting is not None and len(self._waiting) >= self._max_waiting:
                self._dropped += 1
                return
            self._waiting.append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name)
                self._thread.start()

    def close(self) -> None:
        """Wait until all waiting items are processed."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        if self._dropped:
            _LOG.warning(f"{self._name}: {self._dropped} dropped because too many arrived at once")

    def _run(self) -> None:
        while True:
            if self._gather_seconds:
                self._closing.wait(self._gather_seconds)
            with self._lock:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._thread = None
                    return
            try:
                self._work(batch)
            except Exception as error:
                _LOG.warning(f"{self._name}: {len(batch)} lost: {type(error).__name__}")
