"""Dagster instances that have run jobs for a tenant, and so may hold records of the tenant.

A removal deletes Dagster's records only in the instance that it uses. Every other instance stays
listed until its sensor `tenants` has deleted the records there. These rows therefore outlive
tenants.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Column, Integer, Table, Text, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.tables import metadata, now_column, tenants

# There is no foreign key: a row stays until the instance has deleted its records of the tenant.
dagster_histories = Table(
    "dagster_histories",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("incarnation", Integer, primary_key=True, autoincrement=False),
    Column("instance", Text, primary_key=True),
    Column("place", Text, nullable=False),
    now_column("last_run_at"),
)


@dataclass(frozen=True, slots=True)
class DagsterHistory:
    """A Dagster instance that has run jobs for a tenant.

    Attributes:
        instance: the id that Dagster keeps in the instance's run storage.
        place: the instance's folder and machine at the last run.
    """

    instance: str
    place: str
    last_run_at: datetime


class DagsterHistoryTable:
    """Queries on `dagster_histories`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, tenant_id: str | None, instance: str, place: str) -> None:
        """Record that an instance runs a job for a tenant, or for all of them.

        Args:
            tenant_id: None for a job over all tenants.
            instance, place: see DagsterHistory.
        """
        ran = select(
            *(tenants.c.id, tenants.c.incarnation),
            *(literal(instance), literal(place), func.now()),
        ).where(tenants.c.state != "REMOVING")
        if tenant_id is not None:
            ran = ran.where(tenants.c.id == tenant_id)
        names = ["tenant", "incarnation", "instance", "place", "last_run_at"]
        # In a fixed order, because several processes may record the same tenants at once.
        statement = insert(dagster_histories).from_select(names, ran.order_by(tenants.c.id))
        columns = dagster_histories.c
        statement = statement.on_conflict_do_update(
            index_elements=[columns.tenant, columns.incarnation, columns.instance],
            set_={name: statement.excluded[name] for name in ("place", "last_run_at")},
        )
        with self._database.begin() as connection:
            connection.execute(statement)

    def instances(self, tenant_id: str) -> list[DagsterHistory]:
        """Return the instances that may hold records of a tenant or former tenants with its id."""
        columns = dagster_histories.c
        last = func.max(columns.last_run_at)
        query = (
            select(columns.instance, func.max(columns.place), last)
            .where(columns.tenant == tenant_id)
            .group_by(columns.instance)
            .order_by(last.desc(), columns.instance)
        )
        with self._database.begin() as connection:
            return [DagsterHistory(*row) for row in connection.execute(query)]

    def tenants(self, instance: str) -> set[str]:
        """Return the tenants, including removed tenants, that an instance may hold records of."""
        columns = dagster_histories.c
        query = select(columns.tenant).where(columns.instance == instance).distinct()
        with self._database.begin() as connection:
            return set(connection.scalars(query))

    def forget(self, tenant_id: str, instance: str) -> None:
        """Forget that an instance ran jobs for a tenant, after it deleted its records of them."""
        columns = dagster_histories.c
        with self._database.begin() as connection:
            connection.execute(
                delete(dagster_histories).where(
                    columns.tenant == tenant_id, columns.instance == instance
                )
            )
