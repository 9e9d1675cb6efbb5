"""Tenants in the catalog: their state, incarnation and configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.common.errors import UnknownTenant
from rag_assets.storage.catalog.changes import TENANTS, notify
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.tables import incarnations, tenants

State = Literal["ACTIVE", "DISABLED", "REMOVING"]
Origin = Literal["file", "api"]


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """One row of `tenants`; config is the tenant's configuration as plain JSON."""

    id: str
    incarnation: int
    state: State
    origin: Origin
    config: Mapping[str, Any]

    @property
    def ref(self) -> TenantRef:
        """The reference with which a writer identifies this incarnation."""
        return TenantRef(self.id, self.incarnation)


class TenantTable:
    """Queries on `tenants`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[TenantRecord]:
        """Every tenant, by id."""
        with self._database.begin() as connection:
            return [_record(row) for row in connection.execute(select(tenants).order_by("id"))]

    def active_versions(self) -> dict[str, tuple[int, datetime]]:
        """The incarnation of each active tenant and the time of its last change, by id."""
        query = select(tenants.c.id, tenants.c.incarnation, tenants.c.updated_at)
        with self._database.begin() as connection:
            rows = connection.execute(query.where(tenants.c.state == "ACTIVE").order_by("id"))
            return {id_: (incarnation, changed) for id_, incarnation, changed in rows}

    def named(self, tenant_ids: Iterable[str]) -> list[TenantRecord]:
        """Those of the named tenants that exist, by id."""
        query = select(tenants).where(among(tenants.c.id, tenant_ids)).order_by("id")
        with self._database.begin() as connection:
            return [_record(row) for row in connection.execute(query)]

    def find(self, tenant_id: str) -> TenantRecord | None:
        """One tenant, or None."""
        with self._database.begin() as connection:
            row = connection.execute(select(tenants).where(tenants.c.id == tenant_id)).first()
        return _record(row) if row else None

    def get(self, tenant_id: str) -> TenantRecord:
        """One tenant.

        Raises:
            UnknownTenant: no tenant has that id.
        """
        record = self.find(tenant_id)
        if record is None:
            raise unknown_tenant(tenant_id)
        return record

    def is_alive(self, ref: TenantRef) -> bool:
        """Whether this incarnation of the tenant exists and is not being removed."""
        record = self.find(ref.id)
        return (
            record is not None
            and record.incarnation == ref.incarnation
            and record.state != "REMOVING"
        )

    def put(
        self, tenant_id: str, config: Mapping[str, Any], *, enabled: bool, origin: Origin
    ) -> TenantRecord:
        """Create a tenant, or update its configuration and state.

        A tenant that is being removed is not changed.
        """
        values = {
            "config": dict(config),
            "state": "ACTIVE" if enabled else "DISABLED",
            "origin": origin,
        }
        changed = {**values, "updated_at": func.now()}
        with self._database.begin() as connection:
            connection.execute(
                upsert(tenants)
                .values(id=tenant_id, incarnation=incarnations.next_value(), **values)
                .on_conflict_do_update(
                    index_elements=["id"], set_=changed, where=tenants.c.state != "REMOVING"
                )
            )
            notify(connection, TENANTS)
        return self.get(tenant_id)

    def set_state(self, tenant_id: str, state: State) -> None:
        """Enable, disable or begin to remove a tenant.

        Raises:
            UnknownTenant: no tenant has that id.
        """
        with self._database.begin() as connection:
            changed = connection.execute(
                update(tenants)
                .where(tenants.c.id == tenant_id)
                .values(state=state, updated_at=func.now())
            )
            notify(connection, TENANTS)
        if not changed.rowcount:
            raise unknown_tenant(tenant_id)


def _record(row: Row[Any]) -> TenantRecord:
    return TenantRecord(row.id, row.incarnation, row.state, row.origin, row.config)


def unknown_tenant(tenant_id: str) -> UnknownTenant:
    """The error for an unknown tenant id."""
    return UnknownTenant(
        f"no tenant {tenant_id!r}",
        hint="`rag-assets tenants list` shows them; `rag-assets tenants add` creates one",
    )
