"""Follow changes: sync tenants whose sources have changed, as the daemon's sensor would.

It runs one slice for each that is due. What is left, and what fails, is the sensor's: it knows
when to try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_assets.cli.commands.output import warn
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.errors import RagAssetsError

if TYPE_CHECKING:
    from rag_assets.cli.commands.runs import Runner

SENSOR = "source_files"
"""Whoever stops this sensor wants no run by itself, of the watcher neither."""


@with_session
def follow(session: Session, tenants: Sequence[str]) -> None:
    """Run the chain for the tenants that are due."""
    if _is_stopped(session):
        return
    runner: Runner | None = None
    for tenant_id in tenants:
        try:
            reason = _why_due(session, tenant_id)
            if reason is None:
                continue
            if runner is None:
                from rag_assets.cli.commands.runs import Runner

                runner = Runner(session)
            result = runner.run("sync_tenant", tenant_id, reason=reason)
        except RagAssetsError as error:
            warn(f"{tenant_id}: {error.message}")
        else:
            if result.failure is not None:
                warn(f"{tenant_id}: {result.failure.message}")


def _is_stopped(session: Session) -> bool:
    from dagster._core.definitions.run_request import InstigatorType
    from dagster._core.scheduler.instigation import InstigatorStatus

    states = session.instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    return any(
        state.name == SENSOR and state.status is InstigatorStatus.STOPPED for state in states
    )


def _why_due(session: Session, tenant_id: str) -> str | None:
    """Why the tenant's chain must run now; None if it need not, or if a run is under way."""
    from sensors.due import why_due
    from sensors.state import tenant_state
    from sensors.tenants import partitions_under_way

    catalog = session.catalog
    record = catalog.tenants.find(tenant_id)
    if record is None or record.state != "ACTIVE":
        return None
    if catalog.lock.is_held(tenant_id) or tenant_id in partitions_under_way(session.instance):
        return None
    tenant = session.embedders.tenant(record)
    return why_due(tenant_state(catalog, record, tenant, session.settings), datetime.now(UTC))
