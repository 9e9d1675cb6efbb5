"""Retention: prunes documents whose content was first embedded longer ago than is allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rag_assets.common.clock import MOST_SKEW
from rag_assets.common.errors import CatalogSetBack
from rag_assets.common.formatting import counted
from rag_assets.pipeline.catalog_mark import refusal
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import settle, settle_open
from rag_assets.storage.catalog.events import SEARCHES
from rag_assets.storage.catalog.receipts import Receipt
from rag_assets.storage.catalog.retention import Cutoffs, DueDocuments
from rag_assets.tenants.model import Tenant

_UNSUSPICIOUS = 20
"""This many documents of a source are pruned whatever their share."""


@dataclass(frozen=True, slots=True)
class HeldPrune:
    """A source of which so much is due that a person has to confirm its pruning."""

    source: str
    due: int
    documents: int


@dataclass(frozen=True, slots=True)
class PruningReport:
    """Report on pruning.

    Attributes:
        receipts: of what was pruned, by this run or by one before that did not end.
        held: sources that wait for a person's confirmation.
        skew: how far the machine's clock is from Postgres's, if so far that nothing was pruned.
        events: deleted events of searches.
        refused: why nothing was pruned: the catalog lacks changes.
    """

    receipts: tuple[Receipt, ...] = ()
    held: tuple[HeldPrune, ...] = ()
    skew: timedelta | None = None
    events: int = 0
    refused: CatalogSetBack | None = None

    @property
    def documents(self) -> int:
        """How many documents were pruned."""
        return sum(len(receipt.documents) for receipt in self._pruned)

    @property
    def entries(self) -> int:
        """How many entries were deleted from the index."""
        return sum(receipt.counts["index"]["entries"] for receipt in self._pruned)

    @property
    def _pruned(self) -> list[Receipt]:
        """Receipts of other erasures, which were interrupted, left out."""
        return [receipt for receipt in self.receipts if receipt.kind == "prune"]

    def warnings(self, tenant_id: str) -> list[str]:
        """What a person has to know, in words."""
        found = [
            f"{counted(one.due, 'document')} of {one.documents:,} of source {one.source!r} are past"
            f" their retention and are kept. To prune them: rag-assets prune {tenant_id} --confirm"
            for one in self.held
        ]
        if self.refused is not None:
            found.append(f"nothing was pruned: {self.refused.message}. {self.refused.hint}")
        if self.skew is not None:
            minutes = self.skew.total_seconds() / 60
            found.append(
                f"nothing was pruned: this machine's clock is {minutes:.0f} minutes from Postgres's"
            )
        return found


def prune(ctx: TenantContext, *, by: str, confirm: bool = False) -> PruningReport:
    """Prune documents and search events that exceed their retention, from every store.

    Args:
        ctx: of the tenant, under its lock.
        by: who or what prunes.
        confirm: whether a person has allowed any share of a source's documents.
    """
    report = prune_documents(ctx, by=by, confirm=confirm)
    if report.refused is not None or report.skew is not None or _skew(ctx) is not None:
        return report
    before = ctx.clock.now() - timedelta(days=ctx.tenant.retrieval.events_days)
    events = ctx.catalog.events.delete_before(ctx.ref, SEARCHES, before)
    return PruningReport(report.receipts, report.held, events=events)


def prune_due(ctx: TenantContext, *, by: str) -> PruningReport:
    """What a sync does: it prunes what is due, and asks one query where nothing is."""
    receipts = settle_open(ctx, seconds=ctx.limits.parse_seconds)
    cutoffs = cutoffs_of(ctx.tenant, ctx.clock.now())
    if cutoffs is None or not ctx.catalog.retention.due(ctx.ref.id, cutoffs).documents:
        return PruningReport(tuple(receipts))
    report = prune_documents(ctx, by=by)
    return replace(report, receipts=(*receipts, *report.receipts))


def prune_documents(ctx: TenantContext, *, by: str, confirm: bool = False) -> PruningReport:
    """Prune documents that exceed their retention, and end erasures that were interrupted."""
    receipts = settle_open(ctx)
    cutoffs = cutoffs_of(ctx.tenant, ctx.clock.now())
    if cutoffs is None:
        return PruningReport(tuple(receipts))
    skew = _skew(ctx)
    if skew is not None:
        return PruningReport(tuple(receipts), skew=skew)
    if (refused := refusal(ctx)) is not None:
        return PruningReport(tuple(receipts), refused=refused)
    due = ctx.catalog.retention.due(ctx.ref.id, cutoffs)
    held = () if confirm else held_prunes(due, ctx.tenant.prune_share)
    ctx.guard()
    counts = {one.source: one.due for one in held}
    if ctx.catalog.retention.record_held(ctx.ref, counts) and held:
        ctx.catalog.events.write(ctx.ref, "prunes_held", [counts])
    erasure = ctx.catalog.erasures.begin_prune(
        ctx.ref,
        cutoffs,
        counts.keys(),
        rule=rule_of(ctx.tenant),
        by=by,
        at=ctx.clock.now(),
    )
    if erasure is not None:
        receipts.append(settle(ctx, erasure))
        pruned = {"documents": len(erasure.document_ids), "receipt": str(erasure.id)}
        ctx.catalog.events.write(ctx.ref, "pruned", [pruned])
    return PruningReport(tuple(receipts), held)


def cutoffs_of(tenant: Tenant, now: datetime) -> Cutoffs | None:
    """The times before which a tenant's documents are no longer kept; None: it keeps all."""
    days = tenant.retention_days
    if days is None:
        return None
    if isinstance(days, Mapping):
        each = {name: now - timedelta(days=of_type) for name, of_type in days.items()}
        return Cutoffs(each)
    return Cutoffs({}, now - timedelta(days=days))


def held_prunes(due: DueDocuments, share: float | None) -> tuple[HeldPrune, ...]:
    """The sources of which suspiciously much is due.

    Args:
        due: the documents past their retention.
        share: of a source's documents that may be pruned unasked; None: any.
    """
    if share is None:
        return ()
    counts: Mapping[str, int] = Counter(document.source for document in due.documents)
    return tuple(
        HeldPrune(source, count, due.living[source])
        for source, count in sorted(counts.items())
        if count > _UNSUSPICIOUS and count > share * due.living[source]
    )


def _skew(ctx: TenantContext) -> timedelta | None:
    """How far the machine's clock is from Postgres's, if that is too far to be believed."""
    skew = ctx.clock.skew(ctx.catalog.database.time())
    return skew if skew > MOST_SKEW else None


def rule_of(tenant: Tenant) -> str:
    """The tenant's setting, as receipts name it."""
    days = tenant.retention_days
    if isinstance(days, Mapping):
        return "retention_days: " + ", ".join(f"{name} {n}" for name, n in sorted(days.items()))
    return f"retention_days: {days}"
