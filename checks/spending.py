"""spending: compares a tenant's spending with its caps."""

from collections.abc import Collection, Sequence

from rag_assets.billing.spending import (
    MAX_COMPARED_EVENTS,
    Cap,
    CapName,
    build_caps,
    find_holding_caps,
)
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import dollars, format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, today
from rag_assets.storage.catalog.journal.events import Event

_NEAR_CAP_SHARE = 0.8


def build_verdict(
    spent: SpendingTotals, caps: Sequence[Cap], reached: Collection[CapName], waiting: int
) -> Verdict:
    """Warn if documents wait because of a spending cap.

    Args:
        spent: spending of the last sync, and of the current day and month.
        caps: the configured caps, longest period first.
        reached: names of caps that stopped a run and are still reached.
        waiting: number of documents that wait to be retried.
    """
    stopping = [cap for cap in caps if cap.name in reached]
    near = [cap for cap in caps if cap.share >= _NEAR_CAP_SHARE]
    if stopping:
        description = (
            f"the spending cap of {stopping[0].limit_text} is reached ({stopping[0].spent_text}):"
            f" {format_count(waiting, 'document waits', 'documents wait')};"
            f" {_describe_remedy(stopping[0])}"
        )
    elif near:
        description = (
            f"{near[0].share:.0%} of the spending cap of {near[0].limit_text} is used:"
            f" {near[0].spent_text}"
        )
    else:
        description = f"{dollars(spent.day)} spent today, {dollars(spent.month)} this month"
    return Verdict(
        passed=not stopping,
        description=description,
        compared=tuple(
            Compared(f"caps.{cap.name}", f"at most {dollars(cap.most)}", dollars(cap.spent))
            for cap in caps
        ),
        columns=("cap", "spent", "of"),
        offenders=tuple((cap.name, dollars(cap.spent), dollars(cap.most)) for cap in stopping),
        severity="WARN",
        notes={"documents that wait": waiting} if waiting else {},
    )


@tenant_check(
    "embeddings",
    "spending",
    (
        "No document waits because a spending cap is reached. The check shows the spending under "
        "each cap, and a note when 80 % of a cap is spent. Evaluated by every sync."
    ),
    with_syncs=True,
)
def spending_check(context: CheckContext) -> Verdict:
    """Compare spending with the tenant's caps."""
    return _judge_spending(context.tenant)


def _judge_spending(ctx: TenantContext) -> Verdict:
    day = today()
    spent = ctx.catalog.usage.read_spending(ctx.ref.id, day)
    caps = build_caps(ctx.tenant.caps, spent, day)
    waiting = ctx.catalog.quarantine.count_waiting_for_retry(ctx.ref.id) if caps else 0
    events: Sequence[Event] = ()
    if waiting:
        events = ctx.catalog.events.latest(
            ctx.ref.id, kind="cap_reached", limit=MAX_COMPARED_EVENTS
        )
    return build_verdict(spent, caps, find_holding_caps(caps, events, day), waiting)


def _describe_remedy(cap: Cap) -> str:
    if cap.until is None:
        return (
            f"run `rag-assets sync TENANT` to spend up to another {dollars(cap.most)}, or raise"
            f" caps.{cap.name} first"
        )
    return (
        f"wait until {cap.until:%Y-%m-%d %H:%M} UTC, or raise caps.{cap.name} and run `rag-assets"
        " sync TENANT`"
    )
