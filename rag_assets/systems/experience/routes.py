"""The endpoints of experience, below /rag/experience.

Orchestrators capture and ask; admins capture and manage; members do neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    checkpoint_problems,
    entry_problems,
    retraction_problems,
)
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.ranking import determine_quality
from rag_assets.systems.experience.service import Checkpoint, Experience

_REFUSED = document_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_CREATED, _FOUND = 201, 200
_T = TypeVar("_T")

router = APIRouter(
    prefix="/rag/experience", tags=["experience"], responses=_REFUSED, route_class=Guarded
)


class PatternPage(PatternFilter, TenantQuery):
    """A page of patterns; `after` is the last pattern of the previous page in the same order."""

    after: UUID | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


@dataclass(frozen=True, slots=True)
class TenantRequest:
    """A request about one tenant, with the services for it."""

    identity: Identity
    backend: Backend
    tenant: str

    @property
    def by(self) -> str:
        """Return the name of the caller."""
        return self.identity.name

    @property
    def experience(self) -> Experience:
        """Return the operations on the tenant."""
        return Experience(self.backend.catalog, self.backend.retriever.masker)

    @property
    def questions(self) -> Questions:
        """Return the service that answers questions."""
        return Questions(
            self.backend.catalog, self.backend.retriever, run_blocking=self.backend.run
        )

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.backend.run(self.tenant, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant; see Backend.write."""
        return await self.backend.write(self.tenant, work)

    async def administer(
        self, work: Callable[[Administration, TenantRecord], _T], *, is_write: bool = False
    ) -> _T:
        """Run an operation of admins on the tenant."""
        experience = self.experience

        def run() -> _T:
            return work(experience.administration, experience.record(self.tenant))

        return await (self.write(run) if is_write else self.read(run))


@dataclass(frozen=True, slots=True)
class PermittedCaller:
    """A caller with a permitted role."""

    request: Request
    identity: Identity
    backend: Backend
    named: str | None

    def about(self, tenant: str | None = None) -> TenantRequest:
        """Return the request about a tenant.

        Args:
            tenant: tenant that the request's body names.

        Raises:
            Forbidden: the token is not for this tenant.
        """
        tenant_id = self.identity.require_tenant(tenant or self.named)
        self.request.state.tenant = tenant_id
        return TenantRequest(self.identity, self.backend, tenant_id)


