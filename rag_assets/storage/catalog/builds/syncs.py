"""The last sync of each source, the slice of the running run, and the guard against mass deletion.

A single listing does not reveal an accident that happens slowly. Each listing or manifest that
removes documents therefore writes an event `documents_left`. The next listing or manifest is judged
together with the events of a time window. A person's consent ends the window; a held deletion keeps
it open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from rag_assets.common.formatting import format_count
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    matches_any,
    read_row,
    write_event,
)
from rag_assets.storage.catalog.tables import events, slices, syncs, tenants

PARTLY = "partly-"
"""Prefix of the digest of a partly recorded listing."""


@dataclass(frozen=True, slots=True)
class Sync:
    """The last sync of one source: a row of `syncs`.

    Attributes:
        held_deletions: number of deletions that await a person's confirmation.
        listing_seconds: duration of the last listing; 0 if unknown, or if files have changed since.
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
    listing_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: the limited set of documents that one run carries through all stages."""

    run_id: str
    generation: int
    config_key: str
    document_ids: tuple[str, ...]
    unlisted: tuple[str, ...] = ()


class SyncTable(CatalogQueries):
    """Records the last sync of each source and the slice of the current run."""

    def all(self, tenant_id: str) -> dict[str, Sync]:
        """Return the last sync of each source of a tenant, by the source's name."""
        return self.of_tenants([tenant_id]).get(tenant_id, {})

    def list_held(self, tenant_id: str) -> list[Sync]:
        """Return the last syncs with deletions that await confirmation, sorted by source."""
        found = self.all(tenant_id)
        return [found[source] for source in sorted(found) if found[source].held_deletions]

    def of_tenants(self, tenant_ids: Iterable[str]) -> dict[str, dict[str, Sync]]:
        """Return the last sync of each source of these tenants, by tenant and source name."""
        query = sa.select(syncs).where(matches_any(syncs.c.tenant, tenant_ids))
        by_tenant: dict[str, dict[str, Sync]] = {}
        for row in self._database.fetch_rows(query):
            by_tenant.setdefault(row.tenant, {})[row.source] = read_row(Sync, row)
        return by_tenant

    def list_retried_between(self, after: datetime, until: datetime) -> set[str]:
        """Return the tenants with a failed sync whose next attempt became due in this interval."""
        query = sa.select(syncs.c.tenant).where(syncs.c.retry_at > after, syncs.c.retry_at <= until)
        return set(self._database.fetch_values(query))

    def count_partly_listed(self, tenant_id: str) -> int:
        """Return the number of a tenant's sources whose last listing is only partly recorded."""
        return self._database.count(tenant_id, syncs, syncs.c.listing_digest.startswith(PARTLY))

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
        seconds: float | None = None,
    ) -> None:
        """Record that `documents` now agrees with a listing, and how many deletions are held.

        Args:
            folders, seconds: see Sync; None: keep the recorded value.
        """
        optional = {"folders": folders, "listing_seconds": seconds}
        values = {name: value for name, value in optional.items() if value is not None}
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
        """Record a successful sync: all listed documents went through all stages."""
        self._put(
            ref,
            source,
            config_key=config_key,
            attempts=0,
            last_error=None,
            retry_at=None,
            succeeded_at=sa.func.now(),
        )

    def record_failure(self, ref: TenantRef, source: str, error: str, retry_at: datetime) -> None:
        """Record that and why a sync failed, and when to try again."""
        self._put(ref, source, last_error=error, retry_at=retry_at)
        attempts = syncs.c.attempts + 1
        self._database.update(ref, syncs, syncs.c.source == source, attempts=attempts)

    def reset(self, ref: TenantRef) -> None:
        """Delete the listing digests, so that the next sync compares every source again."""
        cleared = {"listing_digest": None, "retry_at": None, "last_error": None}
        self._database.update(ref, syncs, **cleared, attempts=0)

    def expire_listings(self, ref: TenantRef) -> None:
        """Record that files have changed since the listings, so that runs do not reuse them."""
        self._database.update(ref, syncs, listing_seconds=0.0)

    def delete(self, ref: TenantRef, source: str) -> None:
        """Delete the row of a source that was removed with its documents."""
        self._database.delete(ref, syncs, syncs.c.source == source)

    def list_slice_documents(self, tenant_id: str) -> frozenset[str]:
        """Return the ids of the documents in the slice of the current or last run."""
        query = sa.select(slices.c.document_ids).where(slices.c.tenant == tenant_id)
        return frozenset(self._database.fetch_value(query) or ())

    def put_slice(self, ref: TenantRef, work: Slice) -> None:
        """Store the slice of the current run, replacing the slice of the last run."""
        row = {**asdict(work), "created_at": sa.func.now(), "spent": 0}
        self._database.write(ref, build_row_upsert(slices, {"tenant": ref.id}, row))

    def find_slice(self, tenant_id: str, run_id: str) -> Slice | None:
        """Return the slice of this run; None if it does not exist."""
        query = sa.select(slices).where(slices.c.tenant == tenant_id, slices.c.run_id == run_id)
        row = self._database.fetch_row(query)
        if row is None:
            return None
        return read_row(
            Slice,
            row,
            document_ids=tuple(map(str, row.document_ids)),
            unlisted=tuple(map(str, row.unlisted)),
        )

    def find_last_generation(self, tenant_id: str) -> int | None:
        """Return the generation that the last run worked on; None before the first run."""
        query = sa.select(slices.c.generation).where(slices.c.tenant == tenant_id)
        return self._database.fetch_value(query)

    def _put(self, ref: TenantRef, source: str, **values: Any) -> None:
        self._database.write(
            ref, build_row_upsert(syncs, {"tenant": ref.id, "source": source}, values)
        )


