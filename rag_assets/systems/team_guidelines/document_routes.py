"""Endpoints of a project's documents, its plain text, and the context of a task."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from rag_assets.api.guard import MAX_BODY_BYTES, Guarded, Streamed
from rag_assets.api.guideline_responses import (
    DeletedDocument,
    DocumentPage,
    GuidelineDocument,
    GuidelinesContext,
    GuidelinesText,
    UploadedDocument,
    to_camel_case,
)
from rag_assets.api.model import DocumentId, parse_if_match
from rag_assets.api.problems import document_problems
from rag_assets.api.upload_routes import FORM, REPLACES, UploadForm, find_replaced_upload_id
from rag_assets.common.invalid_values import InvalidFields
from rag_assets.ingest.parsing.media_types import DOCX, MARKDOWN, PDF
from rag_assets.storage.catalog.uploads.table import UploadStatus
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from rag_assets.systems.team_guidelines.documents import CURSOR_PATTERN, DocumentChunks
from rag_assets.systems.team_guidelines.errors import TextRefused
from rag_assets.systems.team_guidelines.routes import ProjectDependency, PromptDependency
from rag_assets.systems.team_guidelines.service import ProjectUsage
from rag_assets.systems.team_guidelines.texts import (
    MAX_CHARACTERS,
    GuidelineText,
    GuidelineTexts,
    build_text_response,
    require_usable,
)

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
    responses=document_problems(401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503),
    route_class=Streamed,
)
documents = APIRouter(
    prefix=_PREFIX,
    tags=["guidelines"],
    responses=document_problems(400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503),
    route_class=Guarded,
)


class EnabledBody(BaseModel):
    """Whether a document may answer."""

    model_config = ConfigDict(alias_generator=to_camel_case, extra="forbid", frozen=True)

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
    after: Annotated[str, Field(pattern=CURSOR_PATTERN)] | None = None
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
    async with request.admin.backend.file_receiver.receive(
        http,
        form,
        source,
        tenant_id=project.record.id,
        caller=request.caller,
        create=partial(library.uploads.receive, project.ref),
    ) as received:
        name, replaces = form.finish(), find_replaced_upload_id(form)
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
    """Return usage by day, provider and model, caps, and waiting documents. For admins."""
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
    """Delete a document and its file; searches stop finding it immediately. For admins."""
    delete = request.guidelines.library.delete
    return await request.write(partial(delete, request.project, document_id, request.caller))


@documents.patch("/{document_id}")
async def enable_document(
    request: ProjectDependency, document_id: DocumentId, body: EnabledBody
) -> GuidelineDocument:
    """Enable or disable a document immediately, without embedding it again. For admins."""
    put = partial(
        request.guidelines.library.set_enabled, request.project, document_id, request.caller
    )
    return await request.write(partial(put, enabled=body.enabled))


@documents.post(
    "/{document_id}/retry",
    status_code=202,
    responses={_OK: {"model": GuidelineDocument}, **document_problems(402, 409)},
)
async def retry_document(
    request: ProjectDependency, document_id: DocumentId, response: Response
) -> GuidelineDocument:
    """Retry a failed document (202); any other document stays unchanged (200). For admins."""
    retry = request.guidelines.library.retry
    shown_document, is_retried = await request.write(
        partial(retry, request.project, document_id, request.caller)
    )
    if not is_retried:
        response.status_code = _OK
    return shown_document


@documents.get("/{document_id}/chunks")
async def chunks(request: ProjectDependency, document_id: DocumentId) -> DocumentChunks:
    """Return a document's passages as a model gets them, and withheld passages. For admins."""
    return await request.read(
        partial(request.guidelines.library.read_chunks, request.project, document_id)
    )


@documents.get("/{document_id}/file", response_class=StreamingResponse, responses=_FILE)
async def file(request: ProjectDependency, document_id: DocumentId) -> StreamingResponse:
    """Return the original file, as an attachment. For admins."""
    original = await request.read(
        partial(request.guidelines.library.open_file, request.project, document_id)
    )
    name = quote(original.file_name, safe="")
    return StreamingResponse(
        original.blocks,
        media_type=original.mime_type,
        headers={
            "Content-Disposition": f"attachment; filename*=utf-8''{name}",
            "Content-Length": str(original.size),
            **_FILE_HEADERS,
        },
    )


_REFUSED = document_problems(401, 403, 404, 422, 429, 500, 503)

prompting = APIRouter(
    prefix="/api/projects/{project_id}/guidelines",
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=Guarded,
)


class LongTextRoute(Guarded):
    """A route whose body has a plain text; it may be larger than the bodies of other routes.

    A character of the text may take two JSON escapes.
    """

    most_bytes = MAX_BODY_BYTES + 2 * len(r"\ud83d") * MAX_CHARACTERS


texts = APIRouter(
    prefix=prompting.prefix,
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=LongTextRoute,
)


class TextBody(BaseModel):
    """The plain text of a project.

    Attributes:
        text: the new text; an empty text removes it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The length is checked later, so that the error can state the length.
    text: Annotated[
        str, Field(json_schema_extra={"maxLength": MAX_CHARACTERS, "pattern": "^[^\\x00]*$"})
    ]


@prompting.post("/context", responses=document_problems(400, 408, 413))
async def context(body: ContextRequest, request: PromptDependency) -> GuidelinesContext:
    """Build a prompt's section from passages, or else from the plain text; it may be empty.

    `reason` explains missing passages. The request succeeds even if the embedding provider or the
    index fails. For members; `explain` is for admins.
    """
    identity, backend = request.identity, request.backend
    if body.explain:
        identity.require_admin()
    contexts = Contexts(
        backend.catalog, backend.retriever, backend.reader, run_blocking=backend.run
    )
    return await contexts.build(request.record, body, identity.caller)


@texts.get("/text")
async def text(request: ProjectDependency, response: Response) -> GuidelinesText:
    """Return the plain text and its ETag. For admins."""
    record = request.project.record
    stored = GuidelineTexts(request.admin.backend.catalog.database)
    return _build_text_response(await request.read(lambda: stored.get(record.id)), response)


@texts.put("/text", responses=document_problems(400, 408, 412, 413, 428))
async def put_text(
    body: TextBody,
    request: ProjectDependency,
    response: Response,
    if_match: Annotated[str | None, Header(max_length=1_000)] = None,
) -> GuidelinesText:
    """Set the plain text. For admins.

    Replacing a text requires its ETag in If-Match. A text with a credential is refused, with the
    line and the rule that found it.
    """
    backend = request.admin.backend
    masker = backend.retriever.masker
    try:
        await request.read(lambda: require_usable(body.text, masker))
    except TextRefused as error:
        raise InvalidFields(
            [
                {"type": "value_error", "loc": ("body", "text"), "msg": problem}
                for problem in error.problems
            ]
        ) from None
    replaces = None if if_match is None else parse_if_match(if_match)
    stored, ref = GuidelineTexts(backend.catalog.database), request.project.ref
    put = partial(stored.put, ref, body.text, by=request.caller, replaces=replaces)
    return _build_text_response(await request.write(put), response)


def _build_text_response(text: GuidelineText | None, response: Response) -> GuidelinesText:
    body = build_text_response(text)
    if body.etag is not None:
        response.headers["ETag"] = body.etag
    return body
