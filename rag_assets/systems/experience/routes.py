"""Endpoints of experience, below /rag/experience.

Orchestrators capture entries and ask questions; admins capture and manage; members do neither.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.experience_responses import (
    Answer,
    CapturedEntry,
    CheckpointProgress,
    Context,
    FeedbackCounts,
    PatternDetails,
    Patterns,
    Project,
    Report,
    RequestedCheckpoint,
    Retracted,
    SplitPattern,
)
from rag_assets.api.guard import Guarded
from rag_assets.api.identity import Forbidden, Identity
from rag_assets.api.model import TenantQuery
from rag_assets.api.problems import document_problems
from rag_assets.common.invalid_values import InvalidFields
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.administration import Administration
from rag_assets.systems.experience.model import (
    CheckpointDraft,
    ContextQuestion,
    EntryDraft,
    FailureQuestion,
    FeedbackDraft,
    MergeDraft,
    PatternFilter,
    ProjectDraft,
    RetractDraft,
    SplitDraft,
    TaskQuestion,
    find_checkpoint_problems,
    find_entry_problems,
    find_retraction_problems,
)
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.ranking import determine_quality
from rag_assets.systems.experience.service import Experience

_REFUSED = document_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_CREATED, _FOUND = 201, 200
_Question = TypeVar("_Question")
_T = TypeVar("_T")

router = APIRouter(
    prefix="/rag/experience", tags=["experience"], responses=_REFUSED, route_class=Guarded
)


class PatternPage(PatternFilter, TenantQuery):
    """A page of patterns; `after` is the last pattern of the previous page."""

    after: UUID | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


@dataclass(frozen=True, slots=True)
class TenantRequest:
    """A request about one tenant, with the services that answer it."""

    identity: Identity
    backend: Backend
    tenant: str

    @property
    def by(self) -> str:
        """Return the name of the caller."""
        return self.identity.name

    @property
    def experience(self) -> Experience:
        """Return the operations on projects, entries and checkpoints."""
        return Experience(self.backend.catalog, self.backend.retriever.masker)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.backend.run(self.tenant, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant; see Backend.write."""
        return await self.backend.write(self.tenant, work)

    async def ask(
        self,
        ask: Callable[[Questions, TenantRecord, _Question, Caller], Awaitable[_T]],
        question: _Question,
    ) -> _T:
        """Answer a question of the caller."""
        record = await self.read(partial(self.experience.get_record, self.tenant))
        questions = Questions(
            self.backend.catalog, self.backend.retriever, run_blocking=self.backend.run
        )
        return await ask(questions, record, question, self.identity.caller)

    async def administer(
        self, work: Callable[[Administration, TenantRecord], _T], *, is_write: bool = False
    ) -> _T:
        """Run an operation for admins on the tenant."""
        experience = self.experience

        def run() -> _T:
            return work(experience.administration, experience.get_record(self.tenant))

        return await (self.write(run) if is_write else self.read(run))


@dataclass(frozen=True, slots=True)
class PermittedRequest:
    """A request of a caller with a permitted role."""

    http: Request
    identity: Identity
    backend: Backend
    query_tenant: str | None

    def select_tenant(self, body_tenant: str | None = None) -> TenantRequest:
        """Return the request with its tenant.

        The tenant is named in the body, else in the query string, else by the token.

        Raises:
            Forbidden: the token is not for this tenant.
        """
        tenant_id = self.identity.require_tenant(body_tenant or self.query_tenant)
        self.http.state.tenant = tenant_id
        return TenantRequest(self.identity, self.backend, tenant_id)


