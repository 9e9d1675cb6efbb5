"""Dagster's daemon after this machine's clock was ahead: real ticks, and a simulated clock."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import (
    InstigatorTick,
    ScheduleInstigatorData,
    SensorInstigatorData,
)

from rag_assets.checks.ticks import build_verdict
from rag_assets.common.settings import Settings
from rag_assets.runtime.liveness import wait_until
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.program_processes import build_dagster_environment, find_tick_fault
from rag_assets.runtime.stack import LocalStack
from rag_assets.sensors.ticks import discard_future_ticks
from tests.databases import create_database, drop_database
from tests.integration.runtime.test_dagster_processes import INSTANCE

DEFINITIONS = """
import dagster as dg

@dg.job
def some_job() -> None: ...

@dg.sensor(job=some_job, minimum_interval_seconds=1, default_status=dg.DefaultSensorStatus.RUNNING)
def often() -> dg.SkipReason:
    return dg.SkipReason("nothing to do")

daily = dg.ScheduleDefinition(
    job=some_job, cron_schedule="0 0 * * *", default_status=dg.DefaultScheduleStatus.RUNNING
)
defs = dg.Definitions(jobs=[some_job], sensors=[often], schedules=[daily])
"""
AHEAD = timedelta(days=400).total_seconds()
PATIENCE = 90.0
SCHEDULE = "some_job_schedule"
SET_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long ahead(void) {
    long seconds = 0;
    FILE *file = fopen(getenv("SECONDS_AHEAD_FILE"), "r");
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += ahead();
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec; now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}
"""
"""The machine's clock moved by as many seconds as a file says, for programs that preload it.

libfaketime cannot be used: it moves the steady clock as well, or breaks sleeping.
"""


@pytest.fixture
def stack(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalStack]:
    """Create an installation whose daemon has one sensor and one schedule; stop it at the end."""
    (folder := tmp_path / ".local" / "dagster").mkdir(parents=True)
    (folder / "workspace.yaml").write_text("load_from: [{python_file: definitions.py}]\n")
    (folder / "definitions.py").write_text(DEFINITIONS)
    (folder / "dagster.yaml").write_text(INSTANCE)
    settings = Settings(
        home=tmp_path,
        database_url=create_database(postgres_url, "clock"),
        elasticsearch_url="http://127.0.0.1:9",
        dagster_port=find_free_port(),
    )
    for name, value in build_dagster_environment(settings, settings.database_url or "").items():
        monkeypatch.setenv(name, value)
    stack = LocalStack(settings)
    yield stack
    stack.down()
    drop_database(postgres_url, "clock")


@pytest.fixture
def instance(stack: LocalStack) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.get() as instance:
        yield instance


def start_daemon(stack: LocalStack) -> None:
    stack.dagster.start(stack.endpoints().database_url)


def has_ticked(instance: dg.DagsterInstance, since: float) -> bool:
    return any(
        tick.timestamp < time.time() + 60
        for state in instance.all_instigator_state()
        for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id, after=since)
    )


def set_ahead(instance: dg.DagsterInstance) -> None:
    """Record ticks and times in the future, as a daemon does while the clock is ahead."""
    for state in instance.all_instigator_state():
        origin, selector = state.instigator_origin_id, state.selector_id
        for tick in instance.get_ticks(origin, selector, limit=3):
            later = tick.tick_data.with_status(tick.status, timestamp=tick.timestamp + AHEAD)
            instance.update_tick(InstigatorTick(tick.tick_id, later))
        data, ahead = state.instigator_data, time.time() + AHEAD
        if isinstance(data, SensorInstigatorData):
            data = data._replace(
                last_tick_timestamp=ahead,
                last_tick_start_timestamp=ahead,
                last_sensor_start_timestamp=ahead,
                last_tick_success_timestamp=ahead,
            )
        elif isinstance(data, ScheduleInstigatorData):
            data = data._replace(start_timestamp=ahead, last_iteration_timestamp=ahead)
        assert data is not None
        instance.update_instigator_state(state.with_data(data))


def times_ahead(instance: dg.DagsterInstance) -> list[float]:
    """Return the recorded times of sensors and schedules that are in the future."""
    states = list(instance.all_instigator_state())
    held = [value for state in states for value in state.instigator_data or ()]
    held += [
        tick.timestamp
        for state in states
        for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)
    ]
    return [value for value in held if isinstance(value, float) and value > time.time() + 60]


