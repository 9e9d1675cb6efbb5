"""The retriever for programs without an event loop."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from anyio.from_thread import start_blocking_portal

from rag_assets.billing.embedders import Embedders
from rag_assets.search.access import AccessPolicy
from rag_assets.search.model import SearchAnswer, SearchRequest
from rag_assets.search.search import AsyncRetriever
from rag_assets.search.steps.plan import StepLists
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.index.store import VectorStore

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal


class Retriever:
    """Searches like AsyncRetriever, but can be called from any thread.

    Searches from several threads run concurrently in one event loop. The loop runs in its own
    thread from the first search until close.

    Args:
        catalog, store, embedders, policy, steps: see AsyncRetriever.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: VectorStore,
        embedders: Embedders,
        *,
        policy: AccessPolicy | None = None,
        steps: StepLists | None = None,
    ) -> None:
        self._retriever = AsyncRetriever(catalog, store, embedders, policy=policy, steps=steps)
        self._lock = threading.Lock()
        self._running = ExitStack()
        self._portal: BlockingPortal | None = None

    def search(
        self, tenant_id: str, request: SearchRequest, *, generation: int | None = None
    ) -> SearchAnswer:
        """Search one tenant's knowledge; see AsyncRetriever.search."""
        search = partial(self._retriever.search, generation=generation)
        return self._loop().call(search, tenant_id, request)

    def close(self) -> None:
        """Close connections, after all searches have ended and their costs are recorded."""
        with self._lock:
            portal, self._portal = self._portal, None
        if portal is not None:
            portal.call(self._retriever.close)
            self._running.close()

    def _loop(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                self._portal = self._running.enter_context(start_blocking_portal(name="retriever"))
            return self._portal
