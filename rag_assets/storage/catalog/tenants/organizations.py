"""Organizations: settings for all projects of an organization."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from sqlalchemy import Connection, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import TENANTS, Database, notify, read_row
from rag_assets.storage.catalog.tables import organizations, tenants


class Unchanged(Enum):
    """The type of UNCHANGED."""

    UNCHANGED = 0


UNCHANGED: Final = Unchanged.UNCHANGED
"""The value of a parameter that leaves a setting unchanged, if None is a valid value."""


@dataclass(frozen=True, slots=True)
class OrganizationRef:
    """An organization's id, as the owner of keys."""

    id: str


@dataclass(frozen=True, slots=True)
class Organization:
    """One row of `organizations`.

    Attributes:
        has_opted_in: whether documents are embedded and searched for projects with a profile that
            requires an opt-in.
        chat_model: the name of the chat model for projects without their own model.
        updated_at: when one of these settings last changed.
    """

    id: str
    has_opted_in: bool
    chat_model: str | None
    updated_at: datetime


class OrganizationTable:
    """Queries on `organizations`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Organization]:
        """Return every organization, by id."""
        query = select(organizations).order_by(organizations.c.id)
        with self._database.begin() as connection:
            return [read_row(Organization, row) for row in connection.execute(query)]

    def find(self, organization_id: str) -> Organization | None:
        """Return an organization; None if no tenant names it and it has no settings."""
        query = select(organizations).where(organizations.c.id == organization_id)
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        return read_row(Organization, row) if row else None

    def put(
        self,
        organization_id: str,
        *,
        has_opted_in: bool | Unchanged = UNCHANGED,
        chat_model: str | Unchanged | None = UNCHANGED,
    ) -> tuple[Organization, bool]:
        """Set the given settings of an organization; its other settings stay.

        The configuration of its projects counts as changed.

        Returns:
            the organization, and whether anything changed.
        """
        given: dict[str, Any] = {"has_opted_in": has_opted_in, "chat_model": chat_model}
        given = {name: value for name, value in given.items() if value is not UNCHANGED}
        columns = organizations.c
        with self._database.begin() as connection:
            add_organizations(connection, [organization_id])
            differs = [columns[name].is_distinct_from(value) for name, value in given.items()]
            changed = (
                update(organizations)
                .where(columns.id == organization_id, or_(False, *differs))
                .values(**given, updated_at=func.clock_timestamp())
            )
            has_changed = bool(given) and connection.execute(changed).rowcount > 0
            if has_changed:
                follow = update(tenants).where(tenants.c.organization == organization_id)
                connection.execute(follow.values(updated_at=func.clock_timestamp()))
                notify(connection, TENANTS)
            query = select(organizations).where(columns.id == organization_id)
            return read_row(Organization, connection.execute(query).one()), has_changed


def add_organizations(connection: Connection, organization_ids: Iterable[str]) -> None:
    """Add organizations that do not exist yet, without settings."""
    rows = [{"id": organization_id} for organization_id in organization_ids]
    if rows:
        connection.execute(upsert(organizations).values(rows).on_conflict_do_nothing())
