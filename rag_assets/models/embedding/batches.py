"""Which texts go into a call together: as many as the embedder takes, in the order given."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.models.embedding.protocol import CallLimits, Embedder
from rag_assets.models.embedding.vectors import MAX_BATCH

_GROUP = 1_000
"""Texts counted at once: some milliseconds' work."""


@dataclass(frozen=True, slots=True)
class EmbedItem:
    """A text to embed and the key its vector is kept under."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The texts of one call.

    Attributes:
        counts: tokens of each text; zeros where nobody asks for them.
    """

    items: tuple[EmbedItem, ...]
    counts: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all texts together."""
        return sum(self.counts)

    def halves(self) -> tuple[Batch, Batch]:
        """The same texts in two batches; neither is empty if there are two texts or more."""
        middle = len(self.items) // 2
        return (
            Batch(self.items[:middle], self.counts[:middle]),
            Batch(self.items[middle:], self.counts[middle:]),
        )


def pack(items: Sequence[EmbedItem], counts: Sequence[int], limits: CallLimits) -> Iterator[Batch]:
    """Fill batches one after the other, each within the limits of a call.

    Args:
        items: none of them over the limit of one text.
        counts: tokens of each.
        limits: of the embedder.
    """
    most = max(1, min(limits.texts, MAX_BATCH))
    start = tokens = 0
    for end, count in enumerate(counts):
        full = limits.tokens is not None and tokens + count > limits.tokens
        if end > start and (end - start >= most or full):
            yield Batch(tuple(items[start:end]), tuple(counts[start:end]))
            start, tokens = end, 0
        tokens += count
    if start < len(items):
        yield Batch(tuple(items[start:]), tuple(counts[start:]))


class Packer:
    """Counts and packs texts some at a time, so that the first are sent while others are counted.

    Args:
        items: what to send, in order.
        embedder: counts, in a thread; says how much a call takes.
        counted: whether counts are wanted although no limit needs them.

    Attributes:
        rejected: reason by key, for texts over the embedder's limit of one.
    """

    def __init__(self, items: Sequence[EmbedItem], embedder: Embedder, *, counted: bool) -> None:
        limits = embedder.limits
        self._items = items
        self._embedder = embedder
        self._counted = counted or limits.tokens is not None or limits.input_tokens is not None
        # Whole batches, so that none is sent short for where a group happens to end.
        most = max(1, min(limits.texts, MAX_BATCH))
        self._group = most * -(-_GROUP // most) if self._counted else max(1, len(items))
        self._next = 0
        self._packing: asyncio.Task[list[Batch]] | None = None
        self.rejected: dict[str, str] = {}

    @property
    def tasks(self) -> set[asyncio.Task[list[Batch]]]:
        """The packing under way, if any; it is over when there is none and take has been called."""
        return set() if self._packing is None else {self._packing}

    def take(self) -> list[Batch]:
        """What has been packed since the last call; packing goes on."""
        packed: list[Batch] = []
        if self._packing is not None:
            if not self._packing.done():
                return packed
            packed = self._packing.result()
            self._packing = None
        if self._next < len(self._items):
            group = self._items[self._next : self._next + self._group]
            self._next += self._group
            self._packing = asyncio.create_task(self._pack(group))
        return packed

    async def stop(self) -> None:
        """Leave the rest unpacked."""
        if self._packing is not None:
            self._packing.cancel()
            await asyncio.wait({self._packing})
            self._packing = None

    async def _pack(self, group: Sequence[EmbedItem]) -> list[Batch]:
        limits = self._embedder.limits
        if not self._counted:
            return list(pack(group, [0] * len(group), limits))
        texts = [item.text for item in group]
        counts = await asyncio.to_thread(self._embedder.count_tokens, texts)
        most = limits.input_tokens
        fitting = []
        for item, count in zip(group, counts, strict=True):
            if most is not None and count > most:
                self.rejected[item.key] = (
                    f"a chunk of {count:,} tokens is over the {most:,} that"
                    f" {self._embedder.embedder_id} reads; choose a smaller limit for its chunker"
                )
            else:
                fitting.append((item, count))
        return list(pack([item for item, _ in fitting], [count for _, count in fitting], limits))