@pytest.mark.long
def test_sensors_tick_again_after_the_clock_was_ahead(
    stack: LocalStack, instance: dg.DagsterInstance
) -> None:
    start_daemon(stack)
    assert wait_until(lambda: has_ticked(instance, 0.0), PATIENCE)
    healthy = stack.daemon_status()
    assert healthy.fault is None
    assert healthy.last_tick is not None
    assert abs(datetime.now(UTC) - healthy.last_tick) < timedelta(seconds=PATIENCE)
    assert build_verdict(healthy, datetime.now(UTC)).passed

    stack.dagster.daemon.stop()
    set_ahead(instance)
    assert {state.name for state in instance.all_instigator_state()} == {"often", SCHEDULE}
    assert times_ahead(instance)
    restarted = time.time()
    start_daemon(stack)
    assert "lay in the future" in stack.dagster.daemon.read_output()
    assert wait_until(lambda: has_ticked(instance, restarted), PATIENCE)
    assert times_ahead(instance) == []
    assert stack.daemon_status().fault is None


@pytest.mark.long
def test_a_daemon_whose_sensors_do_not_tick_is_reported(
    stack: LocalStack, instance: dg.DagsterInstance
) -> None:
    start_daemon(stack)
    assert wait_until(lambda: has_ticked(instance, 0.0), PATIENCE)

    def is_reported() -> bool:
        set_ahead(instance)  # again, because a tick in progress writes its old state
        return stack.daemon_status().fault is not None

    assert wait_until(is_reported, PATIENCE)
    fault = stack.daemon_status().fault or ""
    assert f"{datetime.now(UTC) + timedelta(days=400):%Y-%m-%d}" in fault
    assert "`rag-assets up` to discard" in fault
    verdict = build_verdict(stack.daemon_status(), datetime.now(UTC))
    assert (verdict.passed, verdict.severity, verdict.description) == (False, "ERROR", fault)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_daemon_begins_anew_when_the_clock_is_set_back_under_it(
    stack: LocalStack,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, library = tmp_path / "clock", tmp_path / "clock.so"
    (tmp_path / "clock.c").write_text(SET_CLOCK)
    command = ["cc", "-shared", "-fPIC", "-o", library, tmp_path / "clock.c", "-ldl"]
    subprocess.run(command, check=True)
    clock.write_text(f"{AHEAD:.0f}")
    with monkeypatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(library))
        environment.setenv("SECONDS_AHEAD_FILE", str(clock))
        start_daemon(stack)
    record = stack.dagster.daemon.find()
    assert wait_until(lambda: bool(times_ahead(instance)), PATIENCE)
    assert stack.daemon_status().fault is not None
    clock.write_text("0")
    set_right = time.time()
    assert wait_until(lambda: "the daemon restarts" in stack.dagster.daemon.read_output(), 30)
    assert wait_until(lambda: has_ticked(instance, set_right), PATIENCE)
    assert times_ahead(instance) == []
    assert stack.daemon_status().fault is None
    assert stack.dagster.daemon.find() == record, "the same process, which `down` ends"


def test_ticks_that_are_not_in_the_future_are_kept(instance: dg.DagsterInstance) -> None:
    assert discard_future_ticks(instance, time.time()) == 0


@pytest.mark.parametrize(
    ("age", "uptime", "reported"),
    [
        (timedelta(seconds=20), timedelta(hours=1), None),
        (timedelta(minutes=6), timedelta(hours=1), "no sensor has ticked for 6 min"),
        (timedelta(days=3), timedelta(minutes=1), None),
        (timedelta(minutes=6), timedelta(days=-400), "no sensor has ticked for 6 min"),
        (timedelta(seconds=-30), timedelta(hours=1), None),
        (
            timedelta(minutes=-2),
            timedelta(minutes=1),
            "2027-01-01 00:02 UTC, which is in the future",
        ),
    ],
)
def test_a_silence_counts_when_the_daemon_runs_long_enough(
    age: timedelta, uptime: timedelta, reported: str | None
) -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    fault = find_tick_fault(now - age, now - uptime, now)
    assert (fault is None) == (reported is None)
    assert reported is None or reported in (fault or "")
