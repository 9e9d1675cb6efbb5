"""Projects and organizations of team guidelines: found, shown, made and changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from rag_assets.api.guideline_responses import KeyState
from rag_assets.billing.embedder_choice import Choice
from rag_assets.billing.embedders import Embedders
from rag_assets.common.errors import InvalidRequest, UnknownProject
from rag_assets.models.embedding.prices import Price
from rag_assets.models.factory import embedder_id_of, price_of
from rag_assets.pipeline.projects import Projects
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.organizations import UNCHANGED, Unchanged
from rag_assets.storage.catalog.projects import PutProject
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.storage.catalog.thresholds import measured_value
from rag_assets.systems.team_guidelines.camel import CAMEL
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.projects import Project, ProjectSettings, shown_settings

PROFILE = "team-guidelines"


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The projects that a caller may name.

    Attributes:
        organization: all of its projects, present and new ones; None: those of the tenants alone.
        tenants: that the caller's token covers.
    """

    organization: str | None = None
    tenants: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OpenProject:
    """A project that was found, with what its documents are embedded by.

    Attributes:
        record: of its tenant.
    """

    record: TenantRecord
    embedders: Embedders

    @property
    def ref(self) -> TenantRef:
        """Its tenant."""
        return self.record.ref

    @property
    def organization_id(self) -> str:
        """The application's id of its organization."""
        return self.record.organization or ""

    @property
    def project_id(self) -> str:
        """The application's id of it."""
        return self.record.project or ""

    @cached_property
    def configured(self) -> Tenant:
        """Its tenant as it is configured: the provider of its embedder may be "auto"."""
        return Tenant.from_config(self.record.config)

    @cached_property
    def choice(self) -> Choice:
        """The embedder that it gets, and where the key for that comes from."""
        return self.embedders.choice(self.record)

    @cached_property
    def tenant(self) -> Tenant:
        """Its tenant with that embedder."""
        return self.configured.model_copy(update={"embedder": self.choice.embedder})

    @property
    def embedder_id(self) -> str:
        """The id of that embedder."""
        return embedder_id_of(self.choice.embedder)

    @property
    def price(self) -> Price | None:
        """The price of that embedder; None if none is known."""
        return price_of(self.choice.embedder)


@dataclass(frozen=True, slots=True)
class CapSettings:
    """Dollars that may be spent; None: any amount."""

    __pydantic_config__ = CAMEL

    per_run: float | None = None
    per_day: float | None = None
    per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A project with its settings as they are in force.

    Attributes:
        project_id, organization_id: ids of the application's.
        tenant: the id of the tenant that it is.
        name: for people.
        chat_model: its own, or its organization's.
        provider: of embeddings; "auto": as follows from chat model and keys.
        min_score: its own cosine below which a passage is left out; None: the embedder's.
        threshold_from: where the threshold comes from without min_score.
        threshold: the cosine that is in force; while questions calibrate it, its upper bound.
        embedder: the embedder that it gets.
        rag_guidelines: whether its organization has guidelines switched on.
        key: that its documents are embedded with.
    """

    __pydantic_config__ = CAMEL

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

    __pydantic_config__ = CAMEL

    project_id: str
    name: str | None
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationView:
    """An organization with its settings.

    Attributes:
        rag_guidelines: whether documents of its projects are embedded, and searched for guidelines.
        chat_model: of its projects that have none of their own.
        updated_at: when one of these changed last; None: nothing was ever set.
    """

    __pydantic_config__ = CAMEL

    organization_id: str
    rag_guidelines: bool
    chat_model: str | None
    projects: tuple[ProjectName, ...]
    updated_at: datetime | None


class GuidelineProjects:
    """The projects of team guidelines.

    Args:
        catalog: holds their tenants.
        embedders: of the installation.
    """

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._embedders = embedders
        self._projects = Projects(catalog, embedders.settings)

    def open(self, scope: ProjectScope, project_id: str) -> OpenProject:
        """The project that a caller names.

        Raises:
            UnknownProject: there is none, or it is another organization's: nobody learns which.
            InvalidRequest: the caller's tenants are projects of that id of several organizations.
        """
        named = _named(scope.organization, project_id)
        record = None if named is None else self._catalog.projects.find(named)
        if record is None:
            record = self._covered(scope, project_id)
        return self.opened(record)

    def _covered(self, scope: ProjectScope, project_id: str) -> TenantRecord:
        try:
            return self._projects.covered(scope.tenants, PROFILE, project_id)
        except UnknownProject:
            if scope.organization is None:
                raise
            raise UnknownProject(
                "the token's organization has no project of this id",
                hint="make it with PUT /api/projects/{id}, or use a token of its organization",
            ) from None

    def opened(self, record: TenantRecord) -> OpenProject:
        """A project of which the tenant was found.

        Raises:
            UnknownProject: it is being removed.
        """
        if record.state == "REMOVING":
            raise UnknownProject("this project is being removed", hint="make it again later")
        return OpenProject(record, self._embedders)

    def view(self, project: OpenProject, key: KeyState) -> ProjectView:
        """A project with its settings, and the key that its documents are embedded with."""
        shown = shown_settings(project.configured)
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
            rag_guidelines=project.record.rag_guidelines,
            key=key,
        )

    def put(
        self, scope: ProjectScope, project_id: str, settings: Mapping[str, Any]
    ) -> tuple[OpenProject, PutProject]:
        """Make a project, or change what is given of its settings.

        Args:
            scope: of the caller; who names tenants alone makes none.
            project_id: the application's id.
            settings: fields of ProjectSettings.

        Raises:
            UnknownProject: see open().
            ConfiguredByOperator, InvalidRequest, TenantBusy: see Projects.put.
        """
        organization = scope.organization
        if organization is None:
            organization = self.open(scope, project_id).organization_id
        done = self._projects.put(
            Project(PROFILE, organization, project_id), ProjectSettings.model_validate(settings)
        )
        return OpenProject(done.record, self._embedders), done

    def organization(self, organization_id: str) -> OrganizationView:
        """An organization; one for which nothing was set has what all begin with."""
        found = self._catalog.organizations.find(organization_id)
        return OrganizationView(
            organization_id=organization_id,
            rag_guidelines=found is not None and found.rag_guidelines,
            chat_model=None if found is None else found.chat_model,
            projects=self.of_organization(organization_id),
            updated_at=None if found is None else found.updated_at,
        )

    def of_organization(self, organization_id: str) -> tuple[ProjectName, ...]:
        """An organization's projects, by id."""
        records = self._catalog.projects.of_organization(organization_id, PROFILE)
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
        """Set what is given of an organization.

        Raises:
            InvalidRequest: this cannot be an organization's id.
        """
        self._projects.put_organization(
            organization_id, rag_guidelines=rag_guidelines, chat_model=chat_model
        )
        return self.organization(organization_id)


def _named(organization: str | None, project_id: str) -> Project | None:
    """The project of these ids; None if they cannot be a project's."""
    if organization is None:
        return None
    try:
        return Project(PROFILE, organization, project_id)
    except InvalidRequest:
        return None
