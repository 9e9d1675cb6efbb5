"""Embed many texts in batches, and store their vectors; handle outages and rejected texts.

Completed vectors are stored within seconds, whatever happens to the other texts:
- If the embedder is unavailable or refuses all requests, or the budget is spent, sending stops.
  Calls in progress may end, and the outcome contains the reason.
- If the embedder fails for a batch but accepts other texts, the batch is halved and sent again
  until the failing texts are found. The same applies to a mixture of valid and invalid vectors.
- If a text exceeds the embedder's limit, it is reported and never sent.
- If the deadline passes, sending stops, and the outcome counts the remaining texts.
- If the embedder returns a valid vector for no text at all, sending stops, then the error is
  raised.
- If vectors cannot be stored, or cannot be spooled until then, sending stops. Calls in progress may
  end, and the error is raised. The next run stores the content of the spool.
- If an unexpected error occurs, or the run is cancelled, the valid vectors so far are stored, then
  the error is raised.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from rag_assets.common.errors import (
    BadVectors,
    DeadlineExceeded,
    InputRejected,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
    RequestsStopped,
    ServiceUnavailable,
    WrongShape,
)
from rag_assets.models.embedding.batches import (
    Batch,
    BatchPacker,
    CallPace,
    EmbedItem,
    Keep,
    VectorBuffer,
)
from rag_assets.models.embedding.protocol import (
    PROBE_TEXT,
    Answer,
    Budget,
    Charge,
    Embedder,
    Purpose,
    Spool,
    SpooledCall,
    Vectors,
)
from rag_assets.models.embedding.vectors import validate_answer


@dataclass(frozen=True, slots=True)
class EmbedOutcome:
    """The outcome of embed_all; embedded + len(rejected) + remaining = number of texts."""

    embedded: int
    rejected: Mapping[str, str]
    """For texts that the embedder permanently rejects, the reason by key."""
    remaining: int
    """Number of texts not embedded because of the deadline or an outage."""
    requests: int
    retries: int
    """Number of attempts that repeated a failed attempt."""
    tokens: int
    """Number of tokens in the successful calls, as the provider counts them."""
    outage: RequestsStopped | None
    seconds: float


_NO_VECTORS: Final = np.empty((0, 0), np.float32)


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
    probe_first: bool = False,
    is_put_off: Callable[[str], bool] = lambda key: False,
    is_bulk: Callable[[str], bool] = lambda key: False,
) -> EmbedOutcome:
    """Embed texts and store their vectors as they arrive.

    Texts are sent in the given order. So at a deadline the first documents of a slice are complete,
    rather than all documents incomplete. A key that occurs twice is embedded once.

    Args:
        items: texts to embed. All are held in memory, so pass a slice, not a corpus.
        keep: stores keys and their vectors, shape (len(keys), dimensions); called in a thread,
            never concurrently, while embedding continues.
        flush_items: number of vectors at which `keep` is called, and maximum number for one
            call.
        deadline: time.monotonic() after which no further call starts. Calls in progress may
            end, and the first call waits for its turn even beyond it, so that every run progresses.
        progress: called in this thread after each call to the embedder, with the number of
            texts that have a vector.
        spool: keeps vectors until they are stored; no call is made while it has no space.
        probe_first: whether a harmless text is sent before the others. Used after an outage, so
            that a retry does not cost a batch while the outage lasts.
        is_put_off: returns whether a text and all texts after it are postponed although there
            is time; called before each call with the key of the call's first text.
        is_bulk: returns whether nobody waits for a text or any text after it; see Embedder.embed.

    Raises:
        MalformedResponse: the embedder does not return a valid vector for any text.
    """
    run = _BulkRun(
        embedder, items, VectorBuffer(keep, group_size=flush_items, seconds=flush_seconds)
    )
    run.deadline, run.progress, run.budget = deadline, progress, budget
    run.purpose, run.probe_first, run.is_put_off = purpose, probe_first, is_put_off
    run.spool, run.is_bulk = spool, is_bulk
    try:
        await run.run()
    except BaseException as error:  # also on cancellation: vectors already received are charged
        try:
            await run.abandon()
        except Exception as second:  # the first error is the one to report
            error.add_note(f"earlier vectors could not be stored: {second}")
        raise
    finally:
        await embedder.close()
    return run.build_outcome()


_Call: TypeAlias = "asyncio.Task[tuple[Vectors, Mapping[int, str]]]"
"""A task that returns the vectors of a batch's valid texts, and for each other text, by position, a
reason."""


class _BulkRun:
    """The state of one embed_all call; its methods run only in the event loop's thread."""

    def __init__(
        self, embedder: Embedder, items: Iterable[EmbedItem], keeper: VectorBuffer
    ) -> None:
        self.deadline: float | None = None
        self.progress: Callable[[int], None] | None = None
        self.budget: Budget | None = None
        self.purpose: Purpose = "document"
        self.spool: Spool | None = None
        self.probe_first = False
        self.is_put_off: Callable[[str], bool] = lambda key: False
        self.is_bulk: Callable[[str], bool] = lambda key: False
        self._embedder = embedder
        self._keeper = keeper
        self._items = list({item.key: item for item in items}.values())
        self._queue: deque[Batch] = deque()
        self._calls: dict[_Call, Batch] = {}
        self._spooled: dict[_Call, SpooledCall] = {}
        self._storage_error: Exception | None = None
        self._rejected: dict[str, str] = {}
        self._outage: RequestsStopped | None = None
        self._malformed_response: MalformedResponse | None = None
        self._has_sent = self._is_late = False
        self._pace = CallPace(embedder.limits, len(self._items))
        self._embedded_count = self._requests = self._retries = self._tokens = 0
        # Time when the embedder last accepted a text. If it has failed for every text since, this
        # is an outage.
        self._accepted_at = -math.inf
        self._probing = asyncio.Lock()
        self._failed_probe: ProviderError | None = None
        self._started = time.monotonic()

    async def run(self) -> None:
        """Embed the texts and store their vectors, until all are done or sending has to stop."""
        packer = BatchPacker(self._items, self._embedder, counts_tokens=self.budget is not None)
        self._rejected = packer.rejected
        try:
            if self.probe_first:
                await self._probe(None)
            await self._run_calls(packer)
        except RequestsStopped as error:
            self._outage = error.with_traceback(None)
        except MalformedResponse as error:
            self._malformed_response = error.with_traceback(None)
        finally:
            await packer.stop()
        if self._storage_error is not None:
            raise self._storage_error
        await self._keeper.drain()
        if self._malformed_response is not None:
            raise self._malformed_response

    async def _run_calls(self, packer: BatchPacker) -> None:
        while True:
            self._queue.extend(packer.take())
            self._send()
            if not self._calls and not ((self._queue or packer.tasks) and self._may_send()):
                break
            pause = None if self._storage_error else self._keeper.start_if_due()
            waiting = {*self._calls, *self._keeper.tasks, *packer.tasks}
            await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            try:
                self._keeper.finish()
            except Exception as error:
                self._storage_error = error  # calls in progress are paid for, so they may end
            for call in [call for call in self._calls if call.done()]:
                self._finish_call(call)

    async def abandon(self) -> None:
        """Cancel the calls in progress, and store the vectors of completed calls."""
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)
        for call, batch in self._calls.items():
            if not call.cancelled() and call.exception() is None:
                self._store_vectors(batch, *call.result(), self._spooled.pop(call, None))
        for spooled in self._spooled.values():
            spooled.release()
        await self._keeper.drain()

    def build_outcome(self) -> EmbedOutcome:
        """Return the outcome, once run() has ended."""
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
        if self._has_sent and self._queue and self.is_put_off(self._queue[0].items[0].key):
            in_time = False
        is_over = self._is_late or self._outage or self._malformed_response or self._storage_error
        return (in_time or self._may_exceed_deadline()) and not is_over

    def _may_exceed_deadline(self) -> bool:
        """Return whether a part of a failed batch may be sent after the deadline.

        Without this, each run would send the same batch and end before it finds the bad text.
        """
        is_part = bool(self._queue) and self._queue[0].is_part
        return is_part and not self._embedded_count and not self._rejected

    def _send(self) -> None:
        """Start calls up to the limit on concurrent calls, unless storing vectors falls behind."""
        while self._queue and len(self._calls) < self._pace.calls and self._may_send():
            if self._keeper.is_behind:
                return
            batch, remaining_batch = self._queue.popleft().split_batch(self._pace.texts)
            if remaining_batch is not None:
                self._queue.appendleft(remaining_batch)
            spooled = self._reserve(batch)
            if self._storage_error is not None:
                return
            # The first call has no deadline: with few calls per minute, no run would ever make
            # progress.
            deadline = self.deadline if self._has_sent and not batch.is_part else None
            call = asyncio.create_task(self._embed(batch, deadline))
            self._calls[call] = batch
            if spooled is not None:
                self._spooled[call] = spooled
            self._has_sent = True

    def _reserve(self, batch: Batch) -> SpooledCall | None:
        """Reserve spool space for a batch; without space, return None and stop sending."""
        try:
            return None if self.spool is None else self.spool.reserve(len(batch.items))
        except ServiceUnavailable as error:
            self._storage_error = error
            return None

    async def _embed(
        self, batch: Batch, deadline: float | None
    ) -> tuple[Vectors, Mapping[int, str]]:
        """Embed a batch; return the valid vectors and, by position, why other texts have none."""
        started = time.monotonic()
        try:
            return await self._request(batch, deadline), {}
        except (InputRejected, MalformedResponse) as error:
            if isinstance(error, WrongShape) and len(batch.items) > 1 and not batch.is_part:
                raise  # the model has changed
            return await self._separate_valid_vectors(batch, error, started, deadline)

    async def _request(self, batch: Batch, deadline: float | None) -> Vectors:
        """Call the embedder with a batch, within the budget, and return the validated vectors."""
        texts = [item.text for item in batch.items]
        answer = Answer(_NO_VECTORS, 0, 0)
        started = time.monotonic()
        try:
            is_bulk = self.is_bulk(batch.items[0].key)
            answer = await self._make_paid_call(texts, batch.tokens, deadline, is_bulk=is_bulk)
            vectors = validate_answer(answer.vectors, len(texts), self._embedder)
        except ProviderError as error:
            paid = (answer.tokens, answer.requests) if answer.requests else None
            self._count_requests(*(paid or (error.tokens, error.requests)))
            raise
        self._count_requests(answer.tokens, answer.requests)
        self._accepted_at = time.monotonic()
        if not batch.is_part:
            seconds = answer.seconds or time.monotonic() - started
            self._pace.record(len(texts), seconds)
        return vectors

    async def _separate_valid_vectors(
        self,
        batch: Batch,
        error: InputRejected | MalformedResponse,
        started: float,
        deadline: float | None,
    ) -> tuple[Vectors, Mapping[int, str]]:
        """Return a failed call's valid vectors and, by position, why other texts have none."""
        usable, reasons = {}, dict.fromkeys(range(len(batch.items)), error.message)
        if isinstance(error, BadVectors):
            usable, reasons = dict(error.usable), {**reasons, **error.reasons}
        if usable or (isinstance(error, InputRejected) and error.is_compared):
            self._accepted_at = time.monotonic()
        # Once the embedder is known to accept other texts, only a verdict on a single text is
        # verified.
        if not batch.is_part or len(batch.items) == 1:
            await self._require_acceptance(error, started, deadline)
        vectors = (
            np.stack([usable[position] for position in sorted(usable)]) if usable else _NO_VECTORS
        )
        refused = {position: reasons[position] for position in reasons if position not in usable}
        return vectors, refused

    async def _make_paid_call(
        self, texts: Sequence[str], tokens: int, deadline: float | None, *, is_bulk: bool = False
    ) -> Answer:
        """Call the embedder: reserve the price before the call, and record the charge after it."""
        embed = partial(
            self._embedder.embed, texts, purpose=self.purpose, deadline=deadline, is_bulk=is_bulk
        )
        if self.budget is None:
            return await embed()
        self.budget.reserve(tokens)
        charge = Charge()
        try:
            answer = await embed()
            charge = Charge(answer.tokens, answer.requests, len(texts))
        except ProviderError as error:
            charge = Charge(error.tokens, error.requests)
            raise
        finally:
            self.budget.settle(tokens, charge)
        return answer

    async def _require_acceptance(
        self, error: InputRejected | MalformedResponse, started: float, deadline: float | None
    ) -> None:
        """Check that the embedder still accepts some texts, although a call failed with this error.

        No probe is sent if a later call succeeded. Raise the error of a failed probe.
        """
        async with self._probing:
            if self._accepted_at > started:
                return
            if self._failed_probe is None:
                try:
                    await self._probe(deadline)
                except DeadlineExceeded:
                    raise
                except MalformedResponse:
                    self._failed_probe = error
                except ProviderError as second:
                    self._failed_probe = second
                else:
                    return
            raise self._failed_probe

    async def _probe(self, deadline: float | None) -> None:
        """Embed a harmless text, to check that the embedder accepts any text."""
        item = EmbedItem(PROBE_TEXT, PROBE_TEXT)
        counts = self._embedder.count_tokens([PROBE_TEXT])
        try:
            await self._request(Batch((item,), tuple(counts)), deadline)
        except InputRejected as error:
            message = f"{self._embedder.embedder_id} rejects every text: {error.message}"
        else:
            return
        raise ProviderRefused(message, hint="check the embedder's model, dimensions and base_url")

    def _finish_call(self, call: _Call) -> None:
        batch, spooled = self._calls.pop(call), self._spooled.pop(call, None)
        if spooled is not None and (call.cancelled() or call.exception() is not None):
            spooled.release()
        try:
            vectors, refused = call.result()
        except RequestsStopped as error:
            # Keep it without its traceback, whose frames refer to the batch.
            self._outage = self._outage or error.with_traceback(None)
        except DeadlineExceeded:
            self._is_late = True
            self._queue.appendleft(batch)
        except MalformedResponse as error:
            # Calls in progress are charged too, so they may end and their charge is recorded.
            self._malformed_response = self._malformed_response or error.with_traceback(None)
        else:
            self._store_vectors(batch, vectors, refused, spooled)
        if self.progress is not None:
            self.progress(self._embedded_count)

    def _count_requests(self, tokens: int, requests: int) -> None:
        self._tokens += tokens
        self._requests += requests
        self._retries += max(0, requests - 1)

    def _store_vectors(
        self,
        batch: Batch,
        vectors: Vectors,
        refused: Mapping[int, str],
        spooled: SpooledCall | None,
    ) -> None:
        """Store the vectors of a call.

        A refused text that was sent alone is rejected; other refused texts are sent again.
        """
        keys = [item.key for position, item in enumerate(batch.items) if position not in refused]
        if keys:
            self._keeper.add(keys, vectors, spooled)
        elif spooled is not None:
            spooled.release()
        self._embedded_count += len(keys)
        if refused and len(batch.items) == 1:
            self._rejected[batch.items[0].key] = refused[0]
        elif refused:
            self._queue.extendleft(reversed(batch.select(sorted(refused)).split_in_half()))
