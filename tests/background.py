"""Background work during a test, in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def run_in_background(stop: threading.Event, *functions: Callable[[], None]) -> Iterator[None]:
    """Run each function in a thread until the block ends.

    Args:
        stop: set at the end; each function must return soon after that.
    """
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
