"""Operations on projects, entries, checkpoints and feedback, for the API, commands, panel and MCP.

The operations of admins are in administration.py, the answers to questions in questions.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.api.experience_responses import (
    CheckpointProgress,
    CheckpointState,
    CheckpointType,
    FeedbackCounts,
    Project,
)
from rag_assets.common.clock import Clock
from rag_assets.common.hashing import compute_key
from rag_assets.privacy.masker import Masker
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, notify
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.administration import Administration
from rag_assets.systems.experience.code_contents import add_contents, find_code_files
from rag_assets.systems.experience.entries import (
    OPERATOR,
    CaptureResult,
    assign_staged_entries,
    entry_from_row,
    find_by_external_id,
    has_project,
    is_limited_to_own_projects,
    is_own_project,
    mask_draft,
    require_project,
    unknown_project_error,
)
from rag_assets.systems.experience.errors import EntryDiffers, NoExperience, UnknownExperience
from rag_assets.systems.experience.merges import find_living_roots
from rag_assets.systems.experience.model import (
    ANY_AGENT,
    CheckpointDraft,
    EntryDraft,
    FeedbackDraft,
    ProjectDraft,
    find_checkpoint_problems,
    find_entry_problems,
    require_no_problem,
    require_verified,
)
from rag_assets.systems.experience.patterns import read_counts
from rag_assets.systems.experience.tables import (
    checkpoints,
    experience_feedback,
    experience_questions,
    knowledge_staging,
    projects,
)
from rag_assets.tenants.model import Tenant

PROFILE = "experience"


class Experience:
    """Captures entries and manages projects, checkpoints and feedback; all methods block."""

    def __init__(self, catalog: Catalog, masker: Masker, clock: Clock | None = None) -> None:
        self._catalog, self._masker = catalog, masker
        self.checkpoints = Checkpoints(catalog.database)
        self.administration = Administration(catalog, clock or Clock())

    def get_record(self, tenant_id: str) -> TenantRecord:
        """Return a tenant with the profile experience.

        Raises:
            UnknownTenant: no tenant has this id.
            NoExperience: the tenant has another profile.
        """
        record = self._catalog.tenants.get(tenant_id)
        if record.profile != PROFILE:
            raise NoExperience(
                f"tenant {tenant_id!r} does not store experience",
                hint=f"choose a tenant with the profile {PROFILE!r}",
            )
        return record

    def put_project(
        self, tenant_id: str, project: UUID, draft: ProjectDraft, caller: Caller = OPERATOR
    ) -> Project:
        """Create a project that belongs to the caller, or change its name and state.

        Raises:
            UnknownProject: the project belongs to another owner.
        """
        ref = self.get_record(tenant_id).ref
        name, _ = self._masker.replace_credentials(draft.name)
        values = {"name": name, "state": draft.state, "updated_at": func.now()}
        owner = {"owner_organization": caller.organization}
        if is_limited_to_own_projects(caller) and caller.organization is None:
            owner["owner_token"] = caller.name
        if draft.owner is not None:
            owner = {"owner_token": draft.owner, "owner_organization": None}
        changed = values if draft.owner is None else values | owner
        statement = (
            upsert(projects)
            .values(tenant=ref.id, id=project, **values, **owner)
            .on_conflict_do_update(
                index_elements=["tenant", "id"], set_=changed, where=is_own_project(caller)
            )
            .returning(projects)
        )
        with self._catalog.database.begin_tenant(ref) as connection:
            row = connection.execute(statement).first()
        if row is None:
            raise unknown_project_error(project)
        return Project(row.id, row.name, row.state, row.created_at)

    def capture(
        self, tenant_id: str, draft: EntryDraft, *, by: str | None, caller: Caller = OPERATOR
    ) -> CaptureResult:
        """Stage an entry, with its credentials replaced by the names of their rules.

        Args:
            caller: must have access to the project.

        Raises:
            InvalidRequest, NotVerified: the entry is incomplete.
            UnknownProject: the project does not exist, or the caller has no access to it.
            EntryDiffers: a different entry of the project has this external id.
        """
        record = self.get_record(tenant_id)
        require_no_problem(find_entry_problems(draft))
        require_verified(draft)
        content = compute_key(
            "entry", draft.model_dump(mode="json", exclude={"external_id", "tenant"})
        )
        clean, rules = mask_draft(self._masker, draft)
        about = add_contents(
            find_code_files(self._catalog, Tenant.from_config(record.config)), clean.about
        )
        row = {
            **clean.model_dump(exclude={"about", "success_verified", "tenant"}),
            "agent_type": clean.agent_type or ANY_AGENT,
            "about": [location.model_dump(exclude_none=True) for location in about],
            "success_verified": True,
            "content_key": content,
            "contributed_by": by,
            "masked": list(rules),
        }
        owner = {"tenant": record.id, "project_id": draft.project_id}
        with self._catalog.database.begin_exclusive(record.ref) as connection:
            require_project(connection, record.ref, draft.project_id, caller)
            known = find_by_external_id(connection, knowledge_staging, clean.external_id, **owner)
            if known is not None:
                if known.content_key != content:
                    raise EntryDiffers(
                        "this external_id belongs to a different entry",
                        hint="use a different external_id for each entry",
                    )
                return CaptureResult(entry_from_row(known), new=False, masked=tuple(known.masked))
            statement = insert(knowledge_staging).values(id=uuid4(), tenant=record.id, **row)
            stored_row = connection.execute(statement.returning(knowledge_staging)).one()
        return CaptureResult(entry_from_row(stored_row), new=True, masked=rules)

    def request_checkpoint(
        self, tenant_id: str, draft: CheckpointDraft, *, by: str | None, caller: Caller = OPERATOR
    ) -> Checkpoint:
        """Create a checkpoint with the entries that its project has staged.

        Args:
            caller: must have access to the project. Without a project in the draft, all projects
                of the caller are included.

        Raises:
            NoExperience: the tenant has no source of entries.
            InvalidRequest: the draft lacks a required project.
            UnknownProject: the project does not exist, or the caller has no access to it.
            EntryDiffers: a different checkpoint has this external id.
        """
        record = self.get_record(tenant_id)
        tenant = Tenant.from_config(record.config)
        source = next((source.name for source in tenant.sources if source.type == PROFILE), None)
        if source is None:
            raise NoExperience(
                f"tenant {tenant_id!r} has no source of type {PROFILE!r}",
                hint="remove `sources` from the tenant, or add a source of this type",
            )
        if draft.external_id is not None:
            external, _ = self._masker.replace_credentials(draft.external_id)
            draft = draft.model_copy(update={"external_id": external})
        require_no_problem(find_checkpoint_problems(draft))
        with self._catalog.database.begin_exclusive(record.ref) as connection:
            return _create_checkpoint(connection, record.ref, source, draft, by=by, caller=caller)

    def get_checkpoint(
        self, tenant_id: str, checkpoint: UUID, caller: Caller = OPERATOR
    ) -> Checkpoint:
        """Return one checkpoint; see Checkpoints.get."""
        return self.checkpoints.get(self.get_record(tenant_id).id, checkpoint, caller)

    def record_feedback(
        self, tenant_id: str, draft: FeedbackDraft, *, by: str | None
    ) -> FeedbackCounts:
        """Record whether a pattern helped; later feedback replaces earlier feedback.

        Raises:
            UnknownExperience: no answered question has this id, or its answer does not contain the
                pattern.
        """
        record = self.get_record(tenant_id)
        ref, cutoff = record.ref, self.administration.compute_cutoff(record)
        question_columns = experience_questions.c
        question = select(question_columns.patterns).where(
            question_columns.tenant == ref.id, question_columns.id == draft.query_id
        )
        values = {"outcome": draft.outcome, "given_by": by, "given_at": func.now()}
        statement = (
            upsert(experience_feedback)
            .values(tenant=ref.id, query_id=draft.query_id, pattern_id=draft.pattern_id, **values)
            .on_conflict_do_update(index_elements=["tenant", "query_id", "pattern_id"], set_=values)
        )
        with self._catalog.database.begin_tenant(ref) as connection:
            answered = connection.scalar(question)
            if answered is None:
                raise UnknownExperience(
                    "query_id: no answered question has this id",
                    hint="use the query_id from an answer",
                )
            if str(draft.pattern_id) not in answered:
                raise UnknownExperience(
                    "pattern_id: the answer does not contain this pattern",
                    hint="use the id of a pattern in the answer",
                )
            into = find_living_roots(connection, ref.id, [draft.pattern_id]).get(draft.pattern_id)
            counts = {} if into is None else read_counts(connection, ref.id, [into], cutoff)
            if into is None or into not in counts:
                raise UnknownExperience(
                    "pattern_id: the pattern no longer exists",
                    hint="choose a different pattern of the answer; this one was removed or has"
                    " expired",
                )
            connection.execute(statement)
            now = read_counts(connection, ref.id, [into], cutoff)[into]
        return FeedbackCounts(into, now.contributions + now.helped, now.did_not_help)


OPEN_STATES: tuple[CheckpointState, ...] = ("waiting", "running")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint with its progress.

    Attributes:
        state: waiting (for a run), running, done, or stopped (until a person acts).
        embedded: number of entries that searches find, including merged entries.
        merged: number of entries that joined the pattern of an earlier entry.
        error: why the checkpoint is waiting or stopped.
    """

    id: UUID
    checkpoint_type: CheckpointType
    project_id: UUID | None
    state: CheckpointState
    staged: int
    embedded: int
    merged: int
    failed: int
    error: str | None
    requested_at: datetime
    processed_at: datetime | None

    @property
    def progress(self) -> CheckpointProgress:
        """Return the progress in the form of the API's response."""
        names = (field.name for field in fields(CheckpointProgress))
        return CheckpointProgress(**{name: getattr(self, name) for name in names})


