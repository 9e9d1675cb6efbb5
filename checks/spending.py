"""spending: a tenant's caps on what embeddings cost, and what has been spent of each."""

from collections.abc import Collection, Iterable, Sequence

from checks.tenant_check import CheckContext, tenant_check
from checks.verdict import Compared, Verdict
from rag_assets.billing.spending import Cap, CapName, caps_of
from rag_assets.common.formatting import counted, dollars
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.events import Event
from rag_assets.storage.catalog.usage import Spent, today

_NEAR = 0.8
_LOOKED_AT = 20


def judge(spent: Spent, caps: Sequence[Cap], reached: Collection[CapName], waiting: int) -> Verdict:
    """No cap may keep documents waiting; that one does harms no other, so it is worth a warning.

    Args:
        spent: by the last sync, and by now in the day and the month.
        caps: those that are set, the one that lasts longest first.
        reached: those that stopped a run, and hold still.
        waiting: documents that are to be tried again.
    """
    stopping = [cap for cap in caps if cap.name in reached]
    near = [cap for cap in caps if cap.share >= _NEAR]
    if stopping:
        description = (
            f"the cap of {stopping[0].words} is reached ({stopping[0].gone}):"
            f" {counted(waiting, 'document waits', 'documents wait')}; {_remedy(stopping[0])}"
        )
    elif near:
        description = f"{near[0].share:.0%} of the cap of {near[0].words}: {near[0].gone}"
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


def caps_that_hold(caps: Iterable[Cap], events: Sequence[Event]) -> set[CapName]:
    """Caps that stopped a run and are no higher now, in the day or month that is not over."""
    day = today()
    since = {"per_day": day, "per_month": day.replace(day=1)}
    return {
        cap.name
        for cap in caps
        if any(
            event.payload["cap"] == cap.name
            and event.payload["dollars"] >= cap.most
            and event.at.date() >= since.get(cap.name, event.at.date())
            for event in events
        )
    }


@tenant_check(
    "embeddings",
    "spending",
    (
        "No cap on what embeddings cost keeps documents waiting. Tells what is spent of each, and "
        "notes when four fifths of one are gone. Evaluated by every sync."
    ),
    with_syncs=True,
)
def spending_check(context: CheckContext) -> Verdict:
    """Hold what was spent against the tenant's caps."""
    return _judge(context.tenant)


def _judge(ctx: TenantContext) -> Verdict:
    day = today()
    spent = ctx.catalog.usage.spent(ctx.ref.id, day)
    caps = caps_of(ctx.tenant.caps, spent, day)
    waiting = ctx.catalog.quarantine.waiting_count(ctx.ref.id) if caps else 0
    events: Sequence[Event] = ()
    if waiting:
        events = ctx.catalog.events.latest(ctx.ref.id, kind="cap_reached", limit=_LOOKED_AT)
    return judge(spent, caps, caps_that_hold(caps, events), waiting)


def _remedy(cap: Cap) -> str:
    if cap.until is None:
        return f"sync again for the next {dollars(cap.most)}, or raise caps.{cap.name} and sync"
    return f"wait until {cap.until:%Y-%m-%d %H:%M} UTC, or raise caps.{cap.name} and sync"
