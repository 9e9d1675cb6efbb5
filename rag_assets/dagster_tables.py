"""Every statement on the tables of Dagster, which Dagster does not offer publicly.

Purges and scans for credentials must find and replace texts that Dagster keeps of documents, such
as their names in events; Dagster has no function that changes an event. The tables of our own
instance are in the catalog's database, so the statements run there, and need no import of Dagster.
A test compares the tables and columns that are named here with those of the installed Dagster, and
`dagster_compat.LOOK_AGAIN` is the release to look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DAGSTER_SCHEMA: Final = "rag_dagster"
"""The schema of our own Dagster instance."""
TABLES: Final = (
    *("alembic_version", "asset_check_executions", "asset_daemon_asset_evaluations"),
    *("asset_event_tags", "asset_keys", "backfill_tags", "bulk_actions", "concurrency_limits"),
    *("concurrency_slots", "daemon_heartbeats", "dynamic_partitions", "event_logs"),
    *("instance_info", "instigators", "job_ticks", "jobs", "kvs", "pending_steps", "run_tags"),
    *("runs", "secondary_indexes", "snapshots"),
)
"""The tables that Dagster makes."""
SIGNATURE: Final = ("runs", "run_tags", "event_logs", "instigators", "secondary_indexes")
"""Tables by which a schema is recognized as that of a Dagster instance."""
FORMER_CONTENTS: Final = """
SELECT current_database(), (SELECT count(*) FROM public.runs), EXISTS (
  SELECT FROM public.runs r WHERE strpos(run_body, '"rag_assets.definitions"') = 0 AND (
    strpos(run_body, '_location_origin"') > 0
    OR NOT EXISTS (
      SELECT FROM public.run_tags t
      WHERE t.run_id = r.run_id AND starts_with(t.key, 'rag_assets/')))
) OR EXISTS (
  SELECT FROM public.instigators WHERE strpos(instigator_body, '"rag_assets.definitions"') = 0
), EXISTS (SELECT FROM public.runs) OR EXISTS (SELECT FROM public.instigators)"""
"""The contents of `public`. A run is foreign if it is neither of our code location nor of our
commands; a sensor is foreign if it is not of our code location."""

LATEST_TICK: Final = (
    f"SELECT timestamp FROM {DAGSTER_SCHEMA}.job_ticks WHERE type = 'SENSOR'"  # noqa: S608 - ours
    " ORDER BY id DESC LIMIT 1"
)
"""The time of the last evaluation of any sensor."""
RUNS_OF_ANY_TENANT: Final = (
    f"SELECT run_id FROM {DAGSTER_SCHEMA}.run_tags"  # noqa: S608 - ours
    " WHERE key = 'dagster/partition'"
)
RUNS_OF_TENANT: Final = f"{RUNS_OF_ANY_TENANT} AND value = :tenant"
EVENTS_OF_TENANT: Final = (
    f"(partition = :tenant OR run_id IN ({RUNS_OF_TENANT})"
    f" OR (strpos(event, :tenant) > 0 AND run_id NOT IN ({RUNS_OF_ANY_TENANT})))"
)
"""Condition for events of a tenant. A job that visits every tenant names the tenant in each line of
its log."""
EVENTS_NAMING_TENANT: Final = (
    f"(partition = :tenant OR run_id IN ({RUNS_OF_TENANT}) OR strpos(event, :tenant) > 0)"
)
"""Condition for events that may name a document of a tenant, in runs of any tenant."""


def texts_of_tenant(events: str) -> Mapping[tuple[str, str], str]:
    """Return the columns with texts on a tenant, each with the condition for the tenant's rows.

    Args:
        events: the condition for events.
    """
    return {
        (f"{DAGSTER_SCHEMA}.event_logs", "event"): events,
        (f"{DAGSTER_SCHEMA}.asset_check_executions", "evaluation_event"): "partition = :tenant",
        (f"{DAGSTER_SCHEMA}.asset_keys", "last_materialization"): (
            f"last_run_id IN ({RUNS_OF_TENANT})"
        ),
    }
