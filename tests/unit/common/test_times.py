from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.times import FIRST_DAY, LAST_DAY, from_nanoseconds, parse_boundary, stamp

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ZONES = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
        (date(2026, 11, 21), datetime(2026, 11, 21, tzinfo=UTC)),
        ("2026-11-21T12:00:00Z", NOON),
        ("2026-11-21t13:00:00.000+01:00", NOON),
        (NOON.astimezone(timezone(timedelta(hours=5))), NOON),
        ("2026-11-21T12:00:00.000001Z", NOON + timedelta(milliseconds=1)),
        ("0001-01-01T00:00:00+14:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.9999-14:00", datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)),
    ],
)
def test_a_boundary_is_a_day_or_a_time_of_a_known_zone(given: object, at: datetime) -> None:
    assert parse_boundary(given) == at


@pytest.mark.parametrize(
    "given", ["2026-11-21T12:00:00", NOON.replace(tzinfo=None), "yesterday", "1700000000", 17, True]
)
def test_anything_else_is_refused_without_being_quoted(given: object) -> None:
    with pytest.raises(ValueError, match="a time with its zone") as refused:
        parse_boundary(given)
    assert str(given) not in str(refused.value)


@pytest.mark.slow
@given(boundary=st.datetimes(timezones=ZONES), nanoseconds=st.integers(-(2**63), 2**63 - 1))
def test_a_rounded_boundary_parts_the_same_times(boundary: datetime, nanoseconds: int) -> None:
    try:
        exact = boundary.astimezone(UTC)
    except OverflowError:
        return
    for at in (from_nanoseconds(nanoseconds), from_nanoseconds(0)):
        assert (at < exact) == (at < parse_boundary(boundary))


@pytest.mark.slow
@given(at=st.datetimes(timezones=ZONES), zone=ZONES)
def test_a_time_is_written_alike_whatever_zone_it_comes_in(at: datetime, zone: timezone) -> None:
    try:
        elsewhere = at.astimezone(zone)
        written = stamp(at)
    except OverflowError:
        return
    assert stamp(elsewhere) == written
    assert abs(datetime.fromisoformat(written) - at) < timedelta(milliseconds=1)


def test_a_files_time_that_is_no_date_is_the_nearest_one() -> None:
    assert from_nanoseconds(-(2**70)) == FIRST_DAY
    assert from_nanoseconds(2**70) == LAST_DAY
