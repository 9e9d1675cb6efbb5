"""Endpoints for the documents of a project, their upload, and the project's usage."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from rag_assets.api.guard import Guarded, Streamed
from rag_assets.api.guideline_responses import (
    DeletedDocument,
    DocumentPage,
    GuidelineDocument,
    UploadedDocument,
    camel,
)
from rag_assets.api.model import DocumentId
from rag_assets.api.problems import documented
from rag_assets.api.upload_routes import FORM, REPLACES, UploadForm, replaced
from rag_assets.ingest.parsing.media_types import DOCX, MARKDOWN, PDF
from rag_assets.storage.catalog.uploads.states import UploadStatus
from rag_assets.systems.team_guidelines.documents import DocumentChunks
from rag_assets.systems.team_guidelines.library import CURSOR
from rag_assets.systems.team_guidelines.routes.access import ProjectDependency
from rag_assets.systems.team_guidelines.usage import ProjectUsage

_PREFIX = "/api/projects/{project_id}/guidelines"
_OK = 200
_DUPLICATE: dict[int | str, dict[str, Any]] = {_OK: {"model": UploadedDocument}}
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[int | str, dict[str, Any]] = {
    _OK: {
        "description": "The file, as an attachment.",
        "content": dict.fromkeys((PDF, MARKDOWN, DOCX), _BINARY),
    }
}
_FILE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
}

uploading = APIRouter(
    prefix=_PREFIX,
    tags=["guidelines"],
    responses=documented(401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503),
    route_class=Streamed,
)
documents = APIRouter(
    prefix=_PREFIX,
    tags=["guidelines"],
    responses=documented(400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503),
    route_class=Guarded,
)


class EnabledBody(BaseModel):
    """Whether a document may answer."""

    model_config = ConfigDict(alias_generator=camel, extra="forbid", frozen=True)

    enabled: Annotated[bool, Field(strict=True)]


class DocumentQuery(BaseModel):
    """Filter and page of a list of documents.

    Attributes:
        status: only documents with this status.
        after: the `next` of the previous page.
        limit: maximum number of documents.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: UploadStatus | None = None
    after: Annotated[str, Field(pattern=CURSOR)] | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


class UsageQuery(BaseModel):
    """Number of days of usage, including today."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: int = Field(default=30, ge=1, le=366)


@uploading.post("/upload", status_code=202, responses=_DUPLICATE, openapi_extra=FORM)
async def upload(http: Request, response: Response, request: ProjectDependency) -> UploadedDocument:
    """Upload a document, or a new version of one. For admins.

    The former version answers until the new version is READY, and also if the new version fails.
    For a file with the same bytes as a stored file, the response is 200 with `duplicate`; if the
    stored document had failed, it is retried. A missing permission or key, or a reached cap, is
    reported before the file is read.
    """
    project, library = request.project, request.guidelines.library
    source = await request.read(partial(library.require_uploads, project))
    form = UploadForm(http.headers.get("content-type", ""), frozenset({REPLACES}))
    async with request.admin.backend.receiving.file(
        http,
        form,
        source,
        tenant_id=project.record.id,
        caller=request.caller,
        receive=partial(library.uploads.receive, project.ref),
    ) as received:
        name, replaces = form.finish(), replaced(form)
        examine = partial(library.uploads.examine, source, received)
        new = await request.read(partial(examine, file_name=name, by=request.caller))
        store = partial(library.uploads.store, project.ref, new, received)
        stored = await request.write(partial(store, replaces=replaces))
    if stored.duplicate:
        response.status_code = _OK
    document = await request.read(partial(library.find, project, stored.upload.id))
    return UploadedDocument(document, stored.duplicate)


@documents.get("")
async def list_documents(
    request: ProjectDependency, parameters: Annotated[DocumentQuery, Query()]
) -> DocumentPage:
    """List a project's documents with their status, newest first. For admins."""
    page = request.guidelines.library.list_page
    return await request.read(partial(page, request.project, **parameters.model_dump()))


# This route comes before the paths with an id, because the first of several matching routes
# answers.
@documents.get("/usage")
async def usage(
    request: ProjectDependency, parameters: Annotated[UsageQuery, Query()]
) -> ProjectUsage:
    """Return a project's usage by day, provider and model, its caps, and its queue. For admins."""
    report = request.guidelines.usage.report
    return await request.read(partial(report, request.project, parameters.days))


@documents.get("/{document_id}")
async def document(request: ProjectDependency, document_id: DocumentId) -> GuidelineDocument:
    """Return one document. For admins."""
    return await request.read(
        partial(request.guidelines.library.find, request.project, document_id)
    )


@documents.delete("/{document_id}", status_code=202)
async def delete_document(request: ProjectDependency, document_id: DocumentId) -> DeletedDocument:
    """Delete a document and its file; it stops answering at once. For admins."""
    delete = request.guidelines.library.delete
    return await request.write(partial(delete, request.project, document_id, request.caller))


@documents.patch("/{document_id}")
async def enable_document(
    request: ProjectDependency, document_id: DocumentId, body: EnabledBody
) -> GuidelineDocument:
    """Enable or disable a document at once, without embedding it again. For admins."""
    put = partial(
        request.guidelines.library.set_enabled, request.project, document_id, request.caller
    )
    return await request.write(partial(put, enabled=body.enabled))


@documents.post(
    "/{document_id}/retry",
    status_code=202,
    responses={_OK: {"model": GuidelineDocument}, **documented(402, 409)},
)
async def retry_document(
    request: ProjectDependency, document_id: DocumentId, response: Response
) -> GuidelineDocument:
    """Retry a document that failed (202); another one stays unchanged (200). For admins."""
    retry = request.guidelines.library.retry
    shown, is_retried = await request.write(
        partial(retry, request.project, document_id, request.caller)
    )
    if not is_retried:
        response.status_code = _OK
    return shown


@documents.get("/{document_id}/chunks")
async def chunks(request: ProjectDependency, document_id: DocumentId) -> DocumentChunks:
    """Return a document's passages as a model gets them, and the withheld ones. For admins."""
    return await request.read(
        partial(request.guidelines.library.chunks, request.project, document_id)
    )


@documents.get("/{document_id}/file", response_class=StreamingResponse, responses=_FILE)
async def file(request: ProjectDependency, document_id: DocumentId) -> StreamingResponse:
    """Return the original file, as an attachment. For admins."""
    original = await request.read(
        partial(request.guidelines.library.file, request.project, document_id)
    )
    name = quote(original.file_name, safe="")
    return StreamingResponse(
        original.pieces,
        media_type=original.mime_type,
        headers={
            "Content-Disposition": f"attachment; filename*=utf-8''{name}",
            "Content-Length": str(original.size),
            **_FILE_HEADERS,
        },
    )
