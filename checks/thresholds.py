"""thresholds: verifies that searches find passages above the cosine threshold."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.storage.catalog.journal.events import Event

LAST_SEARCHES = 50


def build_verdict(events: Sequence[Event], tenant_id: str) -> Verdict:
    """Pass if one of the last searches found a passage, or there were fewer than 50 searches."""
    with_passages = sum(bool(event.payload.get("chosen")) for event in events)
    nearest = [event.payload["nearest"] for event in events if event.payload.get("nearest")]
    is_judged = len(events) >= LAST_SEARCHES
    passed = not is_judged or with_passages > 0
    highest = f"; the nearest passage had a cosine of {max(nearest):.2f}" if nearest else ""
    description = (
        f"{with_passages} of the last {len(events)} searches found a passage"
        if passed
        else f"none of the last {LAST_SEARCHES} searches found a passage{highest}"
    )
    return Verdict(
        passed=passed,
        description=description,
        compared=(
            Compared(
                "searches without a passage", f"below {LAST_SEARCHES}", len(events) - with_passages
            ),
        )
        if is_judged
        else (),
        severity="WARN",
        mend=""
        if passed
        else f"set the threshold that `rag-assets thresholds measure {tenant_id}` recommends",
    )


@tenant_check(
    "search_index",
    "thresholds",
    (
        "At least one of the last 50 searches found a passage. Otherwise, the cosine threshold is "
        "probably too high for the embedder, and models answer without passages."
    ),
)
def thresholds_check(context: CheckContext) -> Verdict:
    """Count the searches that found a passage among the last searches."""
    ctx = context.tenant
    latest = ctx.catalog.events.latest(
        ctx.ref.id, kind="rag_search_completed", limit=4 * LAST_SEARCHES
    )
    ended = [event for event in latest if "chosen" in event.payload][:LAST_SEARCHES]
    return build_verdict(ended, ctx.ref.id)
