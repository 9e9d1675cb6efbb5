"""Decide whether the clock can be trusted, so that data may be deleted because of its age.

A wrong clock would delete data that cannot be restored: uploads, pushed records, the history of
searches. So the catalog keeps the latest trusted time. The current time is doubted

- if it differs from the time of Postgres by more than an hour,
- if it is more than an hour before the latest trusted time, or
- if it is more than a day after the latest trusted time, unless the machine has not been restarted
  since then and its clock has advanced by as much as its uptime.

While it is doubted, no data is deleted because of its age until a person accepts the current time
with `rag-assets installation accept-clock`. A clock that becomes right again is trusted. Searching
and indexing continue in the meantime.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from rag_assets.common.clock import MAX_JUMP, MAX_SKEW, BootTime, Clock
from rag_assets.common.errors import ClockDoubted
from rag_assets.common.formatting import format_count
from rag_assets.common.times import stamp
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.installation.clock import TrustedTime

ACCEPT: Final = "rag-assets installation accept-clock"


@dataclass(frozen=True, slots=True)
class ClockDoubt:
    """Why the current time is not trusted: it is ahead, behind, or far from Postgres's clock."""

    kind: Literal["ahead", "behind", "skewed"]
    now: datetime
    trusted: TrustedTime

    @property
    def message(self) -> str:
        """Return a sentence about the clock's fault, which also says that nothing is deleted."""
        clock = (
            "nothing is deleted because of its age: this machine's clock shows"
            f" {format_time(self.now)},"
        )
        if self.kind == "skewed":
            return f"{clock} and Postgres's clock {format_time(self.trusted.server_at)}"
        distance = _format_time_difference(abs(self.now - self.trusted.at))
        side = "after" if self.kind == "ahead" else "before"
        return f"{clock} {distance} {side} the last trusted time, {format_time(self.trusted.at)}"

    @property
    def hint(self) -> str:
        """Return what a person has to do so that the clock is trusted again."""
        if self.kind == "skewed":
            return "correct the clock that is wrong"
        reason = "it was ahead before"
        if self.kind == "ahead":
            reason = "the machine was off, or the catalog was restored"
        return f"if the clock is wrong, correct it; if it is right ({reason}), run {ACCEPT}"

    @property
    def message_with_hint(self) -> str:
        """Return the message and the hint on one line."""
        return f"{self.message}; {self.hint}"

    def build_error(self) -> ClockDoubted:
        """Return the error to raise in a command that would delete data because of its age."""
        return ClockDoubted(self.message, hint=self.hint)


def get_deletion_time(catalog: Catalog, clock: Clock) -> datetime | ClockDoubt:
    """Return the time from which ages are counted, or why no deletion by age is allowed.

    Every deletion by age calls this directly before it deletes.
    """
    trusted = catalog.clock.read()
    now, boot = clock.machine(), clock.boot()
    doubt = find_doubt(trusted, now, boot)
    if doubt is not None:
        return doubt
    catalog.clock.advance(trusted, now, boot)
    return now + clock.ahead


def accept_time(catalog: Catalog, clock: Clock, *, by: str) -> None:
    """Make the current time the trusted time, and correct recorded times that lie after it."""
    former, now, boot = catalog.clock.read(), clock.machine(), clock.boot()
    doubt = find_doubt(former, now, boot)
    if doubt is not None and doubt.kind == "skewed":
        raise doubt.build_error()
    catalog.clock.replace(now, boot)
    accepted = {"time": stamp(now), "trusted": stamp(former.at), "by": by}
    for record in catalog.tenants.all():
        if record.state != "REMOVING":
            catalog.events.write(record.ref, "clock_accepted", [accepted])
            catalog.clock.correct_future_times(record.ref, now)


def find_doubt(trusted: TrustedTime, now: datetime, boot: BootTime | None) -> ClockDoubt | None:
    """Return why a machine's time is not trusted; None if it is."""
    if abs(now - trusted.server_at) > MAX_SKEW:
        return ClockDoubt("skewed", now, trusted)
    if now < trusted.at - MAX_SKEW:
        return ClockDoubt("behind", now, trusted)
    if now <= trusted.at + MAX_JUMP or _is_explained_by_uptime(trusted, now, boot):
        return None
    return ClockDoubt("ahead", now, trusted)


def format_time(at: datetime) -> str:
    """Format a time for people, in UTC to the minute."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _is_explained_by_uptime(trusted: TrustedTime, now: datetime, boot: BootTime | None) -> bool:
    """Return whether the clock advanced by as much as the uptime of the same machine."""
    if boot is None or trusted.boot is None or boot.boot_id != trusted.boot.boot_id:
        return False
    running = timedelta(seconds=boot.seconds - trusted.boot.seconds)
    return abs(now - trusted.at - running) <= MAX_SKEW


def _format_time_difference(difference: timedelta) -> str:
    if difference >= timedelta(days=2):
        return format_count(round(difference / timedelta(days=1)), "day")
    return format_count(round(difference / timedelta(hours=1)), "hour")
