"""Requests a run for every tenant with changed sources or configuration, or with pending work."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

import dagster as dg

from rag_assets.common.clock import Clock
from rag_assets.common.environment import compute_environment_key
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import compute_key
from rag_assets.common.settings import Settings
from rag_assets.declarations import Naming, sensor
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.privacy.masker import get_masker
from rag_assets.resources.own_runs import PARTITION_TAG, OwnRuns
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import PROCESS_TAG, REASON_TAG, fail_abandoned_runs
from rag_assets.resources.workbench import convert_to_failures
from rag_assets.runtime.watch_report import NO_WATCHER, WatchReport, WatchReportFile
from rag_assets.sensors.due import TenantState, explain_due
from rag_assets.sensors.state import ParsedTenants, read_tenant_states
from rag_assets.sensors.turns import Action, Cursor, advance_cursor, choose_action, plan_tick
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord

_TICK_SECONDS = 25.0
_TURN_SECONDS = 60.0
_OVERLAP_SECONDS = 5.0
_COUNTED_SECONDS = 90.0
"""Maximum wait until the sensor of failures, which may be off, has counted a failure."""
_ENDED_STATUSES = (
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
_parsed = ParsedTenants()


@sensor(
    "source_files",
    (
        "Lists the sources of tenants without pending work, without reading a file. Requests a run "
        "for each tenant whose listing or configuration differs from the last successful sync, "
        "that has work left, or whose documents reach their retention. "
        "A failed listing never counts as empty: one run fails to report it. "
        "Of these, tenants that the change watcher watches are listed once a minute, and it is "
        "notified of changes that it missed; all others are listed at every tick. "
        "Also marks runs as failed if their process was killed."
    ),
    seconds=5,
    job="sync_tenant",
)
def source_files_sensor(
    context: dg.SensorEvaluationContext, names: Naming, postgres: PostgresResource, runs: OwnRuns
) -> dg.SensorResult:
    """Check as many tenants as a tick has time for, in rotation."""
    settings = postgres.installation.settings
    with convert_to_failures(postgres.installation):
        tick = _Tick(
            context.instance,
            runs,
            postgres.catalog(),
            settings,
            Cursor.read(context.cursor),
            WatchReportFile(settings).read(),
        )
        for run_id in fail_abandoned_runs(context.instance, tick.catalog, settings):
            context.log.warning(f"run {run_id} was marked as failed, because its process died")
        cursor = tick.run()
    if tick.notes:
        # The name of a folder can also be a credential.
        masker = get_masker(settings.local)
        tick.notes[:] = [masker.text(note) for note in tick.notes]
    for note in tick.notes:
        context.log.error(note)
    return dg.SensorResult(
        run_requests=tick.requests,
        dynamic_partitions_requests=_list_new_partitions(names, context.instance, tick.requests),
        skip_reason=None if tick.requests else dg.SkipReason(tick.summarize()),
        cursor=cursor.text(),
    )


@dataclass
class _Tick:
    """One evaluation of the sensor.

    Attributes:
        notes: problems of tenants.
        seen: the action for each checked tenant.
        doubt: why the clock may be wrong, so that no data is deleted for its age; otherwise None.
        unlisted: see Cursor.
    """

    instance: dg.DagsterInstance
    own_runs: OwnRuns
    catalog: Catalog
    settings: Settings
    cursor: Cursor
    report: WatchReport
    now: float = field(default_factory=time.time)
    requests: list[dg.RunRequest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: dict[str, Action | None] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    doubt: ClockDoubt | None = None
    unlisted: set[str] = field(default_factory=set)

    def run(self) -> Cursor:
        """Check the tenants; return the cursor for the next tick."""
        self.unlisted = set(self.cursor.unlisted)
        self.ids = list(self.catalog.tenants.list_active_versions())
        self.busy = self.own_runs.list_busy_partitions(self.instance)
        # Called at every tick, so that the trusted time advances while the daemon runs.
        trusted = get_deletion_time(self.catalog, Clock())
        self.doubt = trusted if isinstance(trusted, ClockDoubt) else None
        reasons = set() if self.report is NO_WATCHER else self._list_tenants_out_of_turn()
        planned = plan_tick(self.ids, self.cursor, self.report, reasons, self.now)
        self._check_tenants(planned.first, seconds=None)
        stopped = self._check_tenants(planned.rest, seconds=_TICK_SECONDS)
        self.catalog.changes.notify(id_ for id_, done in self.seen.items() if done == "tell")
        next_cursor = advance_cursor(self.cursor, planned, self.seen, stopped=stopped, now=self.now)
        return replace(next_cursor, unlisted=sorted(self.unlisted))

    @cached_property
    def _environment(self) -> str:
        return compute_environment_key(self.settings)

    def _list_tenants_out_of_turn(self) -> set[str]:
        """Return tenants to check out of turn, because their run ended or their retry is due."""
        since = max(self.cursor.at, self.now - _TURN_SECONDS) - _OVERLAP_SECONDS
        times = [datetime.fromtimestamp(at, UTC) for at in (since, self.now - _TURN_SECONDS)]
        ended = self.instance.get_runs(
            filters=dg.RunsFilter(statuses=list(_ENDED_STATUSES), updated_after=times[0])
        )
        # Other retries are checked in the tenant's ordinary turn.
        tried = self.catalog.syncs.list_retried_between(
            times[1], datetime.fromtimestamp(self.now, UTC)
        )
        return tried | {
            run.tags[PARTITION_TAG]
            for run in ended
            if PARTITION_TAG in run.tags and self.own_runs.owns(run)
        }

    def _check_tenants(self, ids: Sequence[str], *, seconds: float | None) -> str | None:
        """Check the tenants with these ids that have no run in progress.

        Returns:
            the tenant at which the time ran out; None if all tenants were checked.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        idle = [tenant_id for tenant_id in ids if tenant_id not in self.busy]
        if idle:
            # A setting that made documents fail may have been corrected before a restart.
            self.catalog.quarantine.retry_in_environment(idle, self._environment)
        present = {record.id: record for record in self.catalog.tenants.find_many(idle)}
        records = [present[tenant_id] for tenant_id in idle if tenant_id in present]
        for record, state in read_tenant_states(self.catalog, records, _parsed, self.settings):
            self.seen[record.id] = self._check_tenant(record, state)
            if deadline is not None and time.monotonic() > deadline and record is not records[-1]:
                return record.id
        return None

    def _check_tenant(self, record: TenantRecord, state: TenantState | Exception) -> Action | None:
        """Return the action for a tenant; None if it is not due or its state cannot be read.

        Problems of a tenant are added to `notes`, and do not affect other tenants.
        """
        if isinstance(state, ConfigurationError):
            self.notes.append(f"{record.id}: {state.message}")
            return None
        if isinstance(state, Exception):
            self.notes.append(f"{record.id}: unexpected {type(state).__name__}")
            return None
        self.notes += [f"{record.id}: {message}" for message in state.unlisted.values()]
        reason = explain_due(state, datetime.now(UTC))
        if reason is None:
            if state.is_listed:
                self._report_unlisted(record, state)
            return None
        done = choose_action(record.id, self.cursor, self.report, self.now)
        if done == "request" and (request := self._build_request(record, state, reason)):
            self.requests.append(request)
        return done

    def _report_unlisted(self, record: TenantRecord, state: TenantState) -> None:
        """Request a run, which will fail, for sources that can no longer be listed.

        Failed runs trigger alerts; a skipped tick does not.
        """
        names = {f"{record.id}/{source}" for source in state.unlisted}
        known = {name for name in self.unlisted if name.startswith(f"{record.id}/")}
        self.unlisted -= known - names
        if names <= known:
            return
        reason = f"sources cannot be listed: {', '.join(sorted(state.unlisted))}"
        if (request := self._build_request(record, state, reason)) is not None:
            self.requests.append(request)
            self.unlisted |= names

    def _build_request(
        self, record: TenantRecord, state: TenantState, reason: str
    ) -> dg.RunRequest | None:
        # The key contains the last run, so that a change from A to B and back is not missed.
        own = self.own_runs.installation_tags
        filters = dg.RunsFilter(tags={PARTITION_TAG: record.id, **own})
        last = self.instance.get_run_records(filters=filters, limit=1)
        if last and is_uncounted_failure(last[0], state):
            return None
        attempt = last[0].dagster_run.run_id if last else "first"
        listing = compute_key("listing", dict(state.digests), state.config_key)
        return dg.RunRequest(
            partition_key=record.id,
            run_key=f"{record.id}/{record.incarnation}/{listing}/{attempt}",
            tags={REASON_TAG: reason, **own},
        )

    def summarize(self) -> str:
        """Return why no run was requested."""
        if self.notes:
            return "; ".join(self.notes)
        left_to_watcher = sum(done in {"tell", "wait"} for done in self.seen.values())
        parts = [f"{len(self.ids)} tenants", "none due"]
        if left_to_watcher:
            parts[1] = f"{left_to_watcher} left to the change watcher"
        if self.busy:
            parts.append(f"{len(self.busy)} already have a run")
        if self.doubt is not None:
            parts.append(self.doubt.message_with_hint)
        return ", ".join(parts)


def is_uncounted_failure(record: dg.RunRecord, state: TenantState) -> bool:
    """Return whether the sensor of failures has not yet counted a failed run of the daemon.

    Until then, the delay before the next attempt is unknown.
    """
    run, ended_at = record.dagster_run, record.end_time
    if run.status is not dg.DagsterRunStatus.FAILURE or PROCESS_TAG in run.tags or not ended_at:
        return False
    retries = [sync.retry_at.timestamp() for sync in state.syncs.values() if sync.retry_at]
    # An end time in the future was recorded with a fast clock.
    return max(retries, default=0.0) < ended_at and 0 <= time.time() - ended_at < _COUNTED_SECONDS


def _list_new_partitions(
    names: Naming, instance: dg.DagsterInstance, requests: list[dg.RunRequest]
) -> list[dg.AddDynamicPartitionsRequest]:
    """Return requests for missing partitions of tenants.

    A partition is missing if a command added the tenant after the last tick of the tenants sensor.
    """
    if not requests:
        return []
    present = set(instance.get_dynamic_partitions(names.partitions_name))
    new = sorted({request.partition_key or "" for request in requests} - present)
    return [names.partitions.build_add_request(new)] if new else []
