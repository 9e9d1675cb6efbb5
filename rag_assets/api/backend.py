"""The backend of the endpoints: servers, limits, and threads for blocking work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import text

from rag_assets.api.admission import Admission, AdmittedRetriever, WorkerLimits
from rag_assets.api.authentication import Authenticator
from rag_assets.api.guard import FileReceiver, Guard
from rag_assets.api.identity import Identity
from rag_assets.api.rate_limits import SharedLimits
from rag_assets.api.restore_watch import RestoreWatch
from rag_assets.api.settings import ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.common.errors import ServiceUnavailable, TenantBusy
from rag_assets.models.providers.local import get_shipped_model
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.pipeline.uploads import UploadService
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.answerer import Answerer
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.accounts.credentials import TokenReader
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.index.store import VectorStore
from rag_assets.storage.lake.store import Lake

_T = TypeVar("_T")

_RUN_SECONDS = 30.0
_MAX_WRITES = 4
_WRITE_SECONDS = 5.0
_PROBE_SECONDS = 3.0


class Backend:
    """The servers behind the service's endpoints.

    Args:
        share: limits of this process; by default, the limits of the whole service.
        limits: counts shared with other workers; by default, counts of this process only.

    Raises:
        ConfigurationError: the key that verifies tokens is not usable.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: VectorStore,
        retriever: AsyncRetriever,
        settings: ServiceSettings,
        chat_models: ChatModels,
        *,
        blobs: BlobStore,
        share: WorkerLimits | None = None,
        limits: SharedLimits | None = None,
    ) -> None:
        share, limits = (
            share or WorkerLimits.from_settings(settings),
            limits or SharedLimits.from_settings(settings),
        )
        self.catalog = catalog
        searches = Admission(share.searches, settings.wait)
        self.retriever = AdmittedRetriever(retriever, searches)
        self._chat_models = chat_models
        self.answerer = Answerer(catalog, chat_models, self.retriever, get_shipped_model)
        self.reader = DocumentReader(catalog, store, retriever.policy)
        self.settings = settings
        self._tokens = TokenReader(catalog.database)
        authenticator = Authenticator(self._tokens, settings.jwt, retriever.masker.text)
        lake = Lake(retriever.embedders.settings.lake_url)
        self.restores = RestoreWatch(CatalogMarkKeeper(catalog, lake, blobs, lambda: store))
        self.guard = Guard(
            authenticator, limits, settings.proxies, require_trust=self.restores.require_accepted
        )
        self.rates, self.written = limits.rates, limits.written
        self.blobs, self.embedders = blobs, retriever.embedders
        self.uploads = UploadService(catalog, blobs, lambda: retriever.masker)
        self.file_receiver = FileReceiver(Admission(share.uploads, settings.wait))
        self._store, self.vectors = store, store.vectors
        self._reads = Admission(share.reads, settings.wait)
        self._threads = CapacityLimiter(share.reads.total)
        self._probes = CapacityLimiter(1)
        self._writes = CapacityLimiter(_MAX_WRITES)
        self._writers: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def close(self) -> None:
        """Write the pending search records, and close the connections of the event loop."""
        await self._chat_models.close()
        await self._tokens.close()
        await self.retriever.close()

    def build_reader_context(self, tenant_id: str) -> TenantContext:
        """Return a context for reading a tenant's data; writing would need the tenant's lock.

        Raises:
            UnknownTenant: the tenant does not exist.
        """
        record = self.catalog.tenants.get(tenant_id)
        lake = Lake(self.embedders.settings.lake_url)
        return TenantContext.open(record, self.embedders, self.catalog, lake, self._store)

    async def run(self, tenant_id: str, caller: str | None, work: Callable[[], _T]) -> _T:
        """Wait for a turn, run blocking work in a thread, and return its result.

        Raises:
            Overloaded, ClientGone: see Admission.
            ServiceUnavailable: the work took too long; its thread is abandoned.
        """
        async with self._reads.turn(tenant_id, caller or ""):
            result = run_sync(work, limiter=self._threads, abandon_on_cancel=True)
            return await _await_within(result, _RUN_SECONDS)

    async def write(self, tenant_id: str, work: Callable[[], _T]) -> _T:
        """Run work that changes a tenant in a thread, and return its result.

        Writes of one tenant run one at a time. Reads do not wait for writes.

        Raises:
            TenantBusy: other writes took too long.
        """
        writer = self._writers.setdefault(tenant_id, anyio.Lock())
        # Waiting here does not occupy a thread.
        try:
            with anyio.fail_after(_WRITE_SECONDS):
                await writer.acquire()
        except TimeoutError:
            raise TenantBusy(
                "other writes to this tenant are still running", hint="try again in a few seconds"
            ) from None
        try:
            return await _await_within(
                run_sync(work, limiter=self._writes, abandon_on_cancel=True), _RUN_SECONDS
            )
        finally:
            writer.release()

    async def require_ready(self) -> None:
        """Check that the servers answer, without waiting behind searches."""
        probe = run_sync(self._probe, limiter=self._probes, abandon_on_cancel=True)
        await _await_within(probe, _PROBE_SECONDS)

    def _probe(self) -> None:
        with self.catalog.database.begin() as connection:
            connection.execute(text("SELECT 1"))
        self._store.indexes.names()


async def _await_within(work: Awaitable[_T], seconds: float) -> _T:
    try:
        with anyio.fail_after(seconds):
            return await work
    except TimeoutError:
        raise ServiceUnavailable(
            "a server does not answer in time", hint="try again in a moment"
        ) from None


_bearer = HTTPBearer(auto_error=False, description="A JWT, or a service token.")


async def _get_backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _get_identity(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
) -> Identity:
    """Return the identity that the guard found and stored in the request."""
    identity: Identity = request.state.identity
    return identity


BackendDependency = Annotated[Backend, Depends(_get_backend)]
IdentityDependency = Annotated[Identity, Depends(_get_identity)]
