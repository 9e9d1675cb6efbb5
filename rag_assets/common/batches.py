"""Batches of bounded length and weight, cut from anything iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def batched(
    items: Iterable[_T],
    size: int | None,
    *,
    weight: Callable[[_T], int] | None = None,
    most: int | None = None,
) -> Iterator[list[_T]]:
    """Cut items into batches, in order; none is empty, and each is read only when it is needed.

    Args:
        items: to cut.
        size: items that a batch holds at most; None for no such limit.
        weight: of an item, in any unit; needed where there is a `most`.
        most: weight that a batch holds at most; None for no such limit. A heavier item makes a
            batch of its own.

    Raises:
        ValueError: the size is not positive.
    """
    if size is not None and size < 1:
        raise ValueError("a batch holds at least one item")
    batch: list[_T] = []
    total = 0
    for item in items:
        heavy = 0 if weight is None else weight(item)
        if batch and most is not None and total + heavy > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += heavy
        if len(batch) == size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
