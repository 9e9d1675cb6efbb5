"""Times as they are stored: in UTC, and to the millisecond, which is the resolution of an index."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

FIRST_DAY = datetime(1, 1, 2, tzinfo=UTC)
LAST_DAY = datetime(9999, 12, 30, tzinfo=UTC)
"""Times from FIRST_DAY to LAST_DAY are valid in every time zone."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
_EXPECTED = (
    "it must be a date, or a time with its zone, for example 2026-11-21 or 2026-11-21T14:35:00Z"
)


def from_nanoseconds(since_epoch: int) -> datetime:
    """Convert a file system's time to whole milliseconds; clamp it to the valid range."""
    first, last = ((day - _EPOCH) // _MILLISECOND for day in (FIRST_DAY, LAST_DAY))
    return _EPOCH + min(max(since_epoch // 1_000_000, first), last) * _MILLISECOND


def whole_milliseconds(at: datetime) -> datetime:
    """Return a time as it is stored: truncated to a millisecond."""
    return at.astimezone(UTC).replace(microsecond=at.microsecond // 1_000 * 1_000)


def parse_boundary(value: object) -> datetime:
    """Parse the start or end of a time span: a datetime with a zone, a date, or ISO 8601 text.

    A date is its midnight in UTC. A time between two milliseconds is rounded up; compared with
    stored times, this gives the same result.
    """
    at = _parse_date(value) if isinstance(value, str) else value
    if isinstance(at, date) and not isinstance(at, datetime):
        at = datetime.combine(at, time(), UTC)
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise ValueError(_EXPECTED)
    try:
        at = min(at.astimezone(UTC), _LATEST)
    except OverflowError:
        return _EARLIEST if at.year == _EARLIEST.year else _LATEST
    return at + timedelta(microseconds=-at.microsecond % 1_000)


def stamp(at: datetime) -> str:
    """Format a time as in entries and keys: `2026-11-21T14:35:00.123Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _parse_date(text: str) -> date:
    for kind in (date, datetime):
        with suppress(ValueError):
            return kind.fromisoformat(text.upper())
    raise ValueError(_EXPECTED)
