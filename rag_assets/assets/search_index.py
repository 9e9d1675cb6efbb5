"""search_index: the tenant's entries in Elasticsearch, equal to the catalog."""

import time
from collections.abc import Iterator, Mapping

import dagster as dg

from rag_assets.assets.descriptions import ENTRY_COLUMNS, SEARCH_INDEX
from rag_assets.assets.metadata_values import (
    build_documents_link,
    build_duration,
    build_notes_table,
    build_table,
    render_table,
)
from rag_assets.assets.reports import build_generations_report
from rag_assets.assets.stage_context import skip_inactive_tenant, tenant_stage
from rag_assets.common.formatting import format_count
from rag_assets.declarations import Naming, asset
from rag_assets.ingest.parsing.media_types import get_format_name
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.fact_stores import derive_documents, run_follow_up
from rag_assets.pipeline.publishing import publish_slice
from rag_assets.pipeline.slices import DocumentNote, find_remedy, find_wait_reason, load_work
from rag_assets.pipeline.upkeep import describe_compactions
from rag_assets.plugins.registry import installed_systems
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import PublishJudge, Workbench
from rag_assets.storage.catalog.documents.status import Status
from rag_assets.storage.catalog.tenants.overview import TenantSummary

_MAX_FAILED, _MOST_ADVICE = 50, 3
_REPORT_SECONDS = 3_600.0
_REPORTED_SHARE = 100
"""A run that changes at least one of this many entries is reported immediately."""
_STATUS_LABELS: Mapping[Status, str] = {
    "READY": "ready",
    "FAILED": "failed",
    "PROCESSING": "waiting",
}


def summarize_tenant(ctx: TenantContext) -> dg.MarkdownMetadataValue:
    """Return a summary of a tenant's index as Markdown, with a table of facts about it."""
    tenant = ctx.catalog.overview.tenant(ctx.ref.id)
    facts = render_table(
        ("", ""), _list_facts(ctx, tenant, ctx.store.indexes.view_name(ctx.ref.id))
    )
    return dg.MetadataValue.md(f"{_format_headline(tenant)}\n\n{facts}")


def count_by_format(ctx: TenantContext) -> dg.TableMetadataValue:
    """Return a table of the number of a tenant's documents by format and status."""
    return build_table(
        {"format": "string", **dict.fromkeys((*_STATUS_LABELS.values(), "chunks", "bytes"), "int")},
        [
            (
                get_format_name(of.media_type),
                *(of.documents.get(status, 0) for status in _STATUS_LABELS),
                of.chunks,
                of.bytes,
            )
            for of in ctx.catalog.overview.formats(ctx.ref.id)
        ],
    )


def list_failed_documents(ctx: TenantContext) -> dg.MarkdownMetadataValue:
    """Return a table of the documents in quarantine, with reasons and up to three remedies."""
    failed = ctx.catalog.overview.list_failed(ctx.ref.id, _MAX_FAILED)
    failures = [(DocumentNote(d.document_id, d.uri, d.error_message or ""), "") for d in failed]
    advice = list(dict.fromkeys(find_remedy(document) for document in failed))[:_MOST_ADVICE]
    return build_notes_table(
        ctx.ref.id,
        ("document", "reason"),
        failures,
        advice="".join(f"\n- {remedy}" for remedy in advice),
        status="FAILED",
    )


def _format_headline(tenant: TenantSummary) -> str:
    counts, id_ = tenant.documents, tenant.tenant_id
    failed = build_documents_link(id_, f"{counts.get('FAILED', 0):,} failed", "FAILED")
    ready = build_documents_link(id_, format_count(counts.get("READY", 0), "document"), "READY")
    waiting = build_documents_link(id_, f"{counts.get('PROCESSING', 0):,} waiting", "PROCESSING")
    return f"{ready} in {format_count(tenant.entries, 'entry', 'entries')}; {failed}, {waiting}"


