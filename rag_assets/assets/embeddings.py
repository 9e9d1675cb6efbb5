"""embeddings: one vector per distinct text and embedder."""

from collections.abc import Mapping, Sequence

import dagster as dg
from pydantic import Field

from rag_assets.assets.descriptions import EMBEDDING_COLUMNS, EMBEDDINGS
from rag_assets.assets.metadata_values import build_duration, build_table
from rag_assets.assets.stage_context import skip_inactive_tenant, tenant_stage
from rag_assets.billing.spending import Cap, CapName, build_caps
from rag_assets.common.formatting import dollars
from rag_assets.declarations import asset
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.embedding import embed_chunks
from rag_assets.pipeline.slices import load_work
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench
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


def build_usage_table(ctx: TenantContext, used: Usage, before: float) -> dg.TableMetadataValue:
    """Return a table of the usage of a run, the day and the month, with their spending caps.

    Args:
        before: dollars that the same sync spent in earlier runs.
    """
    day = today()
    rows = ctx.catalog.usage.rows(day.replace(day=1), ctx.ref.id)
    of_day, of_month = total(row for row in rows if row.day == day), total(rows)
    spent = SpendingTotals(run=before + used.cost, day=of_day.cost, month=of_month.cost)
    caps = {cap.name: cap for cap in build_caps(ctx.tenant.caps, spent, day)}
    return build_table(
        _COLUMNS,
        [
            _build_row("this run", used, caps, "per_run"),
            _build_row("today", of_day, caps, "per_day"),
            _build_row("this month", of_month, caps, "per_month"),
        ],
    )


def _build_row(
    period: str, used: Usage, caps: Mapping[CapName, Cap], name: CapName
) -> Sequence[str | int]:
    cap = caps.get(name)
    most = "none" if cap is None else f"{dollars(cap.most)}, {cap.share:.0%} spent"
    counts = (used.requests, used.retries, used.texts, used.tokens)
    return (period, *counts, used.cost_text, most)


class Embedding(dg.Config):
    """Parameters of a run, from its sync."""

    spent: float = Field(
        default=0.0, ge=0, description="Dollars that earlier runs of the same sync spent."
    )


@asset(
    deps=["chunks"],
    kinds={"python", "onnx", "deltalake"},
    description=EMBEDDINGS,
    metadata={"dagster/column_schema": EMBEDDING_COLUMNS},
)
@skip_inactive_tenant
def embeddings(
    context: dg.AssetExecutionContext,
    config: Embedding,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
) -> dg.MaterializeResult[None]:
    """Embed the texts that have no vector in the lake."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        work = load_work(ctx, context.run.run_id)
        report = embed_chunks(work.context, work, spent=config.spent)
        waiting = ctx.catalog.quarantine.count_deferred(ctx.ref.id)
        usage = build_usage_table(ctx, report.used, config.spent + report.promised)
    if report.outage:
        context.log.error(f"the embedder stopped: {report.outage}")
    used = report.used
    return dg.MaterializeResult(
        metadata={
            "embedded": report.embedded,
            "reused": report.reused,
            "collected": report.collected,
            "submitted": report.submitted,
            "waiting for batches": waiting,
            "remaining": report.remaining,
            "failed": report.failed,
            "tokens": used.tokens,
            "requests": used.requests,
            "retries": used.retries,
            "unpriced tokens": used.unpriced_tokens,
            **({} if used.known_cost is None else {"cost in $": used.known_cost}),
            "promised to batches in $": report.promised,
            "usage": usage,
            "embedder": work.context.embedder.embedder_id,
            "halted": report.halted,
            "outage": report.outage or "none",
            "remedy": report.remedy or "none",
            "seconds": build_duration(report.seconds),
        }
    )
