"""Prefetching: makes the next item in a thread while the current item is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def prefetch_items(items: Iterable[_T]) -> Iterator[_T]:
    """Yield items while a thread makes the next one, so that two exist at a time.

    If making an item fails, the error is raised when that item would be yielded. A consumer that
    stops early waits for the item in progress; no further item is made.
    """
    iterator = iter(items)

    def next_item() -> list[_T]:
        return list(islice(iterator, 1))

    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as executor:
        future = executor.submit(next_item)
        while item := future.result():
            future = executor.submit(next_item)
            yield item[0]
