"""Reports on tenants as materializations of assets that no run computes.

`generations` reports builds while one is in progress or published, and daily if a tenant has
several. `embedding_cost` and `retention` are reported daily. `retrieval_quality` is reported
weekly, and after the publication of a build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby

import dagster as dg

from rag_assets.assets.descriptions import (
    EMBEDDING_COST,
    GENERATIONS,
    RETENTION,
    RETRIEVAL_QUALITY,
)
from rag_assets.assets.metadata_values import build_bar_chart, build_series_chart, build_table
from rag_assets.common.formatting import duration
from rag_assets.declarations import Naming, Report
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generation_moves import BuildReport, report_builds
from rag_assets.pipeline.retention import SOON, RetentionReport
from rag_assets.quality.evaluation import Evaluation, MeasuredPart
from rag_assets.quality.measures import MEASURES, NDCG
from rag_assets.storage.catalog.accounts.usage import UsageRow, UsageTable, total
from rag_assets.storage.catalog.erasure.receipts import Receipt

_SHOWN_HOLDS, _SHOWN_QUESTIONS = 20, 50
_SHOWN_DAYS, _PLOTTED_DAYS = 7, 31
_MODEL_COLUMNS = {
    "provider": "string",
    "model": "string",
    "requests": "int",
    "texts": "int",
    "tokens": "int",
    "cost": "string",
}
_BUILD_COLUMNS = {
    "build": "int",
    "state": "string",
    "since": "string",
    "differs in": "string",
    "documents": "int",
    "of documents": "int",
    "entries": "int",
    "time left": "string",
    "cost in $": "float",
    "planned in $": "float",
    "checks passed": "string",
    "deleted after": "string",
    "index": "string",
}

generations = Report(
    "generations", dep="search_index", group="builds", kind="elasticsearch", description=GENERATIONS
)


def build_generations_report(
    names: Naming, ctx: TenantContext, *, current: bool = False
) -> dg.AssetMaterialization | None:
    """Return the tenant's builds as a materialization; None without a build."""
    reports = report_builds(ctx, current=current)
    if not reports:
        return None
    chosen_report = _choose_build_report(reports)
    counts, first, last = ctx.catalog.build_progress.history(ctx.ref.id, chosen_report.number)
    return generations.materialization(
        names,
        ctx.ref.id,
        description=_format_build_headline(reports, chosen_report),
        metadata={
            **({} if current else {"builds": len(reports)}),
            "serving build": next((r.number for r in reports if r.state == "SERVING"), 0),
            "progress": round(chosen_report.documents / chosen_report.of_documents, 4)
            if chosen_report.of_documents
            else 1.0,
            "documents behind": chosen_report.behind or 0,
            **(
                {}
                if chosen_report.per_second is None
                else {"documents a second": chosen_report.per_second}
            ),
            "spent in $": round(chosen_report.spent, 6),
            "documents over time": build_series_chart(
                f"documents in build {chosen_report.number}, {max(counts, default=0):,} at the end",
                counts,
                f"{first:%d %b %H:%M}" if first else "",
                f"{last:%d %b %H:%M}" if last else "",
            ),
            "states": build_table(
                _BUILD_COLUMNS, [_build_generation_row(report) for report in reports]
            ),
        },
    )


def _choose_build_report(reports: Sequence[BuildReport]) -> BuildReport:
    """Return the report on the wanted build, or else on the serving or the last build."""
    wanted_reports = [report for report in reports if report.wanted]
    serving = [report for report in reports if report.state == "SERVING"]
    return next(iter([*wanted_reports, *serving, reports[-1]]))


def _format_build_headline(reports: Sequence[BuildReport], build_report: BuildReport) -> str:
    serving = next((r for r in reports if r.state == "SERVING"), None)
    if serving is not None and serving.number == build_report.number:
        return f"build {build_report.number} answers"
    state = f"build {build_report.number} is {build_report.state}"
    if build_report.reason:
        state += f": {build_report.reason}"
    answers = "" if serving is None else f"; build {serving.number} answers"
    return (
        f"{state}, {build_report.documents:,} of {build_report.of_documents:,} documents{answers}"
    )


