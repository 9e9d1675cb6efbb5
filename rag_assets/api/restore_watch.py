"""Watches for a restored catalog, in which revoked tokens and grants are valid again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.common.errors import RagAssetsError, ServiceUnavailable
from rag_assets.pipeline.mark_keeper import MarkKeeper
from rag_assets.storage.catalog.security_changes import SecurityState

CHECK_SECONDS: Final = 3.0
_STOP_SECONDS: Final = 5.0


class RestoreWatch:
    """Compares the catalog with the journals in the stores, in the background.

    A check asks the catalog for its epoch, and reads the journals only if that has changed: a
    restored catalog has another one, or lacks nothing. Requests read the last result.

    Args:
        keeper: compares.
    """

    def __init__(self, keeper: MarkKeeper) -> None:
        self._keeper = keeper
        self._trusted: SecurityState | None = None
        self._refusal: RagAssetsError | None = None

    def require_accepted(self) -> None:
        """Require that no restored catalog waits to be accepted.

        Raises:
            RestorePending: one does.
            ServiceUnavailable: that is not known yet, because no server answers.
        """
        if self._refusal is not None:
            raise self._refusal

    def check(self) -> None:
        """Compare once; blocks."""
        try:
            state = self._keeper.security_state()
            if state == self._trusted:
                return
            self._refusal = self._keeper.pending_restore()
        except ServiceUnavailable as error:
            # Without Postgres no token is accepted either.
            if self._trusted is None and self._refusal is None:
                self._refusal = error
            return
        except Exception as error:
            # As while a dump is being restored, when some tables are missing.
            self._trusted, self._refusal = None, _unreadable(error)
            return
        self._trusted = state if self._refusal is None else None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Check before the first request, and then every few seconds."""
        await run_sync(self.check)
        stopping = asyncio.Event()
        watch = asyncio.create_task(self._watch(stopping))
        try:
            yield
        finally:
            # A check in its thread would go on after a cancellation, with connections that nobody
            # closes.
            stopping.set()
            await asyncio.wait({watch}, timeout=_STOP_SECONDS)

    async def _watch(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), CHECK_SECONDS)
                return
            await run_sync(self.check)


def _unreadable(error: Exception) -> ServiceUnavailable:
    # Its message may hold an address, so only its kind is named.
    return ServiceUnavailable(
        f"the epoch of the catalog cannot be read: {type(error).__name__}",
        hint="wait until a dump that is being restored is complete",
    )
