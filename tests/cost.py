"""Measurements of CPU time, without the overhead of coverage."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coverage import Coverage

_ATTEMPTS = 3


@contextmanager
def untraced() -> Iterator[None]:
    """Pause coverage, which makes long computations 50 % slower.

    Only for code whose lines are also covered by other tests.
    """
    tracer = Coverage.current()
    if tracer is None:
        yield
        return
    tracer.stop()
    try:
        yield
    finally:
        tracer.start()


def assert_linear(work: Callable[[int], object], size: int, *, times: int = 8) -> None:
    """Fail if the cost of a function grows with the square of its size.

    A garbage collection or a busy neighbour can only add to a measurement. So the smallest of
    several is used, and the expensive one is repeated only if it seems too large.

    Args:
        work: called with a size.
        size: the smaller of two sizes.
        times: the factor between them.
    """

    def cost(of: int) -> float:
        started = time.process_time()
        work(of)
        return time.process_time() - started

    with untraced():
        work(size)
        few = max(min(cost(size) for _ in range(_ATTEMPTS)), 0.005)
        many, quadratic = math.inf, times * times * few
        for _ in range(_ATTEMPTS):
            many = min(many, cost(times * size))
            if many < quadratic / 2:
                return
    raise AssertionError(f"{many:.3f} s for {times} times what takes {few:.3f} s: not linear")
