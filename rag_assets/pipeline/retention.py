"""Retention: prune documents that were first embedded too long ago, and report on retention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from rag_assets.common.errors import CatalogSetBack
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import settle_erasure, settle_open_erasures
from rag_assets.pipeline.mark_keeper import find_deletion_refusal
from rag_assets.storage.catalog.erasure.holds import Hold
from rag_assets.storage.catalog.erasure.receipts import Receipt
from rag_assets.storage.catalog.erasure.retention import Cutoffs, DueDocuments
from rag_assets.storage.catalog.journal.events import SEARCHES
from rag_assets.tenants.model import Tenant

_MAX_UNCONFIRMED = 20
"""Up to this many documents of a source are pruned, whatever their share."""

SOON: Final = timedelta(days=7)
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class HeldPrune:
    """A source with so many documents due that a person has to confirm their pruning."""

    source: str
    due: int
    documents: int


@dataclass(frozen=True, slots=True)
class PruningReport:
    """Report on pruning.

    Attributes:
        receipts: receipts of this run's pruning, and of interrupted erasures that it finished.
        doubt: why pruning was skipped, if the clock may be wrong.
    """

    receipts: tuple[Receipt, ...] = ()
    held: tuple[HeldPrune, ...] = ()
    doubt: ClockDoubt | None = None
    corrected: int = 0
    events: int = 0
    refused: CatalogSetBack | None = None

    @property
    def documents(self) -> int:
        """Return how many documents were pruned."""
        return sum(len(receipt.documents) for receipt in self._prune_receipts)

    @property
    def entries(self) -> int:
        """Return how many entries were deleted from the index."""
        return sum(receipt.counts["index"]["entries"] for receipt in self._prune_receipts)

    @property
    def _prune_receipts(self) -> list[Receipt]:
        """Return the receipts of pruning, without the receipts of other interrupted erasures."""
        return [receipt for receipt in self.receipts if receipt.kind == "prune"]

    def warnings(self, tenant_id: str) -> list[str]:
        """Return warnings for people, each one sentence."""
        messages = [
            f"{format_count(prune.due, 'document')} of {prune.documents:,} in source"
            f" {prune.source!r} exceed their retention, but so many are pruned only after"
            f" confirmation. To prune them, run: rag-assets prune {tenant_id} --confirm"
            for prune in self.held
        ]
        if self.refused is not None:
            messages.append(f"nothing was pruned: {self.refused.message}. {self.refused.hint}")
        if self.doubt is not None:
            messages.append(self.doubt.message_with_hint)
        if self.corrected:
            messages.append(
                f"{format_count(self.corrected, 'row')} of {tenant_id} had times in the future,"
                " recorded while the clock was ahead: their ages are now counted from the present"
                " time"
            )
        return messages


def prune_tenant(ctx: TenantContext, *, by: str, confirm: bool = False) -> PruningReport:
    """Prune documents and search events that exceed their retention, from every store.

    With `confirm`, a person has allowed pruning any share of a source's documents.
    """
    receipts = settle_open_erasures(ctx)
    now = get_deletion_time(ctx.catalog, ctx.clock)
    if isinstance(now, ClockDoubt):
        return PruningReport(tuple(receipts), doubt=now)
    corrected = _correct_times(ctx, now)
    report = _prune_documents(ctx, now, by=by, confirm=confirm)
    report = replace(report, receipts=(*receipts, *report.receipts), corrected=corrected)
    if report.refused is not None:
        return report
    before = now - timedelta(days=ctx.tenant.retrieval.events_days)
    events = ctx.catalog.events.delete_before(ctx.ref, SEARCHES, before)
    return replace(report, events=events)


def prune_due_documents(ctx: TenantContext, *, by: str) -> PruningReport:
    """Prune due documents in a sync; if none is due, this costs three queries."""
    receipts = tuple(settle_open_erasures(ctx, seconds=ctx.limits.parse_seconds))
    now = get_deletion_time(ctx.catalog, ctx.clock)
    if isinstance(now, ClockDoubt):
        return PruningReport(receipts, doubt=now)
    cutoffs = compute_cutoffs(ctx.tenant, now)
    if cutoffs is None:
        return PruningReport(receipts)
    is_wrong = ctx.catalog.clock.has_future_ages(ctx.ref.id, now)
    corrected = _correct_times(ctx, now) if is_wrong else 0
    if not ctx.catalog.retention.list_due(ctx.ref.id, cutoffs).documents:
        return PruningReport(receipts, corrected=corrected)
    report = _prune_documents(ctx, now, by=by)
    return replace(report, receipts=(*receipts, *report.receipts), corrected=corrected)


def _correct_times(ctx: TenantContext, now: datetime) -> int:
    """Replace recorded times in the future, written while the clock was ahead; return how many."""
    ctx.guard()
    corrected = ctx.catalog.clock.correct_future_times(ctx.ref, now)
    if corrected:
        ctx.catalog.events.write(ctx.ref, "times_corrected", [{"rows": corrected}])
    return corrected


def _prune_documents(
    ctx: TenantContext, now: datetime, *, by: str, confirm: bool = False
) -> PruningReport:
    """Prune documents that exceed their retention at a trusted time."""
    cutoffs = compute_cutoffs(ctx.tenant, now)
    if cutoffs is None:
        return PruningReport()
    if (refused := find_deletion_refusal(ctx)) is not None:
        return PruningReport(refused=refused)
    due = ctx.catalog.retention.list_due(ctx.ref.id, cutoffs)
    held_prunes = () if confirm else find_held_prunes(due, ctx.tenant.prune_share)
    ctx.guard()
    counts = {prune.source: prune.due for prune in held_prunes}
    if ctx.catalog.retention.record_held(ctx.ref, counts) and held_prunes:
        ctx.catalog.events.write(ctx.ref, "prunes_held", [counts])
    erasure = ctx.catalog.erasures.begin_prune(
        ctx.ref, cutoffs, counts.keys(), rule=describe_retention_rule(ctx.tenant), by=by, at=now
    )
    if erasure is None:
        return PruningReport(held=held_prunes)
    receipt = settle_erasure(ctx, erasure)
    pruned = {"documents": len(erasure.document_ids), "receipt": str(erasure.id)}
    ctx.catalog.events.write(ctx.ref, "pruned", [pruned])
    return PruningReport((receipt,), held_prunes)


def compute_cutoffs(tenant: Tenant, now: datetime) -> Cutoffs | None:
    """Return the times before which a tenant's documents expire; None if it keeps all."""
    days = tenant.retention_days
    if days is None:
        return None
    if isinstance(days, Mapping):
        cutoffs = {name: now - timedelta(days=of_type) for name, of_type in days.items()}
        return Cutoffs(cutoffs)
    return Cutoffs({}, now - timedelta(days=days))


