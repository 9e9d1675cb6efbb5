"""search_index: the tenant's entries in Elasticsearch, exactly what the catalog says."""

import dagster as dg

from rag_assets.assets.embeddings import embeddings
from rag_assets.assets.running import GROUP, OWNERS, seconds, table, tenant_stage
from rag_assets.partitions import tenants_partitions
from rag_assets.stages.publishing import publish_slice
from rag_assets.stages.slices import waiting_for_embedder, work_of
from rag_assets.stages.upkeep import tidy
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench


@dg.asset(
    deps=[embeddings],
    partitions_def=tenants_partitions,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"python", "elasticsearch"},
    description=(
        "The entries that answers come from. Removals go first, in every generation that is kept; "
        "then each complete document of the slice is published so that a search always finds its "
        "previous or its new version, whole. A new embedder or chunker builds the next generation "
        "beside the one that serves and replaces it when it is complete."
    ),
)
def search_index(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> dg.MaterializeResult[None]:
    """Remove, publish, and say what still waits."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        work = work_of(ctx, context.run.run_id)
        report = publish_slice(ctx, work)
        outage = waiting_for_embedder(ctx, work)
        standing = ctx.catalog.documents.counts(ctx.ref.id)
        if tidy(ctx):
            context.log.info("merged the small files of the lake")
    metadata: dict[str, dg.RawMetadataValue] = {
        "upserted": report.upserted,
        "deleted": report.deleted,
        "published documents": report.documents,
        "unchanged documents": report.unchanged,
        "removed documents": report.removed,
        "live entries": report.live,
        "generation": report.generation,
        "index": work.generation.index_name,
        "pending": report.pending,
        "documents": table({"status": "string", "documents": "int"}, sorted(standing.items())),
        "seconds": seconds(report.seconds),
    }
    trouble = list(work.unlisted)
    if outage is not None:
        trouble.append(f"documents wait for the embedder: {outage}")
    if trouble:
        # Everything that could be done is done; the run is red so that somebody looks.
        raise dg.Failure("; ".join(trouble), metadata=metadata, allow_retries=False)
    return dg.MaterializeResult(metadata=metadata)
