"""Documents that left a source, recorded for the guard against accidental mass deletion.

A single listing does not reveal an accident that happens slowly. Each listing or manifest that
removes documents therefore writes an event `documents_left`. The next listing or manifest is judged
together with the events of a time window. A person's consent ends the window; a held deletion keeps
it open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on

from rag_assets.common.formatting import counted
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import events, syncs, tenants

_LEFT = "documents_left"
_HELD = "deletions_held"
_REFUSED = "the last manifest of its records lacks too many"


@dataclass(frozen=True, slots=True)
class DeletionWindow:
    """The time window in which a listing's deletions are judged.

    Attributes:
        since: when the window starts.
        left: the number of documents that left the source in the window.
        hours: the length of the window, for messages.
    """

    since: datetime
    left: int
    hours: int


@dataclass(frozen=True, slots=True)
class HeldDeletions:
    """Documents of one source that disappeared and are kept until a person decides.

    Attributes:
        documents: how many.
        remedy: the command, or the parameter of a request, that deletes them.
        is_manifest: whether they are missing in a manifest (otherwise: in a listing).
    """

    tenant: str
    source: str
    documents: int
    reason: str
    remedy: str
    is_manifest: bool = False

    @property
    def line(self) -> str:
        """Return a sentence with the documents, the reason, and the command that deletes them."""
        return (
            f"{counted(self.documents, 'document')} of {self.tenant} disappeared, and the deletion"
            f" is held back: source {self.source}: {self.reason}. To delete: {self.remedy}"
        )


class DepartureTable:
    """Queries on the events of documents that left a source."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def window(self, ref: TenantRef, source: str, hours: int) -> DeletionWindow:
        """Return the window of a source, before its next listing.

        Args:
            hours: the length of the window; with 0, each listing is judged alone.
        """
        with self._database.begin() as connection:
            return read_window(connection, ref, source, hours)

    def record(self, ref: TenantRef, source: str, left: int, *, is_confirmed: bool) -> None:
        """Record documents that leave a source, before they are deleted.

        Args:
            left: how many.
            is_confirmed: whether a person consented, which ends the window.
        """
        with self._database.begin_for(ref) as connection:
            record_departures(connection, ref, source, left, is_confirmed=is_confirmed)

    def held(self, tenant_id: str | None = None) -> list[HeldDeletions]:
        """Return deletions that wait for a person, sorted by tenant and source.

        Args:
            tenant_id: only deletions of this tenant; None for all tenants.
        """
        of_tenant = tenants.c.state != "REMOVING"
        if tenant_id is not None:
            of_tenant = and_(of_tenant, tenants.c.id == tenant_id)
        listings = (
            select(
                *(syncs.c.tenant, syncs.c.source, syncs.c.held_deletions),
                *(syncs.c.held_reason, literal(value=False)),
            )
            .join(tenants, tenants.c.id == syncs.c.tenant)
            .where(of_tenant, syncs.c.held_deletions > 0)
        )
        source = events.c.payload["source"].astext
        # The last refusal of each source, unless a later manifest was accepted.
        last = (
            select(
                *(events.c.tenant, source.label("source")),
                events.c.payload["vanished"].as_integer().label("vanished"),
            )
            .ext(distinct_on(events.c.tenant, source))
            .join(tenants, tenants.c.id == events.c.tenant)
            .where(
                of_tenant,
                events.c.kind.in_((_HELD, _LEFT)),
                events.c.payload.has_key("manifest"),
            )
            .order_by(events.c.tenant, source, events.c.id.desc())
            .subquery()
        )
        manifests = select(last, literal(_REFUSED), literal(value=True)).where(last.c.vanished > 0)
        with self._database.begin() as connection:
            found = [_held(*row) for row in connection.execute(union_all(listings, manifests))]
        return sorted(found, key=lambda each: (each.tenant, each.source))


