"""Tenants and projects: their state, incarnation and configuration.

A project is a tenant that is looked up by its organization and project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError

from rag_assets.common.errors import (
    ConfigurationError,
    ConfiguredByOperator,
    ServiceUnavailable,
    TenantBusy,
    UnknownTenant,
)
from rag_assets.storage.catalog.database import (
    TENANTS,
    CatalogQueries,
    Database,
    TenantRef,
    find_constraint,
    matches_any,
    notify,
    read_row,
)
from rag_assets.storage.catalog.tables import (
    ONE_TENANT_PER_PROJECT,
    incarnations,
    organizations,
    tenants,
)
from rag_assets.storage.catalog.tenants.settings import (
    add_organizations,
    apply_operator_config,
    list_setting_columns,
    rag_settings,
    read_settings,
)
from rag_assets.tenants.application_settings import NO_SETTINGS, ApplicationSettings
from rag_assets.tenants.profiles import DEFAULT_PROFILE, get_profile

if TYPE_CHECKING:
    from rag_assets.tenants.projects import Project

State = Literal["ACTIVE", "DISABLED", "REMOVING"]
Origin: TypeAlias = str
"""How a tenant is defined: "file" in tenants.yaml, "api" by an application, otherwise in the tenant
list of a system with that key."""


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """One row of `tenants`, with its organization's settings.

    Attributes:
        config: the tenant's configuration as plain JSON, including its application's settings. It
            contains the organization's chat model if the tenant was created over the API and does
            not set its own.
        operator_config, operator_enabled: the operator's values, which the application's settings
            override; None if the application has not set any.
    """

    id: str
    incarnation: int
    state: State
    origin: Origin
    config: Mapping[str, Any]
    organization: str | None = None
    project: str | None = None
    has_opted_in: bool = False
    scanned: Mapping[str, Any] = field(default_factory=dict)
    settings: ApplicationSettings = NO_SETTINGS
    operator_config: Mapping[str, Any] | None = None
    operator_enabled: bool | None = None
    home: UUID | None = None

    @property
    def configured(self) -> Mapping[str, Any]:
        """Return the tenant's configuration without the settings of its application."""
        return self.config if self.operator_config is None else self.operator_config

    @property
    def configured_state(self) -> State:
        """Return the state that the operator set, ignoring the settings of the application."""
        if self.operator_enabled is None or self.state == "REMOVING":
            return self.state
        return "ACTIVE" if self.operator_enabled else "DISABLED"

    @property
    def is_switched_off(self) -> bool:
        """Return whether the tenant is disabled only because its application switched it off."""
        return self.state == "DISABLED" and self.configured_state == "ACTIVE"

    @property
    def profile(self) -> str:
        """Return the name of the profile in the tenant's configuration."""
        return str(self.config.get("profile", DEFAULT_PROFILE))

    @property
    def ref(self) -> TenantRef:
        """Return the tenant's id and incarnation, which a writer must pass."""
        return TenantRef(self.id, self.incarnation)


