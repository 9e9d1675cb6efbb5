"""Searches of a tenant's serving generation: the one core behind every interface."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial

from anyio.to_thread import run_sync

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.rerankers import Rerankers
from rag_assets.billing.switched_off import guidelines_off
from rag_assets.billing.usage_meter import Meter
from rag_assets.common.errors import (
    IndexInconsistent,
    InvalidRequest,
    RerankFault,
    ServiceUnavailable,
    UnknownTenant,
)
from rag_assets.privacy.masker import Masker, masker_of
from rag_assets.retrieval.access import MANY_SCOPES, AccessPolicy, FlatScopes, moved_pages
from rag_assets.retrieval.clarification import clarification_of
from rag_assets.retrieval.hits import scores_of
from rag_assets.retrieval.journal import SearchJournal
from rag_assets.retrieval.model import (
    MAX_PAGES,
    Caller,
    Clarification,
    Debug,
    SearchAnswer,
    SearchRequest,
    SearchStrategy,
    SkippableStep,
)
from rag_assets.retrieval.origins import Origins
from rag_assets.retrieval.patience import NO_LIMITS, Patience, limited
from rag_assets.retrieval.question_vectors import QuestionVectors, VectorsOfQuestions
from rag_assets.retrieval.reranking import RerankerPool
from rag_assets.retrieval.resolved_search import ResolvedSearch
from rag_assets.retrieval.roles import require_asker
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.plan import SearchPlan, StepLists, installed_steps
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.timings import Timings
from rag_assets.retrieval.walk import Walker
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.relation_state import RelationMoment
from rag_assets.storage.catalog.search_state import SearchState, SearchStateReader
from rag_assets.storage.index.model import NONE_MOVED, Owner
from rag_assets.storage.index.store import VectorStore
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode
from rag_assets.tenants.profiles import profile_of

_MAX_TENANTS = 1_024
_SHOWN_PATHS = 50
_WALKED: Mapping[SearchMode, SearchStrategy] = {
    "knn": "walk+knn",
    "text": "walk+text",
    "hybrid": "walk+hybrid",
}
_SCANNED_AT_ONCE = 2_000
"""Characters of a question; a longer one is scanned in a thread, beside the event loop."""


class AsyncRetriever:
    """Searches tenants' indexes, in one event loop and over connections that are kept.

    Args:
        catalog: has the serving generation, the current versions of documents, and their readers.
        store: where entries are searched.
        embedders: makes the embedder that built a generation.
        policy: what callers may read.
        steps: the steps of searches, by profile; those of the installed systems by default.
        vectors: of questions; by default each is embedded when it is asked.
        journaled: whether searches are recorded as events.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: VectorStore,
        embedders: Embedders,
        *,
        policy: AccessPolicy | None = None,
        steps: StepLists | None = None,
        vectors: VectorsOfQuestions | None = None,
        journaled: bool = True,
    ) -> None:
        self.embedders = embedders
        self._meter = Meter(catalog)
        self._journal = SearchJournal(catalog, recorded=journaled)
        self._masker = masker_of(embedders.settings.local)
        self._services = SearchServices(
            catalog=catalog,
            reader=SearchStateReader(catalog.database),
            searcher=store.searcher(),
            vectors=vectors or QuestionVectors(embedders, self._meter),
            rerankers=RerankerPool(Rerankers(catalog, embedders.settings)),
            policy=policy or FlatScopes(),
        )
        self._steps = steps or installed_steps()
        self._plans: dict[str, SearchPlan] = {}
        # The event loop itself keeps no task.
        self._openings: set[asyncio.Task[Origins]] = set()
        # Equal text is equal configuration, which is validated once.
        self._tenant_of = lru_cache(_MAX_TENANTS)(_tenant_of)

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
            tenant_id: the tenant.
            request: the question, and who asks it.
            generation: the build that answers, complete or not; the serving one by default.
            patience: how long it may take.

        Raises:
            UnknownTenant: there is none of that id.
            RoleRefused: the caller's role may not ask this tenant.
            GuidelinesOff: its organization has its guidelines switched off.
            UnknownGeneration: the tenant has no such build.
            InvalidRequest: it is narrowed to too many pages.
            NoReranker: the request wants reranking, and the tenant has no reranker.
            ProviderError: the question could not be embedded.
            IndexInconsistent: the tenant's index was lost.
            ServiceUnavailable: a server does not answer.
        """
        timings = Timings()
        principals = self.policy.principals(request.caller)
        with timings.part("catalog"):
            tenant = await self._state(tenant_id, principals, generation)
        config = self._tenant_of(tenant.config)
        require_asker(config.profile, request.caller)
        if tenant.state != "ACTIVE":
            return SearchAnswer(disabled=True)
        if profile_of(config.profile).follows_guidelines and not tenant.rag_guidelines:
            raise guidelines_off(config.organization)
        pages = await self._pages(tenant.ref, request, principals)
        masked = await self.masked(request.query)
        search = ResolvedSearch.of(config, request, masked, tenant.serving)
        if tenant.serving is None:
            return SearchAnswer(mode=search.mode, needs_clarification=True)
        opening = self._opening(config)
        journaled = self._journal.started(tenant.ref, search.request, search.mode, search.limit)
        try:
            progress = self._begun(tenant, tenant.serving, search, principals, timings)
            progress = replace(progress, patience=patience, pages=pages)
            with limited(patience.whole, _late):
                progress = await self._run(progress, named=generation is not None)
            answer = _answer_of(progress)
            if answer.needs_clarification and config.reads_code:
                answer = replace(answer, clarification=await self._clarification(progress))
        except BaseException as error:
            journaled.failed(error)
            raise
        if answer.hits and opening is not None:
            with timings.part("origin"):
                origins = await opening
                hits = await run_sync(origins.told, answer.hits)
                answer = replace(answer, hits=hits)
        journaled.completed(answer, progress)
        if answer.clarification is not None:
            journaled.paused(answer.clarification)
        return answer

    async def masked(self, question: str) -> str:
        """A question, credentials in it masked, as it may be stored, logged and sent."""
        if self._masker.loaded and len(question) <= _SCANNED_AT_ONCE:
            return self._masker.text(question)
        return await run_sync(self._masker.text, question)

    @property
    def masker(self) -> Masker:
        """What masks questions."""
        return self._masker

    @property
    def journal(self) -> SearchJournal:
        """Where events of searches are written."""
        return self._journal

    @property
    def policy(self) -> AccessPolicy:
        """What callers may read."""
        return self._services.policy

    async def load(self) -> None:
        """Load what the first question would otherwise wait for."""
        await run_sync(self._masker.load)

    async def still_readable(self, ref: TenantRef, caller: Caller, answer: SearchAnswer) -> bool:
        """Whether the caller may read by now every document that an answer's hits are from.

        One that was replaced since then counts as read: it was so when the search was made.

        Args:
            ref: the tenant that answered: of the same id, another may be there by now.
            caller: who made the search.
            answer: its result.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        if answer.generation is None:
            return not answer.hits
        reader, principals = self._services.reader, self.policy.principals(caller)
        try:
            tenant = await reader.search_state(ref.id, principals, most=0)
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
        """Close connections, and wait until searches and their cost are recorded."""
        await self._services.vectors.close()
        await self._services.rerankers.close()
        await self._services.searcher.close()
        await self._services.reader.close()
        await run_sync(self._meter.close)
        await run_sync(self._journal.close)

    def _opening(self, tenant: Tenant) -> asyncio.Task[Origins] | None:
        """Opens the repositories that hits may come from, while they are searched."""
        if not tenant.reads_code:
            return None
        opening = asyncio.create_task(
            run_sync(partial(Origins.of, tenant, self.embedders.settings))
        )
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        return opening

    async def _clarification(self, progress: SearchProgress) -> Clarification:
        walker = Walker(self._services.catalog, self.policy)
        view = walker.view(progress.build, progress.caller, progress.moment)
        return await run_sync(partial(clarification_of, view, progress.search.request.query))

    async def _state(
        self, tenant_id: str, principals: tuple[str, ...], generation: int | None
    ) -> SearchState:
        reader = self._services.reader
        if generation is None:
            # A policy of its own narrows the scopes, of which it then has to know all.
            most = MANY_SCOPES if type(self.policy) is FlatScopes else None
            return await reader.search_state(tenant_id, principals, most=most)
        return await reader.state_of_build(tenant_id, principals, generation)

    async def _pages(
        self, ref: TenantRef, request: SearchRequest, principals: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        """The pages that a request is narrowed to; None: any."""
        named = request.filters.within
        if not named:
            return None
        reader = self._services.reader
        found = await reader.pages_within(ref.id, named, principals, most=MAX_PAGES)
        if len(found) > MAX_PAGES:
            raise InvalidRequest(
                f"filters.within: more than {MAX_PAGES:,} pages", hint="name pages further below"
            )
        return tuple(found)

    async def _run(self, progress: SearchProgress, *, named: bool) -> SearchProgress:
        """Search a build; if it was discarded meanwhile, search the one that answers by now.

        Args:
            progress: that has begun.
            named: whether the build was asked for by its number.
        """
        lost: IndexInconsistent | None = None
        try:
            found = await self._with_vectors_settled(await self._searched(progress), named=named)
        except IndexInconsistent as error:
            found, lost = progress, error
        if named or found.hits:
            return found
        tenant = await self._state(progress.ref.id, progress.principals, None)
        serving, is_same = tenant.serving, (tenant.ref, tenant.state) == (progress.ref, "ACTIVE")
        if is_same and serving is not None and serving.number != progress.serving.number:
            search = progress.search.in_build(serving)
            begun = self._begun(tenant, serving, search, progress.principals, progress.timings)
            begun = replace(begun, patience=progress.patience, pages=progress.pages)
            return await self._run(begun, named=False)
        if lost is not None:
            raise lost
        return found

    async def _with_vectors_settled(self, found: SearchProgress, *, named: bool) -> SearchProgress:
        """Tell of vectors that were away only while the build still has them searched beside it.

        They may have been taken back to the index, which answered, after the search had begun.
        """
        if not found.vectors_away:
            return found
        number = found.serving.number
        tenant = await self._state(found.ref.id, found.principals, number if named else None)
        build = tenant.serving
        if build is None or build.number != number or build.vectors_beside == "answering":
            return found
        return replace(found, vectors_away=False)

    async def _searched(self, progress: SearchProgress) -> SearchProgress:
        plan = self._plan(progress.search.tenant.profile)
        # What an added step does with candidates is not known: it has all of them.
        return await plan.run(replace(progress, whole=not plan.is_built_in))

    def _begun(
        self,
        tenant: SearchState,
        serving: Generation,
        search: ResolvedSearch,
        principals: tuple[str, ...],
        timings: Timings,
    ) -> SearchProgress:
        ref, caller = tenant.ref, search.request.caller
        scopes = None if tenant.are_some else self.policy.scopes(caller, tenant.scopes)
        return SearchProgress(
            search=search,
            ref=ref,
            serving=serving,
            owner=Owner(
                *(ref.id, ref.incarnation, serving.number, serving.digest_key),
                vectors_beside=serving.vectors_beside == "answering",
            ),
            caller=caller,
            principals=principals,
            scopes=scopes,
            moved=NONE_MOVED if scopes is None else moved_pages(tenant.moved, scopes),
            moment=RelationMoment(tenant.relations, tenant.scopes),
            timings=timings,
        )

    def _plan(self, profile: str) -> SearchPlan:
        plan = self._plans.get(profile)
        if plan is None:
            plan = self._plans[profile] = self._steps.plan(profile, self._services)
        return plan


def _late(seconds: float) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the search was not finished within {seconds:g} seconds",
        hint="see that Elasticsearch answers",
    )