def _held(
    tenant: str, source: str, documents: int, reason: str | None, is_manifest: bool
) -> HeldDeletions:
    remedy = f"rag-assets sync {tenant} --allow-deletes"
    if is_manifest:
        remedy = (
            f"rag-assets workspace pull {tenant} --allow-deletes for a database, or"
            " POST /rag/reconcile with apply and allow_deletes"
        )
    return HeldDeletions(
        tenant, source, documents, reason or "too many are gone", remedy, is_manifest
    )


def read_window(connection: Connection, ref: TenantRef, source: str, hours: int) -> DeletionWindow:
    """Return the window of a source; see DepartureTable.window."""
    now: datetime = connection.execute(select(func.now())).scalar_one()
    since = now - timedelta(hours=hours)
    is_holding = select(syncs.c.held_deletions).where(
        syncs.c.tenant == ref.id, syncs.c.source == source
    )
    held = connection.execute(
        select(events.c.id, events.c.payload)
        .where(_is_event(ref, source, _HELD))
        .order_by(events.c.id.desc())
        .limit(1)
    ).first()
    # Otherwise a held deletion would be allowed as soon as the earlier losses leave the window.
    if held and (
        connection.scalar(is_holding)
        or _is_refused_manifest(connection, ref, held.id, held.payload)
    ):
        since = min(since, datetime.fromisoformat(held.payload.get("since", since.isoformat())))
    in_window = _is_event(ref, source, _LEFT) & (events.c.at > since)
    is_confirmed = events.c.payload["confirmed"].as_boolean()
    consent = connection.scalar(select(func.max(events.c.id)).where(in_window, is_confirmed)) or 0
    left = select(func.sum(events.c.payload["left"].as_integer())).where(
        in_window, events.c.id > consent
    )
    return DeletionWindow(since, int(connection.scalar(left) or 0), hours)


def record_departures(
    connection: Connection,
    ref: TenantRef,
    source: str,
    left: int,
    *,
    is_confirmed: bool,
    is_manifest: bool = False,
) -> None:
    """Record documents that leave a source; see DepartureTable.record."""
    payload: dict[str, Any] = {"source": source, "left": left, "confirmed": is_confirmed}
    if is_manifest:
        payload["manifest"] = True
    connection.execute(insert(events).values(tenant=ref.id, kind=_LEFT, payload=payload))


def record_held_manifest(
    connection: Connection, ref: TenantRef, source: str, vanished: int, window: DeletionWindow
) -> None:
    """Record a manifest that was refused, because it would remove too many records."""
    payload = {
        "source": source,
        "vanished": vanished,
        "manifest": True,
        "since": window.since.isoformat(),
    }
    connection.execute(insert(events).values(tenant=ref.id, kind=_HELD, payload=payload))


def accept_manifest(connection: Connection, ref: TenantRef, source: str) -> None:
    """Record that a manifest was accepted, if the last manifest was refused."""
    of_manifests = events.c.payload.has_key("manifest")
    kinds = or_(_is_event(ref, source, _HELD), _is_event(ref, source, _LEFT))
    last = select(events.c.kind).where(kinds, of_manifests).order_by(events.c.id.desc()).limit(1)
    if connection.scalar(last) == _HELD:
        record_departures(connection, ref, source, 0, is_confirmed=False, is_manifest=True)


def _is_refused_manifest(
    connection: Connection, ref: TenantRef, id_: int, payload: Mapping[str, Any]
) -> bool:
    """Return whether an event is a manifest's refusal that no accepted manifest followed."""
    if not payload.get("manifest"):
        return False
    later = _is_event(ref, payload["source"], _LEFT) & (events.c.id > id_)
    return not connection.scalar(select(exists().where(later)))


def _is_event(ref: TenantRef, source: str, kind: str) -> ColumnElement[bool]:
    return and_(
        events.c.tenant == ref.id,
        events.c.kind == kind,
        events.c.payload["source"].astext == source,
    )