class TenantTable(CatalogQueries):
    """Creates, finds and changes tenants, in `tenants`."""

    def all(self) -> list[TenantRecord]:
        """Return every tenant, sorted by id."""
        return _fetch_tenants(self._database, select_tenants().order_by(tenants.c.id))

    def list_active_versions(self) -> dict[str, tuple[int, datetime]]:
        """Return (incarnation, time of the last change) of each active tenant, by id."""
        query = sa.select(tenants.c.id, tenants.c.incarnation, tenants.c.updated_at)
        rows = self._database.fetch_rows(query.where(tenants.c.state == "ACTIVE").order_by("id"))
        return {id_: (incarnation, changed) for id_, incarnation, changed in rows}

    def find_many(self, tenant_ids: Iterable[str]) -> list[TenantRecord]:
        """Return the named tenants that exist, sorted by id."""
        query = select_tenants().where(matches_any(tenants.c.id, tenant_ids))
        return _fetch_tenants(self._database, query.order_by(tenants.c.id))

    def list_with_source(self, kind: str) -> list[TenantRecord]:
        """Return the active tenants that have a source of this type, sorted by id."""
        has_one = tenants.c.config.contains({"sources": [{"type": kind}]})
        query = select_tenants().where(tenants.c.state == "ACTIVE", has_one)
        return _fetch_tenants(self._database, query.order_by(tenants.c.id))

    def list_of_organization(self, organization: str) -> list[TenantRecord]:
        """Return the tenants with this organization in their configuration, sorted by id."""
        query = select_tenants().where(tenants.c.organization == organization)
        return _fetch_tenants(self._database, query.order_by(tenants.c.id))

    def find(self, tenant_id: str) -> TenantRecord | None:
        """Return one tenant; None if it does not exist."""
        row = self._database.fetch_row(select_tenants().where(tenants.c.id == tenant_id))
        return read_tenant(row) if row else None

    def get(self, tenant_id: str) -> TenantRecord:
        """Return one tenant.

        Raises:
            UnknownTenant: no tenant has that id.
        """
        record = self.find(tenant_id)
        if record is None:
            raise build_unknown_tenant_error(tenant_id)
        return record

    def is_alive(self, ref: TenantRef) -> bool:
        """Return whether this incarnation of the tenant exists and is not being removed."""
        record = self.find(ref.id)
        return record is not None and record.ref == ref and record.state != "REMOVING"

    def put(
        self,
        tenant_id: str,
        config: Mapping[str, Any],
        *,
        enabled: bool,
        origin: Origin,
        home: UUID | None = None,
    ) -> TenantRecord:
        """Create a tenant, or update its configuration and state.

        A tenant that is being removed is not changed.

        Raises:
            ConfigurationError: another tenant already has its project.
        """
        try:
            with self._database.begin() as connection:
                in_force, is_on = apply_operator_config(
                    connection, tenant_id, config, enabled=enabled
                )
                values: dict[str, Any] = {
                    "state": "ACTIVE" if is_on else "DISABLED",
                    "origin": origin,
                    "home": home,
                    **build_configuration_columns(in_force),
                }
                changed = {**values, "updated_at": sa.func.now()}
                connection.execute(
                    upsert(tenants)
                    .values(id=tenant_id, incarnation=incarnations.next_value(), **values)
                    .on_conflict_do_update(
                        index_elements=["id"], set_=changed, where=tenants.c.state != "REMOVING"
                    )
                )
                note_change(connection, config)
        except IntegrityError as error:
            if find_constraint(error) != ONE_TENANT_PER_PROJECT:
                raise
            raise ConfigurationError(
                f"tenant {tenant_id!r}: its project already belongs to a different tenant with"
                " the same profile",
                hint="`rag-assets projects list` shows both tenants; remove one of them",
            ) from None
        return self.get(tenant_id)

    def claim(self, tenant_ids: Iterable[str], home: UUID) -> list[str]:
        """Assign these tenants, except API tenants, to a home folder; return the assigned ids."""
        changed = (
            sa.update(tenants)
            .where(matches_any(tenants.c.id, tenant_ids), tenants.c.origin != "api")
            .values(home=home)
            .returning(tenants.c.id)
        )
        return sorted(self._database.fetch_values(changed))

    def set_state(self, tenant_id: str, state: State) -> None:
        """Enable or disable a tenant, or start to remove it.

        A tenant that its application has switched off stays disabled.

        Raises:
            UnknownTenant: no tenant has that id.
        """
        with self._database.begin() as connection:
            if state != "REMOVING":
                on = (
                    sa.update(rag_settings)
                    .where(rag_settings.c.tenant == tenant_id)
                    .values(operator_enabled=state == "ACTIVE")
                    .returning(rag_settings.c.enabled)
                )
                if connection.scalar(on) is False:
                    state = "DISABLED"
            changed = connection.execute(
                sa.update(tenants)
                .where(tenants.c.id == tenant_id)
                .values(state=state, updated_at=sa.func.now())
            )
            notify(connection, TENANTS)
        if not changed.rowcount:
            raise build_unknown_tenant_error(tenant_id)


def select_tenants() -> sa.Select[Any]:
    """Return the query of tenants with their organizations' settings; see read_tenant."""
    return sa.select(
        tenants,
        organizations.c.has_opted_in,
        organizations.c.chat_model.label("organization_chat_model"),
        *list_setting_columns(),
    ).select_from(
        tenants.outerjoin(organizations, organizations.c.id == tenants.c.organization).outerjoin(
            rag_settings, rag_settings.c.tenant == tenants.c.id
        )
    )


def read_tenant(row: sa.Row[Any]) -> TenantRecord:
    """Return the tenant in a row of select_tenants()."""
    config = row.config
    inherits = row.origin == "api" and row.organization_chat_model is not None
    if inherits and config.get("chat_model") is None:
        config = {**config, "chat_model": row.organization_chat_model}
    return read_row(
        TenantRecord,
        row,
        config=config,
        has_opted_in=bool(row.has_opted_in),
        settings=read_settings(row),
    )


def _fetch_tenants(database: Database, query: sa.Select[Any]) -> list[TenantRecord]:
    return [read_tenant(row) for row in database.fetch_rows(query)]


