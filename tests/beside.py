"""Work that is done beside a test, in threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(stop: threading.Event, *works: Callable[[], None]) -> Iterator[None]:
    """Have works done until the block ends.

    Args:
        stop: set then; each work heeds it.
        works: what is done, each in a thread.
    """
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
