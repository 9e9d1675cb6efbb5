"""Endpoints of the context of a task, and of the plain text."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Response
from pydantic import BaseModel, ConfigDict, Field

from rag_assets.api.guard import MAX_BODY, Guarded
from rag_assets.api.guideline_responses import GuidelinesContext, GuidelinesText
from rag_assets.api.model import named_versions
from rag_assets.api.problems import documented
from rag_assets.common.invalid_values import InvalidFields
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from rag_assets.systems.team_guidelines.errors import TextRefused
from rag_assets.systems.team_guidelines.routes.access import ProjectDependency, PromptDependency
from rag_assets.systems.team_guidelines.texts import (
    MAX_CHARACTERS,
    GuidelineText,
    GuidelineTexts,
    build_response,
    require_usable,
)

_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)

prompting = APIRouter(
    prefix="/api/projects/{project_id}/guidelines",
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=Guarded,
)


class LongText(Guarded):
    """A route with a plain text in its body, where a character may take two JSON escapes."""

    most_bytes = MAX_BODY + 2 * len(r"\ud83d") * MAX_CHARACTERS


texts = APIRouter(
    prefix=prompting.prefix,
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=LongText,
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


@prompting.post("/context", responses=documented(400, 408, 413))
async def context(body: ContextRequest, request: PromptDependency) -> GuidelinesContext:
    """Build the section of a prompt from passages, or else from the plain text; it may be empty.

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
    return _respond(await request.read(lambda: stored.get(record.id)), response)


@texts.put("/text", responses=documented(400, 408, 412, 413, 428))
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
    replaces = None if if_match is None else named_versions(if_match)
    stored, ref = GuidelineTexts(backend.catalog.database), request.project.ref
    put = partial(stored.put, ref, body.text, by=request.caller, replaces=replaces)
    return _respond(await request.write(put), response)


def _respond(text: GuidelineText | None, response: Response) -> GuidelinesText:
    body = build_response(text)
    if body.etag is not None:
        response.headers["ETag"] = body.etag
    return body
