from datetime import UTC, datetime, timedelta

import pytest

from rag_assets.common.clock import BootTime, read_boot_time
from rag_assets.pipeline.clock_guard import ACCEPT, find_doubt
from rag_assets.storage.catalog.installation.clock import TrustedTime

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
SAME, OTHER = "same boot", "other boot"
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def doubt(
    passed: timedelta,
    *,
    ran: timedelta | None = None,
    boot_id: str = SAME,
    server: timedelta = timedelta(),
) -> str | None:
    """Return the kind of doubt after the clock advanced by `passed`, the machine by `ran`."""
    now = NOON + passed
    trusted = TrustedTime(NOON, BootTime(SAME, 1_000.0), now + server)
    boot = None if ran is None else BootTime(boot_id, 1_000.0 + ran.total_seconds())
    found = find_doubt(trusted, now, boot)
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("passed", "ran", "expected"),
    [
        (DAY, None, None),
        (DAY + MINUTE, None, "ahead"),
        (-timedelta(hours=1), None, None),
        (-timedelta(hours=1) - MINUTE, None, "behind"),
        (400 * DAY, MINUTE, "ahead"),
        (7 * DAY, 7 * DAY, None),
        (7 * DAY, 7 * DAY - timedelta(minutes=59), None),
        (7 * DAY, 7 * DAY - timedelta(minutes=61), "ahead"),
        (7 * DAY, 8 * DAY, "ahead"),
        (-7 * DAY, 7 * DAY, "behind"),
    ],
)
def test_find_doubt_by_distance_and_running_time(
    passed: timedelta, ran: timedelta | None, expected: str | None
) -> None:
    assert doubt(passed, ran=ran) == expected


def test_find_doubt_after_a_restart_ignores_the_running_time() -> None:
    assert doubt(7 * DAY, ran=7 * DAY, boot_id=OTHER) == "ahead"
    assert doubt(DAY, ran=MINUTE, boot_id=OTHER) is None


@pytest.mark.parametrize("hours", [-2, 2])
def test_find_doubt_far_from_postgres_is_skewed_whatever_is_trusted(hours: int) -> None:
    assert doubt(MINUTE, ran=MINUTE, server=timedelta(hours=hours)) == "skewed"


def test_doubt_names_both_times_and_the_command() -> None:
    trusted = TrustedTime(NOON, None, NOON + 400 * DAY)
    found = find_doubt(trusted, NOON + 400 * DAY, None)
    assert found is not None
    for part in ("2027-12-27 12:00 UTC", "400 days after", "2026-11-22 12:00 UTC", ACCEPT):
        assert part in found.message_with_hint
    assert found.build_error().hint == found.hint


def test_read_boot_time_is_of_one_boot_and_advances() -> None:
    first, second = read_boot_time(), read_boot_time()
    if first is None or second is None:
        pytest.skip("this system does not say how long it has been running")
    assert first.boot_id == second.boot_id
    assert 0 < first.seconds <= second.seconds
