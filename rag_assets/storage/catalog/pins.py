"""Pins: the build that answers for a tenant, regardless of its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update

from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import serving

_COLUMNS = ("pinned_generation", "pinned_at", "pinned_by", "pin_reason")


@dataclass(frozen=True, slots=True)
class Pin:
    """The build that answers, regardless of the configuration.

    Attributes:
        at: when it was pinned; None before the pin is stored.
        by: who pinned it.
        reason: why it was pinned.
    """

    generation: int
    by: str
    reason: str
    at: datetime | None = None


class PinTable:
    """Queries on the columns of `serving` that contain the pin."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(self, ref: TenantRef, pin: Pin) -> None:
        """Record which build must answer; it answers when it is up to date."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(serving).where(serving.c.tenant == ref.id).values(**pin_columns(pin))
            )

    def delete(self, ref: TenantRef) -> None:
        """Delete the pin, if it exists."""
        nothing = dict.fromkeys(_COLUMNS)
        with self._database.begin_for(ref) as connection:
            connection.execute(update(serving).where(serving.c.tenant == ref.id).values(**nothing))

    def of(self, tenant_id: str) -> Pin | None:
        """Return a tenant's pin."""
        query = select(serving).where(
            serving.c.tenant == tenant_id, serving.c.pinned_generation.is_not(None)
        )
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        return Pin(row.pinned_generation, row.pinned_by, row.pin_reason, row.pinned_at)


def pin_columns(pin: Pin) -> dict[str, Any]:
    """Return the columns of `serving` for a pin that is set now."""
    values = (pin.generation, func.now(), pin.by, pin.reason)
    return dict(zip(_COLUMNS, values, strict=True))
