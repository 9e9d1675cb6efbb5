"""Texts that were handed to a provider's batch API, until their vectors are in the lake.

A row is written before anything is handed over: what is paid for is always known here, or found
at the provider by the row's tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Row, delete, func, insert, select, update

from rag_assets.storage.catalog.account_tables import embedding_batches as batches
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import tenants

BatchState = Literal["SUBMITTING", "UNDER_WAY", "ENDED", "COLLECTED", "FAILED"]
OPEN: tuple[BatchState, ...] = ("SUBMITTING", "UNDER_WAY", "ENDED")
"""States of a batch whose texts need not be sent again."""
FETCHED_AGAIN = timedelta(hours=1)
"""After which results that could not be fetched are asked for again."""
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """One batch at a provider.

    Attributes:
        tag: that it is found by at its provider.
        batch_id: the provider's id of it; None until that is known.
        embedder: configuration that makes its embedder again.
        texts, tokens: handed over; tokens are an estimate.
        cost: of these tokens at the batch price, in dollars; None if no price is known.
        error: why it failed, or what the last look at it met.
        polled_at: when it was last looked at.
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
class Failures:
    """The batches of an embedder that failed since the last one that did not."""

    count: int
    last_at: datetime
    error: str


class BatchTable:
    """Queries on `embedding_batches`."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        """Note a batch that is about to be handed over.

        Args:
            ref: whose.
            tag, embedder_id, embedder, tokens, cost: see EmbeddingBatch.
            keys: text_sha256 of each text.

        Returns:
            its id here.
        """
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
        with self._database.begin_for(ref) as connection:
            id_: int = connection.execute(
                insert(batches).values(**row).returning(batches.c.id)
            ).scalar_one()
        return id_

    def submitted(self, ref: TenantRef, id_: int, batch_id: str) -> None:
        """The provider has it."""
        self._update(ref, id_, state="UNDER_WAY", batch_id=batch_id, error=None)

    def polled(self, ref: TenantRef, id_: int, error: str | None = None) -> None:
        """It was looked at, and goes on."""
        self._update(ref, id_, polled_at=func.now(), error=error)

    def ended(self, ref: TenantRef, id_: int) -> None:
        """Its results can be collected."""
        self._update(ref, id_, state="ENDED", polled_at=func.now(), error=None)

    def collected(self, ref: TenantRef, id_: int, *, tokens: int, cost: float | None) -> None:
        """Its vectors are in the lake."""
        self._close(ref, id_, state="COLLECTED", tokens=tokens, cost=cost, error=None)

    def failed(self, ref: TenantRef, id_: int, error: str) -> None:
        """Nothing comes of it."""
        self._close(ref, id_, state="FAILED", error=error)

    def forget(self, ref: TenantRef, id_: int) -> None:
        """It was never handed over."""
        with self._database.begin_for(ref) as connection:
            connection.execute(delete(batches).where(_one(ref, id_)))

    def forget_closed(self, ref: TenantRef, before: datetime) -> None:
        """Drop what was collected or failed long ago."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                delete(batches).where(batches.c.tenant == ref.id, batches.c.ended_at < before)
            )

    def open(self, tenant_id: str | None = None) -> list[EmbeddingBatch]:
        """Batches of one active tenant, or of all, that are not settled; the oldest first."""
        query = (
            select(tenants.c.incarnation.label("incarnation"))
            .add_columns(*(column for column in batches.c if column.name != "hashes"))
            .join(tenants, tenants.c.id == batches.c.tenant)
            .where(batches.c.state.in_(OPEN), tenants.c.state == "ACTIVE")
            .order_by(batches.c.id)
        )
        if tenant_id is not None:
            query = query.where(batches.c.tenant == tenant_id)
        with self._database.begin() as connection:
            return [_batch(row) for row in connection.execute(query)]

    def keys(self, tenant_id: str, embedder_id: str) -> dict[int, set[str]]:
        """The text_sha256 of all texts that a provider has, by the id of their batch."""
        query = select(batches.c.id, batches.c.hashes).where(
            batches.c.tenant == tenant_id,
            batches.c.embedder_id == embedder_id,
            batches.c.state.in_(("UNDER_WAY", "ENDED")),
        )
        with self._database.begin() as connection:
            return {row.id: _unpacked(bytes(row.hashes)) for row in connection.execute(query)}

    def promised(self, tenant_id: str) -> float:
        """Dollars that the open batches of a tenant will cost."""
        query = select(func.coalesce(func.sum(batches.c.cost), 0)).where(
            batches.c.tenant == tenant_id, batches.c.state.in_(OPEN)
        )
        with self._database.begin() as connection:
            return float(connection.scalar(query) or 0)

    def failures(self, tenant_id: str, embedder_id: str) -> Failures | None:
        """How many batches of an embedder failed one after the other, up to the last."""
        closed = (
            select(batches.c.state, batches.c.ended_at, batches.c.error)
            .where(
                batches.c.tenant == tenant_id,
                batches.c.embedder_id == embedder_id,
                batches.c.ended_at.is_not(None),
            )
            .order_by(batches.c.ended_at.desc())
            .limit(20)
        )
        with self._database.begin() as connection:
            rows = list(connection.execute(closed))
        count = next((at for at, row in enumerate(rows) if row.state != "FAILED"), len(rows))
        return Failures(count, rows[0].ended_at, rows[0].error or "") if count else None

    def _close(self, ref: TenantRef, id_: int, **values: Any) -> None:
        # Thousands of hashes that nobody will ask for.
        self._update(ref, id_, hashes=b"", ended_at=func.now(), polled_at=func.now(), **values)

    def _update(self, ref: TenantRef, id_: int, **values: Any) -> None:
        with self._database.begin_for(ref) as connection:
            connection.execute(update(batches).where(_one(ref, id_)).values(**values))


def due_to_poll(batch: EmbeddingBatch, now: datetime) -> bool:
    """Whether a batch should be looked at: every minute at first, later less and less often.

    One whose results could not be fetched calls for a run, not for a look.
    """
    if batch.state == "ENDED" and batch.error:
        return now - batch.polled_at >= FETCHED_AGAIN
    age = now - batch.submitted_at
    pause = max(timedelta(minutes=1), min(age / 20, timedelta(minutes=10)))
    return now - batch.polled_at >= pause


def _one(ref: TenantRef, id_: int) -> Any:
    return (batches.c.tenant == ref.id) & (batches.c.id == id_)


def _unpacked(packed: bytes) -> set[str]:
    return {packed[start : start + _KEY_BYTES].hex() for start in range(0, len(packed), _KEY_BYTES)}


def _batch(row: Row[Any]) -> EmbeddingBatch:
    return EmbeddingBatch(
        id=row.id,
        ref=TenantRef(row.tenant, row.incarnation),
        tag=row.tag,
        batch_id=row.batch_id,
        embedder_id=row.embedder_id,
        embedder=row.embedder,
        texts=row.texts,
        tokens=row.tokens,
        cost=None if row.cost is None else float(row.cost),
        state=row.state,
        error=row.error,
        submitted_at=row.submitted_at,
        polled_at=row.polled_at,
        ended_at=row.ended_at,
    )
