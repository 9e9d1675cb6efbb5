"""All that an interface needs of experience: one object over an installation."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from rag_assets.api.experience_responses import FeedbackCounts, Project
from rag_assets.common.clock import Clock
from rag_assets.privacy.masker import Masker
from rag_assets.retrieval.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.experience.administration import Administration
from rag_assets.systems.experience.checkpoints import Checkpoint, Checkpoints
from rag_assets.systems.experience.code_contents import code_of, noted
from rag_assets.systems.experience.entries import OPERATOR, Captured, Entries
from rag_assets.systems.experience.errors import NoExperience
from rag_assets.systems.experience.feedback import give_feedback
from rag_assets.systems.experience.model import (
    CheckpointDraft,
    EntryDraft,
    FeedbackDraft,
    ProjectDraft,
)
from rag_assets.tenants.model import Tenant

PROFILE = "experience"


class Experience:
    """Experience of an installation; everything blocks, and nothing is kept open.

    Args:
        catalog: of the installation.
        masker: finds credentials in what is captured.
        clock: by which a year passes.

    Attributes:
        administration: what admins do.
        checkpoints: projects, and moments at which what they staged is embedded.
    """

    def __init__(self, catalog: Catalog, masker: Masker, clock: Clock | None = None) -> None:
        self._catalog, self._masker = catalog, masker
        self._entries = Entries(catalog.database, masker)
        self.checkpoints = Checkpoints(catalog.database)
        self.administration = Administration(catalog, self._entries, clock or Clock())

    def record(self, tenant_id: str) -> TenantRecord:
        """A tenant that keeps experience.

        Raises:
            UnknownTenant: there is none of that id.
            NoExperience: its profile is another one.
        """
        record = self._catalog.tenants.get(tenant_id)
        if record.profile != PROFILE:
            raise NoExperience(
                f"tenant {tenant_id!r} keeps no experience of projects",
                hint=f"name a tenant with the profile {PROFILE!r}",
            )
        return record

    def put_project(
        self, tenant_id: str, project: UUID, draft: ProjectDraft, caller: Caller = OPERATOR
    ) -> Project:
        """Make a project, or change its name and state; see Checkpoints.put_project."""
        name, _ = self._masker.replaced(draft.name)
        clean = draft.model_copy(update={"name": name})
        return self.checkpoints.put_project(self.record(tenant_id).ref, project, clean, caller)

    def capture(
        self, tenant_id: str, draft: EntryDraft, *, by: str | None, caller: Caller = OPERATOR
    ) -> Captured:
        """Stage an entry; see Entries.capture."""
        record = self.record(tenant_id)
        code = code_of(self._catalog, Tenant.from_config(record.config))
        note = partial(noted, code)
        return self._entries.capture(record.ref, draft, by=by, note=note, caller=caller)

    def request_checkpoint(
        self, tenant_id: str, draft: CheckpointDraft, *, by: str | None, caller: Caller = OPERATOR
    ) -> Checkpoint:
        """Have what a project staged embedded; see Checkpoints.request."""
        record = self.record(tenant_id)
        tenant = Tenant.from_config(record.config)
        source = next((one.name for one in tenant.sources if one.type == PROFILE), None)
        if source is None:
            raise NoExperience(
                f"tenant {tenant_id!r} has no source of type {PROFILE!r}",
                hint="leave out `sources` of the tenant, or add one of this type",
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
