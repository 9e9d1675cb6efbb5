"""The trusted time of the installation, and future times in the catalog.

The trusted time is the latest time at which the machine's clock was known to be right. It moves
back only if a person confirms it. `rag_assets.pipeline.clock_guard` decides when it advances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from rag_assets.common.clock import MAX_SKEW, BootTime
from rag_assets.common.times import LAST_DAY
from rag_assets.ingest.sources.model import READ_AGAIN_NS
from rag_assets.storage.catalog.accounts.tables import panel_codes, panel_sessions, service_tokens
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef
from rag_assets.storage.catalog.tables import (
    TimeKind,
    documents,
    list_all_tables,
    metadata,
    now_column,
)

_WRITE_INTERVAL = timedelta(minutes=1)
_NANOSECONDS = 1_000_000_000
# A calendar day of the server's time zone may have 23 or 25 hours.
_DAY: sa.ColumnElement[Any] = sa.literal_column("interval '24 hours'")

installation_clock = sa.Table(
    "installation_clock",
    metadata,
    sa.Column("singleton", sa.Boolean, primary_key=True, server_default="true"),
    now_column("trusted_at"),
    # The machine's uptime at that time; null if its system does not report it.
    sa.Column("boot_id", sa.Text),
    sa.Column("boot_seconds", sa.Double),
    sa.CheckConstraint("singleton", name="singleton"),
)
"""The latest time that was trusted; time that went backwards is recognized by it."""


@dataclass(frozen=True, slots=True)
class TrustedTime:
    """The trusted time, and the time of Postgres's machine.

    Attributes:
        boot: the machine's uptime at that time; None if the operating system does not report it.
    """

    at: datetime
    boot: BootTime | None
    server_at: datetime


class ClockTable(CatalogQueries):
    """Reads and advances the trusted time, and corrects future times in the catalog."""

    def read(self) -> TrustedTime:
        """Return the trusted time and Postgres's present time."""
        row = installation_clock.c
        query = sa.select(row.trusted_at, row.boot_id, row.boot_seconds, sa.func.clock_timestamp())
        at, boot_id, boot_seconds, server_at = self._database.fetch_one(query)
        boot = None if boot_id is None else BootTime(boot_id, boot_seconds)
        return TrustedTime(at, boot, server_at)

    def advance(self, former: TrustedTime, now: datetime, boot: BootTime | None) -> None:
        """Record a later trusted time, at most once a minute."""
        if now - former.at < _WRITE_INTERVAL:
            return
        later = sa.update(installation_clock).where(installation_clock.c.trusted_at <= now)
        with self._database.begin() as connection:
            connection.execute(later.values(**_build_clock_columns(now, boot)))

    def replace(self, now: datetime, boot: BootTime | None) -> None:
        """Replace the trusted time with an earlier or later time that a person has confirmed."""
        with self._database.begin() as connection:
            connection.execute(
                sa.update(installation_clock).values(**_build_clock_columns(now, boot))
            )

    def has_future_ages(self, tenant_id: str, now: datetime) -> bool:
        """Return whether the age of any document of a tenant counts from a future time."""
        at = documents.c.embedded_at
        query = sa.select(documents.c.document_id).where(
            documents.c.tenant == tenant_id, at > now + MAX_SKEW
        )
        return self._database.fetch_row(query.limit(1)) is not None

    def count_future_times(self, tenant_id: str, now: datetime) -> int:
        """Return the number of a tenant's rows with a time in the future.

        Args:
            now: the current time; times up to an hour later are not counted.
        """
        latest = now + MAX_SKEW
        with self._database.begin() as connection:
            return sum(
                connection.scalar(
                    sa.select(sa.func.count())
                    .select_from(table)
                    .where(table.c.tenant == tenant_id, sa.or_(*(at > latest for at in times)))
                )
                or 0
                for table, times in _iter_tables("event")
            )

    def correct_future_times(self, ref: TenantRef, now: datetime) -> int:
        """Replace future times with the current time; return the number of corrected rows.

        Such times were recorded while the clock was fast. After the correction, ages and pauses
        count from now on, retries are due immediately, files are read again, and sessions of the
        panel end.

        Args:
            now: the current time, which is trusted; times up to an hour later stay.
        """
        with self._database.begin_tenant(ref) as connection:
            corrected = _correct_times(connection, ref, "event", now)
            corrected += _correct_lifetimes(connection, ref, now)
            corrected += _mark_to_read_again(connection, ref, now)
            if corrected:
                _correct_times(connection, ref, "retry", now)
        return corrected


