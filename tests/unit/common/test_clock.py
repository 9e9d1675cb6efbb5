from datetime import UTC, datetime, timedelta

from rag_assets.common.clock import Clock

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_now_of_a_clock_set_forward_is_ahead_of_the_machine() -> None:
    clock = Clock(machine=lambda: NOON, ahead=timedelta(days=366))
    assert clock.now() == NOON + timedelta(days=366)
    assert clock.machine() == NOON


def test_by_default_it_is_the_machines() -> None:
    before = datetime.now(UTC)
    assert before <= Clock().now() <= datetime.now(UTC)
    assert Clock().now().utcoffset() == timedelta()
