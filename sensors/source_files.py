"""Requests a run for every tenant whose sources or configuration changed, or with work left."""

import time
from datetime import UTC, datetime

import dagster as dg

from rag_assets.billing.embedders import Embedders
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.hashing import key_of
from rag_assets.common.settings import Settings
from rag_assets.jobs.sync import sync_job
from rag_assets.partitions import tenants_partitions
from rag_assets.privacy.masker import masker_of
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from resources.stores import PostgresResource
from resources.tenant_lock import PARTITION_TAG, PROCESS_TAG, REASON_TAG, fail_abandoned_runs
from resources.workbench import clear_failures
from sensors.due import backoff_seconds, from_cursor, why_due
from sensors.state import tenant_state
from sensors.tenants import partitions_under_way

_TICK_SECONDS = 25.0


@dg.sensor(
    name="source_files",
    job=sync_job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Lists every tenant's sources without reading a file, and requests a run where listing or "
        "configuration differ from the last successful sync, where work is left, or where "
        "documents reach their retention. A listing that fails is reported, never taken as empty. "
        "Also marks runs failed whose process was killed."
    ),
)
def source_files_sensor(
    context: dg.SensorEvaluationContext, postgres: PostgresResource
) -> dg.SensorResult:
    """List the sources of as many tenants as a tick has time for, in turn."""
    with clear_failures():
        catalog = postgres.catalog()
        for run_id in fail_abandoned_runs(context.instance, catalog):
            context.log.warning(f"run {run_id} was left behind by a process that died")
        records = {r.id: r for r in catalog.tenants.all() if r.state == "ACTIVE"}
        busy = partitions_under_way(context.instance)
        notes: list[str] = []
        requests: list[dg.RunRequest] = []
        cursor = None
        deadline = time.monotonic() + _TICK_SECONDS
        for tenant_id in from_cursor(sorted(records), context.cursor):
            if time.monotonic() > deadline:
                break
            cursor = tenant_id
            if tenant_id not in busy:
                record = records[tenant_id]
                requests += _requests(context.instance, catalog, record, notes)
        else:
            cursor = None
    if notes:
        # A folder's name can be a credential, too.
        masker = masker_of(Settings.from_environment().local)
        notes = [masker.text(note) for note in notes]
    for note in notes:
        context.log.error(note)
    at_work = f", {len(busy)} with a run" if busy else ""
    reason = "; ".join(notes) or f"{len(records)} tenants, none due{at_work}"
    return dg.SensorResult(
        run_requests=requests,
        dynamic_partitions_requests=_new_partitions(context.instance, requests),
        skip_reason=None if requests else dg.SkipReason(reason),
        cursor=cursor,
    )


def _requests(
    instance: dg.DagsterInstance, catalog: Catalog, record: TenantRecord, notes: list[str]
) -> list[dg.RunRequest]:
    """The run that a tenant needs, if any; a failure is recorded and stops no other tenant."""
    try:
        request = _request(instance, catalog, record, notes)
    except ServiceUnavailable:
        raise
    except ConfigurationError as error:
        notes.append(f"{record.id}: {error.message}")
    except Exception as error:
        notes.append(f"{record.id}: unexpected {type(error).__name__}")
    else:
        return [request] if request is not None else []
    return []


def _request(
    instance: dg.DagsterInstance, catalog: Catalog, record: TenantRecord, notes: list[str]
) -> dg.RunRequest | None:
    settings = Settings.from_environment()
    tenant = Embedders(catalog, settings).tenant(record)
    state = tenant_state(catalog, record, tenant, settings)
    notes += [f"{record.id}: {message}" for message in state.unlisted.values()]
    reason = why_due(state, datetime.now(UTC))
    if reason is None:
        return None
    # A key of the listing alone would miss a change from A to B and back: the tenant's last run
    # distinguishes the attempts.
    last = instance.get_run_records(filters=dg.RunsFilter(tags={PARTITION_TAG: record.id}), limit=1)
    if last and _just_failed(last[0]):
        return None
    attempt = last[0].dagster_run.run_id if last else "first"
    listing = key_of("listing", dict(state.digests), state.config_key)
    return dg.RunRequest(
        partition_key=record.id,
        run_key=f"{record.id}/{record.incarnation}/{listing}/{attempt}",
        tags={REASON_TAG: reason},
    )


def _just_failed(record: dg.RunRecord) -> bool:
    """Whether a run of the daemon failed so recently that it may not be recorded yet."""
    run = record.dagster_run
    return (
        run.status is dg.DagsterRunStatus.FAILURE
        and PROCESS_TAG not in run.tags
        and record.end_time is not None
        and time.time() - record.end_time < backoff_seconds(0)
    )


def _new_partitions(
    instance: dg.DagsterInstance, requests: list[dg.RunRequest]
) -> list[dg.AddDynamicPartitionsRequest]:
    """Partitions of tenants that a command added to the catalog before the tenants sensor."""
    present = set(instance.get_dynamic_partitions(tenants_partitions.name or ""))
    new = sorted({request.partition_key or "" for request in requests} - present)
    return [tenants_partitions.build_add_request(new)] if new else []
