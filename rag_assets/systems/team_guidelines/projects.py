"""Projects and organizations of team guidelines: find, show, create and change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from rag_assets.api.guideline_responses import CAMEL_CASE, KeyState
from rag_assets.billing.embedder_choice import Choice
from rag_assets.billing.embedders import Embedders
from rag_assets.common.errors import InvalidRequest, UnknownProject
from rag_assets.models.factory import embedder_id_of, price_of
from rag_assets.models.prices import Price
from rag_assets.pipeline.tenancy import Projects
from rag_assets.storage.catalog.builds.measurements import measured_value
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.organizations import UNCHANGED, Unchanged
from rag_assets.storage.catalog.tenants.table import PutProject, TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.projects import Project, ProjectSettings, shown_settings

PROFILE = "team-guidelines"


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The projects that a caller may access.

    Attributes:
        organization: organization of which the caller may name all projects, also new ones; None
            allows only the projects in `tenants`.
        tenants: tenants that the caller's token covers.
    """

    organization: str | None = None
    tenants: frozenset[str] = frozenset()

    @property
    def turn(self) -> str:
        """Return the queue for work whose project is not yet known: an organization or a tenant."""
        return self.organization or min(self.tenants, default="")


@dataclass(frozen=True)
class OpenProject:
    """A project with the embedder of its documents.

    Attributes:
        record: record of the project's tenant.
    """

    record: TenantRecord
    embedders: Embedders

    @property
    def ref(self) -> TenantRef:
        """Return the reference of the project's tenant."""
        return self.record.ref

    @property
    def organization_id(self) -> str:
        """Return the id of the project's organization in the application."""
        return self.record.organization or ""

    @property
    def project_id(self) -> str:
        """Return the id of the project in the application."""
        return self.record.project or ""

    @cached_property
    def configured_tenant(self) -> Tenant:
        """Return the tenant as configured; the provider of the embedder may be "auto"."""
        return Tenant.from_config(self.record.config)

    @cached_property
    def choice(self) -> Choice:
        """Return the resolved embedder, and the source of that embedder's key."""
        return self.embedders.choice(self.record)

    @cached_property
    def tenant(self) -> Tenant:
        """Return the tenant with the resolved embedder."""
        return self.configured_tenant.model_copy(update={"embedder": self.choice.embedder})

    @property
    def embedder_id(self) -> str:
        """Return the id of the resolved embedder."""
        return embedder_id_of(self.choice.embedder)

    @property
    def price(self) -> Price | None:
        """Return the price of the resolved embedder; None if unknown."""
        return price_of(self.choice.embedder)