def build_configuration_columns(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of `tenants` that a configuration determines."""
    profile = config.get("profile", DEFAULT_PROFILE)
    return {
        "config": dict(config),
        "profile": profile,
        "organization": config.get("organization"),
        "project": config.get("project"),
        "of_project": get_profile(profile).requires_project,
    }


def note_change(connection: sa.Connection, config: Mapping[str, Any]) -> None:
    """Store the organization of a new configuration, and notify processes that watch tenants."""
    if config.get("organization") is not None:
        add_organizations(connection, [config["organization"]])
    notify(connection, TENANTS)


def build_unknown_tenant_error(tenant_id: str) -> UnknownTenant:
    """Return the error for an unknown tenant id."""
    return UnknownTenant(
        f"no tenant {tenant_id!r}",
        hint="`rag-assets tenants list` shows all tenants; `rag-assets tenants add` creates one",
    )


_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0x70726f6a))")

Compose: TypeAlias = Callable[[str, Mapping[str, Any] | None], Mapping[str, Any]]
"""Computes a tenant's configuration from its id, and from its current configuration if it
exists."""


@dataclass(frozen=True, slots=True)
class PutProject:
    """The result of a request to create or change a project."""

    record: TenantRecord
    created: bool
    changed: bool


class ProjectTable(CatalogQueries):
    """Creates, finds and changes tenants whose profile requires a project."""

    def find(self, project: Project) -> TenantRecord | None:
        """Return the tenant of a project; None if it does not exist."""
        row = self._database.fetch_row(_select_project(project))
        return read_tenant(row) if row else None

    def list_of_organization(
        self, organization: str, profile: str | None = None
    ) -> list[TenantRecord]:
        """Return the tenants of an organization's projects, sorted by project and profile."""
        columns = tenants.c
        query = select_tenants().where(columns.of_project, columns.organization == organization)
        if profile is not None:
            query = query.where(columns.profile == profile)
        return _fetch_tenants(self._database, query.order_by(columns.project, columns.profile))

    def all(self) -> list[TenantRecord]:
        """Return the tenants of all projects, sorted by organization, project and profile."""
        columns = tenants.c
        query = select_tenants().where(columns.of_project)
        return _fetch_tenants(
            self._database, query.order_by(columns.organization, columns.project, columns.profile)
        )

    def list_covered(
        self, tenant_ids: Iterable[str], profile: str, project: str
    ) -> list[TenantRecord]:
        """Return which of these tenants belong to this project and profile, in any organization."""
        columns = tenants.c
        query = select_tenants().where(
            columns.of_project,
            columns.profile == profile,
            columns.project == project,
            matches_any(columns.id, tenant_ids),
        )
        return _fetch_tenants(self._database, query.order_by(columns.organization))

    def put(self, project: Project, compose: Compose) -> PutProject:
        """Create the tenant of a project, or change its configuration; its state stays.

        Raises:
            ConfiguredByOperator: tenants.yaml defines the project.
            TenantBusy: the project is being removed.
        """
        with self._database.begin() as connection:
            connection.execute(
                _LOCK, {"name": f"{project.profile}\n{project.organization}\n{project.project}"}
            )
            row = connection.execute(_select_project(project)).first()
            if row is None:
                tenant_id = _find_unused_id(connection, project)
                created = {"id": tenant_id, "incarnation": incarnations.next_value()}
                config = compose(tenant_id, None)
                state = {"state": "ACTIVE", "origin": "api"}
                values = {**created, **state, **build_configuration_columns(config)}
                connection.execute(sa.insert(tenants).values(values))
                changed = True
            else:
                require_changeable(read_tenant(row))
                config = compose(row.id, row.config)
                changed = config != row.config
                if changed:
                    values = {**build_configuration_columns(config), "updated_at": sa.func.now()}
                    connection.execute(
                        sa.update(tenants).where(tenants.c.id == row.id).values(values)
                    )
            if changed:
                note_change(connection, config)
            record = read_tenant(connection.execute(_select_project(project)).one())
        return PutProject(record, created=row is None, changed=changed)


def build_configured_by_operator_error(tenant_id: str) -> ConfiguredByOperator:
    """Return the error for a request to change a project that tenants.yaml defines."""
    return ConfiguredByOperator(
        f"tenants.yaml defines this project, as tenant {tenant_id!r}",
        hint="change the project in tenants.yaml",
    )


def _select_project(project: Project) -> sa.Select[Any]:
    columns = tenants.c
    return select_tenants().where(
        columns.of_project,
        columns.organization == project.organization,
        columns.project == project.project,
        columns.profile == project.profile,
    )


def require_changeable(record: TenantRecord) -> None:
    """Require that applications may change the tenant of a project.

    Raises:
        ConfiguredByOperator: tenants.yaml defines the project.
        TenantBusy: the project is being removed.
    """
    if record.state == "REMOVING":
        raise TenantBusy(
            "this project is being removed", hint="try again when its removal is finished"
        )
    if record.origin != "api":
        raise build_configured_by_operator_error(record.id)


def _find_unused_id(connection: sa.Connection, project: Project) -> str:
    candidates = project.tenant_ids
    query = sa.select(tenants.c.id).where(matches_any(tenants.c.id, candidates))
    used_ids = set(connection.scalars(query))
    for tenant_id in candidates:
        if tenant_id not in used_ids:
            return tenant_id
    raise ServiceUnavailable(
        "every id for this project is in use",
        hint="two names have the same digest, or an operator gave a tenant this id: rename that"
        " tenant",
    )
