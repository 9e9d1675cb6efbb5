"""Notifications about what the catalog itself brings: pushed records, requests to reindex.

They travel by Postgres's NOTIFY, with the commit of the change. A listener that is away misses
them: whoever listens also has to look from time to time.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from sqlalchemy import Connection, func, select

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.catalog.database import Database, connect_arguments

_CHANNEL = "rag_assets_changes"


def notify(connection: Connection, tenant_id: str) -> None:
    """Tell listeners, when the transaction commits, that a tenant has something to sync."""
    connection.execute(select(func.pg_notify(_CHANNEL, tenant_id)))


class ChangeListener:
    """Listens for notifications on a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._url = database.driver_url

    def notifications(self, timeout: float) -> Iterator[str | None]:
        """Yield the tenants of notifications; None whenever none came for some time.

        Args:
            timeout: seconds without a notification.

        Raises:
            ServiceUnavailable: Postgres does not answer, or the connection broke.
        """
        try:
            with psycopg.connect(self._url, autocommit=True, **connect_arguments()) as connection:
                connection.execute(f"LISTEN {_CHANNEL}")
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
