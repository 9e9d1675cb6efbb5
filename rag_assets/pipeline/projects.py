"""Projects and organizations that applications create and change, within operators' limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag_assets.common.errors import ConfigurationError, InvalidRequest, UnknownProject
from rag_assets.common.settings import Settings
from rag_assets.pipeline.tenancy import require_usable
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.organizations import UNCHANGED, Organization, Unchanged
from rag_assets.storage.catalog.tenants.table import (
    PutProject,
    TenantRecord,
    configured_by_operator,
    require_changeable,
)
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.projects import Project, ProjectSettings, project_config, require_name


class Projects:
    """The projects of an installation.

    Args:
        catalog: holds their tenants.
        settings: provide the path of tenants.yaml.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._file = TenantsFile(settings.tenants_file, cache=settings.local / "cache")

    def get(self, project: Project) -> TenantRecord:
        """Return the tenant of a project, of any origin.

        Raises:
            UnknownProject: the project does not exist.
        """
        record = self._catalog.projects.find(project)
        if record is None:
            raise UnknownProject(
                f"organization {project.organization!r} has no project {project.project!r}",
                hint="`rag-assets projects list` shows the projects; `rag-assets projects put`"
                " creates one",
            )
        return record

    def covered(self, tenant_ids: Iterable[str], profile: str, project: str) -> TenantRecord:
        """Return the tenant of this project among a token's tenants, in any organization.

        Args:
            tenant_ids: the tenants that the token covers.
            profile: profile of the requested system.
            project: the application's id of the project.

        Raises:
            UnknownProject: the token covers no such project. Whether another organization has such
                a project is not disclosed.
            InvalidRequest: several organizations have such a project, and the token covers more
                than one of them.
        """
        found = self._catalog.projects.list_covered(tenant_ids, profile, project)
        if len(found) > 1:
            raise InvalidRequest(
                "the token covers projects with this id in several organizations",
                hint="use a token for only one organization",
            )
        if not found:
            raise UnknownProject(
                "the token does not cover this project",
                hint="use a token that covers the project; a token of an organization can also"
                " create it",
            )
        return found[0]

    def put(self, project: Project, settings: ProjectSettings, *, anew: bool = False) -> PutProject:
        """Create a project, or change the given settings; repeating the call changes nothing.

        Args:
            project: the project to create or change.
            settings: the settings to change.
            anew: reset an existing project to the settings for projects in tenants.yaml; it keeps
                its caps and the name of its chat model.

        Raises:
            ConfiguredByOperator: tenants.yaml defines the project.
            InvalidRequest: the settings do not fit the operator's configuration, or something that
                they need is not installed.
            TenantBusy: the project is being removed.
            ConfigurationError: tenants.yaml is not usable.
        """
        listed = self._file.load()
        for config in listed.values():
            # A project in tenants.yaml may not have reached the catalog yet.
            if _project_of(config) == (project.profile, project.organization, project.project):
                raise configured_by_operator(config["id"])
        beginning = self._file.beginning_of_projects()
        former = self._catalog.projects.find(project)
        usable: list[dict[str, Any]] = []

        def compose(tenant_id: str, present: Mapping[str, Any] | None) -> dict[str, Any]:
            config = project_config(
                project, tenant_id, settings, beginning=beginning, present=present, anew=anew
            )
            if {**config, "id": ""} not in usable:
                _require_usable(config, former)
                usable.append({**config, "id": ""})
            return config

        # Loading models takes long, so it happens within the transaction only after a concurrent
        # change.
        if former is None:
            compose(project.tenant_ids[0], None)
        else:
            require_changeable(former)
            compose(former.id, former.config)
        done = self._catalog.projects.put(project, compose)
        if done.changed and not done.created:
            # Documents that wait for a provider's key may now be embedded by another provider.
            self._catalog.quarantine.retry_transient_failures(done.record.ref)
        return done

    def put_organization(
        self,
        organization_id: str,
        *,
        has_opted_in: bool | Unchanged = UNCHANGED,
        chat_model: str | Unchanged | None = UNCHANGED,
    ) -> Organization:
        """Change the given settings of an organization; its projects follow.

        Raises:
            InvalidRequest: the given id is not valid for an organization.
        """
        require_name("organization", organization_id)
        organization, changed = self._catalog.organizations.put(
            organization_id, has_opted_in=has_opted_in, chat_model=chat_model
        )
        if changed:
            for record in self._catalog.projects.list_of_organization(organization_id):
                if record.state != "REMOVING":
                    self._catalog.quarantine.retry_transient_failures(record.ref)
        return organization


def _require_usable(config: Mapping[str, Any], former: TenantRecord | None) -> None:
    """Reject a project with an embedder, reranker or parser that this machine cannot use."""
    try:
        require_usable(config, former)
    except ConfigurationError as error:
        raise InvalidRequest(error.message, hint=error.hint) from error


def _project_of(config: object) -> tuple[object, ...] | None:
    if not isinstance(config, dict):
        return None
    return tuple(config.get(name) for name in ("profile", "organization", "project"))
