"""Retrievers: the single implementation of searches behind every interface."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from anyio.from_thread import start_blocking_portal
from anyio.to_thread import run_sync

from rag_assets.billing.embedders import Embedders, Rerankers, require_opt_in
from rag_assets.billing.spending import Meter
from rag_assets.common.errors import ServiceUnavailable, UnknownTenant
from rag_assets.privacy.masker import get_masker
from rag_assets.search.access import AccessPolicy, FlatScopes, require_query_role
from rag_assets.search.journal import SearchJournal
from rag_assets.search.model import Caller, Hit, SearchAnswer, SearchRequest
from rag_assets.search.plan import BuildSearches, StepLists, load_installed_steps
from rag_assets.search.progress import NO_LIMITS, Patience, ResolvedSearch, Timings, limit_time
from rag_assets.search.search_answer import (
    Origins,
    build_answer,
    describes_origins,
    find_unmatched_filters,
    require_known_source_types,
)
from rag_assets.search.services import SearchServices, find_question_reader
from rag_assets.search.tenant_models import CachingQuestionEmbedder, QuestionEmbedder, RerankerPool
from rag_assets.storage.catalog.builds.search_state import SearchStateReader
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.store import VectorStore
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

_MAX_TENANTS = 1_024
_MAX_SCANNED_CHARACTERS = 2_000
"""Maximum characters of a question that is scanned in the event loop; longer questions go to a
thread."""


class AsyncRetriever:
    """Searches tenants' indexes, in one event loop and over persistent connections.

    Args:
        steps: the steps of searches, by profile; by default the steps of the installed systems.
        vectors: provides the vectors of questions; by default each question is embedded when it is
            asked.
        is_journaled: whether searches are recorded as events.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: VectorStore,
        embedders: Embedders,
        *,
        policy: AccessPolicy | None = None,
        steps: StepLists | None = None,
        vectors: QuestionEmbedder | None = None,
        is_journaled: bool = True,
    ) -> None:
        self.embedders = embedders
        self.policy = policy or FlatScopes()
        self._meter = Meter(catalog)
        self.journal = SearchJournal(catalog, is_recorded=is_journaled)
        self.masker = get_masker(embedders.settings.local)
        self._services = SearchServices(
            catalog=catalog,
            reader=SearchStateReader(catalog.database),
            searcher=store.searcher(),
            vectors=vectors or CachingQuestionEmbedder(embedders, self._meter),
            rerankers=RerankerPool(Rerankers(catalog, embedders.settings)),
            policy=self.policy,
        )
        self._builds = BuildSearches(self._services, steps or load_installed_steps())
        # Keep references: the event loop itself keeps none to its tasks.
        self._openings: set[asyncio.Task[Origins]] = set()
        # Equal text means equal configuration, so each is validated only once.
        self._tenant_of = lru_cache(_MAX_TENANTS)(
            lambda config: Tenant.from_config(json.loads(config))
        )

    async def search(
        self,
        tenant_id: str,
        request: SearchRequest,
        *,
        generation: int | None = None,
        patience: Patience = NO_LIMITS,
    ) -> SearchAnswer:
        """Search one tenant's knowledge.

        Args:
            generation: the build to search, complete or not; by default the serving build.

        Raises:
            RoleRefused: the caller's role may not query this tenant.
            NotOptedIn: the caller's organization has not opted in.
            InvalidRequest: the request names too many pages, or an unknown source type.
            ProviderError: the question could not be embedded.
        """
        timings = Timings()
        principals = self.policy.principals(request.caller)
        with timings.measure("catalog"):
            tenant = await self._builds.read_state(tenant_id, principals, generation)
        config = self._tenant_of(tenant.config)
        require_query_role(config.profile, request.caller)
        if tenant.state != "ACTIVE":
            return SearchAnswer(disabled=True)
        require_opt_in(config.profile, config.organization, has_opted_in=tenant.has_opted_in)
        require_known_source_types(config, request)
        pages = await self._builds.list_pages(tenant.ref, request, principals)
        masked = await self.mask_question(request.query)
        search = ResolvedSearch.resolve(config, request, masked, tenant.serving)
        if tenant.serving is None:
            return SearchAnswer(mode=search.mode, needs_clarification=True)
        opening = self._start_opening_origins(config)
        journaled = self.journal.start_search(tenant.ref, search.request, search.mode, search.limit)
        try:
            progress = self._builds.build_progress(
                tenant, tenant.serving, search, principals, timings
            )
            progress = replace(progress, patience=patience, pages=pages)
            with limit_time(patience.search_seconds, _build_timeout_error):
                progress = await self._builds.run(progress, names_build=generation is not None)
                warnings = await find_unmatched_filters(self._services, progress)
            answer = build_answer(progress)
            answer = replace(answer, warnings=(*answer.warnings, *warnings))
            if (reader := find_question_reader(config)) is not None:
                answer = await reader.complete(self._services, progress, answer)
        except BaseException as error:
            journaled.record_failure(error)
            raise
        if answer.hits and opening is not None:
            with timings.measure("origin"):
                origins = await opening
                hits = await run_sync(origins.add_origins, answer.hits)
                answer = replace(answer, hits=hits)
        if any(hit.page_uuid is not None for hit in answer.hits):
            with timings.measure("catalog"):
                titled = partial(self._add_breadcrumbs, tenant.ref.id, principals, answer.hits)
                answer = replace(answer, hits=await run_sync(titled))
        journaled.record_result(answer, progress)
        if progress.floor is not None:
            self.journal.record_floor(progress)
        if answer.clarification is not None:
            journaled.record_clarification(answer.clarification)
        return answer

    async def mask_question(self, question: str) -> str:
        """Return a question with credentials masked; it may then be stored, logged and sent."""
        if self.masker.loaded and len(question) <= _MAX_SCANNED_CHARACTERS:
            return self.masker.text(question)
        return await run_sync(self.masker.text, question)

    async def load(self) -> None:
        """Load the credential rules, so that the first question does not wait for them."""
        await run_sync(self.masker.load)

    async def can_still_read(self, ref: TenantRef, caller: Caller, answer: SearchAnswer) -> bool:
        """Return whether the caller may still read the document of every hit in an answer.

        A document that was replaced since the search counts as readable, because its former version
        was valid during the search.

        Args:
            ref: the tenant that answered; another tenant may have the same id by now.
        """
        if answer.generation is None:
            return not answer.hits
        reader, principals = self._services.reader, self.policy.principals(caller)
        try:
            tenant = await reader.search_state(ref.id, principals, max_scopes=0)
        except UnknownTenant:
            return False
        if tenant.ref != ref or tenant.state != "ACTIVE":
            return False
        documents = {hit.document_id for hit in answer.hits}
        readable = await reader.readable(ref.id, answer.generation, [*documents], principals)
        return documents <= readable.keys() and all(
            self.policy.permits(caller, version) for version in readable.values()
        )

    async def close(self) -> None:
        """Close connections, after all searches have ended and their costs are recorded."""
        await self._services.completeness.close()
        await self._services.vectors.close()
        await self._services.rerankers.close()
        await self._services.searcher.close()
        await self._services.reader.close()
        await run_sync(self._meter.close)
        await run_sync(self.journal.close)

    def _add_breadcrumbs(
        self, tenant_id: str, principals: Sequence[str], hits: Sequence[Hit]
    ) -> tuple[Hit, ...]:
        """Add to each hit the titles of those pages above it that the caller may read.

        A comment has no title, so it gets the title of its page.
        """
        uuids = {hit.page_uuid for hit in hits if hit.page_uuid is not None}
        paths = self._services.catalog.pages.find_title_paths(tenant_id, uuids, principals)
        return tuple(
            hit if hit.page_uuid is None else _add_breadcrumb(hit, paths.get(hit.page_uuid, ()))
            for hit in hits
        )

    def _start_opening_origins(self, tenant: Tenant) -> asyncio.Task[Origins] | None:
        """Start to open the sources that describe origins of hits; None without one."""
        if not describes_origins(tenant):
            return None
        opening = asyncio.create_task(
            run_sync(partial(Origins.open, tenant, self.embedders.settings))
        )
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        return opening


