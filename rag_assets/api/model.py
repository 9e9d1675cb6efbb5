"""Models of requests: bodies, queries, and the types of their fields."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from rag_assets.api.identity import Identity
from rag_assets.records.drafts import ANY_VERSION
from rag_assets.records.text_records import (
    MAX_ID_LENGTH,
    MAX_TYPE_LENGTH,
    SOURCE_ID_CHARACTER,
    SOURCE_TYPE_PATTERN,
)
from rag_assets.search.model import Question, SearchRequest, TenantName


class QueryRequest(Question):
    """A question to a tenant's knowledge, on behalf of the token's subject.

    Attributes:
        tenant: tenant to search; may be left out if the token covers a single tenant.
    """

    tenant: TenantName | None = None

    def build_search_request(self, identity: Identity) -> SearchRequest:
        """Return the search with the principals of the token."""
        fields = {name: getattr(self, name) for name in Question.model_fields}
        return SearchRequest(**fields, caller=identity.caller)


class TenantQuery(BaseModel):
    """The tenant of a request.

    Attributes:
        tenant: the tenant; may be left out if the token covers a single tenant.
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


_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
_ETAG = re.compile(r'(?P<weak>W/)?"(?P<version>[^"]*)"')

SourceType = Annotated[str, Path(pattern=f"^{SOURCE_TYPE_PATTERN}$", max_length=MAX_TYPE_LENGTH)]
SourceId = Annotated[str, Path(pattern=f"^{SOURCE_ID_CHARACTER}+$", max_length=MAX_ID_LENGTH)]
DocumentId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
SourceName = Annotated[str, StringConstraints(pattern="^[a-z0-9._-]+$", max_length=63)]


def parse_if_match(if_match: str) -> frozenset[str]:
    """Return the versions in the header If-Match without weak ETags, or only `*`."""
    if if_match.strip() == ANY_VERSION:
        return frozenset({ANY_VERSION})
    tags = _ETAG.finditer(if_match)
    return frozenset({tag["version"] for tag in tags if not tag["weak"]} - {ANY_VERSION})


class RecordQuery(TenantQuery):
    """The source of a record.

    Attributes:
        source: the tenant's source of records; may be left out if there is only one.
    """

    source: SourceName | None = None


class DeleteQuery(TenantQuery):
    """Options of a deletion.

    Attributes:
        purge: also delete it from every store and every file.
    """

    purge: bool = False


class _Reindex(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: TenantName | None = None

    @property
    def tenant_id(self) -> str | None:
        """Return the tenant of the request; None stands for the token's only tenant."""
        return self.tenant


class ReindexTenant(_Reindex):
    """All documents of the tenant."""

    scope: Literal["tenant"]


class ReindexSource(_Reindex):
    """All documents of one source, by its name."""

    scope: Literal["source"]
    id: SourceName


class ReindexDocument(_Reindex):
    """One document, by its id."""

    scope: Literal["document"]
    id: Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]


class ReindexWorkspace(_Reindex):
    """All records of a workspace; `id` is the tenant's id and may be left out."""

    scope: Literal["workspace"]
    id: TenantName | None = None

    @model_validator(mode="after")
    def _require_equal_ids(self) -> Self:
        if None not in {self.id, self.tenant} and self.id != self.tenant:
            raise ValueError("`id` and `tenant` must be equal")
        return self

    @property
    def tenant_id(self) -> str | None:
        """Return the tenant of the request, from `tenant` or `id`."""
        return self.tenant or self.id


class ReindexPage(_Reindex):
    """A page of a workspace with its blocks, comments and files; or a database with its rows."""

    scope: Literal["page", "database"]
    id: Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=_PRINTABLE)]


Reindex = Annotated[
    ReindexTenant | ReindexWorkspace | ReindexSource | ReindexDocument | ReindexPage,
    Field(discriminator="scope"),
]
