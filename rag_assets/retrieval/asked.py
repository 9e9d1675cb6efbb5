"""A request, with what it leaves to the tenant filled in."""

from __future__ import annotations

from dataclasses import dataclass

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
    def of(cls, tenant: Tenant, request: SearchRequest) -> Asked:
        """What the request says, or else the tenant's defaults."""
        default = tenant.retrieval
        return cls(
            tenant,
            request,
            mode=request.mode or default.mode,
            limit=request.top_k or default.top_k,
            min_cosine=default.min_score if request.min_score is None else request.min_score,
        )

    @property
    def needs_vector(self) -> bool:
        """Whether a cosine is wanted: words alone are searched without paying for the question."""
        return self.mode != "text" or self.min_cosine is not None