async def _accept_any_caller(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PermittedRequest:
    """Permit every role; the search itself refuses all roles except orchestrator."""
    return PermittedRequest(request, identity, backend, parameters.tenant)


async def _require_contributor(
    permitted: Annotated[PermittedRequest, Depends(_accept_any_caller)],
) -> PermittedRequest:
    if permitted.identity.role not in {"orchestrator", "admin"}:
        raise Forbidden(
            "this operation requires the role orchestrator or admin",
            hint="use a token with the role orchestrator",
        )
    return permitted


async def _require_admin(
    permitted: Annotated[PermittedRequest, Depends(_accept_any_caller)],
) -> PermittedRequest:
    permitted.identity.require_admin()
    return permitted


AnyRoleDependency = Annotated[PermittedRequest, Depends(_accept_any_caller)]
ContributorDependency = Annotated[PermittedRequest, Depends(_require_contributor)]
AdminDependency = Annotated[PermittedRequest, Depends(_require_admin)]


@router.put("/projects/{project_id}")
async def put_project(
    project_id: UUID, body: ProjectDraft, permitted: ContributorDependency
) -> Project:
    """Create a project that contributes entries, or change its name and state."""
    request, caller = permitted.select_tenant(), permitted.identity.caller
    if body.owner is not None:
        permitted.identity.require_admin()
    put = partial(request.experience.put_project, request.tenant, project_id, body, caller)
    return await request.write(put)


@router.post("/entries", status_code=_CREATED, responses={_FOUND: {"model": CapturedEntry}})
async def capture(
    body: EntryDraft, permitted: ContributorDependency, response: Response
) -> CapturedEntry:
    """Stage an entry of a project; a checkpoint embeds it.

    Repeating a request with the same external_id has no effect: the response is 200 with the first
    id.
    """
    request = permitted.select_tenant(body.tenant)
    _require_valid(find_entry_problems(body))
    capture = partial(request.experience.capture, by=request.by, caller=permitted.identity.caller)
    captured = await request.write(partial(capture, request.tenant, body))
    if not captured.new:
        response.status_code = _FOUND
    entry = captured.entry
    return CapturedEntry(
        entry.id, determine_quality(entry.entry_type), captured.staged, captured.masked
    )


@router.delete("/entries/{entry_id}", status_code=202)
async def delete_entry(entry_id: UUID, permitted: AdminDependency) -> Retracted:
    """Retract one entry: searches omit it immediately, and every store deletes it. For admins."""
    request = permitted.select_tenant()

    def delete(administration: Administration, record: TenantRecord) -> Retracted:
        administration.delete_entry(record, entry_id, by=request.by)
        return Retracted(1)

    return await request.administer(delete, is_write=True)


@router.post("/retract", status_code=202)
async def retract(body: RetractDraft, permitted: AdminDependency) -> Retracted:
    """Retract all entries of a project, or all entries captured with a token. For admins."""
    request = permitted.select_tenant(body.tenant)
    _require_valid(find_retraction_problems(body))
    count = await request.administer(
        lambda administration, record: administration.retract(record, body, by=request.by),
        is_write=True,
    )
    return Retracted(count)


@router.post("/checkpoints", status_code=202)
async def request_checkpoint(
    body: CheckpointDraft, permitted: ContributorDependency
) -> RequestedCheckpoint:
    """Request a checkpoint: staged entries of a project are embedded in the background."""
    request = permitted.select_tenant(body.tenant)
    _require_valid(find_checkpoint_problems(body))
    create = partial(
        request.experience.request_checkpoint, by=request.by, caller=permitted.identity.caller
    )
    requested = await request.write(partial(create, request.tenant, body))
    return RequestedCheckpoint(requested.id, requested.staged)


@router.get("/checkpoints/{checkpoint_id}")
async def checkpoint(checkpoint_id: UUID, permitted: ContributorDependency) -> CheckpointProgress:
    """Return the progress of a checkpoint."""
    request = permitted.select_tenant()
    get = partial(request.experience.get_checkpoint, request.tenant, checkpoint_id)
    return (await request.read(partial(get, permitted.identity.caller))).progress


@router.post("/task", responses=document_problems(402, 502))
async def for_task(body: TaskQuestion, permitted: AnyRoleDependency) -> Answer:
    """Find patterns of past projects for a task. For orchestrators."""
    return await permitted.select_tenant(body.tenant).ask(Questions.answer_task, body)


@router.post("/failure", responses=document_problems(402, 502))
async def for_failure(body: FailureQuestion, permitted: AnyRoleDependency) -> Answer:
    """Find solutions of similar failures. For orchestrators."""
    return await permitted.select_tenant(body.tenant).ask(Questions.answer_failure, body)


@router.post("/context", responses=document_problems(402, 502))
async def context(body: ContextQuestion, permitted: AnyRoleDependency) -> Context:
    """Write an agent's context for a task, with patterns of past projects. For orchestrators."""
    return await permitted.select_tenant(body.tenant).ask(Questions.build_context, body)


@router.post("/feedback")
async def feedback(body: FeedbackDraft, permitted: ContributorDependency) -> FeedbackCounts:
    """Record whether a pattern helped; later feedback on an answer replaces earlier feedback."""
    request = permitted.select_tenant(body.tenant)
    return await request.write(
        partial(request.experience.record_feedback, request.tenant, body, by=request.by)
    )


@router.get("/patterns")
async def patterns(
    http: Request,
    page: Annotated[PatternPage, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Patterns:
    """List patterns by id, by use or newest first; search and filter them. For admins."""
    identity.require_admin()
    request = PermittedRequest(http, identity, backend, page.tenant).select_tenant()

    def read(administration: Administration, record: TenantRecord) -> Patterns:
        patterns = administration.list_patterns(
            record, after=page.after, limit=page.limit + 1, pattern_filter=page
        )
        following = patterns[page.limit - 1].id if len(patterns) > page.limit else None
        unmatched = () if patterns else administration.find_unmatched_names(record, page)
        return Patterns(tuple(patterns[: page.limit]), following, unmatched)

    return await request.administer(read)


@router.get("/patterns/{pattern_id}")
async def pattern(pattern_id: UUID, permitted: AdminDependency) -> PatternDetails:
    """Show a pattern with its entries and merges. For admins."""
    return await permitted.select_tenant().administer(
        lambda administration, record: administration.read_details(record, pattern_id)
    )


@router.post("/patterns/{pattern_id}/merge")
async def merge(pattern_id: UUID, body: MergeDraft, permitted: AdminDependency) -> PatternDetails:
    """Merge a pattern into another; requires `confirm` if their problems differ. For admins."""
    request = permitted.select_tenant(body.tenant)
    return await request.administer(
        lambda administration, record: administration.merge(
            record, pattern_id, body.into, by=request.by, confirmed=body.confirm
        ),
        is_write=True,
    )


@router.post("/patterns/{pattern_id}/split")
async def split(pattern_id: UUID, body: SplitDraft, permitted: AdminDependency) -> SplitPattern:
    """Move an entry out of a pattern; they are not merged automatically again. For admins."""
    request = permitted.select_tenant(body.tenant)
    return await request.administer(
        lambda administration, record: administration.split(
            record, pattern_id, body.entry_id, by=request.by
        ),
        is_write=True,
    )


@router.get("/report")
async def report(permitted: AdminDependency) -> Report:
    """Return a report of entries, questions, feedback and upcoming expiries. For admins."""
    return await permitted.select_tenant().administer(Administration.build_report)


def _require_valid(problems: Iterator[tuple[str, str]]) -> None:
    """Require a body without problems; the error names each invalid field."""
    errors = [
        {"type": "value_error", "loc": ("body", name), "msg": problem} for name, problem in problems
    ]
    if errors:
        raise InvalidFields(errors)
