"""Change the catalog's tenants: by tenants.yaml and its lists, or by applications.

Projects and organizations are created and changed by applications, within operators' limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_assets.common.errors import (
    ConfigurationError,
    InvalidRequest,
    RagAssetsError,
    UnknownProject,
)
from rag_assets.common.formatting import format_count
from rag_assets.common.settings import Settings
from rag_assets.models.factory import require_local_model
from rag_assets.pipeline.generations import fill_in_recipes
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.settings import UNCHANGED, Organization, Unchanged
from rag_assets.storage.catalog.tenants.table import (
    Origin,
    PutProject,
    TenantRecord,
    build_configured_by_operator_error,
    require_changeable,
)
from rag_assets.storage.installation.identity import Identity
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.projects import Project, ProjectSettings, build_project_config, require_name
from rag_assets.tenants.reconciliation import FILE, TenantChanges, plan_tenants, split_conflicts


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The tenants after a reconciliation.

    Attributes:
        problems: problems with the lists that tenants.yaml names, and with tenants that need
            software or files that this machine lacks. The affected tenants are unchanged.
    """

    records: Sequence[TenantRecord]
    problems: Sequence[RagAssetsError] = ()


def reconcile_tenants(catalog: Catalog, settings: Settings, identity: Identity) -> Reconciliation:
    """Bring the catalog's tenants in line with tenants.yaml and the lists that it includes.

    A tenant listed by another home folder keeps its configuration from there. Tenants that are no
    longer listed are disabled first, regardless of problems with other tenants.

    Raises:
        ConfigurationError: tenants.yaml cannot be used, or it is missing or has no content although
            it listed tenants before.
    """
    file = TenantsFile(settings.tenants_file, cache=settings.local / "cache")
    listed, was_blank = file.load(), file.is_blank
    lists = file.load_lists()
    known = {record.id: record for record in catalog.tenants.all()}
    _require_no_api_tenant(listed, known)
    home = identity.home
    changes = {FILE: plan_tenants(listed, known, home, over=lists)}
    problems: list[RagAssetsError] = []
    for key, tenant_list in lists.items():
        usable, wrong = split_conflicts(key, tenant_list, listed, known)
        problems += wrong
        kept = {*tenant_list.kept, *listed, *(() if tenant_list.complete else known)}
        changes[key] = plan_tenants(usable, known, home, origin=key, kept=kept)
    if was_blank or file.is_blank:
        _require_no_listed_tenant(file, [id_ for plan in changes.values() for id_ in plan.disable])
    for plan in changes.values():
        problems += [_build_listed_elsewhere_error(catalog, known[id_]) for id_ in plan.foreign]
        for tenant_id in plan.disable:
            catalog.tenants.set_state(tenant_id, "DISABLED")
    for origin, plan in changes.items():
        problems += _put_tenants(catalog, known, plan, origin, home)
    if any(plan.put or plan.disable for plan in changes.values()):
        return Reconciliation(catalog.tenants.all(), problems)
    return Reconciliation(list(known.values()), problems)


def _require_no_listed_tenant(file: TenantsFile, unlisted: Sequence[str]) -> None:
    """Reject a file without content that listed tenants before: all of them would be disabled."""
    if unlisted:
        raise ConfigurationError(
            f"{file.path} is missing or has no content, but it listed"
            f" {format_count(len(unlisted), 'tenant')} before; nothing was changed",
            hint="mount its folder or restore the file; to disable all tenants, write the line"
            " `tenants: []` to it",
        )


def _put_tenants(
    catalog: Catalog,
    known: Mapping[str, TenantRecord],
    changes: TenantChanges,
    origin: Origin,
    home: UUID,
) -> list[RagAssetsError]:
    """Create or update the usable tenants; return the problems of the unusable ones."""
    problems: list[RagAssetsError] = []
    for config, enabled in changes.put:
        former = known.get(str(config["id"]))
        if enabled:
            try:
                require_usable(config, former)
            except ConfigurationError as error:
                problems.append(error)
                continue
        if former is not None and former.configured != config:
            fill_in_recipes(catalog, former)
        catalog.tenants.put(str(config["id"]), config, enabled=enabled, origin=origin, home=home)
    return problems


def _build_listed_elsewhere_error(catalog: Catalog, record: TenantRecord) -> ConfigurationError:
    other = "" if record.home is None else catalog.installation.describe_home(record.home)
    return ConfigurationError(
        f"tenants.yaml lists tenant {record.id!r} with a different configuration than {other}",
        hint=f"change the tenant there; or, to configure it from this home folder, run: rag-assets"
        f" tenants claim {record.id}",
    )


def _require_no_api_tenant(
    listed: Mapping[str, Mapping[str, Any]], known: Mapping[str, TenantRecord]
) -> None:
    """Reject a file that lists a tenant created over the API, since two configurations conflict."""
    api_tenants = {id_: record for id_, record in known.items() if record.origin == "api"}
    if not api_tenants:
        return
    projects = {
        (record.config.get("profile"), record.organization, record.project): id_
        for id_, record in api_tenants.items()
    }
    for tenant_id, config in listed.items():
        place = (config.get("profile"), config.get("organization"), config.get("project"))
        if (present := tenant_id if tenant_id in api_tenants else projects.get(place)) is not None:
            record = api_tenants[present]
            raise ConfigurationError(
                f"tenants.yaml lists {tenant_id!r}, and tenant {present!r}, project"
                f" {record.project!r} of organization {record.organization!r}, was created over the"
                " API",
                hint="remove it from tenants.yaml; to replace the existing tenant, then run"
                f" `rag-assets tenants remove {present} --yes` and add it to tenants.yaml again",
            )


