"""Endpoints of workspaces: settings (for admins), and the tree (also for writers)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import AwareDatetime, Field, StringConstraints

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, open_to_writers
from rag_assets.api.model import TenantQuery
from rag_assets.api.problems import HttpRefusal, document_problems, list_invalid_fields
from rag_assets.api.record_streams import BulkRoute
from rag_assets.api.responses import InvalidField
from rag_assets.api.workspace_responses import (
    PageAccess,
    Settings,
    TreeChange,
    TreeLine,
    TreeLines,
    TreePage,
    TreePages,
    TreeReconciled,
)
from rag_assets.common.errors import RagAssetsError, UnknownDocument
from rag_assets.common.invalid_values import (
    InvalidFields,
    allowed_value,
    invalid,
    validate_values,
)
from rag_assets.ingest.sources.records import MAX_UUID_LENGTH, PAGE_UUID, ROOT
from rag_assets.systems.workspace.page_table import PageEdit
from rag_assets.systems.workspace.settings import SettingsDraft, SettingsService
from rag_assets.systems.workspace.tree import Page
from rag_assets.systems.workspace.tree_service import (
    PageChange,
    PageDraft,
    PageUuid,
    TreeManifestLine,
    TreeService,
)

_T = TypeVar("_T")

REFUSED = document_problems(400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503)
"""Responses of these endpoints to refused requests."""


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """A request about one workspace, with the services that answer it."""

    tenant: str
    by: str
    backend: Backend

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.backend.run(self.tenant, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the workspace; see Backend.write."""
        return await self.backend.write(self.tenant, work)

    @property
    def settings(self) -> SettingsService:
        """Return the service for settings."""
        return SettingsService.from_backend(self.backend)

    @property
    def tree(self) -> TreeService:
        """Return the service for the tree."""
        backend = self.backend
        return TreeService(backend.catalog, backend.blobs, backend.retriever.masker)


