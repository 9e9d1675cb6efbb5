"""The interface of searches, for what only searches."""

from __future__ import annotations

from typing import Protocol

from rag_assets.retrieval.model import Caller, SearchAnswer, SearchRequest
from rag_assets.storage.catalog.database import TenantRef


class PassageSearch(Protocol):
    """Finds passages (see AsyncRetriever)."""

    async def search(self, tenant_id: str, request: SearchRequest) -> SearchAnswer:
        """Search one tenant's knowledge."""

    async def still_readable(self, ref: TenantRef, caller: Caller, answer: SearchAnswer) -> bool:
        """Whether the caller may read every document of a result's hits by now."""

    async def masked(self, question: str) -> str:
        """The question without the credentials in it."""
