"""Durations of the parts of a search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings:
    """Durations in milliseconds, by part; repeated measurements of a part add up."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure the duration of a `with` block."""
        started = time.perf_counter()
        yield
        took = 1_000 * (time.perf_counter() - started)
        self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + took, 3)
