"""Noting whether a tenant's stored key still works, without a statement for every call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from rag_assets.common.errors import ChatRefused, EmbedderRefused, ServiceUnavailable
from rag_assets.models.chat.protocol import ChatModel, Completion
from rag_assets.models.embedding.batch_api import BatchApi, BatchResult, BatchStatus
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose

_QUIET_SECONDS = 600.0


class _KeyHealth:
    """What calls tell of a key, until it is noted."""

    def __init__(self, note: Callable[[bool], None]) -> None:
        self._note = note
        self._worked: bool | None = None
        self._noted: tuple[bool, float] | None = None

    @contextmanager
    def of_call(self) -> Iterator[None]:
        """Hear what the call in this block tells."""
        try:
            yield
        except (EmbedderRefused, ChatRefused) as error:
            # A model, a quota or an address that is refused says nothing of the key; nor does a
            # request that was never sent.
            if error.fault == "key" and error.requests:
                self._worked = False
            raise
        self._worked = True

    def write(self) -> None:
        """Note what was heard, where it is news."""
        worked, now = self._worked, time.monotonic()
        if worked is None or not self._is_news(worked, now):
            return
        # A note is not worth a search.
        with suppress(ServiceUnavailable):
            self._note(worked)
            self._noted = (worked, now)

    def _is_news(self, worked: bool, now: float) -> bool:
        if self._noted is None:
            return True
        before, at = self._noted
        return worked != before or now - at > _QUIET_SECONDS


class KeyReportingChat:
    """A chat model that has it noted whether its provider takes the key.

    It is noted every ten minutes, or when it changes.

    Args:
        model: does the work.
        note: records whether the key worked just now.
    """

    def __init__(self, model: ChatModel, note: Callable[[bool], None]) -> None:
        self._model = model
        self._notes = _KeyHealth(note)

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """See ChatModel."""
        try:
            with self._notes.of_call():
                return await self._model.complete(
                    instructions, prompt, max_tokens=max_tokens, seconds=seconds
                )
        finally:
            await asyncio.to_thread(self._notes.write)

    async def close(self) -> None:
        """See ChatModel."""
        await self._model.close()


class KeyReportingBatchApi:
    """A batch API that has it noted, when it is closed, whether its provider takes the key.

    Args:
        api: does the work.
        note: records whether the key worked just now.
    """

    def __init__(self, api: BatchApi, note: Callable[[bool], None]) -> None:
        self._api = api
        self._notes = _KeyHealth(note)

    @property
    def dimensions(self) -> int:
        """See BatchApi."""
        return self._api.dimensions

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """See BatchApi."""
        with self._notes.of_call():
            return await self._api.submit(items, tag)

    async def find(self, tag: str, since: datetime) -> str | None:
        """See BatchApi."""
        with self._notes.of_call():
            return await self._api.find(tag, since)

    async def status(self, batch_id: str) -> BatchStatus:
        """See BatchApi."""
        with self._notes.of_call():
            return await self._api.status(batch_id)

    async def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """See BatchApi."""
        with self._notes.of_call():
            async for result in self._api.results(batch_id):
                yield result

    async def close(self) -> None:
        """See BatchApi."""
        await self._api.close()
        self._notes.write()


class KeyReportingEmbedder:
    """An embedder that has it noted whether its provider takes the key.

    It is noted when connections are closed, so once in a run; and by one that answers many
    questions every ten minutes, or when it changes.

    Args:
        embedder: does the work.
        note: records whether the key worked just now.
    """

    def __init__(self, embedder: Embedder, note: Callable[[bool], None]) -> None:
        self._embedder = embedder
        self._notes = _KeyHealth(note)

    @property
    def embedder_id(self) -> str:
        """See Embedder."""
        return self._embedder.embedder_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._embedder.dimensions

    @property
    def limits(self) -> CallLimits:
        """See Embedder."""
        return self._embedder.limits

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
    ) -> Answer:
        """See Embedder."""
        with self._notes.of_call():
            return await self._embedder.embed(texts, purpose=purpose, deadline=deadline)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See Embedder."""
        return self._embedder.count_tokens(texts)

    async def close(self) -> None:
        """See Embedder."""
        await self._embedder.close()
        self._notes.write()
