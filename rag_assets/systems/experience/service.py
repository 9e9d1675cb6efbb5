"""Experience: the operations that the API, the command line, the panel and MCP share."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.api.experience_responses import FeedbackCounts, Project
from rag_assets.common.clock import Clock
from rag_assets.privacy.masker import Masker
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.administration import Administration
from rag_assets.systems.experience.checkpoints import Checkpoint, Checkpoints
from rag_assets.systems.experience.code_contents import add_contents, find_code
from rag_assets.systems.experience.entries import OPERATOR, Captured, Entries
from rag_assets.systems.experience.errors import NoExperience, UnknownExperience
from rag_assets.systems.experience.merges import find_living_roots
from rag_assets.systems.experience.model import (
    CheckpointDraft,
    EntryDraft,
    FeedbackDraft,
    ProjectDraft,
)
from rag_assets.systems.experience.patterns import counts_of
from rag_assets.systems.experience.tables import (
    experience_feedback,
    experience_questions,
)
from rag_assets.tenants.model import Tenant

PROFILE = "experience"


class Experience:
    """Captures entries and manages projects, checkpoints and feedback; all methods block.

    Args:
        catalog: catalog of the installation.
        masker: finds credentials in captured texts.
        clock: decides which entries are expired.

    Attributes:
        administration: operations of admins.
        checkpoints: operations on checkpoints and projects.
    """

    def __init__(self, catalog: Catalog, masker: Masker, clock: Clock | None = None) -> None:
        self._catalog, self._masker = catalog, masker
        self._entries = Entries(catalog.database, masker)
        self.checkpoints = Checkpoints(catalog.database)
        self.administration = Administration(catalog, self._entries, clock or Clock())

    def record(self, tenant_id: str) -> TenantRecord:
        """Return a tenant with the profile experience.

        Raises:
            UnknownTenant: no tenant has this id.
            NoExperience: the tenant has another profile.
        """
        record = self._catalog.tenants.get(tenant_id)
        if record.profile != PROFILE:
            raise NoExperience(
                f"tenant {tenant_id!r} does not store experience of projects",
                hint=f"choose a tenant with the profile {PROFILE!r}",
            )
        return record

    def put_project(
        self, tenant_id: str, project: UUID, draft: ProjectDraft, caller: Caller = OPERATOR
    ) -> Project:
        """Create a project, or change its name and state; see Checkpoints.put_project."""
        name, _ = self._masker.replaced(draft.name)
        clean = draft.model_copy(update={"name": name})
        return self.checkpoints.put_project(self.record(tenant_id).ref, project, clean, caller)

    def capture(
        self, tenant_id: str, draft: EntryDraft, *, by: str | None, caller: Caller = OPERATOR
    ) -> Captured:
        """Stage an entry; see Entries.capture."""
        record = self.record(tenant_id)
        code = find_code(self._catalog, Tenant.from_config(record.config))
        note = partial(add_contents, code)
        return self._entries.capture(record.ref, draft, by=by, note=note, caller=caller)

    def request_checkpoint(
        self, tenant_id: str, draft: CheckpointDraft, *, by: str | None, caller: Caller = OPERATOR
    ) -> Checkpoint:
        """Request that staged entries are embedded; see Checkpoints.request."""
        record = self.record(tenant_id)
        tenant = Tenant.from_config(record.config)
        source = next((one.name for one in tenant.sources if one.type == PROFILE), None)
        if source is None:
            raise NoExperience(
                f"tenant {tenant_id!r} has no source of type {PROFILE!r}",
                hint="remove `sources` from the tenant, or add a source of this type",
            )
        if draft.external_id is not None:
            external, _ = self._masker.replaced(draft.external_id)
            draft = draft.model_copy(update={"external_id": external})
        return self.checkpoints.request(record.ref, source, draft, by=by, caller=caller)

    def checkpoint(self, tenant_id: str, checkpoint: UUID, caller: Caller = OPERATOR) -> Checkpoint:
        """Return one checkpoint; see Checkpoints.get."""
        return self.checkpoints.get(self.record(tenant_id).id, checkpoint, caller)

    def feedback(self, tenant_id: str, draft: FeedbackDraft, *, by: str | None) -> FeedbackCounts:
        """Record whether a pattern helped; see give_feedback."""
        record = self.record(tenant_id)
        cutoff = self.administration.cutoff(record)
        return give_feedback(self._catalog.database, record.ref, draft, cutoff=cutoff, by=by)


def give_feedback(
    database: Database,
    ref: TenantRef,
    draft: FeedbackDraft,
    *,
    cutoff: datetime | None,
    by: str | None,
) -> FeedbackCounts:
    """Record whether a pattern helped; later feedback replaces earlier feedback.

    Args:
        database: contains questions and feedback.
        ref: the tenant.
        draft: the feedback.
        cutoff: see cutoff_of.
        by: the name of the caller's token.

    Raises:
        UnknownExperience: no answered question has this id, or its answer does not contain the
            pattern.
    """
    asked = experience_questions.c
    question = select(asked.patterns).where(asked.tenant == ref.id, asked.id == draft.query_id)
    values = {"outcome": draft.outcome, "given_by": by, "given_at": func.now()}
    statement = (
        upsert(experience_feedback)
        .values(tenant=ref.id, query_id=draft.query_id, pattern_id=draft.pattern_id, **values)
        .on_conflict_do_update(index_elements=["tenant", "query_id", "pattern_id"], set_=values)
    )
    with database.begin_for(ref) as connection:
        answered = connection.scalar(question)
        if answered is None:
            raise UnknownExperience(
                "query_id: no answered question has this id", hint="use the query_id from an answer"
            )
        if str(draft.pattern_id) not in answered:
            raise UnknownExperience(
                "pattern_id: the answer does not contain this pattern",
                hint="use the id of a pattern in the answer",
            )
        into = find_living_roots(connection, ref.id, [draft.pattern_id]).get(draft.pattern_id)
        counts = {} if into is None else counts_of(connection, ref.id, [into], cutoff)
        if into is None or into not in counts:
            raise UnknownExperience(
                "pattern_id: the pattern no longer exists",
                hint="choose a different pattern of the answer; this one was removed or has"
                " expired",
            )
        connection.execute(statement)
        now = counts_of(connection, ref.id, [into], cutoff)[into]
    return FeedbackCounts(into, now.contributions + now.helped, now.did_not_help)
