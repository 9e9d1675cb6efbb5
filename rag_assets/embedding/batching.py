"""Driving an embedder over many texts: batches, checks, keeping, outages, bad inputs.

What is done is kept within seconds, whatever becomes of the rest:

- the embedder does not answer: nothing more is sent, calls under way may end, the outcome says so;
- it rejects a batch: halves are tried until the single texts at fault are found; others go through;
- the deadline passes: nothing more is sent, and the outcome counts what remains;
- it returns bad vectors, or something unforeseen happens, or the run is cancelled: the good
  vectors so far are kept, then the error goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from rag_assets.embedding.keeping import Keep, Keeper
from rag_assets.embedding.protocol import Embedder, Vectors
from rag_assets.embedding.vectors import MAX_BATCH, checked_vectors
from rag_assets.errors import EmbedderUnavailable, InputRejected


@dataclass(frozen=True, slots=True)
class EmbedItem:
    """A text to embed and the key its vector is kept under."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class EmbedProgress:
    """How far a drive has come.

    Attributes:
        done: texts that have a vector.
        rejected: texts the embedder refuses.
        total: texts asked for.
        requests, tokens: calls begun, and tokens of those that succeeded.
        seconds: since the start.
    """

    done: int
    rejected: int
    total: int
    requests: int
    tokens: int
    seconds: float

    @property
    def rate(self) -> float:
        """Texts a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Seconds until all is done at the rate so far; None while there is no rate."""
        left = self.total - self.done - self.rejected
        return left / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class EmbedOutcome:
    """What came of a drive; embedded + len(rejected) + remaining are the texts asked for.

    Attributes:
        embedded: vectors kept.
        rejected: reason by key, for texts the embedder will never take.
        remaining: texts not embedded because of the deadline or an outage.
        requests: calls made, failed ones included.
        tokens: tokens of the calls that succeeded, as the provider counts them.
        outage: why the embedder stopped answering, if it did.
        seconds: time it all took.
    """

    embedded: int
    rejected: Mapping[str, str]
    remaining: int
    requests: int
    tokens: int
    outage: EmbedderUnavailable | None
    seconds: float


async def embed_all(
    embedder: Embedder,
    items: Iterable[EmbedItem],
    *,
    keep: Keep,
    flush_items: int = 512,
    flush_seconds: float = 3.0,
    deadline: float | None = None,
    progress: Callable[[EmbedProgress], None] | None = None,
) -> EmbedOutcome:
    """Embed texts and keep their vectors as they come.

    Texts are sent in the order given, so that at a deadline the first documents of a slice are
    complete rather than all of them begun. A key given twice is embedded once.

    Args:
        embedder: called with at most its batch_size and at most its concurrency at once.
        items: what to embed; held in memory, so a slice and not a corpus.
        keep: writes keys and their vectors, shape (len(keys), dimensions); called in a thread,
            never twice at once, while embedding goes on.
        flush_items: vectors handed to keep at most at once, and as soon as there are so many.
        flush_seconds: how long a vector waits for others at most.
        deadline: time.monotonic() after which no further call begins; those under way may end.
        progress: called in this thread after each call to the embedder.

    Raises:
        BadVectors: wrong count or dimension, not finite, or zero; none of that call is kept.
        Exception: whatever else embedder or keep raise; what was good before is kept.
    """
    drive = _Drive(embedder, items, Keeper(keep, group_size=flush_items, seconds=flush_seconds))
    drive.deadline, drive.progress = deadline, progress
    try:
        await drive.run()
    except BaseException as error:  # cancellation too: its vectors are paid for
        try:
            await drive.abandon()
        except Exception as second:  # the first error is the one to report
            error.add_note(f"vectors made before could not be kept: {second}")
        raise
    return drive.outcome()


_Batch: TypeAlias = "tuple[EmbedItem, ...]"
_Call: TypeAlias = "asyncio.Task[tuple[Vectors, int]]"


