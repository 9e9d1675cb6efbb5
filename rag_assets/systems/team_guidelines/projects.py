"""Projects and organizations: find, show and change them, and manage their provider keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from rag_assets.api.guideline_responses import (
    CAMEL_CASE,
    KEY_CAMEL_CASE,
    KeySource,
    KeyState,
    KeyUse,
)
from rag_assets.billing.embedders import EmbedderChoice, Embedders
from rag_assets.billing.key_ring import KeyEntry, KeyRing
from rag_assets.billing.key_tests import KeyTest, KeyTests
from rag_assets.common.errors import (
    ConfigurationError,
    ConfiguredByOperator,
    InvalidRequest,
    NoProviderKey,
    UnknownProject,
)
from rag_assets.models.config import AUTO
from rag_assets.models.factory import find_price, get_embedder_id
from rag_assets.models.prices import FREE, Price
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.pipeline.tenancy import Projects
from rag_assets.storage.catalog.accounts.credentials import KeyOwner
from rag_assets.storage.catalog.builds.measurements import get_measured_threshold
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.settings import UNCHANGED, Unchanged
from rag_assets.storage.catalog.tenants.table import PutProject, TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.projects import Project, ProjectSettings, list_effective_settings

PROFILE = "team-guidelines"


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The projects that a caller may access.

    Attributes:
        organization: organization whose projects the caller may open and create; None if the
            caller may open only the projects in `tenants`.
    """

    organization: str | None = None
    tenants: frozenset[str] = frozenset()

    @property
    def queue_name(self) -> str:
        """Return the organization or tenant whose queue is used until the project is known."""
        return self.organization or min(self.tenants, default="")


