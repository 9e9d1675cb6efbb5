"""Time limits for a search whose caller continues without it when they have passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from rag_assets.common.errors import RagAssetsError


@dataclass(frozen=True, slots=True)
class Patience:
    """Maximum seconds for parts of a search. With None, only the limits of connections apply.

    Attributes:
        embedding: limit for the vector of the question.
        whole: limit for the whole search.
    """

    embedding: float | None = None
    whole: float | None = None


NO_LIMITS = Patience()


@contextmanager
def limited(seconds: float | None, late: Callable[[float], RagAssetsError]) -> Iterator[None]:
    """Cancel the code in this block of a coroutine if it takes too long.

    Args:
        seconds: the limit; None for no limit.
        late: returns the error to raise when the limit has passed.
    """
    if seconds is None:
        yield
        return
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise late(seconds)
