"""Asks a tenant's builds its judged questions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.billing.embedders import Embedders
from rag_assets.common.errors import ConfigurationError
from rag_assets.pipeline.context import TenantContext
from rag_assets.privacy.masker import get_masker
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.quality.question_vectors import KeptVectors
from rag_assets.search.access import ScopedDocument
from rag_assets.search.hits import limit_to_passages
from rag_assets.search.model import Caller, Hit, SearchAnswer, SearchRequest
from rag_assets.search.retriever import AsyncRetriever
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.tenants.modes import SearchMode

_AT_ONCE = 4
"""Number of concurrent searches, so that users' searches continue meanwhile."""


class WholeTenant:
    """Access policy for every document that anybody may read, for measures that operators see.

    Args:
        principals: principals of all grants of a tenant.
    """

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
class Manner:
    """How questions are asked.

    Attributes:
        mode: by vectors, by words, or by both.
        rerank: whether the first hits are reranked.
    """

    mode: SearchMode
    rerank: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The hits of questions.

    Attributes:
        hits: hits by question id, best first; one for each passage, since passages are judged.
        unranked: questions whose hits were not reranked, because the reranker failed.
        embedded: number of questions that were embedded, and charged, for this search.
    """

    hits: Mapping[str, Sequence[Hit]] = field(default_factory=dict)
    unranked: int = 0
    embedded: int = 0


class Asker:
    """Asks a tenant's builds questions as its searches do, but without recording each search.

    Args:
        ctx: the tenant's TenantContext, for reading.
    """

    def __init__(self, ctx: TenantContext) -> None:
        self._ctx = ctx
        self._embedders = Embedders(ctx.catalog, ctx.settings)
        self._vectors = KeptVectors(ctx.catalog, self._embedders)

    def ask(
        self,
        generation: Generation,
        questions: Sequence[JudgedQuestion],
        manner: Manner,
        *,
        top_k: int,
        min_score: float | None = None,
    ) -> Asked:
        """Return the first hits of each question in one build.

        Args:
            min_score: replaces the tenant's threshold.

        Raises:
            RagAssetsError: see KeptVectors.prepare and AsyncRetriever.search.
        """
        if not questions:
            return Asked()
        ctx, embedded = self._ctx, 0
        if manner.mode != "text" or ctx.tenant.min_score(generation.embedder_id) is not None:
            texts = [self._as_sent(question.question) for question in questions]
            embedded = self._vectors.prepare(ctx.ref, ctx.tenant, generation, texts)
        answers = asyncio.run(self._answers(generation.number, questions, manner, top_k, min_score))
        return Asked(
            {id_: _passages(answer.hits)[:top_k] for id_, answer in answers.items()},
            sum("rerank" in answer.degraded for answer in answers.values()),
            embedded,
        )

    def _as_sent(self, question: str) -> str:
        if self._ctx.tenant.privacy.send_unmasked_questions:
            return question
        return get_masker(self._ctx.settings.local).text(question)

    async def _answers(
        self,
        generation: int,
        questions: Sequence[JudgedQuestion],
        manner: Manner,
        top_k: int,
        min_score: float | None,
    ) -> dict[str, SearchAnswer]:
        ctx, turns = self._ctx, asyncio.Semaphore(_AT_ONCE)
        grants = ctx.catalog.access.grants(ctx.ref.id).values()
        retriever = AsyncRetriever(
            ctx.catalog,
            ctx.store,
            self._embedders,
            policy=WholeTenant(principal for named in grants for principal in named),
            vectors=self._vectors,
            journaled=False,
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
                tasks = {one.id: group.create_task(answer(one)) for one in questions}
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await retriever.close()
        answers = {id_: task.result() for id_, task in tasks.items()}
        if any(found.disabled for found in answers.values()):
            raise ConfigurationError(
                f"tenant {ctx.ref.id!r} was disabled while its questions were asked",
                hint=f"enable it with `rag-assets tenants enable {ctx.ref.id}`",
            )
        return answers


def _passages(hits: Sequence[Hit]) -> list[Hit]:
    """Return a hit for each passage in the hits; of a merged hit, the best passage comes first."""
    return [
        limit_to_passages(hit, [part])
        for hit in hits
        for part in sorted(hit.ranges, key=lambda one: one.ordinal != hit.ordinal)
    ]
