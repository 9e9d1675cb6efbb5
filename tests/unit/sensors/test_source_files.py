import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from rag_assets.resources.tenant_lock import PROCESS_TAG
from rag_assets.sensors.source_files import is_uncounted_failure
from tests.unit.sensors.test_due import DONE, sync

FAILURE, SUCCESS = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS


def ended(seconds_ago: float, status: dg.DagsterRunStatus = FAILURE, **tags: str) -> dg.RunRecord:
    now = datetime.now(UTC)
    run = dg.DagsterRun(job_name="sync_tenant", status=status, tags=tags)
    return dg.RunRecord(1, run, now, now, end_time=time.time() - seconds_ago)


@pytest.mark.parametrize(
    ("seconds_ago", "waits"),
    [
        (5, True),
        (45, True),  # the sensor of failures ticks every 30 s, and may be late
        (120, False),
        (-20, False),  # recorded while the clock was ahead
    ],
)
def test_a_failure_is_waited_for_until_it_is_counted(seconds_ago: float, waits: bool) -> None:
    assert is_uncounted_failure(ended(seconds_ago), DONE) is waits


def test_neither_a_success_nor_a_failed_command_is_waited_for() -> None:
    assert not is_uncounted_failure(ended(5, SUCCESS), DONE)
    assert not is_uncounted_failure(ended(5, **{PROCESS_TAG: "a command"}), DONE)


def test_a_counted_failure_is_not_waited_for() -> None:
    record = ended(45)
    times = [datetime.now(UTC) - timedelta(seconds=ago) for ago in (60, 10)]
    before, after = (replace(DONE, syncs={"files": sync(retry_at=time)}) for time in times)
    assert is_uncounted_failure(record, before), "this time is of an earlier failure"
    assert not is_uncounted_failure(record, after)
