"""Usage and cost of embeddings, as tables for Dagster's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from rag_assets.assets.metadata_values import table
from rag_assets.billing.spending import Cap, CapName, caps_of
from rag_assets.common.formatting import dollars
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, Usage, today, total

_COLUMNS = {
    "": "string",
    "requests": "int",
    "retries": "int",
    "texts": "int",
    "tokens": "int",
    "cost": "string",
    "cap": "string",
}


def usage_table(ctx: TenantContext, used: Usage, before: float) -> dg.TableMetadataValue:
    """Return a table of the usage of a run, the day and the month, with their spending caps.

    Args:
        used: the run's usage.
        before: dollars that the same sync spent in earlier runs.
    """
    day = today()
    rows = ctx.catalog.usage.rows(day.replace(day=1), ctx.ref.id)
    of_day, of_month = total(row for row in rows if row.day == day), total(rows)
    spent = SpendingTotals(run=before + used.cost, day=of_day.cost, month=of_month.cost)
    caps = {cap.name: cap for cap in caps_of(ctx.tenant.caps, spent, day)}
    return table(
        _COLUMNS,
        [
            _row("this run", used, caps, "per_run"),
            _row("today", of_day, caps, "per_day"),
            _row("this month", of_month, caps, "per_month"),
        ],
    )


def _row(what: str, used: Usage, caps: Mapping[CapName, Cap], name: CapName) -> Sequence[str | int]:
    cap = caps.get(name)
    most = "none" if cap is None else f"{dollars(cap.most)}, {cap.share:.0%} spent"
    counts = (used.requests, used.retries, used.texts, used.tokens)
    return (what, *counts, used.cost_text, most)
