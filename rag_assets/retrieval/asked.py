"""A request, with what it leaves to the tenant filled in."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.catalog.generations import Generation
from rag_assets.retrieval.model import SearchRequest
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what the tenant's defaults make of it.

    Attributes:
        limit: hits at most.
        min_cosine: below which nothing is wanted.
    """

    tenant: Tenant
    request: SearchRequest
    mode: SearchMode
    limit: int
    min_cosine: float | None

    @classmethod
    def of(cls, tenant: Tenant, request: SearchRequest, serving: Generation | None) -> Asked:
        """What the request says, or else the tenant's defaults for what answers it."""
        default, least = tenant.retrieval, request.min_score
        if least is None and serving is not None:
            least = tenant.min_score(serving.embedder_id)
        return cls(
            tenant,
            request,
            mode=request.mode or default.mode,
            limit=request.top_k or default.top_k,
            min_cosine=least,
        )

    @property
    def needs_vector(self) -> bool:
        """Whether a cosine is wanted: words alone are searched without paying for the question."""
        return self.mode != "text" or self.min_cosine is not None
