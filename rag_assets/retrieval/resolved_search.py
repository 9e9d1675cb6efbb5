"""A request, with what it leaves to the tenant filled in."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.common.errors import NoReranker
from rag_assets.models.reranking.config import RerankConfig
from rag_assets.retrieval.model import SearchRequest
from rag_assets.storage.catalog.generations import Generation
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what the tenant's defaults make of it.

    Attributes:
        question: as embedder and reranker are sent it.
        limit: hits at most.
        min_cosine: below which nothing is wanted.
        rerank: the second stage; None where none is wanted.
    """

    tenant: Tenant
    request: SearchRequest
    question: str
    mode: SearchMode
    limit: int
    min_cosine: float | None
    rerank: RerankConfig | None

    @classmethod
    def of(
        cls, tenant: Tenant, request: SearchRequest, masked: str, serving: Generation | None
    ) -> Asked:
        """What the request says, or else the tenant's defaults for what answers it.

        Args:
            tenant: that is asked.
            request: as it was made.
            masked: its question, credentials in it masked.
            serving: what answers.

        Raises:
            NoReranker: it says to rerank, and the tenant has nothing to do so with.
        """
        default, least = tenant.retrieval, request.min_score
        if least is None and serving is not None:
            least = tenant.min_score(serving.embedder_id)
        return cls(
            tenant,
            request.model_copy(update={"query": masked}),
            question=request.query if tenant.privacy.send_unmasked_questions else masked,
            mode=request.mode or default.mode,
            limit=request.top_k or default.top_k,
            min_cosine=least,
            rerank=_second_stage(tenant, request),
        )

    @property
    def depth(self) -> int:
        """Candidates that are wanted in their order before the first are taken as hits."""
        return self.limit if self.rerank is None else max(self.limit, self.rerank.first)

    @property
    def needs_vector(self) -> bool:
        """Whether a cosine is wanted: words alone are searched without paying for the question."""
        return self.mode != "text" or self.min_cosine is not None


def _second_stage(tenant: Tenant, request: SearchRequest) -> RerankConfig | None:
    config = tenant.retrieval.rerank
    if config is None:
        if request.rerank:
            raise NoReranker(
                f"tenant {tenant.id!r} has no reranker",
                hint="give it one as retrieval.rerank, or leave out rerank",
            )
        return None
    wanted = config.by_default if request.rerank is None else request.rerank
    return config if wanted else None