def require_usable(config: Mapping[str, Any], former: TenantRecord | None = None) -> None:
    """Require that the software and files that a tenant's configuration needs exist and work.

    This covers the models of its embedder and reranker, and the requirements of its parser. A part
    that an enabled tenant already had is not checked again, because its folder may be unavailable
    for a while.
    """
    tenant = Tenant.from_config(config)
    before = None
    if former is not None and former.state == "ACTIVE":
        with suppress(ConfigurationError):
            before = Tenant.from_config(former.config)
    if before is None or tenant.embedder != before.embedder:
        _require_embedder(tenant)
    if before is None or tenant.retrieval.rerank != before.retrieval.rerank:
        _require_reranker(tenant)
    if before is None or tenant.parser != before.parser:
        tenant.parser.require_installed()


def _require_embedder(tenant: Tenant) -> None:
    try:
        require_local_model(tenant.embedder)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"the embedder of tenant {tenant.id!r} cannot be used: {error.message}",
            hint=error.hint,
        ) from error


def _require_reranker(tenant: Tenant) -> None:
    """Require that a tenant's local reranker can be loaded; else searches would run without it."""
    rerank = tenant.retrieval.rerank
    if rerank is None or rerank.local_folder is None:
        return
    if rerank.is_shipped and tenant.reads_facts:
        raise ConfigurationError(
            f"tenant {tenant.id!r} reads source code, which the reranker {rerank.model} was not"
            " trained for",
            hint="remove retrieval.rerank, or set the folder or url of a reranker for code",
        )
    from rag_assets.models.reranking.cross_encoder import require_cross_encoder

    require_cross_encoder(rerank.local_folder)


class Projects:
    """Reads, creates and changes the projects and organizations of an installation."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._file = TenantsFile(settings.tenants_file, cache=settings.local / "cache")

    def get(self, project: Project) -> TenantRecord:
        """Return the tenant of a project, whatever the tenant's `origin` is."""
        record = self._catalog.projects.find(project)
        if record is None:
            raise UnknownProject(
                f"organization {project.organization!r} has no project {project.project!r}",
                hint="`rag-assets projects list` shows the projects; `rag-assets projects put`"
                " creates one",
            )
        return record

    def get_covered(self, tenant_ids: Iterable[str], profile: str, project: str) -> TenantRecord:
        """Return the tenant of this project among a token's tenants, in any organization.

        Raises:
            UnknownProject: the token covers no such project. Whether another organization has such
                a project is not disclosed.
            InvalidRequest: several organizations have such a project, and the token covers more
                than one of them.
        """
        covered = self._catalog.projects.list_covered(tenant_ids, profile, project)
        if len(covered) > 1:
            raise InvalidRequest(
                "the token covers projects with this id in several organizations",
                hint="use a token for only one organization",
            )
        if not covered:
            raise UnknownProject(
                "the token does not cover this project",
                hint="use a token that covers the project; a token of an organization can also"
                " create it",
            )
        return covered[0]

    def put(
        self, project: Project, settings: ProjectSettings, *, reset: bool = False
    ) -> PutProject:
        """Create a project with these settings, or apply them to an existing project.

        Repeating a call changes nothing.

        Args:
            reset: reset an existing project to the settings for projects in tenants.yaml; the
                project keeps its caps and the name of its chat model.
        """
        listed = self._file.load()
        for config in listed.values():
            # A project in tenants.yaml may not have reached the catalog yet.
            if _find_project_fields(config) == (
                project.profile,
                project.organization,
                project.project,
            ):
                raise build_configured_by_operator_error(config["id"])
        initial_config = self._file.load_initial_project_config()
        former = self._catalog.projects.find(project)
        usable: list[dict[str, Any]] = []

        def compose(tenant_id: str, present: Mapping[str, Any] | None) -> dict[str, Any]:
            config = build_project_config(
                project,
                tenant_id,
                settings,
                initial_config=initial_config,
                present=present,
                reset=reset,
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
        result = self._catalog.projects.put(project, compose)
        if result.changed and not result.created:
            # Documents that wait for a provider's key may now be embedded by another provider.
            self._catalog.quarantine.retry_transient_failures(result.record.ref)
        return result

    def put_organization(
        self,
        organization_id: str,
        *,
        has_opted_in: bool | Unchanged = UNCHANGED,
        chat_model: str | Unchanged | None = UNCHANGED,
    ) -> Organization:
        """Change these settings of an organization and of its projects."""
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


def _find_project_fields(config: object) -> tuple[object, ...] | None:
    if not isinstance(config, dict):
        return None
    return tuple(config.get(name) for name in ("profile", "organization", "project"))
