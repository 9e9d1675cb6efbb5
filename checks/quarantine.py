"""quarantine: reports documents that failed, so that an incomplete index does not pass."""

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.slices import find_remedy
from rag_assets.storage.catalog.documents.model import Document

_MAX_LISTED_DOCUMENTS = 500


def build_verdict(
    tenant_id: str, failed: Sequence[Document], count: int, documents: int
) -> Verdict:
    """Warn of documents in quarantine; they do not affect other documents.

    Args:
        documents: number of the tenant's documents, without deleted documents.
    """
    if failed:
        more = f", and {count - 1:,} more" if count > 1 else ""
        description = f"{failed[0].uri}: {failed[0].error_message}{more}; {find_remedy(failed[0])}"
    else:
        description = f"no document in quarantine, of {format_count(documents, 'document')}"
    return Verdict(
        passed=not count,
        description=description,
        compared=(Compared("documents in quarantine", 0, count),),
        columns=("document", "reason"),
        offenders=tuple((d.uri, d.error_message) for d in failed),
        severity="WARN",
        mend="`rag-assets documents TENANT` lists all of them with their reasons, and"
        " `rag-assets sync TENANT` tries them again",
        notes={"documents": documents, "rows": f"/documents/{tenant_id}?status=FAILED"}
        if count
        else {"documents": documents},
    )


@tenant_check(
    "search_index",
    "quarantine",
    (
        "Every document was read, parsed and embedded. Each failed document is listed with its "
        "reason and remedy; its last good version stays searchable. Evaluated by every sync."
    ),
    with_syncs=True,
)
def quarantine_check(context: CheckContext) -> Verdict:
    """Report the documents in quarantine."""
    ctx = context.tenant
    counts = ctx.catalog.documents.count_by_status(ctx.ref.id)
    failed = ctx.catalog.overview.list_failed(ctx.ref.id, _MAX_LISTED_DOCUMENTS)
    living = sum(count for status, count in counts.items() if status != "DELETED")
    return build_verdict(ctx.ref.id, failed, counts.get("FAILED", 0), living)
