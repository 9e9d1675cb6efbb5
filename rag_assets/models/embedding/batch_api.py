"""What a provider's batch API is asked: half the price for an answer within a day."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from rag_assets.models.embedding.packing import EmbedItem

LONGEST = timedelta(hours=24)
"""A provider answers, or gives a batch up, within this."""

GIVEN_UP = 2 * LONGEST
"""A batch that is under way for longer is counted as failed."""

MOST_TEXTS = 50_000
MOST_BYTES = 100 * 1024 * 1024
"""Of the texts of a batch: half of what a provider's file may have, for what is around them."""

T = TypeVar("T")

State: TypeAlias = Literal["under way", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a batch stands at its provider.

    Attributes:
        state: "ended": there are results, if only of some texts; "failed": there are none, and
            nothing is charged.
        reason: of a failure, in the provider's code.
    """

    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of one text of a batch.

    Attributes:
        key: that it was submitted under.
        vector: as the provider gave it, not checked; None if it gave none.
        tokens: that are charged for it.
    """

    key: str
    vector: npt.ArrayLike | None
    tokens: int = 0


class BatchApi(Protocol):
    """One model's batch API at one provider.

    Every method may raise EmbedderUnavailable and EmbedderRefused as remote.Endpoint.request does;
    none tries again by itself.
    """

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Hand texts over as one batch.

        Args:
            items: MOST_TEXTS at most, of MOST_BYTES together.
            tag: kept with the batch, so that it is found by it.

        Returns:
            the provider's id of the batch.
        """
        ...

    async def find(self, tag: str, since: datetime) -> str | None:
        """The id of the batch with that tag, submitted since then; None if there is none."""
        ...

    async def standing(self, batch_id: str) -> Standing:
        """How a batch stands; one that the provider does not know has failed."""
        ...

    def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """What came of its texts, in any order; texts of which nothing came may be left out.

        Raises:
            BatchLost: the provider does not know the batch, or has its results no more.
            BadVectors: what comes is no result.
        """
        ...

    async def close(self) -> None:
        """Let go of connections, in the loop that the others were called in."""
        ...


def in_batches(items: Sequence[EmbedItem]) -> Iterator[Sequence[EmbedItem]]:
    """Cut texts into batches, in order, each as large as a provider takes."""
    start = size = 0
    for end, item in enumerate(items):
        length = len(item.text.encode("utf-8", "replace"))
        if end > start and (end - start >= MOST_TEXTS or size + length > MOST_BYTES):
            yield items[start:end]
            start, size = end, 0
        size += length
    if start < len(items):
        yield items[start:]


async def closing(api: BatchApi, work: Coroutine[Any, Any, T]) -> T:
    """Do something with a batch API, and let go of its connections."""
    try:
        return await work
    finally:
        await api.close()
