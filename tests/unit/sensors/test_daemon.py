"""The daemon's clock watch, and its filter of log records."""

from __future__ import annotations

import logging

import pytest

from rag_assets.sensors.daemon import ClockWatch, is_worth_logging


def watched(*readings: tuple[float, float]) -> list[float]:
    """Return what a watch reports for readings of the machine's and of the monotonic clock."""
    wall = iter([at for at, _ in readings])
    steady = iter([at for _, at in readings])
    watch = ClockWatch(60.0, lambda: next(wall), lambda: next(steady))
    return [watch.get_seconds_set_back() for _ in readings[1:]]


def test_a_clock_that_runs_as_the_steady_one_is_not_set_back() -> None:
    assert watched((1000, 1), (1005, 6), (1007.5, 10)) == [0, 0]


def test_a_clock_that_is_set_forward_and_back_is_noticed_by_the_way_back() -> None:
    assert watched((1000, 1), (90_005, 6), (1010, 11)) == [0, 89_000]


def test_small_steps_back_add_up() -> None:
    assert watched((1000, 1), (970, 6), (940, 11), (940, 16)) == [0, 70, 75]


def test_a_machine_that_slept_was_not_set_back() -> None:
    assert watched((1000, 1), (40_000, 2), (40_005, 7)) == [0, 0]


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
def test_only_ticks_that_request_nothing_are_not_logged(
    message: str, level: int, is_kept: bool
) -> None:
    record = logging.LogRecord("dagster.daemon.SensorDaemon", level, "", 0, message, None, None)
    assert is_worth_logging(record) is is_kept
