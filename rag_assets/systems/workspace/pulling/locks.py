"""Locks of sources: one process pulls a source at a time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from rag_assets.common.errors import TenantLocked
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.lock import lock_key, still_holds

_POLL_SECONDS = 0.25
_HELD = text(
    "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class SourceLock:
    """The lock of a source while it is pulled."""

    def __init__(self, connection: Connection, key: int, source: str) -> None:
        self._connection, self._key, self._source = connection, key, source

    def check(self) -> None:
        """Check before a write that the lock is still held.

        Raises:
            TenantLocked: its connection is gone; another process may pull the source now.
        """
        if not still_holds(self._connection, self._key):
            raise TenantLocked(
                f"source {self._source!r} is no longer locked: the connection broke",
                hint="it is pulled again by itself, from where this pull stopped",
            )


class SourceLocks:
    """Acquires and inspects the locks of sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def held(
        self, tenant_id: str, source: str, *, wait_seconds: float = 0.0
    ) -> Iterator[SourceLock]:
        """Lock a source: with two concurrent pulls, the older snapshot could be stored last.

        Args:
            tenant_id, source: the source.
            wait_seconds: time to wait for another process.

        Raises:
            TenantLocked: another process pulls the source.
        """
        key, deadline = _lock_key(tenant_id, source), time.monotonic() + wait_seconds
        with self._database.session() as connection:
            while not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}):
                if time.monotonic() >= deadline:
                    raise TenantLocked(
                        f"source {source!r} of tenant {tenant_id!r} is being pulled",
                        hint="wait until that is done",
                    )
                time.sleep(_POLL_SECONDS)
            try:
                yield SourceLock(connection, key, source)
            finally:
                # Postgres may notice a lost connection only after the next pull has started.
                with suppress(SQLAlchemyError):
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})

    def being_pulled(self, sources: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return which of these sources, by tenant and name, a process pulls now."""
        with self._database.begin() as connection:
            held = set(connection.scalars(_HELD))
        return {one for one in sources if _lock_key(*one) in held}


def _lock_key(tenant_id: str, source: str) -> int:
    return lock_key(f"pull/{tenant_id}/{source}")
