"""Batch APIs of providers: half the price, for results within a day."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from rag_assets.common.batches import batched
from rag_assets.models.embedding.batches import EmbedItem

BATCH_WINDOW = timedelta(hours=24)
"""A provider ends a batch, or lets it expire, within this."""

ABANDONED_AFTER = 2 * BATCH_WINDOW
"""A batch that has not ended by then counts as failed."""

MAX_TEXTS = 50_000
MAX_BYTES = 100 * 1024 * 1024
"""Of the texts of a batch: half of a provider's limit of a file, which holds more than texts."""

T = TypeVar("T")

State: TypeAlias = Literal["under way", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The status of a batch at its provider.

    Attributes:
        state: "ended": there are results, if only of some texts; "failed": there are none, and
            nothing is charged.
        reason: of a failure, in the provider's code.
    """

    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one text of a batch.

    Attributes:
        key: that the text was submitted under.
        vector: as the provider returned it, not checked; None if it returned none.
        tokens: charged for it.
    """

    key: str
    vector: npt.ArrayLike | None
    tokens: int = 0


class BatchApi(Protocol):
    """One model's batch API at one provider.

    Every method may raise ProviderUnavailable and ProviderRefused as SdkConnection.exchange does;
    none retries by itself.
    """

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Submit texts as one batch.

        Args:
            items: MAX_TEXTS at most, of MAX_BYTES together.
            tag: stored with the batch, so that `find` finds it.

        Returns:
            the provider's id of the batch.
        """
        ...

    async def find(self, tag: str, since: datetime) -> str | None:
        """Return the id of the batch with that tag, submitted since then; None if there is none."""
        ...

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch; one that the provider does not know has failed."""
        ...

    def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Return the results of its texts, in any order; texts without a result may be missing.

        Raises:
            BatchLost: the provider does not know the batch, or has deleted its results.
            MalformedResponse: a result is malformed.
        """
        ...

    async def close(self) -> None:
        """Close connections, in the event loop that the others were called in."""
        ...


def in_batches(items: Iterable[EmbedItem]) -> Iterator[Sequence[EmbedItem]]:
    """Split texts into batches, in order, each as large as a provider accepts."""

    def size(item: EmbedItem) -> int:
        return len(item.text.encode("utf-8", "replace"))

    return batched(items, MAX_TEXTS, weight=size, most=MAX_BYTES)


async def closing(api: BatchApi, work: Coroutine[Any, Any, T]) -> T:
    """Await work on a batch API, then close its connections."""
    try:
        return await work
    finally:
        await api.close()
