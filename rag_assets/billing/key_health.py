"""Record whether providers still accept tenants' stored keys, at most every ten minutes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Unpack

from rag_assets.common.errors import ChatRefused, ProviderRefused, ServiceUnavailable
from rag_assets.models.chat import ChatModel, Completion
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.protocol import Answer, Embedder, EmbedOptions, WrappedEmbedder
from rag_assets.models.embedding.remote import BatchApi, BatchResult, BatchStatus

_REPORT_SECONDS = 600.0


class _KeyHealth:
    """Remembers whether the last call with a key worked, and records that when it is due."""

    def __init__(self, record: Callable[[bool], None]) -> None:
        self._record = record
        self._worked: bool | None = None
        self._recorded: tuple[bool, float] | None = None

    @contextmanager
    def observe(self) -> Iterator[None]:
        """Observe whether the provider accepts the key of the call in this `with` block."""
        try:
            yield
        except (ProviderRefused, ChatRefused) as error:
            # A refused model, quota or address says nothing about the key; nor does a request that
            # was never sent.
            if error.fault == "key" and error.requests:
                self._worked = False
            raise
        self._worked = True

    def report(self) -> None:
        """Record the last observation if it has changed, or was recorded ten minutes ago."""
        worked, now = self._worked, time.monotonic()
        if worked is None or not self._is_due(worked, now):
            return
        # A search must not fail because this cannot be recorded.
        with suppress(ServiceUnavailable):
            self._record(worked)
            self._recorded = (worked, now)

    def _is_due(self, worked: bool, now: float) -> bool:
        if self._recorded is None:
            return True
        before, at = self._recorded
        return worked != before or now - at > _REPORT_SECONDS


class KeyReportingChat:
    """A chat model that records whether its provider accepts the key; see _KeyHealth."""

    def __init__(self, model: ChatModel, record: Callable[[bool], None]) -> None:
        self._model = model
        self._health = _KeyHealth(record)

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """See ChatModel."""
        try:
            with self._health.observe():
                return await self._model.complete(
                    instructions, prompt, max_tokens=max_tokens, seconds=seconds
                )
        finally:
            await asyncio.to_thread(self._health.report)

    async def close(self) -> None:
        """See ChatModel."""
        await self._model.close()


class KeyReportingBatchApi:
    """A batch API that records, when it is closed, whether its provider accepts the key."""

    def __init__(self, api: BatchApi, record: Callable[[bool], None]) -> None:
        self._api = api
        self.dimensions = api.dimensions
        self._health = _KeyHealth(record)

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """See BatchApi."""
        with self._health.observe():
            return await self._api.submit(items, tag)

    async def find(self, tag: str, since: datetime) -> str | None:
        """See BatchApi."""
        with self._health.observe():
            return await self._api.find(tag, since)

    async def status(self, batch_id: str) -> BatchStatus:
        """See BatchApi."""
        with self._health.observe():
            return await self._api.status(batch_id)

    async def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """See BatchApi."""
        with self._health.observe():
            async for result in self._api.results(batch_id):
                yield result

    async def close(self) -> None:
        """See BatchApi."""
        await self._api.close()
        self._health.report()


class KeyReportingEmbedder(WrappedEmbedder):
    """An embedder that records, when it is closed, whether its provider accepts the key."""

    def __init__(self, embedder: Embedder, record: Callable[[bool], None]) -> None:
        super().__init__(embedder)
        self._health = _KeyHealth(record)

    async def embed(self, texts: Sequence[str], **options: Unpack[EmbedOptions]) -> Answer:
        """See Embedder."""
        with self._health.observe():
            return await self._embedder.embed(texts, **options)

    async def close(self) -> None:
        """See Embedder."""
        await self._embedder.close()
        self._health.report()
