"""Endpoints for prompts: the context of a task, and the plain text."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field

from rag_assets.api.guard import MAX_BODY, Guarded
from rag_assets.api.guideline_responses import GuidelinesContext, GuidelinesText
from rag_assets.api.problems import documented
from rag_assets.api.write_model import named_versions
from rag_assets.common.errors import TextRefused
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from rag_assets.systems.team_guidelines.routes.access import (
    ProjectDependency,
    PromptedProjectDependency,
)
from rag_assets.systems.team_guidelines.texts import (
    MAX_TEXT,
    GuidelineText,
    GuidelineTexts,
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
    """A route whose body holds a plain text, each character as two escapes at worst."""

    most_bytes = MAX_BODY + 2 * len(r"\ud83d") * MAX_TEXT


texts = APIRouter(
    prefix=prompting.prefix,
    tags=["guidelines"],
    responses=_REFUSED,
    route_class=LongText,
)


class TextBody(BaseModel):
    """The plain text of a project.

    Attributes:
        text: empty for none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Whoever writes too much is told how much it is.
    text: Annotated[str, Field(json_schema_extra={"maxLength": MAX_TEXT, "pattern": "^[^\\x00]*$"})]


@prompting.post("/context", responses=documented(400, 408, 413))
async def context(body: ContextRequest, asked: PromptedProjectDependency) -> GuidelinesContext:
    """Make the section of a prompt: passages of documents, else the plain text, else nothing.

    `reason` tells why there are no passages. No failure of an embedding provider or of the index
    fails the request. Members may ask; `explain` is for admins.
    """
    identity, backend = asked.identity, asked.backend
    if body.explain:
        identity.require_admin()
    contexts = Contexts(
        backend.catalog, backend.retriever, backend.reader, run_blocking=backend.run
    )
    return await contexts.of(asked.record, body, identity.caller)


@texts.get("/text")
async def text(asked: ProjectDependency, response: Response) -> GuidelinesText:
    """Read the plain text, and its ETag. For admins."""
    record = asked.project.record
    stored = GuidelineTexts(asked.asked.backend.catalog.database)
    return _shown(await asked.read(lambda: stored.get(record.id)), response)


@texts.put("/text", responses=documented(400, 408, 412, 413, 428))
async def put_text(
    body: TextBody,
    asked: ProjectDependency,
    response: Response,
    if_match: Annotated[str | None, Header(max_length=1_000)] = None,
) -> GuidelinesText:
    """Set the plain text. For admins.

    A text that is there is replaced by whoever names its ETag in If-Match. One that holds a
    credential is refused, with its line and the rule that found it.
    """
    backend = asked.asked.backend
    masker = backend.retriever.masker
    try:
        await asked.read(lambda: require_usable(body.text, masker))
    except TextRefused as error:
        raise RequestValidationError(
            [
                {"type": "value_error", "loc": ("body", "text"), "msg": problem}
                for problem in error.problems
            ]
        ) from None
    replaces = None if if_match is None else named_versions(if_match)
    stored, ref = GuidelineTexts(backend.catalog.database), asked.project.ref
    put = await asked.write(lambda: stored.put(ref, body.text, by=asked.caller, replaces=replaces))
    return _shown(put, response)


def _shown(found: GuidelineText | None, response: Response) -> GuidelinesText:
    if found is None:
        return GuidelinesText(text="", updated_by=None, updated_at=None)
    etag = response.headers["ETag"] = f'"{found.version}"'
    return GuidelinesText(
        text=found.text, updated_by=found.updated_by, updated_at=found.updated_at, etag=etag
    )
