"""generations: the builds of a tenant's index, and the progress of each.

Runs report this asset while a build is in progress or published. The daily pruning reports it for
tenants with several builds.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from rag_assets.assets.descriptions import GENERATIONS
from rag_assets.assets.metadata_values import series_chart, table
from rag_assets.common.formatting import duration
from rag_assets.declarations import Naming, Report
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generation_moves import BuildReport, report_builds

_COLUMNS = {
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
    made = _choose_reported(reports)
    history = ctx.catalog.build_progress.history(ctx.ref.id, made.number)
    return generations.materialization(
        names,
        ctx.ref.id,
        description=_format_headline(reports, made),
        metadata={
            **({} if current else {"builds": len(reports)}),
            "serving build": next((r.number for r in reports if r.state == "SERVING"), 0),
            "progress": round(made.documents / made.of_documents, 4) if made.of_documents else 1.0,
            "documents behind": made.behind or 0,
            **({} if made.per_second is None else {"documents a second": made.per_second}),
            "spent in $": round(made.spent, 6),
            "documents over time": series_chart(
                f"documents in build {made.number}, {max(history.counts, default=0):,} at the end",
                history.counts,
                f"{history.first:%d %b %H:%M}" if history.first else "",
                f"{history.last:%d %b %H:%M}" if history.last else "",
            ),
            "states": table(_COLUMNS, [_build_row(report) for report in reports]),
        },
    )


def _choose_reported(reports: Sequence[BuildReport]) -> BuildReport:
    """Return the report on the wanted build, or else on the serving or the last build."""
    wanted = [report for report in reports if report.wanted]
    serving = [report for report in reports if report.state == "SERVING"]
    return next(iter([*wanted, *serving, reports[-1]]))


def _format_headline(reports: Sequence[BuildReport], build_report: BuildReport) -> str:
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


def _build_row(report: BuildReport) -> tuple[str | int | float | None, ...]:
    passed = sum(bool(check["passed"]) for check in report.checks)
    left, removed_after = report.remaining_seconds, report.removed_after
    return (
        report.number,
        f"{report.state} (pinned)" if report.pinned else report.state,
        f"{report.since:%Y-%m-%d %H:%M}",
        "; ".join(report.differs),
        report.documents,
        report.of_documents,
        report.entries,
        "" if left is None else duration(left),
        round(report.spent, 6),
        None if report.planned is None else round(report.planned, 6),
        f"{passed} of {len(report.checks)}" if report.checks else "",
        "" if removed_after is None else f"{removed_after:%Y-%m-%d %H:%M}",
        report.index,
    )
