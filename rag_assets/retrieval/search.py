"""Searching a tenant's serving generation: the one core behind every door."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from anyio.to_thread import run_sync

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.rerankers import Rerankers
from rag_assets.billing.usage_meter import Meter
from rag_assets.common.errors import RerankFault, UnknownTenant
from rag_assets.privacy.masker import Masker, masker_of
from rag_assets.retrieval.altered_entries import AlteredEntries
from rag_assets.retrieval.budget import within_budget
from rag_assets.retrieval.candidates import CandidateSearch
from rag_assets.retrieval.hits import hit_of
from rag_assets.retrieval.journal import SearchJournal
from rag_assets.retrieval.model import Caller, Debug, Hit, SearchAnswer, SearchRequest, Step
from rag_assets.retrieval.question_vectors import QuestionVectors
from rag_assets.retrieval.ranking import Ranked, ranked
from rag_assets.retrieval.reranking import SecondStage
from rag_assets.retrieval.resolved_search import Asked
from rag_assets.retrieval.timings import Clock
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.search_state import SearchState, SearchStateReader
from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.store import VectorStore
from rag_assets.tenants.model import Tenant

_MOST_TENANTS = 1_024
_SCANNED_AT_ONCE = 2_000
"""Characters of a question; a longer one is scanned in a thread, beside the event loop."""


class AsyncRetriever:
    """Answers questions from the indexes, in one event loop and over connections that are kept.

    Args:
        catalog: says which generation answers, which version of a document counts, who reads it.
        store: where entries are searched.
        embedders: makes the embedder that built a generation.
    """

    def __init__(self, catalog: Catalog, store: VectorStore, embedders: Embedders) -> None:
        self._meter = Meter(catalog)
        self._journal = SearchJournal(catalog)
        self._masker = masker_of(embedders.settings.local)
        self._vectors = QuestionVectors(embedders, self._meter)
        self._second_stage = SecondStage(Rerankers(catalog, embedders.settings))
        self._reader = SearchStateReader(catalog.database)
        self._searcher = store.searcher()
        self._altered = AlteredEntries()
        # Equal text is equal configuration, which is validated once.
        self._tenant_of = lru_cache(_MOST_TENANTS)(_tenant_of)

    async def search(self, tenant_id: str, request: SearchRequest) -> SearchAnswer:
        """Search one tenant's knowledge.

        Raises:
            UnknownTenant: there is none of that id.
            NoReranker: the request says to rerank, and the tenant has nothing to do so with.
            EmbeddingError: the question could not be embedded.
            IndexInconsistent: the tenant's index was lost.
            ServiceUnavailable: a server does not answer.
        """
        clock = Clock()
        with clock.step("catalog"):
            standing = await self._reader.standing(tenant_id, request.caller.principals)
        if standing.state != "ACTIVE":
            return SearchAnswer(disabled=True)
        masked = await self.masked(request.query)
        asked = Asked.of(self._tenant_of(standing.config), request, masked, standing.serving)
        if standing.serving is None:
            return SearchAnswer(mode=asked.mode, needs_clarification=True)
        noted = self._journal.started(standing.ref, asked.request, asked.mode, asked.limit)
        try:
            search = await self._candidates(standing, standing.serving, asked, clock)
            found = await self._ranked(standing, search, asked, clock)
            answer = _answer_of(search, found, clock)
        except BaseException as error:
            noted.failed(error)
            raise
        noted.completed(answer, found)
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

    async def load(self) -> None:
        """Load what the first question would otherwise wait for."""
        await run_sync(self._masker.load)

    async def still_readable(self, ref: TenantRef, caller: Caller, answer: SearchAnswer) -> bool:
        """Whether the caller may read by now every document that an answer's hits are from.

        One that was replaced since then counts as read: it was so when it was asked for.

        Args:
            ref: the tenant that answered: of the same id, another may be there by now.
            caller: who asked.
            answer: what they were answered.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        if answer.generation is None:
            return not answer.hits
        try:
            standing = await self._reader.standing(ref.id, caller.principals)
        except UnknownTenant:
            return False
        if standing.ref != ref or standing.state != "ACTIVE":
            return False
        documents = {hit.document_id for hit in answer.hits}
        readable = await self._reader.readable(
            ref.id, answer.generation, [*documents], caller.principals
        )
        return documents <= readable.keys()

    async def close(self) -> None:
        """Let go of connections, and wait until what was asked, and its cost, is recorded."""
        await self._vectors.close()
        await self._second_stage.close()
        await self._searcher.close()
        await self._reader.close()
        await run_sync(self._meter.close)
        await run_sync(self._journal.close)

    async def _candidates(
        self, standing: SearchState, serving: Generation, asked: Asked, clock: Clock
    ) -> CandidateSearch:
        vector = None
        if asked.needs_vector:
            with clock.step("embed"):
                vector = await self._vectors.of(standing.ref, asked.tenant, serving, asked.question)
        return CandidateSearch(
            reader=self._reader,
            searcher=self._searcher,
            serving=serving,
            owner=Owner(
                standing.ref.id, standing.ref.incarnation, serving.number, serving.digest_key
            ),
            scopes=standing.scopes,
            request=asked.request,
            mode=asked.mode,
            limit=asked.depth,
            vector=vector,
            min_cosine=asked.min_cosine,
            altered=self._altered,
        )

    async def _ranked(
        self, standing: SearchState, search: CandidateSearch, asked: Asked, clock: Clock
    ) -> Ranked:
        found = await ranked(search, clock)
        if asked.rerank is not None and found.order:
            with clock.step("rerank"):
                reread = await self._second_stage.read(
                    standing.ref, asked.rerank, asked.question, found.order
                )
            # Reading takes a while, and what was revoked meanwhile must not be shown.
            with clock.step("verify"):
                found = found.after(reread, search, await search.still(found.found))
        return found.limited(asked.limit)


def _tenant_of(config: str) -> Tenant:
    return Tenant.from_config(json.loads(config))


def _answer_of(search: CandidateSearch, found: Ranked, clock: Clock) -> SearchAnswer:
    with clock.step("pack"):
        hits = _packed(search.request, found)
    fault = found.reread.fault if found.reread else None
    degraded: Mapping[Step, RerankFault] = {"rerank": fault} if fault else {}
    return SearchAnswer(
        hits=tuple(hits),
        needs_clarification=not found.order,
        omitted=len(found.order) - len(hits),
        generation=search.serving.number,
        mode=search.mode,
        degraded=tuple(degraded),
        debug=Debug(
            search.mode,
            clock.milliseconds,
            # Not what was fetched: that would tell what is in passages that may not be read.
            len(found.found.by_id),
            found.scores(search, hits),
            degraded,
        ),
    )


def _packed(request: SearchRequest, found: Ranked) -> list[Hit]:
    versions, cosines = found.found.versions, found.cosines
    hits = [
        hit_of(
            number,
            passage,
            cosines.get(passage.id),
            versions[passage.candidate.document_id],
            request.query,
        )
        for number, passage in enumerate(found.order, start=1)
    ]
    if request.token_budget is None:
        return hits
    return within_budget(hits, request.token_budget, request.query)
