"""How long the steps of a search take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Milliseconds by step; a step that is taken again adds up."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what is done in this block."""
        started = time.perf_counter()
        yield
        took = 1_000 * (time.perf_counter() - started)
        self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + took, 3)
