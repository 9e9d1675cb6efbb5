"""Batches for embed_all: texts are packed within the limits of calls, vectors stored in groups."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rag_assets.models.embedding.protocol import CallLimits, Embedder, SpooledCall, Vectors
from rag_assets.models.embedding.vectors import MAX_BATCH

_FIRST_TEXTS = 16
_CALL_SECONDS = 2.0
_TOKENIZED_TEXTS = 1_000
"""Number of texts that are tokenized at once: a few milliseconds of work."""


@dataclass(frozen=True, slots=True)
class EmbedItem:
    """A text to embed, and the key under which its vector is stored."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The texts of one call to an embedder."""

    items: tuple[EmbedItem, ...]
    counts: tuple[int, ...]
    """Number of tokens of each text; zeros if tokens are not counted."""
    is_part: bool = False
    """Whether the batch is a part of a batch that failed."""

    @property
    def tokens(self) -> int:
        """Return the number of tokens of all texts together."""
        return sum(self.counts)

    def split_batch(self, texts: int) -> tuple[Batch, Batch | None]:
        """Return a batch of the first `texts` texts, and a batch of the remaining texts, if any."""
        if len(self.items) <= texts:
            return self, None
        first = Batch(self.items[:texts], self.counts[:texts], self.is_part)
        return first, Batch(self.items[texts:], self.counts[texts:], self.is_part)

    def select(self, positions: Sequence[int]) -> Batch:
        """Return the texts at these positions as a batch that is part of this failed batch."""
        items = tuple(self.items[position] for position in positions)
        return Batch(items, tuple(self.counts[position] for position in positions), is_part=True)

    def split_in_half(self) -> list[Batch]:
        """Return the texts of this failed batch as two batches; a single text as one batch."""
        middle = len(self.items) // 2
        positions = range(len(self.items))
        return [self.select(half) for half in (positions[:middle], positions[middle:]) if half]


class CallPace:
    """The allowed size and number of concurrent calls, adapted to the embedder's speed.

    A call in progress cannot be postponed, so an edit has to wait for it. A run of several calls
    starts with a small call. Then the size of calls grows up to the number of texts that the
    embedder processes in a few seconds, and the number of calls grows up to its limit. A fast
    embedder thus soon gets full calls.
    """

    def __init__(self, limits: CallLimits, texts: int) -> None:
        self._max_texts = max(1, min(limits.texts, MAX_BATCH))
        self._max_calls = max(1, limits.concurrency)
        is_short = texts <= self._max_texts or self._max_texts <= _FIRST_TEXTS
        self.texts = self._max_texts if is_short else _FIRST_TEXTS
        self.calls = self._max_calls if is_short else 1

    def record(self, texts: int, seconds: float) -> None:
        """Adapt the limits to a completed call of this many texts."""
        fitting = int(texts * _CALL_SECONDS / max(seconds, 1e-6))
        self.texts = max(1, min(self._max_texts, fitting))
        if seconds <= _CALL_SECONDS:
            self.calls = min(self._max_calls, self.calls + 1)


def pack_batches(
    items: Sequence[EmbedItem], counts: Sequence[int], limits: CallLimits
) -> Iterator[Batch]:
    """Pack texts into batches, each within the limits of a call."""
    max_texts = max(1, min(limits.texts, MAX_BATCH))
    start = tokens = 0
    for end, count in enumerate(counts):
        full = limits.tokens is not None and tokens + count > limits.tokens
        if end > start and (end - start >= max_texts or full):
            yield Batch(tuple(items[start:end]), tuple(counts[start:end]))
            start, tokens = end, 0
        tokens += count
    if start < len(items):
        yield Batch(tuple(items[start:]), tuple(counts[start:]))


