"""The endpoint that takes guideline documents."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from rag_assets.api.guard import Streamed
from rag_assets.api.guideline_responses import UploadedDocument
from rag_assets.api.problems import documented
from rag_assets.api.upload_form import UploadForm
from rag_assets.api.upload_routes import FORM, REPLACES, replaced
from rag_assets.systems.team_guidelines.routes.access import ProjectDependency

_REFUSED = documented(401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_DONE = 200
_DUPLICATE: dict[int | str, dict[str, Any]] = {_DONE: {"model": UploadedDocument}}

uploading = APIRouter(
    prefix="/api/projects/{project_id}/guidelines",
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=Streamed,
)


@uploading.post("/upload", status_code=202, responses=_DUPLICATE, openapi_extra=FORM)
async def upload(
    request: Request, response: Response, asked: ProjectDependency
) -> UploadedDocument:
    """Upload a document, or the new version of one. For admins.

    The former version answers until the new one is READY, and if that fails. Bytes that are there
    already are not stored twice: that is answered with 200 and `duplicate`; a document that failed
    is tried again. Who may not upload, lacks a key or has reached a cap is told before the file is
    read.
    """
    project, library = asked.project, asked.guidelines.library
    source = await asked.read(partial(library.require_uploads, project))
    form = UploadForm(request.headers.get("content-type", ""), frozenset({REPLACES}))
    async with asked.asked.backend.receiving.file(
        request,
        form,
        source,
        tenant_id=project.record.id,
        caller=asked.caller,
        receive=partial(library.uploads.receive, project.ref),
    ) as received:
        name, replaces = form.finish(), replaced(form)
        examine = partial(library.uploads.examine, source, received)
        new = await asked.read(partial(examine, file_name=name, by=asked.caller))
        store = partial(library.uploads.store, project.ref, new, received)
        stored = await asked.write(partial(store, replaces=replaces))
    if stored.duplicate:
        response.status_code = _DONE
    shown = await asked.read(partial(library.document, project, stored.upload.id))
    return UploadedDocument(shown, stored.duplicate)
