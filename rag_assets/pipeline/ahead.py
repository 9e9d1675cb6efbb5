"""Making the next of a few large things while the present one is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def one_ahead(items: Iterable[_T]) -> Iterator[_T]:
    """Pass items on while a thread makes the next one, so that two exist at a time.

    An error in making an item is raised where that item would come. Whoever stops early waits for
    the one that is being made, and no more are.
    """
    iterator = iter(items)

    def following() -> list[_T]:
        return list(islice(iterator, 1))

    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as maker:
        coming = maker.submit(following)
        while item := coming.result():
            coming = maker.submit(following)
            yield item[0]
