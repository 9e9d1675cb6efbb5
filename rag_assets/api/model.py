"""What requests hold, and what is answered beside hits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.identity import Identity
from rag_assets.retrieval.model import Question, SearchRequest
from rag_assets.storage.catalog.index_rows import ReadableDocument

TenantName = Annotated[str, StringConstraints(min_length=1, max_length=63)]


class QueryRequest(Question):
    """A question to a tenant's knowledge, in the name of whoever shows the token.

    Attributes:
        tenant: that is asked; may be left out if the token is for one only.
    """

    tenant: TenantName | None = None

    def asked_by(self, identity: Identity) -> SearchRequest:
        """The search, by the principals of the token: a request names none."""
        given = {name: getattr(self, name) for name in Question.model_fields}
        return SearchRequest(**given, caller=identity.caller)


class OfTenant(BaseModel):
    """Which tenant is asked.

    Attributes:
        tenant: may be left out if the token is for one only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: TenantName | None = None


class Page(OfTenant):
    """Which part of a list is wanted.

    Attributes:
        after: the `next` of the page before.
        limit: documents at most.
    """

    after: Annotated[str, StringConstraints(max_length=8_000, pattern=r"^[^\x00]*$")] | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


class Documents(BaseModel):
    """A page of the documents that the caller may read.

    Attributes:
        documents: by uri.
        next: what to give as `after` for the next page; null on the last.
        disabled: whether the tenant is, so that none is listed.
    """

    documents: list[ReadableDocument]
    next: str | None
    disabled: bool = False


class Status(BaseModel):
    """How far a tenant's index is behind its documents, as they were listed last.

    Attributes:
        chunks: that the serving generation holds.
        stale: documents that are found in a former version.
        last_indexed_at: when a document last came into the index; None before the first.
        queue_depth: documents that wait for work.
        disabled: whether the tenant is: nothing is found, and what waits does so until it is not.
    """

    chunks: int
    stale: int
    last_indexed_at: datetime | None
    queue_depth: int
    disabled: bool = False


class Health(BaseModel):
    """That the service answers."""

    status: str = "ok"
