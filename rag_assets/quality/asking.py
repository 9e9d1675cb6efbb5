"""Ask a tenant's builds its judged questions; the catalog stores the questions' vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rag_assets.billing.embedders import Embedders, require_opt_in
from rag_assets.billing.spending import Spending, find_present_caps, require_price
from rag_assets.common.errors import ConfigurationError, IndexInconsistent, ProviderRefused
from rag_assets.common.hashing import sha256_hex
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.coverage import Reading, assess_reading
from rag_assets.models.embedding.protocol import Embedder, Vectors
from rag_assets.models.factory import get_embedder_id
from rag_assets.models.prices import split_embedder_id
from rag_assets.pipeline.context import TenantContext
from rag_assets.privacy.masker import get_masker
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.search.access import ScopedDocument
from rag_assets.search.hits import limit_to_passages
from rag_assets.search.model import Caller, Hit, SearchAnswer, SearchRequest
from rag_assets.search.retriever import AsyncRetriever
from rag_assets.search.tenant_models import Vector
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.common_words import find_sentence_language
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode

_FLUSH_SECONDS = 0.1
"""Maximum seconds until a vector that was paid for is stored."""


class StoredQuestionVectors:
    """The stored vectors of a tenant's judged questions, so that each is embedded only once.

    Searches for evaluations use this in place of the usual QuestionEmbedder.
    """

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._embedders = embedders
        self._vectors: dict[tuple[str, str], Vector] = {}
        self._embedders_by_id: dict[str, Embedder] = {}

    def prepare(
        self, ref: TenantRef, tenant: Tenant, generation: Generation, texts: Sequence[str]
    ) -> int:
        """Load the vectors of questions for a generation, and embed questions that have none.

        Return the number of questions that were embedded now.

        Raises:
            CapReached: the call would exceed a spending cap; earlier vectors are kept.
            ProviderError: a question could not be embedded; earlier vectors are kept.
            ConfigurationError: the embedder is not usable, or caps lack a price.
            IndexInconsistent: the embedder has changed since the build.
        """
        embedder_id = generation.embedder_id
        by_hash = {sha256_hex(text): text for text in texts}
        stored_vectors = self._catalog.question_vectors.find(ref.id, embedder_id, by_hash.keys())
        for key, packed in stored_vectors.items():
            self._vectors[embedder_id, key] = np.frombuffer(packed, "<f4").astype(np.float32)
        lacking = [
            EmbedItem(key, text) for key, text in by_hash.items() if key not in stored_vectors
        ]
        if lacking:
            self._embed(ref, tenant, generation, lacking)
        return len(lacking)

    async def embed(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        """Return the vector of a question that has been prepared; see QuestionEmbedder."""
        return self._vectors[serving.embedder_id, sha256_hex(question)]

    async def assess_reading(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Reading:
        """See QuestionEmbedder."""
        if serving.embedder_id not in self._embedders_by_id:
            self._embedders_by_id[serving.embedder_id] = self._build_embedder(ref, tenant, serving)
        embedder = self._embedders_by_id[serving.embedder_id]
        return assess_reading(embedder, question, find_sentence_language(question))

    async def close(self) -> None:
        """See QuestionEmbedder."""

    def _embed(
        self, ref: TenantRef, tenant: Tenant, generation: Generation, items: Sequence[EmbedItem]
    ) -> None:
        embedder = self._build_embedder(ref, tenant, generation)
        billed = tenant.model_copy(update={"embedder": _get_embedder_config(tenant, generation)})
        caps = find_present_caps(self._catalog, ref, tenant, run=0.0)
        spending = Spending(ref.id, require_price(billed), caps)
        account = split_embedder_id(embedder.embedder_id)

        def record() -> None:
            if used := spending.take():
                self._catalog.usage.add(ref, *account, used)

        def keep(keys: Collection[str], vectors: Vectors) -> None:
            packed = np.ascontiguousarray(vectors, dtype="<f4")
            stored = {key: row.tobytes() for key, row in zip(keys, packed, strict=True)}
            self._catalog.question_vectors.keep(ref, embedder.embedder_id, stored)
            record()
            for key, row in zip(keys, packed, strict=True):
                self._vectors[embedder.embedder_id, key] = row.astype(np.float32)

        try:
            outcome = asyncio.run(
                embed_all(
                    embedder,
                    items,
                    keep=keep,
                    purpose="query",
                    flush_seconds=_FLUSH_SECONDS,
                    budget=spending,
                )
            )
        finally:
            record()
        if outcome.outage is not None:
            raise outcome.outage
        if outcome.rejected:
            raise ProviderRefused(
                f"{len(outcome.rejected):,} of the questions cannot be embedded:"
                f" {next(iter(outcome.rejected.values()))}",
                hint="correct these questions, and import them again",
            )

    def _build_embedder(self, ref: TenantRef, tenant: Tenant, generation: Generation) -> Embedder:
        record = self._catalog.tenants.get(ref.id)
        require_opt_in(record.profile, record.organization, has_opted_in=record.has_opted_in)
        embedder = self._embedders.get_generation_embedder(ref, tenant, generation)
        if embedder.embedder_id != generation.embedder_id:
            raise IndexInconsistent(
                f"build {generation.number} was created with {generation.embedder_id}, but the"
                f" embedder is now {embedder.embedder_id}",
                hint="sync the tenant to create a new build with the current model",
            )
        return embedder


def _get_embedder_config(tenant: Tenant, generation: Generation) -> EmbedderConfig:
    """Return the configuration of the embedder that built a generation, with its price."""
    built = EmbedderConfig.model_validate(generation.embedder)
    present = tenant.embedder
    same = present.provider == built.provider
    return present if same and get_embedder_id(present) == generation.embedder_id else built


_MAX_CONCURRENT = 4
"""Number of concurrent searches, so that users' searches continue meanwhile."""


