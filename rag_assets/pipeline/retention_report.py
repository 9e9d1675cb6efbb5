"""Report on retention: the documents due next, holds, and receipts of erasures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rag_assets.pipeline.clock_guard import ClockDoubt, time_for_deletion
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.retention import cutoffs_of, rule_of
from rag_assets.storage.catalog.erasure.holds import Hold
from rag_assets.storage.catalog.erasure.receipts import Receipt

SOON: Final = timedelta(days=7)
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class DueNext:
    """The aging documents of one source type.

    Attributes:
        next: when the oldest document is past its retention.
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
        due: the aging documents, by source type.
        holds: the holds, oldest first.
        held_documents: how many documents the holds cover.
        prunes_to_confirm: number of documents whose pruning a person has to confirm, by source.
        receipts: the last receipts, newest first.
        receipt_count: number of all receipts.
        doubt: why no data is deleted because of its age, if the clock may be wrong.
    """

    rule: str | None
    due: Sequence[DueNext]
    holds: Sequence[Hold]
    held_documents: int
    prunes_to_confirm: Mapping[str, int]
    receipts: Sequence[Receipt]
    receipt_count: int
    doubt: str | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether there is no setting, hold or receipt to report."""
        return not (self.rule or self.holds or self.receipt_count)


def report_retention(ctx: TenantContext) -> RetentionReport:
    """Report on a tenant's retention; read-only."""
    tenant_id, now = ctx.ref.id, ctx.clock.now()
    cutoffs, ahead = cutoffs_of(ctx.tenant, now), cutoffs_of(ctx.tenant, now + SOON)
    due: list[DueNext] = []
    if cutoffs is not None and ahead is not None:
        due = [
            DueNext(aging.source_type, now + aging.left, aging.before)
            for aging in ctx.catalog.retention.list_aging(tenant_id, cutoffs, ahead)
        ]
    receipts = ctx.catalog.receipts.all(tenant_id)
    holds = ctx.catalog.holds.all(tenant_id)
    syncs = ctx.catalog.syncs.all(tenant_id)
    trusted = time_for_deletion(ctx.catalog, ctx.clock)
    return RetentionReport(
        rule=None if cutoffs is None else rule_of(ctx.tenant),
        due=due,
        holds=holds,
        held_documents=ctx.catalog.holds.document_count(tenant_id) if holds else 0,
        prunes_to_confirm={name: s.held_prunes for name, s in syncs.items() if s.held_prunes},
        receipts=receipts[: -_SHOWN - 1 : -1],
        receipt_count=len(receipts),
        doubt=trusted.line if isinstance(trusted, ClockDoubt) else None,
    )