def find_held_prunes(due: DueDocuments, share: float | None) -> tuple[HeldPrune, ...]:
    """Return the sources in which more than this share of the documents is due; None: no source."""
    if share is None:
        return ()
    counts: Mapping[str, int] = Counter(document.source for document in due.documents)
    return tuple(
        HeldPrune(source, count, due.living[source])
        for source, count in sorted(counts.items())
        if count > _MAX_UNCONFIRMED and count > share * due.living[source]
    )


def describe_retention_rule(tenant: Tenant) -> str:
    """Return the setting retention_days of a tenant, as receipts quote it."""
    days = tenant.retention_days
    if isinstance(days, Mapping):
        return "retention_days: " + ", ".join(f"{name} {n}" for name, n in sorted(days.items()))
    return f"retention_days: {days}"


@dataclass(frozen=True, slots=True)
class UpcomingPruning:
    """The documents of one source type with a limited retention, and how many are due soon.

    Attributes:
        soon: number of documents due within the period SOON, including those due now.
    """

    source_type: str
    next: datetime
    soon: int


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """The due documents, holds and erasures of one tenant.

    Attributes:
        rule: the retention setting; None if everything is kept.
        prunes_to_confirm: number of documents whose pruning a person has to confirm, by source.
        doubt: why no data is deleted because of its age, if the clock may be wrong.
    """

    rule: str | None
    due: Sequence[UpcomingPruning]
    holds: Sequence[Hold]
    held_documents: int
    prunes_to_confirm: Mapping[str, int]
    receipts: Sequence[Receipt]
    receipt_count: int
    doubt: str | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether the report lacks settings, holds and receipts."""
        return not (self.rule or self.holds or self.receipt_count)


def report_retention(ctx: TenantContext) -> RetentionReport:
    """Report on a tenant's retention; read-only."""
    tenant_id, now = ctx.ref.id, ctx.clock.now()
    cutoffs, ahead = compute_cutoffs(ctx.tenant, now), compute_cutoffs(ctx.tenant, now + SOON)
    due: list[UpcomingPruning] = []
    if cutoffs is not None and ahead is not None:
        due = [
            UpcomingPruning(source_type, now + time_left, before)
            for source_type, time_left, before in ctx.catalog.retention.list_aging(
                tenant_id, cutoffs, ahead
            )
        ]
    receipts = ctx.catalog.receipts.all(tenant_id)
    holds = ctx.catalog.holds.all(tenant_id)
    syncs = ctx.catalog.syncs.all(tenant_id)
    trusted = get_deletion_time(ctx.catalog, ctx.clock)
    return RetentionReport(
        rule=None if cutoffs is None else describe_retention_rule(ctx.tenant),
        due=due,
        holds=holds,
        held_documents=ctx.catalog.holds.document_count(tenant_id) if holds else 0,
        prunes_to_confirm={name: s.held_prunes for name, s in syncs.items() if s.held_prunes},
        receipts=receipts[: -_SHOWN - 1 : -1],
        receipt_count=len(receipts),
        doubt=trusted.message_with_hint if isinstance(trusted, ClockDoubt) else None,
    )
