import logging

import pytest

from rag_assets.sensors.daemon import ClockWatch, is_worth_logging


def watched(*readings: tuple[float, float]) -> list[float]:
    """Return what a watch reports for readings of the machine's and of the monotonic clock."""
    wall = iter([at for at, _ in readings])
    steady = iter([at for _, at in readings])
    watch = ClockWatch(60.0, lambda: next(wall), lambda: next(steady))
    return [watch.get_seconds_set_back() for _ in readings[1:]]


@pytest.mark.parametrize(
    ("readings", "set_back"),
    [
        ([(1000, 1), (1005, 6), (1007.5, 10)], [0, 0]),
        ([(1000, 1), (90_005, 6), (1010, 11)], [0, 89_000]),
        ([(1000, 1), (970, 6), (940, 11), (940, 16)], [0, 70, 75]),
        ([(1000, 1), (40_000, 2), (40_005, 7)], [0, 0]),
    ],
    ids=["steady", "set forward and back", "small steps back add up", "the machine slept"],
)
def test_the_seconds_that_a_clock_was_set_back_are_reported(
    readings: list[tuple[float, float]], set_back: list[float]
) -> None:
    assert watched(*readings) == set_back


@pytest.mark.parametrize(
    ("message", "level", "is_kept"),
    [
        ("Checking for new runs for sensor: source_files", logging.INFO, False),
        ("Sensor tenants skipped: nothing changed", logging.INFO, False),
        ("No run requests returned for run_failures, skipping", logging.INFO, False),
        ("Launching run for source_files", logging.INFO, True),
        ("Sensor tenants skipped: nothing changed", logging.WARNING, True),
    ],
)
def test_ticks_that_request_nothing_are_silent(message: str, level: int, is_kept: bool) -> None:
    record = logging.LogRecord("dagster.daemon.SensorDaemon", level, "", 0, message, None, None)
    assert is_worth_logging(record) is is_kept