def _add_breadcrumb(hit: Hit, path: Sequence[tuple[str, str]]) -> Hit:
    is_page = hit.source_type in {"page", "block"}
    above = tuple(title for uuid, title in path if not (is_page and uuid == hit.page_uuid))
    own = next((title for uuid, title in path if uuid == hit.page_uuid), None)
    # A hit without a title may have its source id as title.
    is_untitled = hit.title is None or (not is_page and hit.title == hit.source_id)
    return replace(hit, breadcrumb=above, title=own or hit.title if is_untitled else hit.title)


def _build_timeout_error(seconds: float) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the search was not finished within {seconds:g} seconds",
        hint="try again; if this continues, check that Elasticsearch answers",
    )


class Retriever:
    """Searches like AsyncRetriever, but can be called from any thread.

    Searches from several threads run concurrently in one event loop. The loop runs in its own
    thread from the first search until close.
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
        return self._get_portal().call(search, tenant_id, request)

    def close(self) -> None:
        """Close connections, after all searches have ended and their costs are recorded."""
        with self._lock:
            portal, self._portal = self._portal, None
        if portal is not None:
            portal.call(self._retriever.close)
            self._running.close()

    def _get_portal(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                self._portal = self._running.enter_context(start_blocking_portal(name="retriever"))
            return self._portal
