"""Embeds many texts: batches, checks, storage, outages, rejected texts.

Completed vectors are stored within seconds, whatever happens to the rest:

- the embedder is unavailable, refuses everything, or the budget is spent: nothing more is sent,
  calls in progress may end, and the outcome has the reason;
- it rejects a batch: halves of it are sent until the rejected texts are found;
- a text exceeds its limit: the text is reported, and never sent;
- the deadline passes: nothing more is sent, and the outcome counts what remains;
- it returns bad vectors: likewise, and then the error is raised;
- vectors cannot be stored, or not be kept until they are: nothing more is sent, calls in progress
  may end, and the error is raised; what is in the spool is stored by the next run;
- something unexpected happens, or the run is cancelled: the valid vectors so far are stored, then
  the error is raised.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from rag_assets.common.errors import (
    DeadlineExceeded,
    InputRejected,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
    RequestsStopped,
    ServiceUnavailable,
)
from rag_assets.models.embedding.batches import Batch, EmbedItem, Packer
from rag_assets.models.embedding.outcome import EmbedOutcome
from rag_assets.models.embedding.protocol import (
    Answer,
    Budget,
    Charge,
    Embedder,
    Purpose,
    Spool,
    SpooledCall,
)
from rag_assets.models.embedding.vector_buffer import Keep, VectorBuffer
from rag_assets.models.embedding.vectors import checked_vectors

_PROBE = "A sentence that any embedder takes."


async def embed_all(
    embedder: Embedder,
    items: Iterable[EmbedItem],
    *,
    keep: Keep,
    purpose: Purpose = "document",
    flush_items: int = 512,
    flush_seconds: float = 3.0,
    deadline: float | None = None,
    progress: Callable[[int], None] | None = None,
    budget: Budget | None = None,
    spool: Spool | None = None,
) -> EmbedOutcome:
    """Embed texts and store their vectors as they arrive.

    Texts are sent in the order given, so that at a deadline the first documents of a slice are
    complete, rather than all of them begun. A key that occurs twice is embedded once.

    Args:
        embedder: called within its limits, and closed at the end.
        items: texts to embed; all are held in memory: a slice, not a corpus.
        keep: stores keys and their vectors, shape (len(keys), dimensions); called in a thread,
            never concurrently, while embedding continues.
        purpose: the use of the vectors.
        flush_items: number of vectors at which `keep` is called, and its limit for one call.
        flush_seconds: longest time that a vector waits for others.
        deadline: time.monotonic() after which no further call begins; those in progress may end,
            and the first call waits for its turn even beyond it, so that every run progresses.
        progress: called in this thread after each call to the embedder, with the number of texts
            that have a vector.
        budget: limits spending; None for no limit.
        spool: keeps vectors until they are stored; no call is made without space in it.

    Raises:
        MalformedResponse: wrong count or dimension, not finite, or zero; nothing of that call is
            stored.
        Exception: any other error of embedder or keep; earlier valid vectors are stored.
    """
    drive = _BulkRun(
        embedder, items, VectorBuffer(keep, group_size=flush_items, seconds=flush_seconds)
    )
    drive.deadline, drive.progress, drive.budget = deadline, progress, budget
    drive.purpose, drive.spool = purpose, spool
    try:
        await drive.run()
    except BaseException as error:  # also if cancelled: its vectors are charged
        try:
            await drive.abandon()
        except Exception as second:  # the first error is the one to report
            error.add_note(f"earlier vectors could not be stored: {second}")
        raise
    finally:
        await embedder.close()
    return drive.outcome()


_Call: TypeAlias = "asyncio.Task[Answer]"


class _BulkRun:
    """The state of one embed_all; everything happens in the event loop's thread."""

    def __init__(
        self, embedder: Embedder, items: Iterable[EmbedItem], keeper: VectorBuffer
    ) -> None:
        self.deadline: float | None = None
        self.progress: Callable[[int], None] | None = None
        self.budget: Budget | None = None
        self.purpose: Purpose = "document"
        self.spool: Spool | None = None
        self._embedder = embedder
        self._keeper = keeper
        self._items = list({item.key: item for item in items}.values())
        self._queue: deque[Batch] = deque()
        self._calls: dict[_Call, Batch] = {}
        self._spooled: dict[_Call, SpooledCall] = {}
        self._unstored: Exception | None = None
        self._rejected: dict[str, str] = {}
        self._outage: RequestsStopped | None = None
        self._bad: MalformedResponse | None = None
        self._begun = self._late = False
        self._done = self._requests = self._retries = self._tokens = 0
        # Whether the embedder has accepted any text: before that, it may reject every text.
        self._trusted = False
        self._probing = asyncio.Lock()
        self._started = time.monotonic()

    async def run(self) -> None:
        """Embed and store until all texts are done, or nothing more may be sent."""
        packer = Packer(self._items, self._embedder, counted=self.budget is not None)
        self._rejected = packer.rejected
        try:
            await self._drive(packer)
        finally:
            await packer.stop()
        if self._unstored is not None:
            raise self._unstored
        await self._keeper.drain()
        if self._bad is not None:
            raise self._bad

    async def _drive(self, packer: Packer) -> None:
        while True:
            self._queue.extend(packer.take())
            self._send()
            if not self._calls and not ((self._queue or packer.tasks) and self._may_send()):
                break
            pause = None if self._unstored else self._keeper.start_if_due()
            waiting = {*self._calls, *self._keeper.tasks, *packer.tasks}
            await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            try:
                self._keeper.finish()
            except Exception as error:
                self._unstored = error  # Calls in progress are paid for: they may end.
            for call in [call for call in self._calls if call.done()]:
                self._take(call)

    async def abandon(self) -> None:
        """Stop the calls in progress and store the vectors of those that have ended."""
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)
        for call, batch in self._calls.items():
            if not call.cancelled() and call.exception() is None:
                self._add(batch, call.result(), self._spooled.pop(call, None))
        for spooled in self._spooled.values():
            spooled.release()
        await self._keeper.drain()

    def outcome(self) -> EmbedOutcome:
        """The outcome, once run() has ended."""
        return EmbedOutcome(
            embedded=self._keeper.kept,
            rejected=MappingProxyType(self._rejected),
            remaining=len(self._items) - self._keeper.kept - len(self._rejected),
            requests=self._requests,
            retries=self._retries,
            tokens=self._tokens,
            outage=self._outage,
            seconds=time.monotonic() - self._started,
        )

    def _may_send(self) -> bool:
        in_time = self.deadline is None or time.monotonic() < self.deadline
        stopped = self._late or self._outage or self._bad or self._unstored
        return in_time and not stopped

    def _send(self) -> None:
        """Begin as many calls as the limit allows, unless storage falls behind."""
        limit = max(1, self._embedder.limits.concurrency)
        while self._queue and len(self._calls) < limit and self._may_send():
            if self._keeper.behind:
                return
            batch = self._queue.popleft()
            spooled = self._reserve(batch)
            if self._unstored is not None:
                return
            # The first call has no deadline: with few calls a minute, no run would ever progress.
            deadline = self.deadline if self._begun else None
            call = asyncio.create_task(self._embed(batch, deadline))
            self._calls[call] = batch
            if spooled is not None:
                self._spooled[call] = spooled
            self._begun = True

    def _reserve(self, batch: Batch) -> SpooledCall | None:
        """Reserve space for a batch's vectors; without any, nothing more is sent."""
        try:
            return None if self.spool is None else self.spool.reserve(len(batch.items))
        except ServiceUnavailable as error:
            self._unstored = error
            return None

    async def _embed(self, batch: Batch, deadline: float | None) -> Answer:
        """Embed a batch within the budget, and check its vectors."""
        texts = [item.text for item in batch.items]
        try:
            answer = await self._pay_for(texts, batch.tokens, deadline)
        except InputRejected as error:
            await self._require_trust(error, deadline)
            raise
        vectors = checked_vectors(
            answer.vectors,
            count=len(texts),
            dimensions=self._embedder.dimensions,
            source=self._embedder.embedder_id,
        )
        self._trusted = True
        return replace(answer, vectors=vectors)

    async def _pay_for(self, texts: Sequence[str], tokens: int, deadline: float | None) -> Answer:
        """Make one call, with its price reserved before it and its charge recorded after it."""
        if self.budget is None:
            return await self._embedder.embed(texts, purpose=self.purpose, deadline=deadline)
        self.budget.reserve(tokens)
        charge = Charge()
        try:
            answer = await self._embedder.embed(texts, purpose=self.purpose, deadline=deadline)
            charge = Charge(answer.tokens, answer.requests, len(texts))
        except ProviderError as error:
            charge = Charge(error.tokens, error.requests)
            raise
        finally:
            self.budget.settle(tokens, charge)
        return answer

    async def _require_trust(self, rejection: InputRejected, deadline: float | None) -> None:
        """Check that the embedder accepts a harmless text, before a rejected batch is halved.

        Raises:
            ProviderRefused: it rejects every text.
        """
        async with self._probing:
            if self._trusted:
                return
            self._requests += 1
            try:
                [tokens] = self._embedder.count_tokens([_PROBE])
                self._tokens += (await self._pay_for([_PROBE], tokens, deadline)).tokens
            except InputRejected:
                raise ProviderRefused(
                    f"{self._embedder.embedder_id} rejects every text: {rejection.message}",
                    hint="check the embedder's model, dimensions and base_url",
                ) from None
            self._trusted = True

    def _take(self, call: _Call) -> None:
        batch, spooled = self._calls.pop(call), self._spooled.pop(call, None)
        if spooled is not None and (call.cancelled() or call.exception() is not None):
            spooled.release()
        try:
            answer = call.result()
        except RequestsStopped as error:
            # Without its traceback, whose frames refer to the batch.
            self._outage = self._outage or error.with_traceback(None)
            self._count(error)
        except MalformedResponse as error:
            # Calls in progress are charged too: they may end, and their charge is recorded.
            self._bad = self._bad or error.with_traceback(None)
            self._count(error)
        except DeadlineExceeded:
            self._late = True
            self._queue.appendleft(batch)
        except InputRejected as error:
            self._count(error)
            self._narrow_down(batch, error)
        else:
            self._add(batch, answer, spooled)
        if self.progress is not None:
            self.progress(self._done)

    def _count(self, error: ProviderError) -> None:
        self._tokens += error.tokens
        self._requests += error.requests
        self._retries += max(0, error.requests - 1)

    def _add(self, batch: Batch, answer: Answer, spooled: SpooledCall | None) -> None:
        self._keeper.add([item.key for item in batch.items], answer.vectors, spooled)
        self._done += len(batch.items)
        self._tokens += answer.tokens
        self._requests += answer.requests
        self._retries += answer.requests - 1

    def _narrow_down(self, batch: Batch, error: InputRejected) -> None:
        if len(batch.items) == 1:
            self._rejected[batch.items[0].key] = error.message
        else:
            self._queue.extendleft(reversed(batch.halves()))
