"""Follow changes: sync tenants with changed sources, as the daemon's sensor would.

A follower runs one slice of work for a due tenant and returns when to check the tenant again:
immediately if work remains, soon if another run is in progress or a file may have changed again. A
failure is recorded as for the daemon's runs, and the sensor decides on a retry.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_assets.cli.output import warn
from rag_assets.cli.session import Session, with_session
from rag_assets.common.environment import compute_environment_key
from rag_assets.common.errors import RagAssetsError, ServiceUnavailable, TenantLocked

if TYPE_CHECKING:
    import dagster as dg

    from rag_assets.cli.runs import RunResult
    from rag_assets.pipeline.listing import ListingPace
    from rag_assets.resources.own_runs import OwnRuns
    from rag_assets.resources.workbench import Workbench
    from rag_assets.storage.catalog.catalog import Catalog
    from rag_assets.storage.catalog.tenants.table import TenantRecord
    from rag_assets.tenants.model import Tenant

SENSOR = "source_files"
"""Name of the sensor; while it is stopped, the watcher starts no runs either."""

_OTHER_SENSOR = "tenants"
_STATE_SECONDS = 5.0
_RETRY_SECONDS = 5.0
_MIN_BUSY_SECONDS, _MAX_BUSY_SECONDS = 0.5, 10.0
_RACY_SECONDS = 2.2
"""Age after which the modification time of a file reliably shows later changes."""
_UNSETTLED_SECONDS = 30.0


@with_session
def follow(session: Session, descriptor: int) -> None:
    """Sync the tenants that a connection names, one per line, until it ends.

    Args:
        descriptor: file descriptor of the connection. Each line contains the arguments of
            TenantFollower.follow as JSON, and is answered with the result.
    """
    from rag_assets.resources.stores import close_all

    follower = TenantFollower(session)
    try:
        with socket.socket(fileno=descriptor) as connection, connection.makefile("r") as lines:
            for line in lines:
                seconds = follower.follow(**json.loads(line))
                connection.sendall(json.dumps(seconds).encode() + b"\n")
    finally:
        close_all()


def find_stopped_sensor(instance: dg.DagsterInstance, own_runs: OwnRuns) -> str | None:
    """Return the repository and code location in which our sensor is stopped; None if it runs.

    A sensor with the same name in another code location may belong to another installation.
    """
    from rag_assets.dagster_compat import InstigatorStatus, InstigatorType
    from rag_assets.resources.own_runs import INSTALLATION_TAG

    own_id = own_runs.installation_tags[INSTALLATION_TAG]
    namings = own_runs.list_namings(instance)
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    places = {(state.name, state.origin.repository_origin.get_label()) for state in states}
    stopped = (
        state.origin.repository_origin
        for state in states
        if state.name in {names.own(SENSOR) for names in namings}
        and state.status is InstigatorStatus.STOPPED
    )
    for origin in stopped:
        label = origin.get_label()
        users = own_runs.find_installations(instance, label)
        target = getattr(origin.code_location_origin, "loadable_target_origin", None)
        is_own_module = getattr(target, "module_name", None) == "rag_assets.definitions"
        # A code location of ours without runs is recognized by another sensor.
        is_probably_own = is_own_module or any(
            (names.own(_OTHER_SENSOR), label) in places for names in namings
        )
        if own_id in users if users else is_probably_own:
            return label
    return None


class TenantFollower:
    """Syncs tenants that are due. The stores are opened once and stay open between syncs."""

    def __init__(self, session: Session) -> None:
        from rag_assets.billing.embedders import Embedders
        from rag_assets.definitions import build_resources

        self._session = session
        # Runs in this process use the same catalog, which is not reconciled here: a sensor reads
        # tenants.yaml.
        resources = build_resources()
        self._catalog: Catalog = resources["rag_assets_postgres"].catalog()
        self._embedders = Embedders(self._catalog, session.settings)
        self._workbench: Workbench = resources["rag_assets_workbench"]
        self._own_runs: OwnRuns = resources["rag_assets_runs"]
        self._stopped: tuple[float, bool] = (-_STATE_SECONDS, False)
        self._busy: dict[str, int] = {}
        self._left: dict[str, object] = {}
        self._paces: dict[str, ListingPace] = {}

    def follow(self, tenant_id: str, *, is_changed: bool = True) -> float | None:
        """Run one slice of a tenant's sync if the tenant is due.

        Args:
            is_changed: whether a change was reported since the tenant's last slice started.

        Returns:
            Seconds until the next check of the tenant; None if no further check is needed.
        """
        try:
            return self._follow(tenant_id, is_changed=is_changed)
        except TenantLocked:
            return self._compute_busy_delay(tenant_id)
        except ServiceUnavailable as error:
            warn(f"{tenant_id}: {error.message}")
            return _RETRY_SECONDS
        except RagAssetsError as error:
            warn(f"{tenant_id}: {error.message}")
            return None

    def _follow(self, tenant_id: str, *, is_changed: bool) -> float | None:
        from rag_assets.pipeline.listing import ListingPace
        from rag_assets.sensors.due import explain_due
        from rag_assets.sensors.state import read_tenant_state

        record = self._catalog.tenants.find(tenant_id)
        if record is None or record.state != "ACTIVE" or self._is_stopped():
            return None
        is_locked = self._catalog.lock.is_held(tenant_id)
        if is_locked or self._own_runs.list_unfinished(self._session.instance, tenant=tenant_id):
            return self._compute_busy_delay(tenant_id)
        self._busy.pop(tenant_id, None)
        self._catalog.quarantine.retry_in_environment(
            [tenant_id], compute_environment_key(self._session.settings)
        )
        tenant = self._embedders.tenant(record)
        state = read_tenant_state(self._catalog, record, tenant, self._session.settings)
        now = datetime.now(UTC)
        reason = explain_due(state, now)
        if reason is None:
            return None
        if explain_due(replace(state, recently_changed=0), now) is None and self._confirm_listing(
            record
        ):
            return self._get_delay_if_unsettled(tenant, after=_UNSETTLED_SECONDS)
        former = self._paces.pop(tenant_id, None)
        pace = former if former is not None and state.pending else ListingPace()
        pace.has_changed = pace.has_changed or is_changed
        return self._run_slice(record, tenant, reason, pace)

    def _compute_busy_delay(self, tenant_id: str) -> float:
        times = self._busy[tenant_id] = self._busy.get(tenant_id, -1) + 1
        return float(min(_MAX_BUSY_SECONDS, _MIN_BUSY_SECONDS * 1.5 ** min(times, 20)))

    def _is_stopped(self) -> bool:
        at, was_stopped = self._stopped
        if time.monotonic() - at <= _STATE_SECONDS:
            return was_stopped
        location = find_stopped_sensor(self._session.instance, self._own_runs)
        is_stopped = location is not None
        if is_stopped and not was_stopped:
            warn(f"the sensor {SENSOR} of {location} is stopped: changes are not followed")
        self._stopped = time.monotonic(), is_stopped
        return is_stopped

    def _confirm_listing(self, record: TenantRecord) -> bool:
        """Read documents again if they were listed so soon after a change that one may be missed.

        Returns:
            Whether the listing of these documents is confirmed; False if a run is needed.
        """
        from rag_assets.pipeline.listing import confirm_documents
        from rag_assets.resources.tenant_lock import fail_abandoned_run
        from rag_assets.storage.catalog.lock import Holder

        with self._catalog.lock.hold(
            record.id,
            Holder.here("the change watcher"),
            on_takeover=lambda former: fail_abandoned_run(self._session.instance, former),
        ) as held_lock:
            ctx = self._workbench.context(record.id, guard=held_lock.check, log=warn)
            return confirm_documents(ctx, self._workbench.scanner())

    def _get_delay_if_unsettled(self, tenant: Tenant, *, after: float) -> float | None:
        """Return `after` if documents may have changed since their listing, else None."""
        names = [source.name for source in tenant.sources]
        return (
            after if self._catalog.documents.count_documents_to_reread(tenant.id, names) else None
        )

    def _run_slice(
        self, record: TenantRecord, tenant: Tenant, reason: str, pace: ListingPace
    ) -> float | None:
        from rag_assets.sensors.failures import record_failure

        result = self._session.runner.run_slice(record.id, pace, reason=reason)
        if result.failure is not None:
            warn(f"{record.id}: {result.failure.message}")
            done = "search_index" in result.stages
            record_failure(self._catalog, record, result.failure.message, all_done=done)
            return None
        if self._has_progressed(record.id, result):
            self._paces[record.id] = pace
            return 0.0
        if not pace.is_listing:
            return 0.0  # The next check compares the sources with the last listing.
        return self._get_delay_if_unsettled(tenant, after=_RACY_SECONDS)

    def _has_progressed(self, tenant_id: str, result: RunResult) -> bool:
        """Return whether work remains and the last run made progress."""
        counts = {name: stage.counts for name, stage in result.stages.items()}
        pending_documents = counts.get("search_index", {}).get("pending", 0)
        now = pending_documents, counts.get("embeddings", {}).get("remaining", 0)
        before = self._left.pop(tenant_id, None)
        if pending_documents:
            self._left[tenant_id] = now
        return bool(pending_documents) and (
            now != before or bool(counts["embeddings"].get("embedded"))
        )