def _build_generation_row(report: BuildReport) -> tuple[str | int | float | None, ...]:
    passed = sum(bool(check["passed"]) for check in report.checks)
    remaining_seconds, removed_after = report.remaining_seconds, report.removed_after
    return (
        report.number,
        f"{report.state} (pinned)" if report.pinned else report.state,
        f"{report.since:%Y-%m-%d %H:%M}",
        "; ".join(report.differs),
        report.documents,
        report.of_documents,
        report.entries,
        "" if remaining_seconds is None else duration(remaining_seconds),
        round(report.spent, 6),
        None if report.planned is None else round(report.planned, 6),
        f"{passed} of {len(report.checks)}" if report.checks else "",
        "" if removed_after is None else f"{removed_after:%Y-%m-%d %H:%M}",
        report.index,
    )


embedding_cost = Report(
    "embedding_cost", dep="embeddings", group="cost", kind="postgres", description=EMBEDDING_COST
)


def iter_daily_costs(
    names: Naming, usage: UsageTable, today: date
) -> Iterator[dg.AssetMaterialization]:
    """Yield a report on each tenant with usage in the last 31 days; today is not plotted."""
    rows = usage.rows(today - timedelta(days=_PLOTTED_DAYS))
    for tenant_id, tenant_rows in groupby(rows, key=lambda row: row.tenant_id):
        yield _build_cost_report(names, tenant_id, list(tenant_rows), today)


def _build_cost_report(
    names: Naming, tenant_id: str, rows: Sequence[UsageRow], today: date
) -> dg.AssetMaterialization:
    yesterday = today - timedelta(days=1)
    of_day = total(row for row in rows if row.day == yesterday)
    of_month = total(row for row in rows if yesterday.replace(day=1) <= row.day <= yesterday)
    days = [today - timedelta(days=back) for back in reversed(range(_SHOWN_DAYS))]
    past = [today - timedelta(days=back) for back in range(_PLOTTED_DAYS, 0, -1)]
    cost = {day: total(row for row in rows if row.day == day).cost for day in (*past, today)}
    bars = [(f"{day:%d %b}", cost[day]) for day in days]
    plotted = [cost[day] for day in past]
    month = round(of_month.cost, 6)
    return embedding_cost.materialization(
        names,
        tenant_id,
        description=f"{yesterday:%Y-%m-%d}: {of_day.cost_text}",
        metadata={
            # Usage without a known price is not free, so no value is plotted for it.
            **({} if of_day.known_cost is None else {"yesterday in $": round(of_day.cost, 6)}),
            **({} if of_month.known_cost is None else {"month to yesterday in $": month}),
            "tokens of yesterday": of_day.tokens,
            "requests of yesterday": of_day.requests,
            "retries of yesterday": of_day.retries,
            "tokens without a known price": of_day.unpriced_tokens,
            "31 days": build_series_chart(
                f"dollars a day, {_format_dollars(max(plotted))} at most",
                plotted,
                f"{past[0]:%d %b}",
                f"{past[-1]:%d %b}",
            ),
            "by day": build_bar_chart("dollars a day", bars, _format_dollars),
            "by model": build_table(_MODEL_COLUMNS, list(_sum_by_model(rows))),
        },
    )


def _sum_by_model(rows: Sequence[UsageRow]) -> Iterator[tuple[str | int, ...]]:
    def key(row: UsageRow) -> tuple[str, str]:
        return row.provider, row.model

    for model, model_rows in groupby(sorted(rows, key=key), key=key):
        used = total(model_rows)
        yield (*model, used.requests, used.texts, used.tokens, used.cost_text)


def _format_dollars(amount: float) -> str:
    """Return an amount in a form that fits above a bar; empty for 0."""
    return f"{amount:.3g}" if amount else ""


retention = Report(
    "retention", dep="raw_documents", group="retention", kind="postgres", description=RETENTION
)


def build_retention_report(
    names: Naming, tenant_id: str, report: RetentionReport
) -> dg.AssetMaterialization:
    """Return a report on retention as a materialization with numbers to plot over time."""
    return retention.materialization(
        names,
        tenant_id,
        description="; ".join(_iter_headline_parts(report)) or "nothing is due, held or erased",
        metadata={
            "rule": report.rule or "none: documents are kept as long as their source has them",
            f"due within {SOON.days} days": sum(due_document.soon for due_document in report.due),
            "held documents": report.held_documents,
            "prunes to confirm": sum(report.prunes_to_confirm.values()),
            "receipts": report.receipt_count,
            "due next": build_table(
                {"source type": "string", "next": "string", f"within {SOON.days} days": "int"},
                [(d.source_type, f"{d.next:%Y-%m-%d %H:%M}", d.soon) for d in report.due],
            ),
            "holds": build_table(
                {"held": "string", "since": "string", "by": "string", "reason": "string"},
                [
                    (str(h.scope), f"{h.at:%Y-%m-%d}", h.by, h.reason)
                    for h in report.holds[:_SHOWN_HOLDS]
                ],
            ),
            "waiting for a person": build_table(
                {"source": "string", "documents": "int", "command": "string"},
                [
                    (source, count, f"rag-assets prune {tenant_id} --confirm")
                    for source, count in report.prunes_to_confirm.items()
                ],
            ),
            "last receipts": build_table(
                {
                    "number": "int",
                    "kind": "string",
                    "rule": "string",
                    "at": "string",
                    "documents": "int",
                    "counts": "string",
                },
                [_build_receipt_row(receipt) for receipt in report.receipts],
            ),
        },
    )


