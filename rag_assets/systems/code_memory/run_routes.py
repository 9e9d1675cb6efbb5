"""The endpoints of code memory for runs of agents, below /api/projects."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.guard import Guarded
from rag_assets.api.problems import document_problems
from rag_assets.api.run_responses import (
    CodeRun,
    IndexedProject,
    InvalidatedFiles,
    ReceivedEvents,
    RetrievedChunks,
    RunMetadata,
)
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.code_memory.access import AdministeredDependency, ProjectDependency, RunId
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.run_retrieval import RetrievalQuestion, RunRetrieval
from rag_assets.systems.code_memory.runs import (
    MAX_BYTES,
    FilePath,
    Run,
    RunEvent,
    Runs,
    parse_events,
    require_plain_ids,
)
from rag_assets.systems.code_memory.service import invalidate, request_reindexing
from rag_assets.tenants.model import Tenant

_REFUSED = document_problems(400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503)
_MAX_PATHS = 200
_RUN = "/{project_id}/runs/{run}"

router = APIRouter(
    prefix="/api/projects", tags=["code memory"], responses=_REFUSED, route_class=Guarded
)


class EventLines(Guarded):
    """A route whose request body contains events, one per line."""

    most_bytes = MAX_BYTES


receiving = APIRouter(
    prefix=router.prefix, tags=["code memory"], responses=_REFUSED, route_class=EventLines
)


class RunSettings(BaseModel):
    """An application's settings of a run.

    Attributes:
        rag_enabled: whether the run receives passages.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rag_enabled: Annotated[bool, Field(strict=True)] = True


class RunBody(BaseModel):
    """A run of an agent.

    Attributes:
        model: the language model that the run prompts; passages fill a share of its context window.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    metadata_json: RunSettings = RunSettings()
    model: Annotated[
        str | None, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
    ] = None


class IndexedPaths(BaseModel):
    """The files that a request wants indexed again.

    Attributes:
        paths: paths within a repository, or as hits show them; empty for all files of the project.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    paths: Annotated[tuple[FilePath, ...], Field(max_length=_MAX_PATHS)] = ()


class NamedPaths(BaseModel):
    """The files that a request names.

    Attributes:
        paths: paths within a repository, or as hits show them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    paths: Annotated[tuple[FilePath, ...], Field(min_length=1, max_length=_MAX_PATHS)]


@router.put(_RUN)
async def put_run(run: RunId, body: RunBody, project: ProjectDependency) -> CodeRun:
    """Create a run of an agent, or change its settings."""
    runs = Runs(project.backend.catalog.database)
    agent_run = Run(run, body.metadata_json.rag_enabled, body.model)

    def put() -> None:
        require_plain_ids(run, (), project.backend.retriever.masker)
        runs.put(project.record().ref, agent_run, by=project.identity.name)

    await project.write(put)
    return CodeRun(project.project, run, RunMetadata(agent_run.rag_enabled), agent_run.model)


@receiving.post(
    _RUN + "/events",
    status_code=202,
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "One event a line.",
            "content": {"application/x-ndjson": {"schema": RunEvent.model_json_schema()}},
        }
    },
)
async def put_events(request: Request, run: RunId, project: ProjectDependency) -> ReceivedEvents:
    """Receive a run's events: each becomes a document, and files that it names are listed soon.

    Either all events are accepted or none. An event with an id that the run has sent before has no
    effect. Credentials are masked before indexing; a request with a credential in an id is refused.
    """
    body = await request.body()
    runs = Runs(project.backend.catalog.database)

    def receive() -> ReceivedEvents:
        events = parse_events(body)
        require_plain_ids(run, events, project.backend.retriever.masker)
        record = project.record()
        tenant = Tenant.from_config(record.config)
        new = runs.receive(record.ref, tenant, run, events)
        return ReceivedEvents(accepted=new, known=len(events) - new)

    return await project.write(receive)


@router.post("/{project_id}/retrieve", responses=document_problems(402, 502))
async def retrieve(body: RetrievalQuestion, project: ProjectDependency) -> RetrievedChunks:
    """Find the passages of a project's repositories for the prompt of a run.

    A run that disables passages gets none. If no passage is near enough, the response has no chunks
    but a question for the user.
    """
    runs = Runs(project.backend.catalog.database)

    def find() -> tuple[TenantRecord, Run | None]:
        return project.record(), runs.get(project.tenant_id, body.run) if body.run else None

    record, run = await project.read(find)
    walker = Walker(project.backend.catalog, project.backend.reader.policy)
    retrieval = RunRetrieval(project.backend.retriever, walker)
    return await retrieval.retrieve(record, run, body, project.identity.caller)


@router.post("/{project_id}/index-rag", status_code=202)
async def index_rag(
    project: AdministeredDependency, body: IndexedPaths | None = None
) -> IndexedProject:
    """Request that a project, or some of its files, is read and indexed again. For admins.

    Until that is done, searches find the former state. Texts that have an embedding keep it.
    """
    catalog, settings = project.backend.catalog, project.backend.embedders.settings
    paths, by = () if body is None else body.paths, project.identity.name
    return await project.write(
        lambda: request_reindexing(catalog, settings, project.record(), paths, by=by)
    )


@router.post("/{project_id}/invalidate", status_code=202)
async def invalidate_files(project: AdministeredDependency, body: NamedPaths) -> InvalidatedFiles:
    """Remove files from the index. For admins.

    Searches omit these files from now on. The files themselves are not deleted. A file is indexed
    again when it changes, or when a call of index-rag names it or names no path.
    """
    catalog, by = project.backend.catalog, project.identity.name
    return await project.write(lambda: invalidate(catalog, project.record(), body.paths, by=by))
