"""One writer per tenant: a Postgres advisory lock, with a row that describes its holder.

The lock lasts as long as its holder's connection, so a killed holder releases it immediately. The
row outlives the holder and shows the abandoned run to the next holder.

A pooler in front of Postgres must keep sessions. A pooler that gives a client another connection
for each transaction would leave the lock on a connection that another client then uses.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql import func

from rag_assets.common.errors import ServiceUnavailable, SessionsNotKept, TenantLocked
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    Database,
    build_row_upsert,
    convert_error,
)
from rag_assets.storage.catalog.tables import tenant_locks

_POLL_SECONDS = 0.25
_ROUNDS = 2
_PID = sa.text("SELECT pg_backend_pid()")
_verified: set[str] = set()
"""Addresses of servers that keep sessions."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds, or last held, a tenant's lock.

    Attributes:
        what: what the process does, for messages, such as "a hold".
    """

    what: str
    run_id: str | None = None
    pid: int = 0
    host: str = ""

    @classmethod
    def here(cls, what: str, run_id: str | None = None) -> Holder:
        """Return a holder that describes this process."""
        return cls(what, run_id, os.getpid(), socket.gethostname())

    def __str__(self) -> str:
        run = f", run {self.run_id}" if self.run_id else ""
        return f"{self.what} (process {self.pid} on {self.host}{run})"


class HeldLock:
    """A lock that this process holds on a tenant."""

    def __init__(self, connection: sa.Connection, tenant_id: str, key: int) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._key = key

    def check(self) -> None:
        """Require, before a write, that this process still holds the lock.

        Raises:
            TenantLocked: the connection with the lock broke; another process may hold it now.
        """
        if not holds_lock(self._connection, self._key):
            raise TenantLocked(
                f"tenant {self._tenant_id!r} is no longer locked: its connection broke",
                hint="run the sync again: it continues where this one stopped",
            )


class TenantLock(CatalogQueries):
    """Acquires the locks of tenants, and reports their holders."""

    @contextmanager
    def hold(
        self,
        tenant_id: str,
        holder: Holder,
        *,
        wait_seconds: float = 0.0,
        on_wait: Callable[[Holder], None] | None = None,
        on_takeover: Callable[[Holder], object] | None = None,
    ) -> Iterator[HeldLock]:
        """Hold a tenant's lock until the context ends.

        Args:
            on_wait: called once with the current holder, before waiting.
            on_takeover: called with a former holder that ended without releasing the lock.

        Raises:
            TenantLocked: the current holder did not release the lock in time.
        """
        key = compute_lock_key(tenant_id)
        with self._database.session() as connection:
            self._acquire(connection, tenant_id, key, wait_seconds, on_wait)
            try:
                former = self.holder(tenant_id)
                if former is not None and on_takeover is not None:
                    on_takeover(former)
                row = {"holder": asdict(holder), "acquired_at": func.now()}
                connection.execute(build_row_upsert(tenant_locks, {"tenant": tenant_id}, row))
                yield HeldLock(connection, tenant_id, key)
            finally:
                # A broken connection has released the lock already; its row remains as evidence.
                with suppress(SQLAlchemyError):
                    connection.execute(
                        sa.delete(tenant_locks).where(tenant_locks.c.tenant == tenant_id)
                    )
                    connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), {"key": key})

    def _acquire(
        self,
        connection: sa.Connection,
        tenant_id: str,
        key: int,
        wait_seconds: float,
        on_wait: Callable[[Holder], None] | None,
    ) -> None:
        deadline = time.monotonic() + wait_seconds
        reported = False
        while not connection.scalar(sa.text("SELECT pg_try_advisory_lock(:key)"), {"key": key}):
            present = self.holder(tenant_id) or Holder("another process")
            if time.monotonic() >= deadline:
                raise TenantLocked(
                    f"tenant {tenant_id!r} is being written by {present}",
                    hint="wait for it to end, or stop that process; then run the command again",
                )
            if on_wait is not None and not reported:
                on_wait(present)
                reported = True
            time.sleep(_POLL_SECONDS)

    def is_held(self, tenant_id: str) -> bool:
        """Return whether the tenant's lock is held, without acquiring it."""
        return bool(self._database.fetch_value(sa.select(is_locked(tenant_id))))

    def holder(self, tenant_id: str) -> Holder | None:
        """Return the current or last holder; None if the last holder released the lock normally."""
        query = sa.select(tenant_locks.c.holder).where(tenant_locks.c.tenant == tenant_id)
        stored = self._database.fetch_value(query)
        return Holder(**stored) if stored else None


def is_locked(tenant_id: str) -> sa.ColumnElement[bool]:
    """Return the SQL condition that any connection holds a tenant's lock."""
    lock_condition = sa.text(
        "SELECT true AS held FROM pg_locks WHERE locktype = 'advisory' AND granted"
        " AND objsubid = 1 AND ((classid::bigint << 32) | objid::bigint) = :lock_key"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    rows = (
        lock_condition.bindparams(lock_key=compute_lock_key(tenant_id))
        .columns(sa.column("held"))
        .subquery("held")
    )
    return sa.exists(sa.select(rows))


_HOLDS = sa.text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND pid = pg_backend_pid() AND objsubid = 1"
    " AND ((classid::bigint << 32) | objid::bigint) = :key"
)


def holds_lock(connection: sa.Connection, key: int) -> bool:
    """Return whether a connection holds an advisory lock; False if the connection broke."""
    try:
        return bool(connection.scalar(_HOLDS, {"key": key}))
    except SQLAlchemyError:
        return False


def require_sessions(database: Database) -> None:
    """Require that a connection keeps its session; verified once per process.

    A pooler that does not keep sessions gives the connection with a lock to the next client. The
    check opens transactions on another connection, and compares the server processes of both.

    Raises:
        SessionsNotKept: a pooler changes sessions between transactions.
    """
    if database.url in _verified:
        return
    try:
        is_kept = _keeps_sessions(database)
    except (SQLAlchemyError, ServiceUnavailable) as error:
        if "statement pooling mode" not in str(error):
            raise convert_error(error) if isinstance(error, SQLAlchemyError) else error from None
        is_kept = False
    if not is_kept:
        raise SessionsNotKept(
            "a pooler in front of Postgres gives each transaction a different session, so"
            " that locks of tenants are lost (PgBouncer: pool_mode = transaction)",
            hint="set it to pool_mode = session for this database, or use the port of Postgres"
            " itself in RAG_ASSETS_DATABASE_URL",
        )
    _verified.add(database.url)


def _keeps_sessions(database: Database) -> bool:
    key = secrets.randbits(62)
    unlock, parameters = sa.text("SELECT pg_advisory_unlock(:key)"), {"key": key}
    with database.session() as connection:
        own = connection.scalar(_PID)
        connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), parameters)
        for _ in range(_ROUNDS):
            with database.begin() as other:
                if other.scalar(_PID) == own:
                    other.execute(unlock, parameters)
                    return False
                if connection.scalar(_PID) != own or not holds_lock(connection, key):
                    return False
        connection.execute(unlock, parameters)
    return True


def compute_lock_key(tenant_id: str) -> int:
    """Return the signed 64-bit key of a tenant's advisory lock."""
    digest = hashlib.sha256(f"rag-assets/{tenant_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
