"""A request with the tenant's defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.common.errors import InvalidRequest, NoReranker
from rag_assets.models.chat import UNKNOWN_WINDOW, find_context_window
from rag_assets.models.config import RerankConfig
from rag_assets.search.model import MAX_TOP_K, SearchRequest
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.measurements import measured_floors, measured_value
from rag_assets.storage.index.common_words import is_english
from rag_assets.storage.index.model import is_within
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode
from rag_assets.tenants.profiles import profile_of


@dataclass(frozen=True, slots=True)
class ResolvedSearch:
    """A request resolved with the tenant's defaults.

    Attributes:
        question: the question as it is sent to embedder and reranker.
        limit: maximum number of hits.
        min_cosine: cosine below which a passage is left out; None without a threshold.
        rerank: configuration of the reranker; None without reranking.
        floors: floors of the questions that have calibrated the threshold so far. While they
            are set, min_cosine is an upper bound of the threshold. None if the threshold is fixed.
        token_budget: maximum number of tokens of all hits together; None for no limit.
    """

    tenant: Tenant
    request: SearchRequest
    question: str
    mode: SearchMode
    limit: int
    min_cosine: float | None
    rerank: RerankConfig | None
    token_budget: int | None = None
    floors: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls, tenant: Tenant, request: SearchRequest, masked: str, serving: Generation | None
    ) -> ResolvedSearch:
        """Return the request, with the tenant's defaults for missing parameters.

        Args:
            tenant: the tenant to search.
            request: the request as the caller made it.
            masked: the question of the request, with credentials masked.
            serving: the generation to search.

        Raises:
            InvalidRequest: the request wants more hits than allowed.
            NoReranker: the request wants reranking, and the tenant has no reranker.
        """
        default = tenant.retrieval
        return cls(
            tenant,
            request.model_copy(update={"query": masked}),
            question=request.query if tenant.privacy.send_unmasked_questions else masked,
            mode=request.mode or default.mode,
            limit=_limit(tenant, request.top_k or default.top_k),
            min_cosine=_threshold(tenant, request, serving),
            rerank=_rerank_config(tenant, request),
            token_budget=_token_budget(tenant, request),
            floors=_floors(tenant, request, serving),
        )

    def in_build(self, serving: Generation) -> ResolvedSearch:
        """Return the same search in another build, with the threshold of that build's embedder."""
        return replace(
            self,
            min_cosine=_threshold(self.tenant, self.request, serving),
            floors=_floors(self.tenant, self.request, serving),
        )

    @property
    def depth(self) -> int:
        """Return the number of candidates to rank, of which the first become hits."""
        return self.limit if self.rerank is None else max(self.limit, self.rerank.first)

    @property
    def needs_vector(self) -> bool:
        """Return whether a cosine is needed; a search by words alone needs no paid embedding."""
        return self.mode != "text" or self.min_cosine is not None

    def prefers(self, uri: str) -> bool:
        """Return whether a document lies in a path that the request prefers."""
        paths = self.request.must_include_paths
        return bool(paths) and within(uri, paths)


def within(path: str, paths: Sequence[str] | None) -> bool:
    """Return whether a path lies in one of the given paths; True if these are None."""
    return paths is None or any(is_within(path, other) for other in paths)


def _limit(tenant: Tenant, wanted: int) -> int:
    most = profile_of(tenant.profile).most_hits
    if most is not None:
        return min(wanted, most)
    if wanted > MAX_TOP_K:
        raise InvalidRequest(f"top_k must be at most {MAX_TOP_K}", hint="request fewer hits")
    return wanted


def _threshold(tenant: Tenant, request: SearchRequest, serving: Generation | None) -> float | None:
    if request.min_score is not None or serving is None:
        return request.min_score
    measured = measured_value(serving, request.use)
    return tenant.min_score(serving.embedder_id, request.use, measured=measured)


def _floors(
    tenant: Tenant, request: SearchRequest, serving: Generation | None
) -> tuple[float, ...] | None:
    """Return the floors measured so far if questions calibrate the threshold; otherwise None."""
    if request.min_score is not None or serving is None:
        return None
    if not tenant.calibrates(serving.embedder_id):
        return None
    if measured_value(serving, request.use) is not None:
        return None
    if profile_of(tenant.profile).threshold(serving.embedder_id, request.use) is None:
        return None
    return tuple(measured_floors(serving, request.use).values())


def _token_budget(tenant: Tenant, request: SearchRequest) -> int | None:
    """Return the request's budget; without one, a share of the reading model's context window."""
    share = profile_of(tenant.profile).share_of_window
    window = _window(tenant, request)
    if request.token_budget is not None or share is None or window is None:
        return request.token_budget
    return int(share * window)


def _window(tenant: Tenant, request: SearchRequest) -> int | None:
    """Return the context window of the model that reads the hits; None if no model is named."""
    own = tenant.chat_model
    model = request.model or (own.model if own else None)
    if model is None:
        return None
    if own is not None and own.context_window is not None and model == own.model:
        return own.context_window
    return find_context_window(model) or UNKNOWN_WINDOW


def _rerank_config(tenant: Tenant, request: SearchRequest) -> RerankConfig | None:
    config = tenant.retrieval.rerank
    if config is None:
        if request.rerank:
            raise NoReranker(
                f"tenant {tenant.id!r} has no reranker",
                hint="configure retrieval.rerank, or leave out rerank",
            )
        return None
    wanted = config.by_default if request.rerank is None else request.rerank
    if config.is_shipped and tenant.reads_facts:
        return None
    is_readable = config.languages == "any" or is_english(request.query)
    return config if wanted and is_readable else None