_DEPARTURE_EVENT = "documents_left"
_HELD_EVENT = "deletions_held"
_REFUSED = "too many records are missing from the last manifest"


@dataclass(frozen=True, slots=True)
class DeletionWindow:
    """The time window over which a source's deletions are added up to detect a mass deletion."""

    since: datetime
    left: int
    hours: int


@dataclass(frozen=True, slots=True)
class HeldDeletions:
    """Documents of one source that disappeared and are kept until a person decides.

    Attributes:
        remedy: the command, or the parameter of a request, that deletes them. is_manifest: whether
        they are missing from a manifest; otherwise they are missing from a listing.
    """

    tenant: str
    source: str
    documents: int
    reason: str
    remedy: str
    is_manifest: bool = False

    @property
    def warning(self) -> str:
        """Return a sentence with the documents, the reason, and the command that deletes them."""
        return (
            f"{format_count(self.documents, 'document')} of {self.tenant} disappeared, and"
            " the deletion"
            f" is held back: source {self.source}: {self.reason}. To delete: {self.remedy}"
        )


class DepartureTable(CatalogQueries):
    """Records, as events, how many documents leave a source, and lists held deletions."""

    def window(self, ref: TenantRef, source: str, hours: int) -> DeletionWindow:
        """Return the window over which deletions in a source are added up for the next listing.

        Args:
            hours: the length of the window; with 0, each listing is judged alone.
        """
        with self._database.begin() as connection:
            return read_window(connection, ref, source, hours)

    def record(self, ref: TenantRef, source: str, left: int, *, is_confirmed: bool) -> None:
        """Record how many documents leave a source, before they are deleted.

        Args:
            is_confirmed: whether a person consented to the deletions; consent ends the window.
        """
        with self._database.begin_tenant(ref) as connection:
            record_departures(connection, ref, source, left, is_confirmed=is_confirmed)

    def list_held(self, tenant_id: str | None = None) -> list[HeldDeletions]:
        """Return deletions that wait for a person, sorted by tenant and source."""
        of_tenant = tenants.c.state != "REMOVING"
        if tenant_id is not None:
            of_tenant = sa.and_(of_tenant, tenants.c.id == tenant_id)
        listings = (
            sa.select(
                *(syncs.c.tenant, syncs.c.source, syncs.c.held_deletions),
                *(syncs.c.held_reason, sa.literal(value=False)),
            )
            .join(tenants, tenants.c.id == syncs.c.tenant)
            .where(of_tenant, syncs.c.held_deletions > 0)
        )
        source = events.c.payload["source"].astext
        # The last refusal of each source, unless a later manifest was accepted.
        last = (
            sa.select(
                *(events.c.tenant, source.label("source")),
                events.c.payload["vanished"].as_integer().label("vanished"),
            )
            .ext(distinct_on(events.c.tenant, source))
            .join(tenants, tenants.c.id == events.c.tenant)
            .where(
                of_tenant,
                events.c.kind.in_((_HELD_EVENT, _DEPARTURE_EVENT)),
                events.c.payload.has_key("manifest"),
            )
            .order_by(events.c.tenant, source, events.c.id.desc())
            .subquery()
        )
        manifests = sa.select(last, sa.literal(_REFUSED), sa.literal(value=True)).where(
            last.c.vanished > 0
        )
        found = [
            _build_held_deletions(*row)
            for row in self._database.fetch_rows(sa.union_all(listings, manifests))
        ]
        return sorted(found, key=lambda deletions: (deletions.tenant, deletions.source))


