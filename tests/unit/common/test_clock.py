"""The clock of ages: the machine's, set forward or not, and how far it is from a server's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rag_assets.common.clock import Clock

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_a_clock_set_forward_is_no_further_from_the_servers() -> None:
    clock = Clock(machine=lambda: NOON, ahead=timedelta(days=366))
    assert clock.now() == NOON + timedelta(days=366)
    assert clock.skew(NOON) == timedelta()
    assert clock.skew(NOON + timedelta(hours=2)) == clock.skew(NOON - timedelta(hours=2))


def test_by_default_it_is_the_machines() -> None:
    before = datetime.now(UTC)
    assert before <= Clock().now() <= datetime.now(UTC)
