"""clock: verifies that the clock is trusted and no recorded time lies in the future."""

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time


def build_verdict(doubt: ClockDoubt | None, later_times: int) -> Verdict:
    """Pass if the clock is trusted and no recorded time lies in the future.

    Args:
        doubt: why the clock is not trusted; None if it is trusted.
    """
    if doubt is not None:
        description, mend = doubt.message, doubt.hint
    elif later_times:
        description = (
            f"{format_count(later_times, 'row')} with times in the future, recorded while the clock"
            " was ahead: ages are counted from these times until the next pruning corrects them"
        )
        mend = "run `rag-assets prune TENANT` to correct them now"
    else:
        description, mend = "the clock is trusted, and no recorded time lies in the future", ""
    return Verdict(
        passed=doubt is None and not later_times,
        description=description,
        compared=(
            Compared("the clock is trusted", expected=True, actual=doubt is None),
            Compared("rows with times in the future", 0, later_times),
        ),
        severity="WARN",
        mend=mend,
    )


@tenant_check(
    "raw_documents",
    "clock",
    (
        "The machine's clock is trusted, and no time from which an age is counted lies in the "
        "future. While the clock is not trusted, no data is deleted for its age, until the clock "
        "is right again or a person runs `rag-assets installation accept-clock`."
    ),
)
def clock_check(context: CheckContext) -> Verdict:
    """Compare the clock with the trusted time, and the tenant's times with the current time."""
    ctx = context.tenant
    now = get_deletion_time(ctx.catalog, ctx.clock)
    if isinstance(now, ClockDoubt):
        return build_verdict(now, 0)
    return build_verdict(None, ctx.catalog.clock.count_future_times(ctx.ref.id, now))
