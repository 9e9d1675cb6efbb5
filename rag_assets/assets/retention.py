"""retention: a tenant's documents due next, its holds, and the receipts of erasures.

The daily pruning reports this asset for tenants that have any of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from rag_assets.assets.descriptions import RETENTION
from rag_assets.assets.metadata_values import table
from rag_assets.declarations import Naming, Report
from rag_assets.pipeline.retention import SOON, RetentionReport
from rag_assets.storage.catalog.erasure.receipts import Receipt

_SHOWN = 20

retention = Report(
    "retention", dep="raw_documents", group="retention", kind="postgres", description=RETENTION
)


def build_retention_report(
    names: Naming, tenant_id: str, found: RetentionReport
) -> dg.AssetMaterialization:
    """Return a report on retention as a materialization with numbers to plot over time."""
    return retention.materialization(
        names,
        tenant_id,
        description=_format_headline(found),
        metadata={
            "rule": found.rule or "none: documents are kept as long as their source has them",
            f"due within {SOON.days} days": sum(each.soon for each in found.due),
            "held documents": found.held_documents,
            "prunes to confirm": sum(found.prunes_to_confirm.values()),
            "receipts": found.receipt_count,
            "due next": table(
                {"source type": "string", "next": "string", f"within {SOON.days} days": "int"},
                [(d.source_type, f"{d.next:%Y-%m-%d %H:%M}", d.soon) for d in found.due],
            ),
            "holds": table(
                {"held": "string", "since": "string", "by": "string", "reason": "string"},
                [(str(h.scope), f"{h.at:%Y-%m-%d}", h.by, h.reason) for h in found.holds][:_SHOWN],
            ),
            "waiting for a person": table(
                {"source": "string", "documents": "int", "command": "string"},
                [
                    (source, count, f"rag-assets prune {tenant_id} --confirm")
                    for source, count in found.prunes_to_confirm.items()
                ],
            ),
            "last receipts": table(
                {
                    "number": "int",
                    "kind": "string",
                    "rule": "string",
                    "at": "string",
                    "documents": "int",
                    "counts": "string",
                },
                [_build_receipt_row(receipt) for receipt in found.receipts],
            ),
        },
    )


def _format_headline(found: RetentionReport) -> str:
    return "; ".join(_iter_headline_parts(found)) or "nothing is due, held or erased"


def _iter_headline_parts(found: RetentionReport) -> Iterator[str]:
    if found.doubt is not None:
        yield found.doubt
    if found.due:
        first = min(found.due, key=lambda each: each.next)
        yield f"next due: {first.source_type}, {first.next:%Y-%m-%d}"
    if found.prunes_to_confirm:
        yield f"{sum(found.prunes_to_confirm.values()):,} documents wait to be confirmed"
    if found.held_documents:
        yield f"{found.held_documents:,} held"
    if found.receipt_count:
        yield f"{found.receipt_count:,} receipts"


def _build_receipt_row(receipt: Receipt) -> tuple[int, str, str, str, int, str]:
    counts = (
        f"{store}: {', '.join(f'{what} {count}' for what, count in of_store.items())}"
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
