"""Limits of time for a search whose caller goes on without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from rag_assets.common.errors import RagAssetsError


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that parts of a search may take; None for no limit but those of their connections.

    Attributes:
        embedding: for the vector of the question.
        whole: for all of it.
    """

    embedding: float | None = None
    whole: float | None = None


NO_LIMITS = Patience()


@contextmanager
def limited(seconds: float | None, late: Callable[[float], RagAssetsError]) -> Iterator[None]:
    """Cancel a block of a coroutine that takes longer.

    Args:
        seconds: None for no limit.
        late: makes the error to be raised then.
    """
    if seconds is None:
        yield
        return
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise late(seconds)