def _iter_headline_parts(report: RetentionReport) -> Iterator[str]:
    if report.doubt is not None:
        yield report.doubt
    if report.due:
        first = min(report.due, key=lambda due_document: due_document.next)
        yield f"next due: {first.source_type}, {first.next:%Y-%m-%d}"
    if report.prunes_to_confirm:
        yield f"{sum(report.prunes_to_confirm.values()):,} documents wait to be confirmed"
    if report.held_documents:
        yield f"{report.held_documents:,} held"
    if report.receipt_count:
        yield f"{report.receipt_count:,} receipts"


def _build_receipt_row(receipt: Receipt) -> tuple[int, str, str, str, int, str]:
    counts = (
        f"{store}: {', '.join(f'{kind} {count}' for kind, count in of_store.items())}"
        for store, of_store in receipt.counts.items()
    )
    return (
        receipt.number,
        receipt.kind,
        receipt.rule,
        f"{receipt.at:%Y-%m-%d %H:%M}",
        len(receipt.documents),
        "; ".join(counts),
    )


retrieval_quality = Report(
    "retrieval_quality",
    dep="search_index",
    group="quality",
    kind="elasticsearch",
    description=RETRIEVAL_QUALITY,
)


def build_quality_report(
    names: Naming, tenant_id: str, evaluation: Evaluation
) -> dg.AssetMaterialization:
    """Return the evaluation of a serving build as a materialization with numbers to plot."""
    judged = evaluation.people.judged
    return retrieval_quality.materialization(
        names,
        tenant_id,
        description=f"build {evaluation.generation}: {_format_quality_headline(evaluation)}",
        metadata={
            **dict(_iter_means(evaluation.people, "")),
            **dict(_iter_means(evaluation.synthetic, ", synthetic")),
            "questions": len(evaluation.people.ids),
            **({} if judged is None else {"judged of the first 10": round(judged, 4)}),
            "questions not measured": len(evaluation.unmeasured),
            "generation": evaluation.generation,
            "embedder": evaluation.embedder_id,
            "mode": evaluation.manner.mode,
            "intervals": build_table(
                {"measure": "string", "mean": "float", "from": "float", "to": "float"},
                list(_iter_intervals(evaluation.people)),
            ),
            "lowest": build_table(
                {"question": "string", NDCG: "float"}, _list_lowest(evaluation.people)
            ),
            "documents that are gone": build_table(
                {"question": "string", "documents": "string"},
                [(id_, ", ".join(paths)) for id_, paths in evaluation.gone.items()][
                    :_SHOWN_QUESTIONS
                ],
            ),
        },
    )


def _format_quality_headline(evaluation: Evaluation) -> str:
    estimate = evaluation.people.estimate(NDCG)
    if estimate is None:
        return "no judged question could be measured"
    return f"{NDCG} {estimate.mean:.3f} ({estimate.low:.2f} to {estimate.high:.2f})"


def _iter_means(part: MeasuredPart, suffix: str) -> Iterator[tuple[str, float]]:
    for measure in MEASURES:
        if (estimate := part.estimate(measure)) is not None:
            yield f"{measure}{suffix}", estimate.mean


def _iter_intervals(part: MeasuredPart) -> Iterator[tuple[str, float, float, float]]:
    for measure in MEASURES:
        if (estimate := part.estimate(measure)) is not None:
            yield measure, estimate.mean, estimate.low, estimate.high


def _list_lowest(part: MeasuredPart) -> list[tuple[str, float]]:
    values = part.values.get(NDCG, {})
    rows = sorted(values.items(), key=lambda item: (item[1], item[0]))
    return [(id_, round(value, 4)) for id_, value in rows[:_SHOWN_QUESTIONS]]
