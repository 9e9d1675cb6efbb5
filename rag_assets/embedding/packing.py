"""Which texts go into a call together: as many as the embedder takes, in the order given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.embedding.protocol import CallLimits
from rag_assets.embedding.vectors import MAX_BATCH


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