def select_time_to_record(now: datetime | None = None) -> sa.ColumnElement[Any]:
    """Return the SQL expression of the current time, or of the trusted time if that is later.

    A slow clock would record the start of an age too early, and the row would be deleted as too old
    as soon as the clock is right.
    """
    return sa.func.greatest(
        sa.func.clock_timestamp() if now is None else now, _select_trusted_time()
    )


def select_latest_trusted_time() -> sa.ColumnElement[Any]:
    """Return the SQL expression of the current time, but at most a day after the trusted time.

    Expiry is judged by this time, so that nothing expires only because the clock is far too fast.
    """
    return sa.func.least(sa.func.now(), _select_trusted_time() + _DAY)


def _select_trusted_time() -> sa.ColumnElement[Any]:
    return sa.select(installation_clock.c.trusted_at).scalar_subquery()


def _build_clock_columns(now: datetime, boot: BootTime | None) -> dict[str, object]:
    return {
        "trusted_at": now,
        "boot_id": boot and boot.boot_id,
        "boot_seconds": boot and boot.seconds,
    }


def _iter_tables(kind: TimeKind) -> Iterator[tuple[sa.Table, list[sa.Column[Any]]]]:
    """Yield each table with columns for times of this kind, and the columns; also of systems."""
    for table in list_all_tables():
        times = [column for column in table.c if column.info.get("time") == kind]
        if times:
            yield table, times


def _correct_times(connection: sa.Connection, ref: TenantRef, kind: TimeKind, now: datetime) -> int:
    """Replace a tenant's future times of a kind; return the number of corrected rows."""
    corrected = 0
    for table, times in _iter_tables(kind):
        # Times from LAST_DAY on stay, because such a retry waits for a person.
        wrong = {at: (at > now + MAX_SKEW) & (at < LAST_DAY) for at in times}
        values = {at.name: sa.case((is_wrong, now), else_=at) for at, is_wrong in wrong.items()}
        statement = sa.update(table).where(table.c.tenant == ref.id, sa.or_(*wrong.values()))
        corrected += connection.execute(statement.values(values)).rowcount
    return corrected


def _correct_lifetimes(connection: sa.Connection, ref: TenantRef, now: datetime) -> int:
    """End panel sessions, and restart tokens, with a future start; return the number of rows."""
    latest = now + MAX_SKEW
    ended = sum(
        connection.execute(
            sa.delete(table).where(table.c.tenant == ref.id, table.c.created_at > latest)
        ).rowcount
        for table in (panel_sessions, panel_codes)
    )
    token = service_tokens.c
    made_later = sa.update(service_tokens).where(token.tenant == ref.id, token.created_at > latest)
    lifetimes = {"expires_at": now + (token.expires_at - token.created_at), "created_at": now}
    return ended + connection.execute(made_later.values(lifetimes)).rowcount


def _mark_to_read_again(connection: sa.Connection, ref: TenantRef, now: datetime) -> int:
    """Mark files with a future listing time to be read again; return their number.

    Such a time would hide later changes to the files.
    """
    latest_ns = int((now + MAX_SKEW).timestamp()) * _NANOSECONDS
    statement = sa.update(documents).where(
        documents.c.tenant == ref.id, documents.c.listed_at_ns > latest_ns
    )
    return connection.execute(statement.values(listed_at_ns=READ_AGAIN_NS)).rowcount
