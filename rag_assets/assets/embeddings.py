"""embeddings: one vector per distinct text and embedder, paid for once."""

import dagster as dg

from rag_assets.assets.chunks import chunks
from rag_assets.assets.running import GROUP, OWNERS, seconds, tenant_stage
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
    description=(
        "Vectors of the slice's chunks by the tenant's own embedder, kept in the lake under a "
        "hash of the embedded text as they come in. When the embedder fails, what is done is "
        "kept, the documents concerned carry the reason, and the index still gets its removals."
    ),
)
def embeddings(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> dg.MaterializeResult[None]:
    """Embed what is not in the lake."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        report = embed_chunks(ctx, work_of(ctx, context.run.run_id))
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
            "embedder": ctx.embedder.embedder_id,
            "outage": report.outage or "none",
            "seconds": seconds(report.seconds),
        }
    )
