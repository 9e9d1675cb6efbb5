"""The job that pulls sources of the type `sql`, its sensor, and its nightly comparison of keys."""

from datetime import UTC, datetime

import dagster as dg

from rag_assets.declarations import Naming, Schedule, job, sensor
from rag_assets.jobs.every_tenant import call_for_each_tenant
from rag_assets.jobs.run_history import delete_old_runs
from rag_assets.privacy.masker import get_masker
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import REASON_TAG
from rag_assets.resources.workbench import convert_to_failures
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.pulling import SQL
from rag_assets.systems.workspace.pulling.pull import (
    choose_worst_failure,
    find_due_tenants,
    get_pulled_sources,
    is_due,
)
from rag_assets.systems.workspace.pulling.states import PullStates, SourceLocks
from rag_assets.tenants.model import Tenant

_JOB = "pull_sources"
_TENANTS_TAG = "rag_assets/pulled_tenants"
_WAIT_SECONDS = 60.0
_KEPT_DAYS = 3
"""Days after which runs of this job are deleted, because one starts every minute."""
_MAX_TENANTS_PER_RUN = 50
"""Maximum number of tenants in one run; the next run pulls the others."""
_MAX_SLOW_RUNS = 2
"""Maximum concurrent runs that each pull one slow tenant; other jobs also need run slots."""


class PullConfig(dg.Config):
    """Configuration of a run.

    Attributes:
        tenants: ids of tenants; by default, all active tenants with a source of the type `sql`.
        keys: whether to compare all keys, and remove records without a row; otherwise only due
            sources are pulled.
    """

    tenants: list[str] | None = None
    keys: bool = False


@job(
    _JOB,
    (
        "Pulls changed records from the databases of sources with the type sql. With `keys`, also "
        "compares all keys, and removes records without a row."
    ),
    kind="postgres",
)
def pull_tenants(
    context: dg.OpExecutionContext,
    config: PullConfig,
    names: Naming,
    postgres: PostgresResource,
    runs: OwnRuns,
) -> None:
    """Pull the sources of tenants; a failed tenant does not stop the others."""
    runs.add_missing_tags(context.instance, context.run)
    runs.record_history(context.instance, context.run)
    # Imported here because it imports FastAPI, which the rest of this module does not need.
    from rag_assets.systems.workspace.pulling.pull import Puller

    with convert_to_failures(postgres.installation):
        settings = postgres.installation.settings
        catalog = postgres.catalog()
        masker, blobs = get_masker(settings.local), open_blobs(settings)
        records = catalog.tenants.list_with_source(SQL.name)
        states = PullStates(catalog.database)
        if config.keys:
            while delete_old_runs(
                catalog, context.instance, runs, [names.own(_JOB)], days=_KEPT_DAYS
            ):
                pass

    def pull(record: TenantRecord) -> str:
        tenant = Tenant.from_config(record.config)
        puller = Puller(catalog, blobs, masker, record.ref, tenant)
        known = states.read_for_tenant(record.id)
        done: list[str] = []
        failures: list[Exception] = []
        for source in get_pulled_sources(tenant):
            if not config.keys and not is_due(known.get(source.name), datetime.now(UTC)):
                continue
            try:
                # Keys are compared once a day, so this run waits for a pull in progress.
                wait = _WAIT_SECONDS if config.keys else 0.0
                report = puller.pull(source, scan=config.keys, wait_seconds=wait)
            except Exception as error:
                failures.append(error)
            else:
                done.append(report.format_line())
        if failures:
            if done:
                context.log.info(f"{record.id}: {'; '.join(done)}")
            raise choose_worst_failure(failures)
        return "; ".join(done) or "nothing was due"

    wanted_tenants = config.tenants
    chosen_records = [
        record for record in records if wanted_tenants is None or record.id in wanted_tenants
    ]
    call_for_each_tenant(context, postgres.installation, chosen_records, "pulling sources", pull)


nightly_keys = Schedule(
    "nightly_keys",
    pull_tenants,
    "30 1 * * *",
    (
        "Compares all keys in the databases of sources with the type sql with the stored records, "
        "removes records without a row, and reads missed changes."
    ),
    config={"keys": True},
)


@sensor(
    "sql_sources",
    (
        "Requests runs that pull due sources with the type sql, found by one query over all "
        "tenants: one run for all tenants that take seconds, and one run for each slower tenant."
    ),
    seconds=30,
    job=_JOB,
)
def sql_sources_sensor(
    context: dg.SensorEvaluationContext,
    names: Naming,
    postgres: PostgresResource,
    runs: OwnRuns,
) -> dg.SensorResult:
    """Request runs for sources that are due."""
    with convert_to_failures(postgres.installation):
        catalog = postgres.catalog()
        records = catalog.tenants.list_with_source(SQL.name)
        if not records:
            return dg.SensorResult(
                skip_reason=dg.SkipReason("no tenant has a source with the type sql")
            )
        states = PullStates(catalog.database).read_for_tenants([record.id for record in records])
        # Sources that the nightly run or a command pulls now.
        pulled = SourceLocks(catalog.database).find_held(states)
        quick, slow = find_due_tenants(records, states, datetime.now(UTC), pulled)
        unfinished = runs.list_unfinished(context.instance, job=names.own(_JOB))
        under_way = [
            run.tags[_TENANTS_TAG].split(",") for run in unfinished if _TENANTS_TAG in run.tags
        ]
        busy = {id_ for ids in under_way for id_ in ids}
    # Only one grouped run is requested at a time, even if it is delayed, because other jobs also
    # need run slots.
    is_grouped = any(len(ids) > 1 for ids in under_way)
    quick = [] if is_grouped else [id_ for id_ in quick if id_ not in busy][:_MAX_TENANTS_PER_RUN]
    slow = [id_ for id_ in slow if id_ not in busy]
    free = max(_MAX_SLOW_RUNS - sum(len(ids) == 1 for ids in under_way), 0)
    groups = [*([quick] if quick else []), *([id_] for id_ in slow[:free])]
    skip = None if groups else dg.SkipReason(f"no source is due in {len(records):,} tenants")
    return dg.SensorResult(
        run_requests=[_build_request(names, ids) for ids in groups], skip_reason=skip
    )


def _build_request(names: Naming, tenant_ids: list[str]) -> dg.RunRequest:
    return dg.RunRequest(
        run_config=pull_tenants.run_config(names, tenants=tenant_ids),
        tags={
            _TENANTS_TAG: ",".join(tenant_ids),
            REASON_TAG: f"sources of {len(tenant_ids):,} tenants are due",
        },
    )