async def require_admin(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> WorkspaceRequest:
    """Return the request about a workspace; refuse all callers except its admins."""
    tenant = request.state.tenant = identity.require_admin_tenant(parameters.tenant)
    return WorkspaceRequest(tenant, identity.name, backend)


async def require_writer(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> WorkspaceRequest:
    """Return the request about a workspace; refuse all callers except its admins and writers."""
    tenant = request.state.tenant = identity.require_writer_tenant(parameters.tenant)
    return WorkspaceRequest(tenant, identity.name, backend)


AdminDependency = Annotated[WorkspaceRequest, Depends(require_admin)]
WriterDependency = Annotated[WorkspaceRequest, Depends(require_writer)]


settings_router = APIRouter(
    prefix="/rag/settings", tags=["workspace"], responses=REFUSED, route_class=Guarded
)


@settings_router.get("")
async def settings(workspace: AdminDependency) -> Settings:
    """Return the effective settings of a workspace. For admins."""
    return await workspace.read(lambda: workspace.settings.get(workspace.tenant))


@settings_router.patch("")
async def change_settings(draft: SettingsDraft, workspace: AdminDependency) -> Settings:
    """Change settings; null restores the operator's configuration. For admins.

    Switching a workspace on indexes all of it again. A new model is stored as `pending_model` until
    the whole workspace is indexed again; until then, the current model answers.
    """
    return await workspace.write(
        lambda: workspace.settings.change(workspace.tenant, draft, workspace.by)
    )


tree_router = APIRouter(prefix="/rag", tags=["workspace"], responses=REFUSED, route_class=Guarded)

_Uuid = Annotated[str, Path(pattern=PAGE_UUID, max_length=MAX_UUID_LENGTH)]
_Principal = Annotated[
    str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=1_000)
]


class AccessQuery(TenantQuery):
    """A page, and the names for which access is checked.

    Attributes:
        page_uuid: uuid of the page.
        principal: a name of the reader: a subject, group:NAME, or members; may be repeated.
    """

    page_uuid: PageUuid
    principal: Annotated[list[_Principal], Field(min_length=1, max_length=100)]


@tree_router.put("/tree/{uuid}")
@open_to_writers
async def put_page(uuid: _Uuid, draft: PageDraft, workspace: WriterDependency) -> TreeChange:
    """Create or replace a page or a database in the tree. For admins and writers.

    The change applies to all records of the page and of the pages below it when the response is
    sent, without new embeddings. A page may be put before the pages above it; nobody can read it
    until they are known. The page `root` is above all others; until it is put, all members can read
    it.
    """
    return await workspace.write(lambda: workspace.tree.put(workspace.tenant, uuid, draft))


@tree_router.patch("/tree/{uuid}")
@open_to_writers
async def change_page(uuid: _Uuid, change: PageChange, workspace: WriterDependency) -> TreeChange:
    """Change fields of a page, for example only its parent. For admins and writers.

    Omitted fields stay unchanged.
    """
    return await workspace.write(lambda: workspace.tree.change(workspace.tenant, uuid, change))


@tree_router.get("/tree/{uuid}")
@open_to_writers
async def page(uuid: _Uuid, workspace: WriterDependency) -> TreePage:
    """Return a page of the tree. For admins and writers."""
    return await workspace.read(lambda: workspace.tree.get_page(workspace.tenant, uuid))


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


@tree_router.get("/tree")
@open_to_writers
async def list_pages(
    request: Request,
    parameters: Annotated[TreeQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> TreePages:
    """List the pages of the tree, by uuid, without titles. For admins and writers."""
    workspace = await require_writer(request, parameters, identity, backend)
    page_parameters = parameters.model_dump(include={"parent", "after", "limit"})
    return await workspace.read(
        lambda: workspace.tree.list_pages_after(workspace.tenant, **page_parameters)
    )


@tree_router.delete("/tree/{uuid}")
@open_to_writers
async def delete_page(uuid: _Uuid, workspace: WriterDependency) -> TreeChange:
    """Delete a page, the pages below it, and all records of these pages. For admins and writers."""
    return await workspace.write(
        lambda: workspace.tree.remove(workspace.tenant, uuid, workspace.by)
    )


@tree_router.get("/access")
@open_to_writers
async def access(
    request: Request,
    parameters: Annotated[AccessQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PageAccess:
    """Explain whether one of the principals may read a page. For admins and writers."""
    workspace = await require_writer(request, parameters, identity, backend)
    names = tuple(parameters.principal)
    return await workspace.read(
        lambda: workspace.tree.explain_access(workspace.tenant, parameters.page_uuid, names)
    )


MAX_LINES: Final = 5_000
MAX_PAGES: Final = 200_000
"""Maximum number of pages in a manifest."""
_LINES: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-ndjson": {
                "schema": {
                    "type": "string",
                    "description": "One JSON object per line: `uuid`, `op` (`put`, the default, or"
                    " `change`), and the fields of a single request.",
                }
            }
        },
    }
}


class _ManifestRoute(BulkRoute):
    """A guarded route for bodies that name all pages of a workspace, up to 64 MiB."""

    most_bytes: ClassVar[int] = 64 * 1024 * 1024


tree_lines = APIRouter(prefix="/rag", tags=["workspace"], responses=REFUSED, route_class=BulkRoute)
manifests = APIRouter(
    prefix="/rag", tags=["workspace"], responses=REFUSED, route_class=_ManifestRoute
)


@tree_lines.post("/tree", openapi_extra=_LINES)
@open_to_writers
async def write_tree(request: Request, workspace: WriterDependency) -> TreeLines:
    """Put and change many pages of the tree: one JSON object per line, at most 5,000 lines.

    All lines are applied in one transaction. Only the resulting tree is checked, so the order of
    the lines does not matter. An invalid line does not stop the others.
    """
    lines = _split_lines(await request.body(), most=MAX_LINES)
    workspace.backend.written.take(workspace.by, max(len(lines), 1))
    description = request.app.state.description

    def write() -> TreeLines:
        edits: dict[int, PageEdit] = {}
        answers: dict[int, TreeLine] = {}
        for number, line in lines.items():
            try:
                edits[number] = _parse_edit(line)
            except InvalidFields as error:
                errors = tuple(list_invalid_fields(error.errors, description.names | {"op"}))
                answers[number] = TreeLine(number, "invalid", errors=errors)
        done = workspace.tree.change_many(workspace.tenant, [*edits.values()])
        for position, (number, (uuid, _)) in enumerate(edits.items()):
            refusal = done.refused.get(position)
            answers[number] = (
                TreeLine(number, "done", scope=done.scopes[uuid])
                if refusal is None
                else _build_refusal(number, refusal)
            )
        return TreeLines(tuple(answers[number] for number in sorted(answers)), done.documents)

    return await workspace.write(write)


class ReconcileTreeQuery(TenantQuery):
    """Options of the comparison of a manifest with the tree.

    Attributes:
        apply: put missing and stale pages, and remove pages that the manifest does not name.
        allow_deletes: remove extra pages even if there are suspiciously many.
        as_of: time of the manifest; by default, and at most, the time of the request. Pages that
            were put later are not extra.
    """

    apply: bool = False
    allow_deletes: bool = False
    as_of: AwareDatetime | None = None


@manifests.post("/tree/reconcile", openapi_extra=_LINES)
@open_to_writers
async def reconcile_tree(
    request: Request,
    parameters: Annotated[ReconcileTreeQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> TreeReconciled:
    """Compare a manifest of all pages, one JSON object per line, with the tree.

    A line has the fields with which the page is put. The response names missing, stale and extra
    pages. With `apply`, the tree is made equal to the manifest, and extra pages are deleted with
    all their records. Deleting more than 20 pages that are more than 30 % of all pages requires
    `allow_deletes`. The manifest must contain the parent of each page, except the root.
    """
    workspace = await require_writer(request, parameters, identity, backend)
    received_at = await workspace.read(backend.catalog.database.time)
    as_of = min(parameters.as_of or received_at, received_at)
    lines = _split_lines(await request.body(), most=MAX_PAGES)

    def reconcile() -> TreeReconciled:
        return workspace.tree.reconcile(
            workspace.tenant,
            _parse_manifest(lines),
            as_of=as_of,
            by=workspace.by,
            apply=parameters.apply,
            allow_deletes=parameters.allow_deletes,
        )

    return await (workspace.write if parameters.apply else workspace.read)(reconcile)


def _split_lines(body: bytes, *, most: int) -> dict[int, bytes]:
    """Return the non-empty lines of a body, by number."""
    lines = {n: line for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()}
    if len(lines) > most:
        raise HttpRefusal(
            413, f"the request has too many lines; send at most {most:,} lines in one request"
        )
    return lines


def _parse_edit(line: bytes) -> PageEdit:
    """Parse a line to the uuid of a page, and a function that edits that page.

    Raises:
        InvalidFields: a field is not valid; the error names it.
    """
    values = _parse_object(line)
    op: Literal["put", "change"] = values.pop("op", "put")
    uuid = values.pop("uuid", None)
    if not isinstance(uuid, str) or len(uuid) > MAX_UUID_LENGTH:
        raise invalid("uuid", "uuid must be the id of a page")
    if op == "put":
        draft = validate_values(PageDraft, values)
        return uuid, lambda _: draft.build_page(uuid)
    if op != "change":
        raise invalid("op", "op must be put or change")
    change = validate_values(PageChange, values)
    return uuid, lambda former: change.build_page(uuid, former)


def _parse_manifest(lines: dict[int, bytes]) -> dict[str, Page]:
    """Return the pages of a manifest by uuid.

    Raises:
        InvalidFields: a line is invalid, repeats a page, or has a parent that is not in
            the manifest.
    """
    pages: dict[str, Page] = {}
    for number, line in lines.items():
        try:
            read = validate_values(TreeManifestLine, _parse_object(line))
            draft = PageDraft(**read.model_dump(exclude={"uuid"}))
            page = draft.build_page(read.uuid)
        except InvalidFields as error:
            first = error.errors[0]
            field = ".".join(map(str, first["loc"][1:2])) or "body"
            raise invalid(field, f"line {number}: {allowed_value(first)}") from None
        if page.uuid in pages:
            raise invalid("uuid", f"line {number}: an earlier line contains the same page")
        pages[page.uuid] = page
    for number, page in zip(lines, pages.values(), strict=True):
        if page.parent not in {None, ROOT} and page.parent not in pages:
            raise invalid("parent", f"line {number}: no line contains this parent page")
    return pages


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise invalid("body", "the line is not valid JSON") from None
    if not isinstance(values, dict):
        raise invalid("body", "the line must be a JSON object")
    return values


def _build_refusal(number: int, error: RagAssetsError) -> TreeLine:
    if isinstance(error, UnknownDocument):
        return TreeLine(number, "unknown-page")
    field, _, problem = error.message.partition(": ")
    if field in {"uuid", "parent", "read"}:
        return TreeLine(number, "invalid", errors=(InvalidField(field, problem),))
    return TreeLine(number, "invalid", errors=(InvalidField("body", error.message),))