class BatchPacker:
    """A packer of texts into batches, which runs in the background, group by group.

    Tokens are counted group by group, so that sending can start early.

    Args:
        counts_tokens: whether tokens are counted even if no limit requires it.

    Attributes:
        rejected: texts that exceed the embedder's limit for one text: the reason for each, by key.
    """

    def __init__(
        self, items: Sequence[EmbedItem], embedder: Embedder, *, counts_tokens: bool
    ) -> None:
        limits = embedder.limits
        self._items = items
        self._embedder = embedder
        self._counted = (
            counts_tokens or limits.tokens is not None or limits.input_tokens is not None
        )
        # Use a multiple of the batch size, so that no batch is cut short at the end of a group.
        max_texts = max(1, min(limits.texts, MAX_BATCH))
        self._group = (
            max_texts * -(-_TOKENIZED_TEXTS // max_texts) if self._counted else max(1, len(items))
        )
        self._next = 0
        self._packing: asyncio.Task[list[Batch]] | None = None
        self.rejected: dict[str, str] = {}

    @property
    def tasks(self) -> set[asyncio.Task[list[Batch]]]:
        """Return a set with the task that is packing a group.

        After the first call of take(), an empty set means that all texts are packed.
        """
        return set() if self._packing is None else {self._packing}

    def take(self) -> list[Batch]:
        """Return the batches packed last, if they are ready, and start packing the next group."""
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
        """Cancel the packing in progress, if any."""
        if self._packing is not None:
            self._packing.cancel()
            await asyncio.wait({self._packing})
            self._packing = None

    async def _pack(self, group: Sequence[EmbedItem]) -> list[Batch]:
        limits = self._embedder.limits
        if not self._counted:
            return list(pack_batches(group, [0] * len(group), limits))
        texts = [item.text for item in group]
        counts = await asyncio.to_thread(self._embedder.count_tokens, texts)
        max_tokens = limits.input_tokens
        fitting = []
        for item, count in zip(group, counts, strict=True):
            if max_tokens is not None and count > max_tokens:
                self.rejected[item.key] = (
                    f"a chunk of {count:,} tokens exceeds the {max_tokens:,} that"
                    f" {self._embedder.embedder_id} reads; set a smaller limit for its chunker"
                )
            else:
                fitting.append((item, count))
        return list(
            pack_batches([item for item, _ in fitting], [count for _, count in fitting], limits)
        )


Keep: TypeAlias = Callable[[Sequence[str], Vectors], None]


class VectorBuffer:
    """A buffer that stores vectors in groups, one group at a time, in a thread.

    A group is written when it is full, or when its first vector has waited long enough. So a crash
    costs only seconds of work, and the lake gets few, large appends.

    Args:
        keep: stores the vectors of a group; it may block, and is never called concurrently.
        seconds: maximum time that a vector waits before its group is written.
    """

    def __init__(self, keep: Keep, *, group_size: int, seconds: float) -> None:
        self._keep = keep
        self._group_size = group_size
        self._seconds = seconds
        self._keys: list[str] = []
        self._vectors: list[Vectors] = []
        self._since = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._spooled: deque[tuple[SpooledCall, int]] = deque()
        self._has_failed = False
        self._added = 0
        self.kept = 0

    @property
    def is_behind(self) -> bool:
        """Return whether a full group has to wait because another group is being written."""
        return self._writing is not None and len(self._keys) >= self._group_size

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """Return a set with the task that is writing a group; empty if there is no such task."""
        return set() if self._writing is None else {self._writing}

    def add(
        self, keys: Sequence[str], vectors: Vectors, spooled: SpooledCall | None = None
    ) -> None:
        """Add vectors to the next group; their spool space is released when they are written."""
        if spooled is not None:
            with suppress(OSError):  # They will still be written, unless this process dies.
                spooled.fill(keys, vectors)
            self._spooled.append((spooled, self._added + len(keys)))
        self._added += len(keys)
        if not self._keys:
            self._since = time.monotonic()
        self._keys.extend(keys)
        self._vectors.append(vectors)

    def start_if_due(self) -> float | None:
        """Start to write a group if one is due; else return the seconds until then, if known."""
        if self._writing is not None or not self._keys:
            return None
        wait = self._since + self._seconds - time.monotonic()
        if len(self._keys) < self._group_size and wait > 0:
            return wait
        self._start()
        return None

    def finish(self) -> None:
        """Allow the next write once a write has ended; raise the error of a write that failed."""
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()

    async def drain(self) -> None:
        """Write all vectors in the buffer, but stop at the first failure."""
        while (self._writing is not None or self._keys) and not self._has_failed:
            if self._writing is None:
                self._start()
            await asyncio.wait(self.tasks)
            self.finish()

    def _start(self) -> None:
        vectors = np.concatenate(self._vectors)
        size = self._group_size
        self._writing = asyncio.create_task(self._write(self._keys[:size], vectors[:size]))
        self._keys = self._keys[size:]
        self._vectors = [vectors[size:]] if self._keys else []
        self._since = time.monotonic()

    async def _write(self, keys: Sequence[str], vectors: Vectors) -> None:
        try:
            await asyncio.to_thread(self._keep, keys, vectors)
        except BaseException:
            self._has_failed = True
            raise
        self.kept += len(keys)
        while self._spooled and self._spooled[0][1] <= self.kept:
            self._spooled.popleft()[0].release()
