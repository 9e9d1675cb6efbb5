"""Noting whether a tenant's stored key still works, without a statement for every call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rag_assets.embedding.protocol import Answer, CallLimits, Embedder, Purpose
from rag_assets.errors import EmbedderRefused, ServiceUnavailable

_QUIET_SECONDS = 600.0


class NotingEmbedder:
    """An embedder that has it noted whether its provider takes the key.

    It is noted when connections are closed, so once in a run; and by one that answers many
    questions every ten minutes, or when it changes.

    Args:
        embedder: does the work.
        note: records whether the key worked just now.
    """

    def __init__(self, embedder: Embedder, note: Callable[[bool], None]) -> None:
        self._embedder = embedder
        self._note = note
        self._worked: bool | None = None
        self._noted: tuple[bool, float] | None = None

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
        try:
            answer = await self._embedder.embed(texts, purpose=purpose, deadline=deadline)
        except EmbedderRefused as error:
            # A model, a quota or an address that is refused says nothing of the key; nor does a
            # request that was never sent.
            if error.fault == "key" and error.requests:
                self._worked = False
            raise
        self._worked = True
        return answer

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See Embedder."""
        return self._embedder.count_tokens(texts)

    async def close(self) -> None:
        """See Embedder."""
        await self._embedder.close()
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
