from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rag_assets.pipeline.slices import prefetch_items


def test_the_next_is_made_while_the_present_one_is_used() -> None:
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    passed = prefetch_items(items())
    assert next(passed) == 1
    assert made.wait(5)
    assert list(passed) == [2]


def test_no_more_than_one_is_prefetched() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            yield number

    passed = prefetch_items(items())
    next(passed)
    passed.close()
    assert made == [0, 1]


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second one")

    passed = prefetch_items(items())
    assert next(passed) == 1
    with pytest.raises(ValueError, match="no second one"):
        next(passed)
