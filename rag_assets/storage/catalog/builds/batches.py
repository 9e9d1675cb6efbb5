"""Batches of texts at a provider's batch API, until their vectors are in the lake.

A row is written before its batch is submitted. Every paid batch is therefore known here, and can
be found at the provider by the row's tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from rag_assets.storage.catalog.accounts.tables import embedding_batches as batches
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, read_row
from rag_assets.storage.catalog.tables import tenants

BatchState = Literal["SUBMITTING", "UNDER_WAY", "ENDED", "COLLECTED", "FAILED"]
OPEN: tuple[BatchState, ...] = ("SUBMITTING", "UNDER_WAY", "ENDED")
"""States in which the texts of a batch must not be submitted again."""
FETCH_RETRY_INTERVAL = timedelta(hours=1)
"""Time after which a failed fetch of results is repeated."""
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """One batch at a provider.

    Attributes:
        tag: identifies the batch at its provider.
        batch_id: the provider's id; None until it is known.
        texts, tokens: the number of submitted texts, and an estimate of the number of their tokens.
        cost: dollars for these tokens at the batch price; None if the price is unknown.
    """

    id: int
    ref: TenantRef
    tag: str
    batch_id: str | None
    embedder_id: str
    embedder: Mapping[str, Any]
    texts: int
    tokens: int
    cost: float | None
    state: BatchState
    error: str | None
    submitted_at: datetime
    polled_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class FailedBatches:
    """The failed batches of an embedder since its last successful batch, at most the last 20."""

    count: int
    last_at: datetime
    error: str


class BatchTable(CatalogQueries):
    """Records the batches sent to providers and their states, in `embedding_batches`."""

    def begin(
        self,
        ref: TenantRef,
        *,
        tag: str,
        embedder_id: str,
        embedder: Mapping[str, Any],
        keys: Sequence[str],
        tokens: int,
        cost: float | None,
    ) -> int:
        """Record a batch that is about to be submitted; return its id in the catalog."""
        row = {
            "tenant": ref.id,
            "tag": tag,
            "embedder_id": embedder_id,
            "embedder": dict(embedder),
            "hashes": b"".join(bytes.fromhex(key) for key in keys),
            "texts": len(keys),
            "tokens": tokens,
            "cost": cost,
            "state": "SUBMITTING",
        }
        with self._database.begin_tenant(ref) as connection:
            id_: int = connection.execute(
                sa.insert(batches).values(**row).returning(batches.c.id)
            ).scalar_one()
        return id_

    def mark_submitted(self, ref: TenantRef, id_: int, batch_id: str) -> None:
        """Record that the provider accepted the batch."""
        self._update(ref, id_, state="UNDER_WAY", batch_id=batch_id, error=None)

    def mark_polled(self, ref: TenantRef, id_: int, error: str | None = None) -> None:
        """Record a poll of a batch that has not ended."""
        self._update(ref, id_, polled_at=sa.func.now(), error=error)

    def mark_ended(self, ref: TenantRef, id_: int) -> None:
        """Record that the results can be collected."""
        self._update(ref, id_, state="ENDED", polled_at=sa.func.now(), error=None)

    def mark_collected(self, ref: TenantRef, id_: int, *, tokens: int, cost: float | None) -> None:
        """Record that the vectors are in the lake."""
        self._close(ref, id_, state="COLLECTED", tokens=tokens, cost=cost, error=None)

    def mark_failed(self, ref: TenantRef, id_: int, error: str) -> None:
        """Record that the batch failed permanently."""
        self._close(ref, id_, state="FAILED", error=error)

    def delete(self, ref: TenantRef, id_: int) -> None:
        """Delete a batch that was never submitted."""
        self._database.delete(ref, batches, batches.c.id == id_)

    def delete_closed(self, ref: TenantRef, before: datetime) -> None:
        """Delete batches that were collected or failed before a time."""
        self._database.delete(ref, batches, batches.c.ended_at < before)

    def list_open(self, tenant_id: str | None = None) -> list[EmbeddingBatch]:
        """Return the open batches of one active tenant, or of all, oldest first."""
        query = (
            sa.select(tenants.c.incarnation.label("incarnation"))
            .add_columns(*(column for column in batches.c if column.name != "hashes"))
            .join(tenants, tenants.c.id == batches.c.tenant)
            .where(batches.c.state.in_(OPEN), tenants.c.state == "ACTIVE")
            .order_by(batches.c.id)
        )
        if tenant_id is not None:
            query = query.where(batches.c.tenant == tenant_id)
        return [
            read_row(
                EmbeddingBatch,
                row,
                ref=TenantRef(row.tenant, row.incarnation),
                cost=None if row.cost is None else float(row.cost),
            )
            for row in self._database.fetch_rows(query)
        ]

    def text_hashes(self, tenant_id: str, embedder_id: str) -> dict[int, set[str]]:
        """Return the text_sha256 of the texts in an embedder's uncollected batches, by batch id."""
        query = sa.select(batches.c.id, batches.c.hashes).where(
            batches.c.tenant == tenant_id,
            batches.c.embedder_id == embedder_id,
            batches.c.state.in_(("UNDER_WAY", "ENDED")),
        )
        return {
            row.id: {
                row.hashes[at : at + _KEY_BYTES].hex()
                for at in range(0, len(row.hashes), _KEY_BYTES)
            }
            for row in self._database.fetch_rows(query)
        }

    def open_cost(self, tenant_id: str) -> float:
        """Return the cost in dollars of a tenant's open batches (neither collected nor failed)."""
        query = sa.select(sa.func.coalesce(sa.func.sum(batches.c.cost), 0)).where(
            batches.c.tenant == tenant_id, batches.c.state.in_(OPEN)
        )
        return float(self._database.fetch_value(query) or 0)

    def failures(self, tenant_id: str, embedder_id: str) -> FailedBatches | None:
        """Return an embedder's failed batches since its last success; None if there are none."""
        closed = (
            sa.select(batches.c.state, batches.c.ended_at, batches.c.error)
            .where(
                batches.c.tenant == tenant_id,
                batches.c.embedder_id == embedder_id,
                batches.c.ended_at.is_not(None),
            )
            .order_by(batches.c.ended_at.desc())
            .limit(20)
        )
        rows = list(self._database.fetch_rows(closed))
        count = next((at for at, row in enumerate(rows) if row.state != "FAILED"), len(rows))
        return FailedBatches(count, rows[0].ended_at, rows[0].error or "") if count else None

    def _close(self, ref: TenantRef, id_: int, **values: Any) -> None:
        # The hashes, which can take megabytes, are no longer needed.
        self._update(
            ref, id_, hashes=b"", ended_at=sa.func.now(), polled_at=sa.func.now(), **values
        )

    def _update(self, ref: TenantRef, id_: int, **values: Any) -> None:
        self._database.update(ref, batches, batches.c.id == id_, **values)


def is_poll_due(batch: EmbeddingBatch, now: datetime) -> bool:
    """Return whether a batch should be polled now.

    The interval grows with the batch's age, from one minute to ten minutes. If the results could
    not be fetched, the interval is FETCH_RETRY_INTERVAL.
    """
    waited, age = now - batch.polled_at, now - batch.submitted_at
    pause = max(timedelta(minutes=1), min(age / 20, timedelta(minutes=10)))
    if batch.state == "ENDED" and batch.error:
        pause = FETCH_RETRY_INTERVAL
    # A poll time in the future was recorded while the clock was fast.
    return not timedelta() <= waited < pause
