"""Requests to read, as the service takes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.identity import Identity
from rag_assets.retrieval.model import Question, SearchRequest

TenantName = Annotated[str, StringConstraints(min_length=1, max_length=63)]


class QueryRequest(Question):
    """A question to a tenant's knowledge, in the name of the token's subject.

    Attributes:
        tenant: that is searched; may be left out if the token is for one only.
    """

    tenant: TenantName | None = None

    def search_for(self, identity: Identity) -> SearchRequest:
        """The search, by the principals of the token: a request names none."""
        given = {name: getattr(self, name) for name in Question.model_fields}
        return SearchRequest(**given, caller=identity.caller)


class TenantQuery(BaseModel):
    """The tenant of a request.

    Attributes:
        tenant: may be left out if the token is for one only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: TenantName | None = None


class Page(TenantQuery):
    """A page of a list.

    Attributes:
        after: the `next` of the page before.
        limit: documents at most.
    """

    after: Annotated[str, StringConstraints(max_length=8_000, pattern=r"^[^\x00]*$")] | None = None
    limit: int = Field(default=100, ge=1, le=1_000)
