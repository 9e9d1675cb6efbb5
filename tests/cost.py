"""What work costs: the processor's time, without what coverage adds to it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coverage import Coverage

_ATTEMPTS = 3


@contextmanager
def untraced() -> Iterator[None]:
    """Without coverage, which makes long computations half as long again.

    For work whose lines other tests execute too.
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
    """Fail if the cost of some work grows with the square of its size.

    A garbage collection or a busy neighbour adds to a measurement, and takes from none: of
    several, the least counts, and the costly one is repeated only if it seems to be too much.

    Args:
        work: called with a size.
        size: the small one of two.
        times: by how much the other is larger.
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
