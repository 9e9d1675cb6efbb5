"""The endpoints of a workspace's tree. For admins and writers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field, StringConstraints

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, open_to_writers
from rag_assets.api.model import TenantQuery
from rag_assets.api.workspace_responses import PageAccess, TreeChange, TreePage, TreePages
from rag_assets.records.pages import MOST_UUID, PAGE_UUID
from rag_assets.systems.workspace.administration import (
    REFUSED,
    WrittenDependency,
)
from rag_assets.systems.workspace.services import tree_service
from rag_assets.systems.workspace.tree_service import PageChange, PageDraft, PageUuid

router = APIRouter(prefix="/rag", tags=["workspace"], responses=REFUSED, route_class=Guarded)

_Uuid = Annotated[str, Path(pattern=PAGE_UUID, max_length=MOST_UUID)]
_Principal = Annotated[
    str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=1_000)
]


class AccessQuery(TenantQuery):
    """A page, and the names for which access is checked.

    Attributes:
        page_uuid: of the page.
        principal: a name of the reader: a subject, group:NAME, or members; may be repeated.
    """

    page_uuid: PageUuid
    principal: Annotated[list[_Principal], Field(min_length=1, max_length=100)]


@router.put("/tree/{uuid}")
@open_to_writers
async def put_page(uuid: _Uuid, draft: PageDraft, asked: WrittenDependency) -> TreeChange:
    """Create or replace a page or a database in the tree. For admins and writers.

    The change is in force with the response, for all records of the page and of the pages below it;
    no embedding is computed. A page may be put before the pages above it: until all of these are
    known, nobody reads it. The page `root` is above all others; unless it is put, all members read
    it.
    """
    return await asked.backend.write(
        asked.tenant, lambda: tree_service(asked.backend).put(asked.tenant, uuid, draft)
    )


@router.patch("/tree/{uuid}")
@open_to_writers
async def change_page(uuid: _Uuid, change: PageChange, asked: WrittenDependency) -> TreeChange:
    """Change the given fields of a page, such as only its parent. For admins and writers.

    Omitted fields stay as they are: a move keeps the readers.
    """
    return await asked.backend.write(
        asked.tenant, lambda: tree_service(asked.backend).change(asked.tenant, uuid, change)
    )


@router.get("/tree/{uuid}")
@open_to_writers
async def page(uuid: _Uuid, asked: WrittenDependency) -> TreePage:
    """Return a page of the tree. For admins and writers."""
    return await asked.backend.run(
        asked.tenant, asked.by, lambda: tree_service(asked.backend).page(asked.tenant, uuid)
    )


class TreeQuery(TenantQuery):
    """The selection of listed pages.

    Attributes:
        parent: only pages directly below this page.
        after: the `next` of the previous list.
        limit: maximum number of pages.
    """

    parent: PageUuid | None = None
    after: PageUuid | None = None
    limit: int = Field(default=1_000, ge=1, le=10_000)


@router.get("/tree")
@open_to_writers
async def list_pages(
    request: Request,
    parameters: Annotated[TreeQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> TreePages:
    """List the pages of the tree, by uuid, without titles. For admins and writers."""
    tenant = request.state.tenant = identity.written(parameters.tenant)
    service, chosen = tree_service(backend), parameters
    return await backend.run(
        tenant,
        identity.name,
        lambda: service.listed_pages(
            tenant, parent=chosen.parent, after=chosen.after, limit=chosen.limit
        ),
    )


@router.delete("/tree/{uuid}")
@open_to_writers
async def delete_page(uuid: _Uuid, asked: WrittenDependency) -> TreeChange:
    """Delete a page, the pages below it, and all records of these pages. For admins and writers."""
    return await asked.backend.write(
        asked.tenant, lambda: tree_service(asked.backend).remove(asked.tenant, uuid, asked.by)
    )


@router.get("/access")
@open_to_writers
async def access(
    request: Request,
    asked_for: Annotated[AccessQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PageAccess:
    """Return whether somebody may read a page, and by which grant. For admins and writers."""
    tenant = request.state.tenant = identity.written(asked_for.tenant)
    service = tree_service(backend)
    principals = tuple(asked_for.principal)
    return await backend.run(
        tenant, identity.name, lambda: service.access(tenant, asked_for.page_uuid, principals)
    )