def _list_facts(ctx: TenantContext, tenant: TenantSummary, alias: str) -> list[tuple[str, str]]:
    if tenant.index_name is None:
        serves = "not searchable yet: the first build is not complete"
    else:
        serves = f"{tenant.generation}, in `{tenant.index_name}`"
    at = tenant.synced_at
    return [
        ("generation", serves),
        ("alias", f"`{alias}`"),
        ("embedder", f"`{ctx.embedder.embedder_id}`"),
        ("as the sources were at", "not yet" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"),
    ]


@asset(
    deps=["embeddings"],
    kinds={"python", "elasticsearch"},
    description=SEARCH_INDEX,
    metadata={"dagster/column_schema": ENTRY_COLUMNS},
)
@skip_inactive_tenant
def search_index(
    context: dg.AssetExecutionContext,
    names: Naming,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
    publish_judge: dg.ResourceParam[PublishJudge],
) -> dg.MaterializeResult[None]:
    """Remove and publish entries; report documents that still wait."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        work = load_work(ctx, context.run.run_id)
        judge = publish_judge(workbench, context.run.run_id, context.log)
        report = publish_slice(ctx, work, judge)
        followed = run_follow_up(ctx)
        derived = derive_documents(ctx)
        outage = find_wait_reason(work.context, work)
        waiting = ctx.catalog.quarantine.count_waiting_for_retry(ctx.ref.id) if outage else 0
        shown_metadata = {
            "tenant summary": summarize_tenant(ctx),
            "failed documents": list_failed_documents(ctx),
            "by format": count_by_format(ctx),
        }
        # No row is deleted: the weekly compaction determines which rows are not needed.
        merged = describe_compactions(ctx.lake.compact_due())
        if work.is_superseded or work.generation.state != "SERVING":
            builds = build_generations_report(names, ctx, current=True)
            if builds is not None:
                context.log_event(builds)
        if report.documents or derived.changed:
            is_small = bool(report.pending) or report.upserted * _REPORTED_SHARE < report.live
            for system_report in _iter_reports_of_systems(context, names, ctx, is_small=is_small):
                context.log_event(system_report)
    for line in merged:
        context.log.info(f"merged small files of the lake: {line}")
    metadata: dict[str, dg.RawMetadataValue] = {
        **shown_metadata,
        "upserted": report.upserted,
        "deleted": report.deleted,
        "published documents": report.documents,
        "unchanged documents": report.unchanged,
        "removed documents": report.removed,
        "live entries": report.live,
        "generation": report.generation,
        "index": work.generation.index_name,
        # Documents that are derived from the files are not listed yet.
        "pending": report.pending + derived.changed,
        **followed,
        **derived.lines,
        **({"merged files of the lake": "; ".join(merged)} if merged else {}),
        "seconds": build_duration(report.seconds),
        "dagster/row_count": report.live,
    }
    trouble = list(work.unlisted)
    if outage is not None and work.is_superseded:
        # The run does not fail, because the build of the current configuration continues.
        context.log.warning(
            f"generation {work.generation.number} answers searches, but cannot be brought up to"
            f" date now: {outage}"
        )
    elif outage is not None:
        who = format_count(waiting, "document waits", "documents wait")
        trouble.append(f"{who} for the embedder: {outage}")
    if trouble:
        # All other work has been done; the run fails so that the outage is visible.
        raise dg.Failure("; ".join(trouble), metadata=metadata, allow_retries=False)
    return dg.MaterializeResult(metadata=metadata)


def _iter_reports_of_systems(
    context: dg.AssetExecutionContext, names: Naming, ctx: TenantContext, *, is_small: bool
) -> Iterator[dg.AssetMaterialization]:
    """Yield reports of systems' assets; a small run repeats none within an hour."""
    for name, make in installed_systems().load("run_reports").items():
        if is_small and _was_reported_recently(context, names.asset_key(name)):
            continue
        report: dg.AssetMaterialization | None = make(names, ctx)
        if report is not None:
            yield report


def _was_reported_recently(context: dg.AssetExecutionContext, asset: dg.AssetKey) -> bool:
    """Return whether a report on the run's tenant was made within the last hour."""
    of_tenant = dg.AssetRecordsFilter(
        asset,
        asset_partitions=[context.partition_key],
        after_timestamp=time.time() - _REPORT_SECONDS,
    )
    return bool(context.instance.fetch_materializations(of_tenant, limit=1).records)
