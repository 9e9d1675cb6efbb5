"""The interface of searches, for code that only needs to search."""

from __future__ import annotations

from typing import Protocol

from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from rag_assets.storage.catalog.database import TenantRef


class PassageSearch(Protocol):
    """Finds passages (see AsyncRetriever)."""

    async def search(self, tenant_id: str, request: SearchRequest) -> SearchAnswer:
        """Search one tenant's knowledge."""

    async def still_readable(self, ref: TenantRef, caller: Caller, answer: SearchAnswer) -> bool:
        """Return whether the caller may still read the document of every hit in an answer."""

    async def masked(self, question: str) -> str:
        """Return the question without the credentials in it."""
