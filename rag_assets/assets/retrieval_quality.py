"""retrieval_quality: how well each tenant's serving build answers its judged questions.

One run a week measures all tenants; another run measures a build after its publication.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from rag_assets.assets.descriptions import RETRIEVAL_QUALITY
from rag_assets.assets.metadata_values import table
from rag_assets.declarations import Naming, Report
from rag_assets.quality.evaluation import Evaluation, MeasuredPart
from rag_assets.quality.measures import MEASURES, NDCG

_SHOWN = 50

retrieval_quality = Report(
    "retrieval_quality",
    dep="search_index",
    group="quality",
    kind="elasticsearch",
    description=RETRIEVAL_QUALITY,
)


def build_quality_report(
    names: Naming, tenant_id: str, found: Evaluation
) -> dg.AssetMaterialization:
    """Return the evaluation of a serving build as a materialization with numbers to plot."""
    judged = found.people.judged
    return retrieval_quality.materialization(
        names,
        tenant_id,
        description=f"build {found.generation}: {_format_headline(found)}",
        metadata={
            **dict(_iter_means(found.people, "")),
            **dict(_iter_means(found.synthetic, ", synthetic")),
            "questions": len(found.people.ids),
            **({} if judged is None else {"judged of the first 10": round(judged, 4)}),
            "questions not measured": len(found.unmeasured),
            "generation": found.generation,
            "embedder": found.embedder_id,
            "mode": found.manner.mode,
            "intervals": table(
                {"measure": "string", "mean": "float", "from": "float", "to": "float"},
                list(_iter_intervals(found.people)),
            ),
            "lowest": table({"question": "string", NDCG: "float"}, _list_lowest(found.people)),
            "documents that are gone": table(
                {"question": "string", "documents": "string"},
                [(id_, ", ".join(paths)) for id_, paths in found.gone.items()][:_SHOWN],
            ),
        },
    )


def _format_headline(found: Evaluation) -> str:
    estimate = found.people.estimate(NDCG)
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
    return [(id_, round(value, 4)) for id_, value in rows[:_SHOWN]]