@dataclass(frozen=True, slots=True)
class CapSettings:
    """Spending caps in dollars; None means no cap."""

    __pydantic_config__ = CAMEL_CASE

    per_run: float | None = None
    per_day: float | None = None
    per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A project with its effective settings.

    Attributes:
        project_id, organization_id: ids in the application.
        tenant: id of the project's tenant.
        name: name for people.
        chat_model: chat model of the project, or of its organization.
        provider: provider of embeddings; "auto" means that chat model and keys determine it.
        min_score: the project's own cosine below which passages are left out; None means the
            embedder's.
        threshold_from: where the threshold comes from if min_score is not set.
        threshold: the effective cosine; while questions calibrate it, its upper bound.
        embedder: the resolved embedder.
        rag_guidelines: whether guidelines are switched on for the organization.
        key: state of the key with which the documents are embedded.
    """

    __pydantic_config__ = CAMEL_CASE

    project_id: str
    organization_id: str
    tenant: str
    name: str | None
    chat_model: str | None
    provider: str
    min_score: float | None
    threshold_from: str
    threshold: float | None
    caps: CapSettings
    embedder: str
    rag_guidelines: bool
    key: KeyState


@dataclass(frozen=True, slots=True)
class ProjectName:
    """A project in a list."""

    __pydantic_config__ = CAMEL_CASE

    project_id: str
    name: str | None
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationView:
    """An organization with its settings.

    Attributes:
        rag_guidelines: whether documents of the organization's projects are embedded and searched
            for guidelines.
        chat_model: default chat model of the organization's projects.
        updated_at: time of the last change; None if no setting was ever made.
    """

    __pydantic_config__ = CAMEL_CASE

    organization_id: str
    rag_guidelines: bool
    chat_model: str | None
    projects: tuple[ProjectName, ...]
    updated_at: datetime | None


class GuidelineProjects:
    """Finds, shows, creates and changes projects and organizations."""

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._embedders = embedders
        self._projects = Projects(catalog, embedders.settings)

    def open(self, scope: ProjectScope, project_id: str) -> OpenProject:
        """Return the project with the application's id.

        Raises:
            UnknownProject: the project does not exist, or belongs to another organization; the
                error does not distinguish the two.
            InvalidRequest: several organizations in the caller's scope have a project with this id.
        """
        project = _parse_project(scope.organization, project_id)
        record = None if project is None else self._catalog.projects.find(project)
        if record is None:
            record = self._find_covered(scope, project_id)
        return self.open_record(record)

    def _find_covered(self, scope: ProjectScope, project_id: str) -> TenantRecord:
        try:
            return self._projects.covered(scope.tenants, PROFILE, project_id)
        except UnknownProject:
            if scope.organization is None:
                raise
            raise UnknownProject(
                "the token's organization has no project with this id",
                hint="create the project with PUT /api/projects/{id}, or use a token of the"
                " organization that owns the project",
            ) from None

    def open_record(self, record: TenantRecord) -> OpenProject:
        """Return the project of a tenant.

        Raises:
            UnknownProject: the project is being removed.
        """
        if record.state == "REMOVING":
            raise UnknownProject(
                "this project is being removed",
                hint="wait until the removal has finished, then create the project again",
            )
        return OpenProject(record, self._embedders)

    def show(self, project: OpenProject, key: KeyState) -> ProjectView:
        """Return a project with its effective settings and the state of its key."""
        shown = shown_settings(project.configured_tenant)
        serving = self._catalog.generations.serving(project.record.id)
        is_same = serving is not None and serving.embedder_id == project.embedder_id
        measured = measured_value(serving, None) if serving is not None and is_same else None
        return ProjectView(
            project_id=project.project_id,
            organization_id=project.organization_id,
            tenant=project.record.id,
            name=shown["name"],
            chat_model=shown["chat_model"],
            provider=shown["provider"],
            min_score=shown["min_score"],
            threshold_from=shown["threshold_from"],
            threshold=project.tenant.min_score(project.embedder_id, measured=measured),
            caps=CapSettings(**shown["caps"]),
            embedder=project.embedder_id,
            rag_guidelines=project.record.has_opted_in,
            key=key,
        )

    def put(
        self, scope: ProjectScope, project_id: str, settings: Mapping[str, Any]
    ) -> tuple[OpenProject, PutProject]:
        """Create a project, or change its given settings.

        Args:
            scope: scope of the caller; only a caller with an organization in the scope can create
                projects.
            settings: fields of ProjectSettings.

        Raises:
            UnknownProject: see open().
            ConfiguredByOperator, InvalidRequest, TenantBusy: see Projects.put.
        """
        organization = scope.organization
        if organization is None:
            organization = self.open(scope, project_id).organization_id
        outcome = self._projects.put(
            Project(PROFILE, organization, project_id), ProjectSettings.model_validate(settings)
        )
        return OpenProject(outcome.record, self._embedders), outcome

    def show_organization(self, organization_id: str) -> OrganizationView:
        """Return an organization with its settings; the defaults if it has none."""
        stored = self._catalog.organizations.find(organization_id)
        return OrganizationView(
            organization_id=organization_id,
            rag_guidelines=stored is not None and stored.has_opted_in,
            chat_model=None if stored is None else stored.chat_model,
            projects=self._list_names(organization_id),
            updated_at=None if stored is None else stored.updated_at,
        )

    def _list_names(self, organization_id: str) -> tuple[ProjectName, ...]:
        records = self._catalog.projects.list_of_organization(organization_id, PROFILE)
        return tuple(
            ProjectName(record.project or "", record.config.get("name"), record.id)
            for record in records
            if record.state != "REMOVING"
        )

    def put_organization(
        self,
        organization_id: str,
        *,
        rag_guidelines: bool | Unchanged = UNCHANGED,
        chat_model: str | Unchanged | None = UNCHANGED,
    ) -> OrganizationView:
        """Change the given settings of an organization.

        Raises:
            InvalidRequest: the id is not valid.
        """
        self._projects.put_organization(
            organization_id, has_opted_in=rag_guidelines, chat_model=chat_model
        )
        return self.show_organization(organization_id)


def _parse_project(organization: str | None, project_id: str) -> Project | None:
    """Return the project of two ids; None if they are not valid."""
    if organization is None:
        return None
    try:
        return Project(PROFILE, organization, project_id)
    except InvalidRequest:
        return None
