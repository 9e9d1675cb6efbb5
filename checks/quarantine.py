"""quarantine: documents that failed, so that an index which lacks something does not look green."""

from collections.abc import Sequence

import dagster as dg

from checks.running import checked_tenant, result_of
from checks.verdict import Compared, Verdict
from rag_assets.assets.search_index import search_index
from rag_assets.common.formatting import counted
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.quarantine import remedy_of
from rag_assets.storage.catalog.document_rows import Document
from resources.workbench import Workbench

_MOST = 500


def judge(tenant_id: str, failed: Sequence[Document], count: int, documents: int) -> Verdict:
    """No document may be in quarantine; one that is harms no other, so it is worth a warning.

    Args:
        tenant_id: whose.
        failed: the first of them.
        count: how many there are.
        documents: how many the tenant has, deleted ones left out.
    """
    if failed:
        more = f", and {count - 1:,} more" if count > 1 else ""
        description = f"{failed[0].uri}: {failed[0].error_message}{more}; {remedy_of(failed[0])}"
    else:
        description = f"all of {counted(documents, 'document')} could be read"
    return Verdict(
        passed=not count,
        description=description,
        compared=(Compared("documents in quarantine", 0, count),),
        columns=("document", "reason"),
        offenders=tuple((d.uri, d.error_message) for d in failed),
        severity="WARN",
        notes={"documents": documents, "rows": f"/documents/{tenant_id}?status=FAILED"}
        if count
        else {"documents": documents},
    )


@dg.asset_check(
    asset=search_index,
    name="quarantine",
    partitions_def=tenants_partitions,
    description=(
        "Every document could be read, parsed and embedded. Each that could not is named with its "
        "reason and what to do; its last good version stays searchable. Looked at by every sync."
    ),
)
def quarantine_check(
    context: dg.AssetCheckExecutionContext, workbench: Workbench
) -> dg.AssetCheckResult:
    """Name what is in quarantine."""
    with checked_tenant(context, workbench) as ctx:
        counts = ctx.catalog.documents.counts(ctx.ref.id)
        failed = ctx.catalog.overview.failed(ctx.ref.id, _MOST)
        living = sum(count for status, count in counts.items() if status != "DELETED")
        verdict = judge(ctx.ref.id, failed, counts.get("FAILED", 0), living)
        return result_of(verdict)