async def _accept_any_caller(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PermittedCaller:
    """Return any caller; the search itself refuses all roles except orchestrator."""
    return PermittedCaller(request, identity, backend, parameters.tenant)


async def _require_contributor(
    asker: Annotated[PermittedCaller, Depends(_accept_any_caller)],
) -> PermittedCaller:
    if asker.identity.role not in {"orchestrator", "admin"}:
        raise Forbidden(
            "this operation needs the role orchestrator or admin",
            hint="use a token with the role orchestrator",
        )
    return asker


async def _require_admin(
    asker: Annotated[PermittedCaller, Depends(_accept_any_caller)],
) -> PermittedCaller:
    asker.identity.require_admin()
    return asker


AskingDependency = Annotated[PermittedCaller, Depends(_accept_any_caller)]
AskedDependency = Annotated[PermittedCaller, Depends(_require_contributor)]
AdminDependency = Annotated[PermittedCaller, Depends(_require_admin)]


@router.put("/projects/{project_id}")
async def put_project(project_id: UUID, body: ProjectDraft, asker: AskedDependency) -> Project:
    """Create a project that contributes entries, or change its name and state."""
    asked, caller = asker.about(), asker.identity.caller
    if body.owner is not None:
        asker.identity.require_admin()
    put = partial(asked.experience.put_project, asked.tenant, project_id, body, caller)
    return await asked.write(put)


@router.post("/entries", status_code=_CREATED, responses={_FOUND: {"model": CapturedEntry}})
async def capture(body: EntryDraft, asker: AskedDependency, response: Response) -> CapturedEntry:
    """Stage what a project learned; a checkpoint embeds it.

    With an external_id, the request may be repeated: the response is then 200 with the first id.
    """
    asked = asker.about(body.tenant)
    _require_none(entry_problems(body))
    capture = partial(asked.experience.capture, by=asked.by, caller=asker.identity.caller)
    captured = await asked.write(partial(capture, asked.tenant, body))
    if not captured.new:
        response.status_code = _FOUND
    entry = captured.entry
    return CapturedEntry(
        entry.id, determine_quality(entry.entry_type), captured.staged, captured.masked
    )


@router.delete("/entries/{entry_id}", status_code=202)
async def delete_entry(entry_id: UUID, asker: AdminDependency) -> Retracted:
    """Retract one entry: searches omit it immediately, and every store deletes it. For admins."""
    asked = asker.about()

    def delete(administration: Administration, record: TenantRecord) -> Retracted:
        administration.delete_entry(record, entry_id, by=asked.by)
        return Retracted(1)

    return await asked.administer(delete, is_write=True)


@router.post("/retract", status_code=202)
async def retract(body: RetractDraft, asker: AdminDependency) -> Retracted:
    """Retract all entries of a project, or all entries captured with a token. For admins."""
    asked = asker.about(body.tenant)
    _require_none(retraction_problems(body))
    count = await asked.administer(
        lambda administration, record: administration.retract(record, body, by=asked.by),
        is_write=True,
    )
    return Retracted(count)


@router.post("/checkpoints", status_code=202)
async def request_checkpoint(body: CheckpointDraft, asker: AskedDependency) -> RequestedCheckpoint:
    """Request that the entries a project has staged so far are embedded in the background."""
    asked = asker.about(body.tenant)
    _require_none(checkpoint_problems(body))
    request = partial(
        asked.experience.request_checkpoint, by=asked.by, caller=asker.identity.caller
    )
    made = await asked.write(partial(request, asked.tenant, body))
    return RequestedCheckpoint(made.id, made.staged)


@router.get("/checkpoints/{checkpoint_id}")
async def checkpoint(checkpoint_id: UUID, asker: AskedDependency) -> CheckpointProgress:
    """Return the progress of a checkpoint."""
    asked = asker.about()
    found: Checkpoint = await asked.read(
        partial(asked.experience.checkpoint, asked.tenant, checkpoint_id, asker.identity.caller)
    )
    return found.progress


@router.post("/task", responses=document_problems(402, 502))
async def for_task(body: TaskQuestion, asker: AskingDependency) -> Answer:
    """Find patterns of past projects for a task. For orchestrators."""
    asked = asker.about(body.tenant)
    record = await asked.read(partial(asked.experience.record, asked.tenant))
    return await asked.questions.for_task(record, body, asked.identity.caller)


@router.post("/failure", responses=document_problems(402, 502))
async def for_failure(body: FailureQuestion, asker: AskingDependency) -> Answer:
    """Find solutions of similar failures. For orchestrators."""
    asked = asker.about(body.tenant)
    record = await asked.read(partial(asked.experience.record, asked.tenant))
    return await asked.questions.for_failure(record, body, asked.identity.caller)


@router.post("/context", responses=document_problems(402, 502))
async def context(body: ContextQuestion, asker: AskingDependency) -> Context:
    """Write an agent's context for a task, with patterns of past projects. For orchestrators."""
    asked = asker.about(body.tenant)
    record = await asked.read(partial(asked.experience.record, asked.tenant))
    return await asked.questions.context(record, body, asked.identity.caller)


@router.post("/feedback")
async def feedback(body: FeedbackDraft, asker: AskedDependency) -> FeedbackCounts:
    """Record whether a pattern helped; later feedback on an answer replaces earlier feedback."""
    asked = asker.about(body.tenant)
    return await asked.write(partial(asked.experience.feedback, asked.tenant, body, by=asked.by))


@router.get("/patterns")
async def patterns(
    request: Request,
    page: Annotated[PatternPage, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Patterns:
    """List patterns by id, by use or newest first; search and filter them. For admins."""
    identity.require_admin()
    asked = PermittedCaller(request, identity, backend, page.tenant).about()

    def read(administration: Administration, record: TenantRecord) -> Patterns:
        found = administration.page(record, after=page.after, limit=page.limit + 1, wanted=page)
        following = found[page.limit - 1].id if len(found) > page.limit else None
        unmatched = () if found else administration.find_unmatched_names(record, page)
        return Patterns(tuple(found[: page.limit]), following, unmatched)

    return await asked.administer(read)


@router.get("/patterns/{pattern_id}")
async def pattern(pattern_id: UUID, asker: AdminDependency) -> PatternDetails:
    """Show a pattern with its entries and merges. For admins."""
    return await asker.about().administer(
        lambda administration, record: administration.details(record, pattern_id)
    )


@router.post("/patterns/{pattern_id}/merge")
async def merge(pattern_id: UUID, body: MergeDraft, asker: AdminDependency) -> PatternDetails:
    """Merge a pattern into another one; `confirm` is needed if problems differ. For admins."""
    asked = asker.about(body.tenant)
    return await asked.administer(
        lambda administration, record: administration.merge(
            record, pattern_id, body.into, by=asked.by, confirmed=body.confirm
        ),
        is_write=True,
    )


@router.post("/patterns/{pattern_id}/split")
async def split(pattern_id: UUID, body: SplitDraft, asker: AdminDependency) -> SplitPattern:
    """Move an entry out of a pattern; they are never merged automatically again. For admins."""
    asked = asker.about(body.tenant)
    return await asked.administer(
        lambda administration, record: administration.split(
            record, pattern_id, body.entry_id, by=asked.by
        ),
        is_write=True,
    )


@router.get("/report")
async def report(asker: AdminDependency) -> Report:
    """Return a report of entries, questions, feedback and upcoming expiries. For admins."""
    return await asker.about().administer(Administration.report)


def _require_none(found: Iterator[tuple[str, str]]) -> None:
    """Require a valid body; the error names each invalid field."""
    problems = [
        {"type": "value_error", "loc": ("body", name), "msg": problem} for name, problem in found
    ]
    if problems:
        raise InvalidFields(problems)
