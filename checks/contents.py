"""contents: reads the documents of the sources again, and compares them with the catalog."""

from collections.abc import Iterator, Mapping

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Cell, Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.source_contents import ContentsReport, compare_contents


def build_verdict(report: ContentsReport, uris: Mapping[str, str], days: int) -> Verdict:
    """Pass if each compared document has the content that the catalog recorded.

    Args:
        days: number of days in which every document is read once.
    """
    offenders = tuple(_iter_offenders(report, uris))
    wrong = bool(report.altered or report.gone)
    return Verdict(
        passed=not offenders,
        description=_describe(report, offenders, days),
        compared=(
            Compared("documents whose content changed unnoticed", 0, len(report.altered)),
            Compared("documents missing from their source", 0, len(report.gone)),
            Compared("sources that cannot be listed", 0, len(report.unlisted)),
        ),
        columns=("fault", "which"),
        offenders=offenders,
        severity="ERROR" if wrong else "WARN",
        notes={"documents read": report.compared, "all are read within days": days},
    )


@tenant_check(
    "raw_documents",
    "contents",
    (
        "The documents in the sources have the content that the catalog recorded: none changed "
        "with the same size, times and inode, and none disappeared unnoticed. Each evaluation "
        "reads a share of the documents, so that all are read within `drift.days`; "
        "`rag-assets check --deep` reads all."
    ),
    nightly=True,
    repairable=True,
    against_catalog=True,
)
def contents_check(context: CheckContext) -> Verdict:
    """Compare the day's share of the documents with their sources."""
    ctx = context.tenant
    report = compare_contents(ctx, context.share)
    documents = ctx.catalog.documents.find(ctx.ref.id, [*report.altered, *report.gone])
    return build_verdict(
        report, {document.document_id: document.uri for document in documents}, context.share.days
    )


def _iter_offenders(report: ContentsReport, uris: Mapping[str, str]) -> Iterator[tuple[Cell, ...]]:
    for fault, ids in (
        ("content changed unnoticed", report.altered),
        ("missing from its source", report.gone),
    ):
        for id_ in ids:
            yield fault, uris.get(id_, id_)
    for name in report.unlisted:
        yield "source cannot be listed", name


def _describe(report: ContentsReport, offenders: tuple[tuple[Cell, ...], ...], days: int) -> str:
    if not offenders:
        summary = f"{format_count(report.compared, 'document')} read again, equal to the catalog"
        return summary if days == 1 else f"{summary}; all are read within {days} days"
    fault, which = offenders[0]
    more = f" and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
    return f"{fault}: {which}{more}; run `rag-assets sync TENANT --repair` to read everything again"
