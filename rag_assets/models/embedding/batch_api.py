"""The interface of providers' batch APIs, which return vectors within a day for half the price."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from rag_assets.common.batches import batched
from rag_assets.models.embedding.batches import EmbedItem

BATCH_WINDOW = timedelta(hours=24)
"""Time after which a provider has ended a batch, or lets it expire."""

ABANDONED_AFTER = 2 * BATCH_WINDOW
"""Age at which a batch that has not ended counts as failed."""

MAX_TEXTS = 50_000
MAX_BYTES = 100 * 1024 * 1024
"""Maximum bytes of a batch's texts: half of a provider's file limit, since the file contains more
data."""

T = TypeVar("T")

State: TypeAlias = Literal["under way", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The status of a batch at its provider.

    Attributes:
        state: "ended": there are results, possibly only for some texts; "failed": there are no
            results, and nothing is charged.
    """

    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one text of a batch.

    Attributes:
        vector: the vector as the provider returned it, not validated; None if it returned none.
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
        """Submit at most MAX_TEXTS texts and MAX_BYTES bytes as one batch, and return its id.

        Args:
            tag: stored with the batch, so that `find` can find the batch.
        """
        ...

    async def find(self, tag: str, since: datetime) -> str | None:
        """Return the id of the batch with this tag, submitted after `since`; None without one."""
        ...

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch; it is "failed" if the provider does not know the batch."""
        ...

    def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch's texts, in any order; some texts may have no result.

        Raises:
            BatchLost: the provider does not know the batch, or has deleted its results.
        """
        ...

    async def close(self) -> None:
        """Close the connections; must be called in the event loop of the other calls."""
        ...


def split_into_batches(items: Iterable[EmbedItem]) -> Iterator[Sequence[EmbedItem]]:
    """Split texts into batches, in order, each within MAX_TEXTS and MAX_BYTES."""

    def count_bytes(item: EmbedItem) -> int:
        return len(item.text.encode("utf-8", "replace"))

    return batched(items, MAX_TEXTS, weight=count_bytes, most=MAX_BYTES)


async def run_and_close(api: BatchApi, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work on a batch API, and close the API's connections afterwards."""
    try:
        return await work
    finally:
        await api.close()
