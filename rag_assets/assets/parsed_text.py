"""parsed_text: the text of documents, with every credential masked."""

import dagster as dg

from rag_assets.assets.raw_documents import raw_documents
from rag_assets.assets.running import GROUP, OWNERS, seconds, table, tenant_stage
from rag_assets.partitions import tenants_partitions
from rag_assets.stages.parsing import parse_documents
from rag_assets.stages.slices import work_of
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench


@dg.asset(
    deps=[raw_documents],
    partitions_def=tenants_partitions,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"python", "deltalake"},
    description=(
        "The text of the slice's documents as blocks with heading path, page and offsets, kept in "
        "the lake under a hash of the content and the parser. Credentials are masked before "
        "anything is written. A document that cannot be parsed is quarantined with its reason; "
        "the others go on."
    ),
)
def parsed_text(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> dg.MaterializeResult[None]:
    """Parse what is not in the lake."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        report = parse_documents(ctx, work_of(ctx, context.run.run_id))
    rate = report.pages / report.seconds if report.pages and report.seconds else 0.0
    return dg.MaterializeResult(
        metadata={
            "parsed": report.parsed,
            "reused": report.reused,
            "failed": report.failed,
            "pages": report.pages,
            "pages read by OCR": report.ocr_pages,
            "pages per second": round(rate, 1),
            "masked": report.masked,
            "seconds": seconds(report.seconds),
            "failures": table({"document": "string", "reason": "string"}, report.failures),
            "left out": table({"document": "string", "what": "string"}, report.notes),
        }
    )