class Checkpoints(CatalogQueries):
    """Reads the projects and checkpoints of tenants."""

    def list_projects(self, tenant_id: str) -> list[Project]:
        """Return the projects of a tenant, sorted by name."""
        query = select(projects).where(projects.c.tenant == tenant_id)
        rows = self._database.fetch_rows(query.order_by(projects.c.name, projects.c.id))
        return [Project(row.id, row.name, row.state, row.created_at) for row in rows]

    def get(self, tenant_id: str, checkpoint: UUID, caller: Caller = OPERATOR) -> Checkpoint:
        """Return one checkpoint.

        Raises:
            UnknownExperience: no checkpoint has this id, or the caller has no access to it.
        """
        query = select(checkpoints).where(
            checkpoints.c.tenant == tenant_id, checkpoints.c.id == checkpoint
        )
        with self._database.begin() as connection:
            row = connection.execute(query).first()
            is_own = row is not None and _has_checkpoint_access(row, connection, caller)
        if row is None or not is_own:
            raise UnknownExperience(
                "the tenant has no checkpoint with this id",
                hint="use the id that the request for the checkpoint returned",
            )
        return checkpoint_from_row(row)

    def list_latest(self, tenant_id: str, limit: int) -> list[Checkpoint]:
        """Return up to `limit` checkpoints, newest first."""
        query = select(checkpoints).where(checkpoints.c.tenant == tenant_id)
        rows = self._database.fetch_rows(
            query.order_by(checkpoints.c.requested_at.desc(), checkpoints.c.id).limit(limit)
        )
        return [checkpoint_from_row(row) for row in rows]

    def find_waiting(self, before: datetime) -> dict[str, tuple[UUID, ...]]:
        """Return the ids of checkpoints requested before a time and not yet run, by tenant."""
        query = (
            select(checkpoints.c.tenant, func.array_agg(checkpoints.c.id).label("ids"))
            .where(checkpoints.c.state == "waiting", checkpoints.c.requested_at < before)
            .group_by(checkpoints.c.tenant)
        )
        return {row.tenant: tuple(sorted(row.ids)) for row in self._database.fetch_rows(query)}


