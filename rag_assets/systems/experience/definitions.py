"""The sensor that requests runs for waiting checkpoints, with or without the change watcher."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from rag_assets.common.hashing import compute_key
from rag_assets.declarations import Naming, sensor
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import REASON_TAG
from rag_assets.resources.workbench import convert_to_failures
from rag_assets.runtime.watch_report import NO_WATCHER, WatchReportFile
from rag_assets.systems.experience.service import Checkpoints

_WATCHER_DELAY = timedelta(seconds=2)


@sensor(
    "checkpoints",
    (
        "Requests a run for each tenant with a waiting checkpoint, found by one query over all "
        "tenants. The change watcher may start the run earlier. Work that a run leaves over is "
        "requested like any other due work."
    ),
    seconds=30,
    job="sync_tenant",
)
def checkpoints_sensor(
    context: dg.SensorEvaluationContext,
    names: Naming,
    postgres: PostgresResource,
    runs: OwnRuns,
) -> dg.SensorResult:
    """Request a run for each tenant with a checkpoint that no run has processed."""
    with convert_to_failures(postgres.installation):
        catalog = postgres.catalog()
        settings = postgres.installation.settings
        watched = WatchReportFile(settings).read() is not NO_WATCHER
        before = datetime.now(UTC) - (_WATCHER_DELAY if watched else timedelta())
        waiting = Checkpoints(catalog.database).find_waiting(before)
        active = {record.id: record for record in catalog.tenants.find_many(waiting)}
        busy = runs.list_busy_partitions(context.instance) if waiting else set()
        present = set(context.instance.get_dynamic_partitions(names.partitions_name))
    requests = [
        dg.RunRequest(
            partition_key=id_,
            run_key=compute_key("checkpoints", active[id_].incarnation, list(map(str, ids))),
            tags={REASON_TAG: "a checkpoint is waiting", **runs.installation_tags},
        )
        for id_, ids in waiting.items()
        if id_ in active and active[id_].state == "ACTIVE" and id_ in present - busy
    ]
    skip = None if requests else dg.SkipReason("no checkpoint is waiting")
    return dg.SensorResult(run_requests=requests, skip_reason=skip)