@dataclass(frozen=True)
class OpenProject:
    """A project with the embedder of its documents."""

    record: TenantRecord
    embedders: Embedders

    @property
    def ref(self) -> TenantRef:
        """Return the id and incarnation of the project's tenant."""
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
    def choice(self) -> EmbedderChoice:
        """Return the resolved embedder, and the source of that embedder's key."""
        return self.embedders.choice(self.record)

    @cached_property
    def tenant(self) -> Tenant:
        """Return the tenant with the resolved embedder."""
        return self.configured_tenant.model_copy(update={"embedder": self.choice.embedder})

    @property
    def embedder_id(self) -> str:
        """Return the id of the resolved embedder."""
        return get_embedder_id(self.choice.embedder)

    @property
    def price(self) -> Price | None:
        """Return the price of the resolved embedder; None if unknown."""
        return find_price(self.choice.embedder)

    @property
    def passage_cost(self) -> float:
        """Return the maximum cost of embedding one passage, in dollars; 0 if the price is unknown.

        If less than this is left of a cap, nothing is embedded.
        """
        return (self.price or FREE).compute_cost(self.tenant.chunker.parameters.limit)


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
        name: display name.
        chat_model: chat model of the project, or of its organization.
        provider: provider of embeddings; "auto" derives it from the chat model and the keys.
        min_score: minimum cosine of a passage, if the project sets its own.
        threshold_from: source of the threshold if min_score is not set.
        threshold: effective minimum cosine; its upper bound while questions calibrate it.
        embedder: the resolved embedder.
        rag_guidelines: whether guidelines are switched on for the organization.
        key: state of the key that embeds the documents.
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
        rag_guidelines: whether documents of the organization's projects are embedded and searched.
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
        """Return the project with this id in the application.

        Raises:
            UnknownProject: the project does not exist, or belongs to another organization; the
                error does not distinguish the two.
            InvalidRequest: several organizations in the caller's scope have a project with this id.
        """
        project = _parse_project(scope.organization, project_id)
        record = None if project is None else self._catalog.projects.find(project)
        if record is None:
            record = self._find_record_in_scope(scope, project_id)
        return self.open_record(record)

    def _find_record_in_scope(self, scope: ProjectScope, project_id: str) -> TenantRecord:
        try:
            return self._projects.get_covered(scope.tenants, PROFILE, project_id)
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
        shown_settings = list_effective_settings(project.configured_tenant)
        serving = self._catalog.generations.serving(project.record.id)
        is_same = serving is not None and serving.embedder_id == project.embedder_id
        measured = (
            get_measured_threshold(serving, None) if serving is not None and is_same else None
        )
        return ProjectView(
            project_id=project.project_id,
            organization_id=project.organization_id,
            tenant=project.record.id,
            name=shown_settings["name"],
            chat_model=shown_settings["chat_model"],
            provider=shown_settings["provider"],
            min_score=shown_settings["min_score"],
            threshold_from=shown_settings["threshold_from"],
            threshold=project.tenant.min_score(project.embedder_id, measured=measured),
            caps=CapSettings(**shown_settings["caps"]),
            embedder=project.embedder_id,
            rag_guidelines=project.record.has_opted_in,
            key=key,
        )

    def put(
        self, scope: ProjectScope, project_id: str, settings: Mapping[str, Any]
    ) -> tuple[OpenProject, PutProject]:
        """Create a project, or change these settings of it; its other settings stay.

        Args:
            scope: scope of the caller; only a caller with an organization in the scope can create
                projects.
            settings: fields of ProjectSettings.
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
            projects=self._list_project_names(organization_id),
            updated_at=None if stored is None else stored.updated_at,
        )

    def _list_project_names(self, organization_id: str) -> tuple[ProjectName, ...]:
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
        """Change these settings of an organization; UNCHANGED keeps a setting.

        Raises:
            InvalidRequest: the id is not valid.
        """
        self._projects.put_organization(
            organization_id, has_opted_in=rag_guidelines, chat_model=chat_model
        )
        return self.show_organization(organization_id)


def _parse_project(organization: str | None, project_id: str) -> Project | None:
    """Return the project of an organization; None if that is None or an id is invalid."""
    if organization is None:
        return None
    try:
        return Project(PROFILE, organization, project_id)
    except InvalidRequest:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key without its secret.

    Attributes:
        last_four: last four characters of the key; None for a short key and for the operator's key.
        worked: whether the provider accepted the key when it was last used.
        source: owner of the key; a project's own key takes precedence over its organization's key.
        readable: whether the installation can still decrypt the key.
    """

    __pydantic_config__ = KEY_CAMEL_CASE

    provider: str
    last_four: str | None
    set_at: datetime | None
    last_used_at: datetime | None
    worked: bool | None
    source: KeySource
    readable: bool


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a project or an organization, by provider."""

    __pydantic_config__ = CAMEL_CASE

    keys: tuple[KeyView, ...]


@dataclass(frozen=True, slots=True)
class KeyTested:
    """The outcome of one small call with a key.

    Attributes:
        worked: whether the provider answered with a vector.
        reason: why the call failed.
        latency_ms: milliseconds until the answer.
    """

    __pydantic_config__ = CAMEL_CASE

    worked: bool
    reason: str | None
    latency_ms: int


class GuidelineKeys:
    """Lists, sets, deletes and tests keys of projects and organizations."""

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._settings = embedders.settings
        self._ring = KeyRing(catalog, embedders.settings)

    def get_state(self, project: OpenProject) -> KeyState:
        """Return the state of the key that embeds a project's documents."""
        provider = project.choice.embedder.provider
        entry = None if project.choice.key == "none needed" else self._find_embedder_key(project)
        return KeyState(
            provider=provider,
            state=_determine_key_use(project, entry),
            source=None if entry is None else _determine_source(entry),
            address=build_key_path(project.project_id, provider),
            worked=None if entry is None else entry.worked,
        )

    def _find_embedder_key(self, project: OpenProject) -> KeyEntry | None:
        embedder = project.choice.embedder
        is_operators = embedder.api_key is not None
        # A variable for the provider "auto" applies to every provider.
        providers = {embedder.provider, AUTO, ""} if is_operators else {embedder.provider}
        for entry in self._ring.entries(project.record.id):
            if (
                entry.provider in providers
                and (_determine_source(entry) == "operator") == is_operators
            ):
                return entry
        return None

    def require_key(self, project: OpenProject) -> None:
        """Require a usable key for a project's documents.

        Raises:
            NoProviderKey: the key is missing or cannot be decrypted.
        """
        state = self.get_state(project)
        if state.state in {"missing", "unreadable"}:
            raise _missing_key_error(state)

    def list_for_project(self, project: OpenProject) -> Keys:
        """List the keys that a project may use, by provider: its own key before inherited keys."""
        entries = self._ring.entries(project.record.id)
        order = {"project": 0, "organization": 1, "operator": 2}
        key_views = [_build_key_view(entry) for entry in entries]
        return Keys(tuple(sorted(key_views, key=lambda key: (key.provider, order[key.source]))))

    def list_for_organization(self, organization_id: str) -> Keys:
        """List an organization's own keys."""
        return Keys(
            tuple(map(_build_key_view, self._ring.entries_of_organization(organization_id)))
        )

    def put(self, owner: KeyOwner, provider: str, key: SecretStr) -> None:
        """Set a key, and retry the documents that lacked one.

        Raises:
            InvalidRequest: the key is malformed, or the provider does not use keys.
            ConfiguredByOperator: the operator has configured the key of this provider.
            TenantGone: the project was removed.
        """
        _require_provider(provider)
        if isinstance(owner, TenantRef):
            self._require_no_operator_key(owner, provider)
        try:
            self._ring.set(owner, provider, key)
        except ConfigurationError as error:
            raise InvalidRequest(error.message, hint=error.hint) from None
        self._retry_documents(owner)

    def delete(self, owner: KeyOwner, provider: str) -> bool:
        """Delete a key; return whether it was set."""
        _require_provider(provider)
        return self._ring.remove(owner, provider)

    def test(self, owner: KeyOwner, provider: str) -> KeyTested:
        """Test the owner's own key, or else the key that it inherits, by one small call.

        Raises:
            NoProviderKey, KeyUnreadable: there is no key to test.
            InvalidRequest: the provider has no embeddings.
        """
        _require_provider(provider)
        tests = KeyTests(self._catalog, self._settings)
        try:
            test: KeyTest = asyncio.run(tests.test(owner, provider))
        except NoProviderKey:
            raise NoProviderKey(
                f"no key is set for {provider}", hint="set a key before you test it"
            ) from None
        except ConfigurationError as error:
            raise InvalidRequest(error.message, hint=error.hint) from None
        return KeyTested(test.worked, test.reason, test.latency_ms)

    def _require_no_operator_key(self, owner: TenantRef, provider: str) -> None:
        for entry in self._ring.entries(owner.id):
            if entry.provider == provider and _determine_source(entry) == "operator":
                raise ConfiguredByOperator(
                    f"the key for {provider} is managed by the operator and cannot be changed here",
                    hint="ask the operator to change the key",
                )

    def _retry_documents(self, owner: KeyOwner) -> None:
        if isinstance(owner, TenantRef):
            self._catalog.quarantine.retry_transient_failures(owner)
            return
        for record in self._catalog.tenants.list_of_organization(owner.id):
            if record.state != "REMOVING":
                self._catalog.quarantine.retry_transient_failures(record.ref)