def _create_checkpoint(
    connection: Connection,
    ref: TenantRef,
    source: str,
    draft: CheckpointDraft,
    *,
    by: str | None,
    caller: Caller,
) -> Checkpoint:
    if draft.project_id is not None:
        require_project(connection, ref, draft.project_id, caller)
    known = find_by_external_id(connection, checkpoints, draft.external_id, tenant=ref.id)
    if known is not None and not _has_checkpoint_access(known, connection, caller):
        known, draft = None, draft.model_copy(update={"external_id": None})
    if known is not None:
        drafted_key = (draft.checkpoint_type, draft.project_id)
        if (known.checkpoint_type, known.project_id) != drafted_key:
            raise EntryDiffers(
                "this external_id belongs to a different checkpoint",
                hint="use a different external_id for each checkpoint",
            )
        return checkpoint_from_row(known)
    id_ = uuid4()
    staged = assign_staged_entries(connection, ref, source, id_, draft.project_id, caller=caller)
    statement = insert(checkpoints).values(
        tenant=ref.id,
        id=id_,
        checkpoint_type=draft.checkpoint_type,
        project_id=draft.project_id,
        external_id=draft.external_id,
        requested_by=by,
        state="waiting" if staged else "done",
        staged=staged,
        processed_at=None if staged else func.now(),
    )
    row = connection.execute(statement.returning(checkpoints)).one()
    notify(connection, ref.id)
    return checkpoint_from_row(row)


def checkpoint_from_row(row: Row[Any]) -> Checkpoint:
    """Return the checkpoint in a row of `checkpoints`."""
    return Checkpoint(**{field.name: getattr(row, field.name) for field in fields(Checkpoint)})


def _has_checkpoint_access(row: Row[Any], connection: Connection, caller: Caller) -> bool:
    """Return whether a caller has access to a checkpoint.

    A checkpoint of all projects belongs to the caller who requested it.
    """
    if row.project_id is None:
        return not is_limited_to_own_projects(caller) or row.requested_by == caller.name
    return has_project(connection, row.tenant, row.project_id, caller)
