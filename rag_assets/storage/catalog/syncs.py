"""The last sync of each source, and the slice of the running run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.tables import slices, syncs

PARTLY = "partly-"
"""Prefix of the digest of a partly recorded listing."""


@dataclass(frozen=True, slots=True)
class Sync:
    """The last sync of one source.

    Attributes:
        listing_digest: digest of the last listing recorded in `documents`; see also PARTLY.
        held_deletions: number of deletions that await a person's confirmation.
        held_reason: why they await confirmation; None without held deletions.
        held_prunes: number of documents past their retention that await confirmation.
        folders: the root and the mount points of the last listing, see folders_from_json; None if
            unknown.
        attempts: failed attempts since the last success.
        retry_at: the earliest time of the next attempt.
    """

    source: str
    listing_digest: str | None
    listed_at_ns: int | None
    config_key: str | None
    held_deletions: int
    attempts: int
    last_error: str | None
    retry_at: datetime | None
    succeeded_at: datetime | None
    held_prunes: int = 0
    held_reason: str | None = None
    folders: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """The bounded share of a tenant's work that one run carries through all stages.

    Attributes:
        unlisted: why some sources could not be listed when the run started.
    """

    run_id: str
    generation: int
    config_key: str
    document_ids: tuple[str, ...]
    unlisted: tuple[str, ...] = ()


class SyncTable:
    """Queries on `syncs` and `slices`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, tenant_id: str) -> dict[str, Sync]:
        """Return the last sync of each source of a tenant, by the source's name."""
        columns = [column for column in syncs.c if column.name != "tenant"]
        query = select(*columns).where(syncs.c.tenant == tenant_id)
        with self._database.begin() as connection:
            return {row["source"]: Sync(**row) for row in connection.execute(query).mappings()}

    def held(self, tenant_id: str) -> list[Sync]:
        """Return the last syncs with deletions that await confirmation, by the source's name."""
        found = self.all(tenant_id)
        return [found[source] for source in sorted(found) if found[source].held_deletions]

    def of_tenants(self, tenant_ids: Iterable[str]) -> dict[str, dict[str, Sync]]:
        """Return the last sync of each source of these tenants, by tenant and source name."""
        query = select(syncs).where(among(syncs.c.tenant, tenant_ids))
        found: dict[str, dict[str, Sync]] = {}
        with self._database.begin() as connection:
            for row in connection.execute(query).mappings():
                columns = {name: value for name, value in row.items() if name != "tenant"}
                found.setdefault(row["tenant"], {})[row["source"]] = Sync(**columns)
        return found

    def retried_between(self, after: datetime, until: datetime) -> set[str]:
        """Return tenants with a failed sync whose next attempt became due in this interval."""
        query = select(syncs.c.tenant).where(syncs.c.retry_at > after, syncs.c.retry_at <= until)
        with self._database.begin() as connection:
            return set(connection.scalars(query))

    def partly_listed(self, tenant_id: str) -> int:
        """Return the number of a tenant's partly recorded sources."""
        query = select(func.count()).where(
            syncs.c.tenant == tenant_id, syncs.c.listing_digest.startswith(PARTLY)
        )
        with self._database.begin() as connection:
            return connection.scalar(query) or 0

    def record_listing(
        self,
        ref: TenantRef,
        source: str,
        *,
        digest: str,
        at_ns: int,
        held_deletions: int,
        held_reason: str | None,
        folders: Sequence[Any] | None = None,
    ) -> None:
        """Record that a listing is recorded in `documents`.

        Args:
            ref, source, digest, at_ns, held_deletions, held_reason: see Sync.
            folders: see Sync; None: keep the recorded folders.
        """
        values: dict[str, Any] = {} if folders is None else {"folders": folders}
        self._put(
            ref,
            source,
            listing_digest=digest,
            listed_at_ns=at_ns,
            held_deletions=held_deletions,
            held_reason=held_reason,
            **values,
        )

    def record_success(self, ref: TenantRef, source: str, config_key: str) -> None:
        """Record that all listed documents were processed by all stages."""
        self._put(
            ref,
            source,
            config_key=config_key,
            attempts=0,
            last_error=None,
            retry_at=None,
            succeeded_at=func.now(),
        )

    def record_failure(self, ref: TenantRef, source: str, error: str, retry_at: datetime) -> None:
        """Record that a sync failed."""
        self._put(ref, source, last_error=error, retry_at=retry_at)
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(syncs)
                .where(syncs.c.tenant == ref.id, syncs.c.source == source)
                .values(attempts=syncs.c.attempts + 1)
            )

    def reset(self, ref: TenantRef) -> None:
        """Delete the listing digests, so that the next sync compares every source again."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(syncs)
                .where(syncs.c.tenant == ref.id)
                .values(listing_digest=None, attempts=0, retry_at=None, last_error=None)
            )

    def delete(self, ref: TenantRef, source: str) -> None:
        """Delete the row of a source that was removed with its documents."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                delete(syncs).where(syncs.c.tenant == ref.id, syncs.c.source == source)
            )

    def slice_documents(self, tenant_id: str) -> frozenset[str]:
        """Return the ids of the documents in the slice of the current or last run."""
        query = select(slices.c.document_ids).where(slices.c.tenant == tenant_id)
        with self._database.begin() as connection:
            return frozenset(connection.scalar(query) or ())

    def put_slice(self, ref: TenantRef, work: Slice) -> None:
        """Store the slice of the current run."""
        row = {
            "run_id": work.run_id,
            "generation": work.generation,
            "config_key": work.config_key,
            "document_ids": list(work.document_ids),
            "unlisted": list(work.unlisted),
            "created_at": func.now(),
            "spent": 0,
        }
        with self._database.begin_for(ref) as connection:
            connection.execute(
                upsert(slices)
                .values(tenant=ref.id, **row)
                .on_conflict_do_update(index_elements=["tenant"], set_=row)
            )

    def slice_of(self, tenant_id: str, run_id: str) -> Slice | None:
        """Return the slice of this run; None if it does not exist."""
        query = select(slices).where(slices.c.tenant == tenant_id, slices.c.run_id == run_id)
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        return Slice(
            row.run_id,
            row.generation,
            row.config_key,
            _strings(row.document_ids),
            _strings(row.unlisted),
        )

    def last_generation(self, tenant_id: str) -> int | None:
        """Return the build of the last run's slice; None without a slice."""
        query = select(slices.c.generation).where(slices.c.tenant == tenant_id)
        with self._database.begin() as connection:
            return connection.scalar(query)

    def _put(self, ref: TenantRef, source: str, **values: Any) -> None:
        with self._database.begin_for(ref) as connection:
            connection.execute(
                upsert(syncs)
                .values(tenant=ref.id, source=source, **values)
                .on_conflict_do_update(index_elements=["tenant", "source"], set_=values)
            )


def _strings(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)