def build_key_path(project_id: str, provider: str) -> str:
    """Return the path of the endpoint that sets a project's key."""
    return f"/api/projects/{quote(project_id, safe='')}/keys/{provider}"


def _missing_key_error(state: KeyState) -> NoProviderKey:
    problem = "can no longer be decrypted" if state.state == "unreadable" else "is missing"
    return NoProviderKey(
        f"the key for {state.provider} {problem}",
        hint=f"set the key with PUT {state.address}",
        provider=state.provider,
        address=state.address,
    )


def _determine_key_use(project: OpenProject, entry: KeyEntry | None) -> KeyUse:
    if project.choice.key == "none needed":
        return "not-needed"
    if entry is None or entry.state in {"not set", "missing"}:
        return "missing"
    return "usable" if entry.state == "set" else "unreadable"


def _determine_source(entry: KeyEntry) -> KeySource:
    if entry.shown.startswith("$"):
        return "operator"
    return "project" if entry.organization is None else "organization"


def _build_key_view(entry: KeyEntry) -> KeyView:
    source = _determine_source(entry)
    return KeyView(
        provider=entry.provider,
        last_four=None if source == "operator" else entry.shown.removeprefix("…") or None,
        set_at=entry.set_at,
        last_used_at=entry.last_used_at,
        worked=entry.worked,
        source=source,
        readable=entry.state == "set",
    )


def _require_provider(provider: str) -> None:
    if provider not in WITH_KEYS:
        # The error does not repeat the name, because it may be a misplaced key.
        raise InvalidRequest(
            "no provider with this name accepts keys", hint=f"choose one of: {', '.join(WITH_KEYS)}"
        )
