"""Detection of a catalog restored from a dump, where revoked tokens and grants are valid again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.common.errors import RagAssetsError, ServiceUnavailable
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.storage.catalog.journal.security_changes import SecurityState

CHECK_SECONDS: Final = 3.0
_STOP_SECONDS: Final = 5.0


class RestoreWatch:
    """A background comparison of the catalog with the journals in the stores.

    A check reads the journals only if the catalog's epoch has changed; otherwise even a restored
    catalog is complete. Requests use the result of the last check.
    """

    def __init__(self, keeper: CatalogMarkKeeper) -> None:
        self._keeper = keeper
        self._trusted: SecurityState | None = None
        self._refusal: RagAssetsError | None = None

    def require_accepted(self) -> None:
        """Require that the catalog was not restored, or that the operator has accepted it.

        Raises:
            RestorePending: a restored catalog was not accepted yet.
            ServiceUnavailable: the state is unknown because a server does not answer.
        """
        if self._refusal is not None:
            raise self._refusal

    def check(self) -> None:
        """Compare the catalog with the journals, and keep the result for require_accepted()."""
        try:
            state = self._keeper.security_state()
            if state == self._trusted:
                return
            self._refusal = self._keeper.find_pending_restore()
        except ServiceUnavailable as error:
            # Without Postgres, no token can be accepted anyway.
            if self._trusted is None and self._refusal is None:
                self._refusal = error
            return
        except Exception as error:
            # This happens, for example, while a dump is being restored and some tables are missing.
            # The message may contain an address, so only the type is shown.
            self._trusted = None
            self._refusal = ServiceUnavailable(
                f"the epoch of the catalog cannot be read: {type(error).__name__}",
                hint="wait until a dump that is being restored is complete",
            )
            return
        self._trusted = state if self._refusal is None else None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Check before the first request, and then every CHECK_SECONDS, until the context ends."""
        await run_sync(self.check)
        stopping = asyncio.Event()
        watch = asyncio.create_task(self._watch(stopping))
        try:
            yield
        finally:
            # A cancelled check would continue in its thread, and never close its connections.
            stopping.set()
            await asyncio.wait({watch}, timeout=_STOP_SECONDS)

    async def _watch(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), CHECK_SECONDS)
                return
            await run_sync(self.check)
