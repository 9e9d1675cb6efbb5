"""Models of read requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.identity import Identity
from rag_assets.search.model import Question, SearchRequest

TenantName = Annotated[str, StringConstraints(min_length=1, max_length=63)]


class QueryRequest(Question):
    """A question to a tenant's knowledge, on behalf of the token's subject.

    Attributes:
        tenant: tenant to search; may be left out if the token is for a single tenant.
    """

    tenant: TenantName | None = None

    def search_for(self, identity: Identity) -> SearchRequest:
        """Return the search with the token's principals; a request cannot name principals."""
        given = {name: getattr(self, name) for name in Question.model_fields}
        return SearchRequest(**given, caller=identity.caller)


class TenantQuery(BaseModel):
    """The tenant of a request.

    Attributes:
        tenant: the tenant; may be left out if the token is for a single tenant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: TenantName | None = None


class Page(TenantQuery):
    """A page of a list.

    Attributes:
        after: the `next` of the previous page.
        limit: maximum number of documents.
    """

    after: Annotated[str, StringConstraints(max_length=8_000, pattern=r"^[^\x00]*$")] | None = None
    limit: int = Field(default=100, ge=1, le=1_000)
