"""Splits iterables into batches of limited length and weight."""

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
    """Split items into non-empty batches, in order; each item is read only when it is needed.

    Args:
        items: the items to split.
        size: limit of items in a batch; None for no limit.
        weight: returns the weight of an item, in any unit; required with `most`.
        most: limit of a batch's weight; None for no limit. A heavier item is in its own batch.

    Raises:
        ValueError: the size is not positive.
    """
    if size is not None and size < 1:
        raise ValueError("the size of a batch must be positive")
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
