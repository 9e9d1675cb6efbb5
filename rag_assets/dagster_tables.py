"""All SQL on the tables of Dagster, which are private.

Purges and scans for credentials must replace texts about documents in Dagster's events, such as
their names; Dagster has no function for that. The tables of our own instance are in the catalog's
database, so no import of Dagster is needed. A test compares the tables and columns in this module
with the installed Dagster (see also `dagster_compat.LOOK_AGAIN`).
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
"""The tables that Dagster creates."""
SIGNATURE: Final = ("runs", "run_tags", "event_logs", "instigators", "secondary_indexes")
"""Tables that identify the schema of a Dagster instance."""
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
"""Query for the database, the number of runs in `public`, whether `public` has foreign runs or
sensors, and whether it has any. A run is foreign if neither our code location nor our commands
started it; a sensor is foreign if our code location does not declare it."""

LATEST_TICK: Final = (
    f"SELECT timestamp FROM {DAGSTER_SCHEMA}.job_ticks WHERE type = 'SENSOR'"  # noqa: S608 - ours
    " ORDER BY id DESC LIMIT 1"
)
"""Query for the time of the last tick of any sensor."""
RUNS_OF_ANY_TENANT: Final = (
    f"SELECT run_id FROM {DAGSTER_SCHEMA}.run_tags"  # noqa: S608 - ours
    " WHERE key = 'dagster/partition'"
)
RUNS_OF_TENANT: Final = f"{RUNS_OF_ANY_TENANT} AND value = :tenant"
EVENTS_OF_TENANT: Final = (
    f"(partition = :tenant OR run_id IN ({RUNS_OF_TENANT})"
    f" OR (strpos(event, :tenant) > 0 AND run_id NOT IN ({RUNS_OF_ANY_TENANT})))"
)
"""Condition for events about a tenant, including lines that name it in runs over all tenants."""
EVENTS_NAMING_TENANT: Final = (
    f"(partition = :tenant OR run_id IN ({RUNS_OF_TENANT}) OR strpos(event, :tenant) > 0)"
)
"""Condition for events that may name a document of a tenant, in runs of any tenant."""


def texts_of_tenant(events: str) -> Mapping[tuple[str, str], str]:
    """Return the columns with texts about a tenant, each with a condition for the tenant's rows.

    Args:
        events: condition for the rows of events.
    """
    return {
        (f"{DAGSTER_SCHEMA}.event_logs", "event"): events,
        (f"{DAGSTER_SCHEMA}.asset_check_executions", "evaluation_event"): "partition = :tenant",
        (f"{DAGSTER_SCHEMA}.asset_keys", "last_materialization"): (
            f"last_run_id IN ({RUNS_OF_TENANT})"
        ),
    }
