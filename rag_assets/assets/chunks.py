"""chunks: passages small enough to be embedded and returned on their own."""

from collections.abc import Sequence

import dagster as dg

from rag_assets.assets.descriptions import CHUNK_COLUMNS, CHUNKS
from rag_assets.assets.metadata_values import build_bar_chart, build_duration, build_table
from rag_assets.assets.stage_context import skip_inactive_tenant, tenant_stage
from rag_assets.declarations import asset
from rag_assets.pipeline.chunking import chunk_documents
from rag_assets.pipeline.slices import load_work
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench

_HISTOGRAM_BINS = 7


@asset(
    deps=["parsed_text"],
    kinds={"python", "deltalake"},
    description=CHUNKS,
    metadata={"dagster/column_schema": CHUNK_COLUMNS},
)
@skip_inactive_tenant
def chunks(
    context: dg.AssetExecutionContext,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
) -> dg.MaterializeResult[None]:
    """Chunk the documents that have no chunks in the lake."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        work = load_work(ctx, context.run.run_id)
        report = chunk_documents(work.context, work)
    if report.dropped_secrets:
        context.log.warning(f"chunks dropped because of a credential: {report.dropped_secrets}")
    for note in report.secrets:
        lines = ", ".join(map(str, note.lines))
        context.log.info(f"credential masked: {note.uri}, line {lines}: {note.rule}")
    return dg.MaterializeResult(
        metadata={
            "chunks": report.chunks,
            "documents": report.documents,
            "reused": report.reused,
            "masked_secrets": report.masked_secrets,
            "dropped_secrets": report.dropped_secrets,
            "credentials": build_table(
                {
                    "document": "string",
                    "rule": "string",
                    "masked": "int",
                    "lines": "string",
                    "chunks dropped": "int",
                },
                [
                    (n.uri, n.rule, n.count, ", ".join(map(str, n.lines)), n.dropped)
                    for n in report.secrets
                ],
            ),
            "seconds": build_duration(report.seconds),
            "tokens per chunk": build_bar_chart(
                "Chunks of at most so many tokens", _build_histogram(report.token_counts)
            ),
            "first chunks": build_table(
                {"document": "string", "place": "string", "tokens": "int"}, report.sample
            ),
        }
    )


def _build_histogram(token_counts: Sequence[int]) -> list[tuple[str, int]]:
    largest = max(token_counts, default=_HISTOGRAM_BINS)
    width = -(-largest // _HISTOGRAM_BINS)
    counts = [0] * _HISTOGRAM_BINS
    for tokens in token_counts:
        counts[min((tokens - 1) // width, _HISTOGRAM_BINS - 1)] += 1
    return [(str(min((i + 1) * width, largest)), count) for i, count in enumerate(counts)]