class _Drive:
    """The state of one embed_all; everything happens in the event loop's thread."""

    def __init__(self, embedder: Embedder, items: Iterable[EmbedItem], keeper: Keeper) -> None:
        self.deadline: float | None = None
        self.progress: Callable[[EmbedProgress], None] | None = None
        self._embedder = embedder
        self._keeper = keeper
        distinct = list({item.key: item for item in items}.values())
        size = max(1, min(embedder.batch_size, MAX_BATCH))
        self._total = len(distinct)
        self._queue: deque[_Batch] = deque(
            tuple(distinct[start : start + size]) for start in range(0, len(distinct), size)
        )
        self._calls: dict[_Call, _Batch] = {}
        self._rejected: dict[str, str] = {}
        self._outage: EmbedderUnavailable | None = None
        self._done = self._requests = self._tokens = 0
        self._started = time.monotonic()

    async def run(self) -> None:
        """Send, take and keep until nothing is left or nothing more may be sent."""
        while True:
            self._send()
            if not self._calls and not (self._queue and self._may_send()):
                break
            pause = self._keeper.start_if_due()
            waiting = {*self._calls, *self._keeper.tasks}
            await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            self._keeper.finish()
            for call in [call for call in self._calls if call.done()]:
                self._take(call)
        await self._keeper.drain()

    async def abandon(self) -> None:
        """Stop the calls under way and keep what has come of those that had ended."""
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)
        for call, batch in self._calls.items():
            if not call.cancelled() and call.exception() is None:
                self._add(batch, *call.result())
        await self._keeper.drain()

    def outcome(self) -> EmbedOutcome:
        """What came of it, once run() has ended."""
        return EmbedOutcome(
            embedded=self._keeper.kept,
            rejected=MappingProxyType(self._rejected),
            remaining=self._total - self._keeper.kept - len(self._rejected),
            requests=self._requests,
            tokens=self._tokens,
            outage=self._outage,
            seconds=time.monotonic() - self._started,
        )

    def _may_send(self) -> bool:
        in_time = self.deadline is None or time.monotonic() < self.deadline
        return in_time and self._outage is None

    def _send(self) -> None:
        """Begin as many calls as may be under way, unless keeping cannot follow."""
        limit = max(1, self._embedder.concurrency)
        while self._queue and len(self._calls) < limit and self._may_send():
            if self._keeper.behind:
                return
            batch = self._queue.popleft()
            self._calls[asyncio.create_task(self._call(batch))] = batch

    async def _call(self, batch: _Batch) -> tuple[Vectors, int]:
        texts = [item.text for item in batch]
        # Counted before the call: a cancellation in between must not lose what was paid for.
        tokens = sum(await asyncio.to_thread(self._embedder.count_tokens, texts))
        self._requests += 1
        answer = await self._embedder.embed(texts)
        vectors = checked_vectors(
            answer,
            count=len(texts),
            dimensions=self._embedder.dimensions,
            source=self._embedder.embedder_id,
        )
        return vectors, tokens

    def _take(self, call: _Call) -> None:
        batch = self._calls.pop(call)
        try:
            vectors, tokens = call.result()
        except EmbedderUnavailable as error:
            # Without its traceback, whose frames would hold on to the batch.
            self._outage = self._outage or error.with_traceback(None)
        except InputRejected as error:
            self._narrow_down(batch, error)
        else:
            self._add(batch, vectors, tokens)
        if self.progress is not None:
            self.progress(self._state())

    def _add(self, batch: _Batch, vectors: Vectors, tokens: int) -> None:
        self._keeper.add([item.key for item in batch], vectors)
        self._done += len(batch)
        self._tokens += tokens

    def _narrow_down(self, batch: _Batch, error: InputRejected) -> None:
        if len(batch) == 1:
            self._rejected[batch[0].key] = error.message
            return
        middle = len(batch) // 2
        self._queue.extendleft((batch[middle:], batch[:middle]))

    def _state(self) -> EmbedProgress:
        return EmbedProgress(
            done=self._done,
            rejected=len(self._rejected),
            total=self._total,
            requests=self._requests,
            tokens=self._tokens,
            seconds=time.monotonic() - self._started,
        )
