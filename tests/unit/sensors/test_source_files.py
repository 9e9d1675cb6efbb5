"""When a failed run may be followed by another one."""

from __future__ import annotations

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
    ("record", "waits"),
    [
        (ended(5), True),
        (ended(45), True),  # the sensor of failures ticks every 30 s, and may be late
        (ended(120), False),
        (ended(-20), False),  # recorded while the clock was ahead
        (ended(5, SUCCESS), False),
        (ended(5, **{PROCESS_TAG: "a command"}), False),
    ],
)
def test_a_failure_is_waited_for_until_it_is_counted(record: dg.RunRecord, waits: bool) -> None:
    assert is_uncounted_failure(record, DONE) is waits


def test_a_counted_failure_is_not_waited_for() -> None:
    record = ended(45)
    before, after = (
        replace(DONE, syncs={"files": sync(retry_at=datetime.now(UTC) - timedelta(seconds=ago))})
        for ago in (60, 10)
    )
    assert is_uncounted_failure(record, before), "this time is of an earlier failure"
    assert not is_uncounted_failure(record, after)
