"""Deletes ticks from the future, which Dagster recorded while the machine's clock was fast.

Dagster evaluates a sensor when its last tick is older than its interval, and a schedule for the
times after its last tick. A tick that was recorded with a clock 400 days fast would therefore stop
its sensor or schedule for 400 days.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rag_assets.dagster_compat import (
    InstigatorState,
    InstigatorTick,
    ScheduleInstigatorData,
    SensorInstigatorData,
)

TOLERANCE_SECONDS = 60.0
"""Seconds by which a tick may lie in the future; synchronized clocks differ by less."""

_LONG_AGO_SECONDS = 1.0
_BATCH_TICKS = 1_000
_TIMES_OF_SENSORS = (
    *("last_tick_timestamp", "last_tick_start_timestamp"),
    *("last_sensor_start_timestamp", "last_tick_success_timestamp"),
)


def discard_future_ticks(instance: dg.DagsterInstance, now: float) -> int:
    """Delete ticks from the future, and times derived from them in sensors and schedules.

    No daemon may use the instance at the same time. A schedule that was due several times meanwhile
    is evaluated once, for the last of these times.

    Args:
        now: seconds since the epoch.

    Returns:
        the number of sensors and schedules with such ticks or times.
    """
    latest = now + TOLERANCE_SECONDS
    return sum(
        # Both are examined, because a state may name a tick that was deleted for its age.
        any([_delete_ticks(instance, state, latest), _reset_times(instance, state, now, latest)])
        for state in instance.all_instigator_state()
    )


def _delete_ticks(instance: dg.DagsterInstance, state: InstigatorState, latest: float) -> bool:
    origin, selector = state.instigator_origin_id, state.selector_id
    is_any = False
    while ticks := instance.get_ticks(origin, selector, after=latest, limit=_BATCH_TICKS):
        is_any = True
        for tick in ticks:
            # Only old ticks can be deleted through the instance.
            old = tick.tick_data.with_status(tick.status, timestamp=_LONG_AGO_SECONDS)
            instance.update_tick(InstigatorTick(tick.tick_id, old))
    if is_any:
        instance.purge_ticks(origin, selector, before=_LONG_AGO_SECONDS + 1)
    return is_any


def _reset_times(
    instance: dg.DagsterInstance, state: InstigatorState, now: float, latest: float
) -> bool:
    data = state.instigator_data
    reset: Mapping[str, Any] = {}
    if isinstance(data, SensorInstigatorData):
        times = {name: getattr(data, name) for name in _TIMES_OF_SENSORS}
        reset = {name: None for name, time in times.items() if (time or 0) > latest}
    elif isinstance(data, ScheduleInstigatorData):
        # Without a time, the schedule would be evaluated for all times since 1970.
        if (data.start_timestamp or 0) > latest:
            reset = {"start_timestamp": now}
        if (data.last_iteration_timestamp or 0) > latest:
            reset = {**reset, "last_iteration_timestamp": None}
    if data is None or not reset:
        return False
    instance.update_instigator_state(state.with_data(data._replace(**reset)))
    return True
