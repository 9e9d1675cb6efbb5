"""Endpoints for guideline documents, apart from their upload."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from rag_assets.api.guard import Guarded
from rag_assets.api.guideline_responses import DeletedDocument, DocumentPage, GuidelineDocument
from rag_assets.api.problems import documented
from rag_assets.api.write_model import DocumentId
from rag_assets.ingest.parsing.media_types import DOCX, MARKDOWN, PDF
from rag_assets.systems.team_guidelines.documents import DocumentChunks
from rag_assets.systems.team_guidelines.routes.access import ProjectDependency
from rag_assets.systems.team_guidelines.routes.bodies import (
    DocumentQuery,
    EnabledBody,
    UsageQuery,
)
from rag_assets.systems.team_guidelines.usage import ProjectUsage

_REFUSED = documented(400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
_DONE = 200
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[int | str, dict[str, Any]] = {
    _DONE: {
        "description": "The file, as an attachment.",
        "content": dict.fromkeys((PDF, MARKDOWN, DOCX), _BINARY),
    }
}
_FILE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
}

documents = APIRouter(
    prefix="/api/projects/{project_id}/guidelines",
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=Guarded,
)


@documents.get("")
async def list_documents(
    asked: ProjectDependency, parameters: Annotated[DocumentQuery, Query()]
) -> DocumentPage:
    """List a project's documents, the newest first, with what became of them. For admins."""
    page = asked.guidelines.library.page
    return await asked.read(partial(page, asked.project, **parameters.model_dump()))


# Before those with an id: the first of two paths that match answers.
@documents.get("/usage")
async def usage(
    asked: ProjectDependency, parameters: Annotated[UsageQuery, Query()]
) -> ProjectUsage:
    """What a project has used by day, provider and model, its caps, and what waits. For admins."""
    return await asked.read(partial(asked.guidelines.usage.of, asked.project, parameters.days))


@documents.get("/{document_id}")
async def document(asked: ProjectDependency, document_id: DocumentId) -> GuidelineDocument:
    """One document. For admins."""
    return await asked.read(partial(asked.guidelines.library.document, asked.project, document_id))


@documents.delete("/{document_id}", status_code=202)
async def delete_document(asked: ProjectDependency, document_id: DocumentId) -> DeletedDocument:
    """Delete a document: it answers no more from now on, and its file is gone. For admins."""
    delete = asked.guidelines.library.delete
    return await asked.write(partial(delete, asked.project, document_id, asked.caller))


@documents.patch("/{document_id}")
async def enable_document(
    asked: ProjectDependency, document_id: DocumentId, body: EnabledBody
) -> GuidelineDocument:
    """Have a document answer no more from now on, or again; nothing is embedded. For admins."""
    put = partial(asked.guidelines.library.set_enabled, asked.project, document_id, asked.caller)
    return await asked.write(partial(put, enabled=body.enabled))


@documents.post(
    "/{document_id}/retry",
    status_code=202,
    responses={_DONE: {"model": GuidelineDocument}, **documented(402, 409)},
)
async def retry_document(
    asked: ProjectDependency, document_id: DocumentId, response: Response
) -> GuidelineDocument:
    """Try a document again that failed; any other stays as it is, which is 200. For admins."""
    retry = asked.guidelines.library.retry
    shown, tried = await asked.write(partial(retry, asked.project, document_id, asked.caller))
    if not tried:
        response.status_code = _DONE
    return shown


@documents.get("/{document_id}/chunks")
async def chunks(asked: ProjectDependency, document_id: DocumentId) -> DocumentChunks:
    """The passages of a document as a model gets them, and what was withheld. For admins."""
    return await asked.read(partial(asked.guidelines.library.chunks, asked.project, document_id))


@documents.get("/{document_id}/file", response_class=StreamingResponse, responses=_FILE)
async def file(asked: ProjectDependency, document_id: DocumentId) -> StreamingResponse:
    """The original file, as an attachment. For admins."""
    found = await asked.read(partial(asked.guidelines.library.file, asked.project, document_id))
    name = quote(found.file_name, safe="")
    return StreamingResponse(
        found.pieces,
        media_type=found.mime_type,
        headers={
            "Content-Disposition": f"attachment; filename*=utf-8''{name}",
            "Content-Length": str(found.size),
            **_FILE_HEADERS,
        },
    )
