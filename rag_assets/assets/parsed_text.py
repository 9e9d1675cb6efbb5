"""parsed_text: the text of documents, with every credential masked."""

from collections.abc import Mapping

import dagster as dg

from rag_assets.assets.descriptions import PARSED_COLUMNS, PARSED_TEXT
from rag_assets.assets.metadata_values import build_duration, build_notes_table, build_table
from rag_assets.assets.stage_context import skip_inactive_tenant, tenant_stage
from rag_assets.declarations import asset
from rag_assets.ingest.parsing.media_types import get_format_name
from rag_assets.pipeline.parsing import FormatReport, parse_documents
from rag_assets.pipeline.slices import load_work
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench

_ADVICE = (
    "Repair, replace or exclude the files, or change the tenant's settings. "
    "Each file is parsed again when the file or a setting changes."
)
_COLUMNS = {
    "format": "string",
    **dict.fromkeys(("parsed", "failed", "pages", "by OCR", "characters", "masked"), "int"),
    **dict.fromkeys(("seconds", "pages/s"), "float"),
}


@asset(
    deps=["raw_documents"],
    kinds={"python", "deltalake"},
    description=PARSED_TEXT,
    metadata={"dagster/column_schema": PARSED_COLUMNS},
)
@skip_inactive_tenant
def parsed_text(
    context: dg.AssetExecutionContext,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
) -> dg.MaterializeResult[None]:
    """Parse the documents that have no text in the lake."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        work = load_work(ctx, context.run.run_id)
        report = parse_documents(work.context, work)
    rate = report.pages / report.seconds if report.pages and report.seconds else 0.0
    return dg.MaterializeResult(
        metadata={
            "failures": build_notes_table(
                ctx.ref.id,
                ("document", "reason"),
                [(failure, "") for failure in report.failures],
                advice=_ADVICE,
                status="FAILED",
            ),
            "left out": build_notes_table(
                ctx.ref.id, ("document", "what"), [(note, "") for note in report.notes]
            ),
            "parsed": report.parsed,
            "reused": report.reused,
            "failed": report.failed,
            "changed since they were listed": report.vanished,
            "pages": report.pages,
            "pages read by OCR": report.ocr_pages,
            "pages per second": round(rate, 1),
            "masked": report.masked,
            "seconds": build_duration(report.seconds),
            "by format": _build_format_table(report.formats),
        }
    )


def _build_format_table(formats: Mapping[str | None, FormatReport]) -> dg.TableMetadataValue:
    rows = [
        (
            get_format_name(media_type),
            *(of.parsed, of.failed, of.pages, of.ocr_pages, of.characters, of.masked),
            round(of.seconds, 3),
            round(of.pages / of.seconds, 1) if of.seconds else 0.0,
        )
        for media_type, of in sorted(formats.items(), key=lambda item: -item[1].seconds)
    ]
    return build_table(_COLUMNS, rows)