class FullAccessPolicy:
    """Access policy of evaluations, which read all documents: only operators see results."""

    def __init__(self, principals: Iterable[str]) -> None:
        self._principals = tuple(dict.fromkeys(principals))

    def principals(self, caller: Caller) -> tuple[str, ...]:
        """See AccessPolicy."""
        return self._principals

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:
        """See AccessPolicy."""
        return granted

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        """See AccessPolicy."""
        return True


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Options of the searches in an evaluation."""

    mode: SearchMode
    rerank: bool = False


@dataclass(frozen=True, slots=True)
class AskResult:
    """The hits of all questions that were asked, best first, one for each passage.

    `unranked` counts questions whose reranker failed; `embedded`, questions embedded and charged.
    """

    hits: Mapping[str, Sequence[Hit]] = field(default_factory=dict)
    unranked: int = 0
    embedded: int = 0


class Asker:
    """Searches a tenant's builds for judged questions, without recording the searches as events."""

    def __init__(self, ctx: TenantContext) -> None:
        self._ctx = ctx
        self._embedders = Embedders(ctx.catalog, ctx.settings)
        self._vectors = StoredQuestionVectors(ctx.catalog, self._embedders)

    def ask(
        self,
        generation: Generation,
        questions: Sequence[JudgedQuestion],
        manner: AskOptions,
        *,
        top_k: int,
        min_score: float | None = None,
    ) -> AskResult:
        """Return the first hits of each question in one build; min_score replaces the threshold."""
        if not questions:
            return AskResult()
        ctx, embedded = self._ctx, 0
        if manner.mode != "text" or ctx.tenant.min_score(generation.embedder_id) is not None:
            texts = [self._mask_if_required(question.question) for question in questions]
            embedded = self._vectors.prepare(ctx.ref, ctx.tenant, generation, texts)
        answers = asyncio.run(
            self._search_all(generation.number, questions, manner, top_k, min_score)
        )
        return AskResult(
            {id_: _list_passages(answer.hits)[:top_k] for id_, answer in answers.items()},
            sum("rerank" in answer.degraded for answer in answers.values()),
            embedded,
        )

    def _mask_if_required(self, question: str) -> str:
        if self._ctx.tenant.privacy.send_unmasked_questions:
            return question
        return get_masker(self._ctx.settings.local).text(question)

    async def _search_all(
        self,
        generation: int,
        questions: Sequence[JudgedQuestion],
        manner: AskOptions,
        top_k: int,
        min_score: float | None,
    ) -> dict[str, SearchAnswer]:
        ctx, turns = self._ctx, asyncio.Semaphore(_MAX_CONCURRENT)
        grants = ctx.catalog.access.grants(ctx.ref.id).values()
        retriever = AsyncRetriever(
            ctx.catalog,
            ctx.store,
            self._embedders,
            policy=FullAccessPolicy(principal for grant in grants for principal in grant),
            vectors=self._vectors,
            is_journaled=False,
        )

        async def answer(question: JudgedQuestion) -> SearchAnswer:
            request = SearchRequest(
                query=question.question,
                top_k=top_k,
                mode=manner.mode,
                rerank=manner.rerank,
                min_score=min_score,
            )
            async with turns:
                return await retriever.search(ctx.ref.id, request, generation=generation)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {question.id: group.create_task(answer(question)) for question in questions}
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await retriever.close()
        answers = {id_: task.result() for id_, task in tasks.items()}
        if any(search_answer.disabled for search_answer in answers.values()):
            raise ConfigurationError(
                f"tenant {ctx.ref.id!r} was disabled while its questions were asked",
                hint=f"enable it with `rag-assets tenants enable {ctx.ref.id}`",
            )
        return answers


def _list_passages(hits: Sequence[Hit]) -> list[Hit]:
    """Split merged hits into one hit per passage, with the best passage of each hit first."""
    return [
        limit_to_passages(hit, [part])
        for hit in hits
        for part in sorted(hit.ranges, key=lambda part: part.ordinal != hit.ordinal)
    ]