def _tenant_of(config: str) -> Tenant:
    return Tenant.from_config(json.loads(config))


def _answer_of(progress: SearchProgress) -> SearchAnswer:
    hits, mode = tuple(progress.hits or ()), progress.search.mode
    fault = progress.reranking.fault if progress.reranking else None
    degraded: dict[SkippableStep, RerankFault] = {"rerank": fault} if fault else {}
    if progress.vectors_away:
        degraded["pgvector"] = "unavailable"
    cosines = [progress.cosines[id_] for id_ in progress.confirmed.by_id if id_ in progress.cosines]
    return SearchAnswer(
        hits=hits,
        needs_clarification=not progress.passages,
        omitted=len(progress.answered) - len(hits),
        generation=progress.serving.number,
        embedder=progress.serving.embedder_id,
        mode=mode,
        degraded=tuple(degraded),
        debug=Debug(
            _strategy(progress),
            progress.timings.milliseconds,
            # Not those recalled: their number would disclose passages that may not be read.
            len(progress.confirmed.by_id),
            scores_of(progress),
            threshold=progress.search.min_cosine,
            nearest=round(max(cosines), 6) if cosines else None,
            degraded=degraded,
            paths=progress.walked.paths[:_SHOWN_PATHS] if progress.walked else (),
        ),
    )


def _strategy(progress: SearchProgress) -> SearchStrategy:
    mode, walked = progress.search.mode, progress.walked
    if walked is None:
        return mode
    return "walk" if walked.alone else _WALKED[mode]
