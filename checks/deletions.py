"""deletions: reports documents that disappeared and whose deletion waits for a person."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.storage.catalog.builds.syncs import HeldDeletions


def build_verdict(held: Sequence[HeldDeletions]) -> Verdict:
    """Warn of deletions that are held back until a person allows them."""
    documents = sum(held_deletions.documents for held_deletions in held)
    description = "no deletion is held back"
    if held:
        more = f", and {format_count(len(held) - 1, 'more source')}" if len(held) > 1 else ""
        description = (
            f"{format_count(held[0].documents, 'document')} of source {held[0].source}"
            f" disappeared, and the deletion is held back: {held[0].reason}{more}"
        )
    return Verdict(
        passed=not held,
        description=description,
        compared=(Compared("deletions that are held back", 0, documents),),
        columns=("source", "documents", "reason", "to delete them"),
        offenders=tuple((h.source, h.documents, h.reason, h.remedy) for h in held),
        severity="WARN",
        mend="restore the documents in their source; or, to delete them, "
        + (held[0].remedy if held else "allow the deletion"),
    )


@tenant_check(
    "raw_documents",
    "deletions",
    (
        "No source lost so many documents, in one listing or within its time window, that a person "
        "must allow their deletion. Until then, the documents stay searchable. Evaluated by every "
        "sync."
    ),
    with_syncs=True,
)
def deletions_check(context: CheckContext) -> Verdict:
    """Report the sources whose deletions are held back."""
    return build_verdict(context.tenant.catalog.departures.list_held(context.tenant.ref.id))