def _build_held_deletions(
    tenant: str, source: str, documents: int, reason: str | None, is_manifest: bool
) -> HeldDeletions:
    remedy = f"rag-assets sync {tenant} --allow-deletes"
    if is_manifest:
        remedy = (
            f"rag-assets workspace pull {tenant} --allow-deletes for a database, or"
            " POST /rag/reconcile with apply and allow_deletes"
        )
    return HeldDeletions(
        tenant, source, documents, reason or "too many documents are missing", remedy, is_manifest
    )


def read_window(
    connection: sa.Connection, ref: TenantRef, source: str, hours: int
) -> DeletionWindow:
    """Return a source's deletion window like DepartureTable.window, in a given transaction."""
    now: datetime = connection.execute(sa.select(sa.func.now())).scalar_one()
    since = now - timedelta(hours=hours)
    is_holding = sa.select(syncs.c.held_deletions).where(
        syncs.c.tenant == ref.id, syncs.c.source == source
    )
    held_event = connection.execute(
        sa.select(events.c.id, events.c.payload)
        .where(_is_event(ref, source, _HELD_EVENT))
        .order_by(events.c.id.desc())
        .limit(1)
    ).first()
    # Otherwise a held deletion would be allowed as soon as the earlier losses leave the window.
    if held_event and (
        connection.scalar(is_holding)
        or _is_refused_manifest(connection, ref, held_event.id, held_event.payload)
    ):
        since = min(
            since, datetime.fromisoformat(held_event.payload.get("since", since.isoformat()))
        )
    in_window = _is_event(ref, source, _DEPARTURE_EVENT) & (events.c.at > since)
    is_confirmed = events.c.payload["confirmed"].as_boolean()
    consent = (
        connection.scalar(sa.select(sa.func.max(events.c.id)).where(in_window, is_confirmed)) or 0
    )
    departed = sa.select(sa.func.sum(events.c.payload["left"].as_integer())).where(
        in_window, events.c.id > consent
    )
    return DeletionWindow(since, int(connection.scalar(departed) or 0), hours)


def record_departures(
    connection: sa.Connection,
    ref: TenantRef,
    source: str,
    left: int,
    *,
    is_confirmed: bool,
    is_manifest: bool = False,
) -> None:
    """Record departures like DepartureTable.record, in a given transaction.

    Args:
        is_manifest: whether a manifest, instead of a listing, removes the documents.
    """
    payload: dict[str, Any] = {"source": source, "left": left, "confirmed": is_confirmed}
    if is_manifest:
        payload["manifest"] = True
    write_event(connection, ref.id, _DEPARTURE_EVENT, payload)


def record_held_manifest(
    connection: sa.Connection, ref: TenantRef, source: str, vanished: int, window: DeletionWindow
) -> None:
    """Record that a manifest was refused because it would remove too many records."""
    payload = {
        "source": source,
        "vanished": vanished,
        "manifest": True,
        "since": window.since.isoformat(),
    }
    write_event(connection, ref.id, _HELD_EVENT, payload)


def accept_manifest(connection: sa.Connection, ref: TenantRef, source: str) -> None:
    """Record that a manifest was accepted, if the last manifest was refused."""
    of_manifests = events.c.payload.has_key("manifest")
    kinds = sa.or_(_is_event(ref, source, _HELD_EVENT), _is_event(ref, source, _DEPARTURE_EVENT))
    last = sa.select(events.c.kind).where(kinds, of_manifests).order_by(events.c.id.desc()).limit(1)
    if connection.scalar(last) == _HELD_EVENT:
        record_departures(connection, ref, source, 0, is_confirmed=False, is_manifest=True)


def _is_refused_manifest(
    connection: sa.Connection, ref: TenantRef, id_: int, payload: Mapping[str, Any]
) -> bool:
    """Return whether an event records a refused manifest, with no accepted manifest after it."""
    if not payload.get("manifest"):
        return False
    later = _is_event(ref, payload["source"], _DEPARTURE_EVENT) & (events.c.id > id_)
    return not connection.scalar(sa.select(sa.exists().where(later)))


def _is_event(ref: TenantRef, source: str, kind: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        events.c.tenant == ref.id,
        events.c.kind == kind,
        events.c.payload["source"].astext == source,
    )
