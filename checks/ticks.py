"""ticks: checks the age of the last tick of the daemon's sensors.

A daemon that no longer starts runs cannot detect that itself, but `rag-assets check` can.
"""

from datetime import UTC, datetime

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import duration
from rag_assets.runtime.stack import LocalStack, ServiceStatus


def build_verdict(daemon: ServiceStatus, now: datetime) -> Verdict:
    """Pass if the sensors tick, or the daemon does not run."""
    age = None if daemon.last_tick is None else (now - daemon.last_tick).total_seconds()
    return Verdict(
        passed=daemon.fault is None,
        description=daemon.fault or _describe(daemon, age),
        compared=(
            Compared("the daemon's sensors tick", expected=True, actual=daemon.fault is None),
        ),
        columns=("fault", "which"),
        offenders=((daemon.fault, daemon.name),) if daemon.fault else (),
        notes={} if age is None else {"seconds since the last tick": round(age)},
    )


@tenant_check(
    "raw_documents",
    "ticks",
    (
        "If the daemon of this installation runs, its sensors tick: the last tick is neither older "
        "than five minutes nor in the future. Otherwise, changes of sources are not noticed."
    ),
)
def ticks_check(context: CheckContext) -> Verdict:
    """Read the time of the last tick of the daemon's sensors."""
    return build_verdict(LocalStack(context.tenant.settings).daemon_status(), datetime.now(UTC))


def _describe(daemon: ServiceStatus, age: float | None) -> str:
    if daemon.pid is None:
        return "no daemon runs here: changes are indexed only by `rag-assets sync TENANT`"
    if age is None:
        return "the daemon runs; its ticks cannot be read"
    return f"the last tick was {duration(max(age, 0.0))} ago"
