"""embeddings: one vector per distinct text and embedder, paid for once."""

import dagster as dg

from rag_assets.assets.chunks import chunks
from rag_assets.assets.columns import EMBEDDING_COLUMNS
from rag_assets.assets.descriptions import EMBEDDINGS
from rag_assets.assets.running import GROUP, OWNERS, tenant_stage
from rag_assets.assets.showing import seconds
from rag_assets.embedding.registry import price_of
from rag_assets.partitions import tenants_partitions
from rag_assets.stages.embedding import embed_chunks
from rag_assets.stages.slices import work_of
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench


@dg.asset(
    deps=[chunks],
    partitions_def=tenants_partitions,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"python", "onnx", "deltalake"},
    description=EMBEDDINGS,
    metadata={"dagster/column_schema": EMBEDDING_COLUMNS},
)
def embeddings(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> dg.MaterializeResult[None]:
    """Embed what is not in the lake."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        report = embed_chunks(ctx, work_of(ctx, context.run.run_id))
        price = price_of(ctx.tenant.embedder)
    if report.outage:
        context.log.error(f"the embedder stopped: {report.outage}")
    return dg.MaterializeResult(
        metadata={
            "embedded": report.embedded,
            "reused": report.reused,
            "remaining": report.remaining,
            "failed": report.failed,
            "tokens": report.tokens,
            "requests": report.requests,
            **({} if price is None else {"cost in $": price.of(report.tokens)}),
            "embedder": ctx.embedder.embedder_id,
            "outage": report.outage or "none",
            "seconds": seconds(report.seconds),
        }
    )
