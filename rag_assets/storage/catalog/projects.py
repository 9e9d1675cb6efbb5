"""Projects in the catalog: tenants that are found by their organization and project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, Select, insert, select, text, update
from sqlalchemy.sql import func

from rag_assets.common.errors import ConfiguredByOperator, ServiceUnavailable, TenantBusy
from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.tables import incarnations, tenants
from rag_assets.storage.catalog.tenants import (
    TenantRecord,
    configured,
    note_change,
    tenant_record,
    tenant_rows,
)

if TYPE_CHECKING:
    from rag_assets.tenants.projects import Project

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0x70726f6a))")

Compose: TypeAlias = Callable[[str, Mapping[str, Any] | None], Mapping[str, Any]]
"""Computes a tenant's configuration from its id, and from its current configuration if it
exists."""


@dataclass(frozen=True, slots=True)
class PutProject:
    """The result of a request to create or change a project.

    Attributes:
        record: the project's tenant.
        created: whether it is new.
        changed: whether its configuration is new or has changed.
    """

    record: TenantRecord
    created: bool
    changed: bool


class ProjectTable:
    """Queries on `tenants` with a profile that requires a project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, project: Project) -> TenantRecord | None:
        """Return the tenant of a project; None if it does not exist."""
        with self._database.begin() as connection:
            row = connection.execute(_rows(project)).first()
        return tenant_record(row) if row else None

    def of_organization(self, organization: str, profile: str | None = None) -> list[TenantRecord]:
        """Return the tenants of an organization's projects, by project and profile."""
        columns = tenants.c
        query = tenant_rows().where(columns.of_project, columns.organization == organization)
        if profile is not None:
            query = query.where(columns.profile == profile)
        return self._records(query.order_by(columns.project, columns.profile))

    def all(self) -> list[TenantRecord]:
        """Return the tenants of all projects, by organization, project and profile."""
        columns = tenants.c
        query = tenant_rows().where(columns.of_project)
        return self._records(query.order_by(columns.organization, columns.project, columns.profile))

    def covered(self, tenant_ids: Iterable[str], profile: str, project: str) -> list[TenantRecord]:
        """Return the tenants among these that belong to this project, in any organization."""
        columns = tenants.c
        query = tenant_rows().where(
            columns.of_project,
            columns.profile == profile,
            columns.project == project,
            among(columns.id, tenant_ids),
        )
        return self._records(query.order_by(columns.organization))

    def put(self, project: Project, compose: Compose) -> PutProject:
        """Create the tenant of a project, or change its configuration; its state stays.

        Concurrent changes run one after another.

        Args:
            project: the tenant's project.
            compose: makes the configuration; see Compose.

        Raises:
            ConfiguredByOperator: tenants.yaml defines the project.
            TenantBusy: the project is being removed.
        """
        with self._database.begin() as connection:
            connection.execute(
                _LOCK, {"name": f"{project.profile}\n{project.organization}\n{project.project}"}
            )
            row = connection.execute(_rows(project)).first()
            if row is None:
                tenant_id = _unused_id(connection, project)
                created = {"id": tenant_id, "incarnation": incarnations.next_value()}
                config = compose(tenant_id, None)
                state = {"state": "ACTIVE", "origin": "api"}
                values = {**created, **state, **configured(config)}
                connection.execute(insert(tenants).values(values))
                changed = True
            else:
                require_changeable(tenant_record(row))
                config = compose(row.id, row.config)
                changed = config != row.config
                if changed:
                    values = {**configured(config), "updated_at": func.now()}
                    connection.execute(update(tenants).where(tenants.c.id == row.id).values(values))
            if changed:
                note_change(connection, config)
            record = tenant_record(connection.execute(_rows(project)).one())
        return PutProject(record, created=row is None, changed=changed)

    def _records(self, query: Select[Any]) -> list[TenantRecord]:
        with self._database.begin() as connection:
            return [tenant_record(row) for row in connection.execute(query)]


def configured_by_operator(tenant_id: str) -> ConfiguredByOperator:
    """Return the error for changing a project of tenants.yaml in another way."""
    return ConfiguredByOperator(
        f"tenants.yaml defines this project, as tenant {tenant_id!r}",
        hint="change it there",
    )


def _rows(project: Project) -> Select[Any]:
    columns = tenants.c
    return tenant_rows().where(
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
        raise configured_by_operator(record.id)


def _unused_id(connection: Connection, project: Project) -> str:
    candidates = project.tenant_ids
    query = select(tenants.c.id).where(among(tenants.c.id, candidates))
    taken = set(connection.scalars(query))
    for tenant_id in candidates:
        if tenant_id not in taken:
            return tenant_id
    raise ServiceUnavailable(
        "every id for this project is in use",
        hint="two names have one digest, or an operator gave a tenant this id: rename that",
    )
