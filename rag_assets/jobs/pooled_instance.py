"""Dagster's instance for the many SQL statements of a run: it keeps connections, caches answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dagster as dg

_STATEMENT_MILLISECONDS = 600_000
_RECYCLE_SECONDS = 3_600
_MOST_MORE_CONNECTIONS = 8


@contextmanager
def pooled(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Keep the connections of an instance to its database, and close them at the end.

    Otherwise Dagster would open a connection for every SQL statement, and repeatedly query the
    columns of its tables, which do not change while a process lives.

    Args:
        instance: the instance as Dagster created it. If it uses SQLite, as a team's own instance
            may, no connections are kept.
    """
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_MILLISECONDS,
        pool_recycle=_RECYCLE_SECONDS,
        max_overflow=_MOST_MORE_CONNECTIONS,
    )
    events: Any = instance.event_log_storage
    runs: Any = instance.run_storage
    schedules: Any = instance.schedule_storage
    events.has_table = cache(events.has_table)
    events.has_asset_key_col = cache(events.has_asset_key_col)
    runs.has_backfill_id_column = cache(runs.has_backfill_id_column)
    runs.has_run_stats_index_cols = cache(runs.has_run_stats_index_cols)
    events.has_dynamic_partition = _yes_remembered(events.has_dynamic_partition)
    try:
        yield instance
    finally:
        # Disposing of the instance would leave the connections open.
        for storage in (runs, events, schedules):
            if (engine := getattr(storage, "_engine", None)) is not None:
                engine.dispose()


def _yes_remembered(ask: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Cache that a partition exists, because each step of a run asks several times."""
    known: set[tuple[str, str]] = set()

    def exists(partitions_def_name: str, partition_key: str) -> bool:
        name = (partitions_def_name, partition_key)
        if name not in known and ask(*name):
            known.add(name)
        return name in known

    return exists
