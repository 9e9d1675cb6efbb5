"""Notifications of new work: pushed records, reindex requests, changed tenants.

Postgres's NOTIFY sends them when the change commits. A listener that is not connected misses them,
so listeners must also poll from time to time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg
from sqlalchemy import Connection, func, select

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.catalog.database import Database, connect_arguments

TENANTS = ""
"""Sent instead of a tenant's id: tenants were added, or their configuration changed."""
_CHANNEL = "rag_assets_changes"


def notify(connection: Connection, tenant_id: str) -> None:
    """Notify listeners, when the transaction commits, that a tenant has something to sync."""
    connection.execute(select(func.pg_notify(_CHANNEL, tenant_id)))


class ChangeChannel:
    """A sender of notifications, and a receiver on a separate connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tell(self, tenant_ids: Iterable[str]) -> None:
        """Notify listeners that tenants have something to sync."""
        ids = list(tenant_ids)
        if ids:
            with self._database.begin() as connection:
                for tenant_id in ids:
                    notify(connection, tenant_id)

    def notifications(self, timeout: float) -> Iterator[str | None]:
        """Yield the tenant of each notification, or TENANTS; None at the start and after timeouts.

        Args:
            timeout: seconds without a notification.

        Raises:
            ServiceUnavailable: Postgres does not answer, or the connection broke.
        """
        url = self._database.driver_url
        try:
            with psycopg.connect(url, autocommit=True, **connect_arguments()) as connection:
                connection.execute(f"LISTEN {_CHANNEL}")
                yield None
                while True:
                    came = list(connection.notifies(timeout=timeout, stop_after=1))
                    yield from (notification.payload for notification in came)
                    if not came:
                        yield None
        except psycopg.OperationalError as error:
            raise ServiceUnavailable(
                f"listening to Postgres failed ({type(error).__name__})",
                hint="it is tried again; the sensor source_files finds changes meanwhile",
            ) from None
