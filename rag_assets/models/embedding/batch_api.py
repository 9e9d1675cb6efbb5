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
"""Time within which a provider ends a batch, or lets it expire."""

ABANDONED_AFTER = 2 * BATCH_WINDOW
"""Age at which a batch that has not ended counts as failed."""

MAX_TEXTS = 50_000
MAX_BYTES = 100 * 1024 * 1024
"""Limit of a batch's texts: half of a provider's limit of a file, which contains more data."""

T = TypeVar("T")

State: TypeAlias = Literal["under way", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The status of a batch at its provider.

    Attributes:
        state: "ended": there are results, if only for some texts; "failed": without results or
            charge.
        reason: of a failure, in the provider's code.
    """

    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one text of a batch.

    Attributes:
        key: under which the text was submitted.
        vector: as the provider returned it, not checked; None if it returned none.
        tokens: charged for it.
    """

    key: str
    vector: npt.ArrayLike | None
    tokens: int = 0


class BatchApi(Protocol):
    """A model's batch API at a provider.

    Every method may raise ProviderUnavailable and ProviderRefused as SdkConnection.exchange does;
    no method retries.
    """

    @property
    def dimensions(self) -> int:
        """Return the length of every vector."""
        ...

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Submit texts as one batch.

        Args:
            items: at most MAX_TEXTS, with at most MAX_BYTES together.
            tag: stored with the batch, so that `find` finds it.

        Returns:
            the provider's id of the batch.
        """
        ...

    async def find(self, tag: str, since: datetime) -> str | None:
        """Return the id of the batch with a tag, submitted since a time; None if not found."""
        ...

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch; a batch unknown to the provider has failed."""
        ...

    def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Yield the results of its texts, in any order; texts without a result may be missing.

        Raises:
            BatchLost: the provider does not know the batch, or has deleted its results.
            MalformedResponse: a result is malformed.
        """
        ...

    async def close(self) -> None:
        """Close connections, in the event loop in which the other methods were called."""
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
