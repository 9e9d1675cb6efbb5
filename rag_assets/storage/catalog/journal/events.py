"""The append-only log of a tenant's events, for its admin and the daemon."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa

from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, matches_any, read_row
from rag_assets.storage.catalog.erasure.holds import is_row_held
from rag_assets.storage.catalog.tables import documents, events

EventKind = Literal[
    "document_indexed",
    "document_removed",
    "document_failed",
    "cap_reached",
    "rag_chunk_indexed",
    "secret_dropped",
    "secret_masked",
    "secrets_masked",
    "deletions_held",
    "documents_left",
    "reindex_requested",
    "generation_published",
    "generation_held",
    "generation_pinned",
    "generation_unpinned",
    "generation_discarded",
    "drift_found",
    "index_repaired",
    "lake_healed",
    "catalog_accepted",
    "compacted",
    "pruned",
    "pruned_expunged",
    "prunes_held",
    "times_corrected",
    "clock_accepted",
    "hold_set",
    "hold_lifted",
    "model_changed",
    "settings_changed",
    "rows_set_aside",
    "rag_search_started",
    "rag_search_completed",
    "ai_context_loaded",
    "paused_for_input",
]


_SHOWN_TO_ALL: EventKind = "secret_dropped"
_NAME = "uri"
"""The key in a payload for the uri of a document."""

SEARCHES: tuple[EventKind, ...] = (
    *("rag_search_started", "rag_search_completed"),
    *("ai_context_loaded", "paused_for_input"),
)
"""Events of searches, which contain questions; runs of agents write the last two kinds."""
_SHOWN_OF_SEARCHES = frozenset(
    {"search_id", "caller", "mode", "top_k", "latency_ms", "degraded", "altered", "error"}
)
"""Payload fields that other callers may see of a search: neither questions nor results."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a tenant: a row of `events`."""

    id: int
    kind: str
    at: datetime
    payload: Mapping[str, Any]


@cache
def _build_events_insertion() -> sa.Insert:
    """Return the statement that inserts many events at once, which is faster than one by one."""
    columns = (
        sa.func.unnest(
            sa.bindparam("kinds", type_=sa.ARRAY(sa.Text)),
            sa.bindparam("times", type_=sa.ARRAY(sa.DateTime(timezone=True))),
            sa.bindparam("payloads", type_=sa.ARRAY(sa.Text)),
        )
        .table_valued("kind", "at", "payload", with_ordinality="place", name="given")
        .render_derived()
    )
    row = sa.select(
        sa.bindparam("tenant", type_=sa.Text),
        columns.c.kind,
        columns.c.at,
        sa.cast(columns.c.payload, events.c.payload.type),
    ).order_by(columns.c.place)
    return sa.insert(events).from_select(["tenant", "kind", "at", "payload"], row)


class EventTable(CatalogQueries):
    """Appends, lists and deletes events of tenants, in `events`."""

    def write(self, ref: TenantRef, kind: EventKind, payloads: Sequence[Mapping[str, Any]]) -> None:
        """Append events of one kind; payloads must not contain secrets or text of a document."""
        if not payloads:
            return
        rows = [{"tenant": ref.id, "kind": kind, "payload": dict(p)} for p in payloads]
        self._database.write(ref, sa.insert(events), rows)

    def append(
        self, ref: TenantRef, new: Sequence[tuple[EventKind, datetime, Mapping[str, Any]]]
    ) -> None:
        """Append events in order, each given by its kind, its time and its payload; see write()."""
        if not new:
            return
        kinds, times, payloads = zip(*new, strict=True)
        columns = {
            "tenant": ref.id,
            "kinds": list(kinds),
            "times": list(times),
            "payloads": [json.dumps(payload) for payload in payloads],
        }
        self._database.write(ref, _build_events_insertion(), columns)

    def delete_before(self, ref: TenantRef, kinds: Collection[EventKind], before: datetime) -> int:
        """Delete events of these kinds before a time; return their number.

        A hold on all documents of the tenant keeps them.
        """
        is_old = (matches_any(events.c.kind, kinds), events.c.at < before)
        return self._database.delete(ref, events, *is_old, ~is_row_held(events))

    def page(
        self,
        tenant_id: str,
        *,
        kinds: Collection[str] | None = None,
        caller: str | None = None,
        before: int | None = None,
        limit: int,
        readers: Collection[str] | None = None,
        asker: str | None = None,
    ) -> list[Event]:
        """Return a page of a tenant's events, newest first.

        Args:
            readers: principals of the reader. Events about documents that these principals may not
                read are left out, except dropped credentials, which are shown without the uri.
                Other callers' searches are shown without questions and passages. None shows all
                events in full.
            asker: the caller whose own searches are shown in full.
        """
        visible = sa.true() if readers is None else _is_visible(tenant_id, readers)
        query = sa.select(events, visible.label("visible")).where(
            events.c.tenant == tenant_id, sa.or_(visible, events.c.kind == _SHOWN_TO_ALL)
        )
        if kinds is not None:
            query = query.where(matches_any(events.c.kind, kinds))
        if caller is not None:
            query = query.where(events.c.payload["caller"].astext == caller)
        if before is not None:
            query = query.where(events.c.id < before)
        rows = self._database.fetch_rows(query.order_by(events.c.id.desc()).limit(limit))
        visible_events = []
        for row in rows:
            hidden = () if row.visible else (_NAME,)
            shown = {name: row.payload[name] for name in row.payload if name not in hidden}
            is_own = asker is not None and shown.get("caller") == asker
            if readers is not None and row.kind in SEARCHES and not is_own:
                shown = {name: shown[name] for name in shown.keys() & _SHOWN_OF_SEARCHES}
            visible_events.append(read_row(Event, row, payload=shown))
        return visible_events

    def find_tenants_since(self, last: int | None, kind: EventKind) -> tuple[int, set[str]]:
        """Return the tenants with an event of this kind since an earlier event of any tenant.

        Returns:
            the id of the latest event of all tenants, and the tenants.
        """
        with self._database.begin() as connection:
            newest = connection.scalar(sa.select(sa.func.max(events.c.id))) or 0
            if last is None:
                return newest, set()
            query = sa.select(events.c.tenant).where(
                events.c.id > last, events.c.id <= newest, events.c.kind == kind
            )
            return newest, set(connection.scalars(query.distinct()))

    def latest(self, tenant_id: str, *, kind: str | None = None, limit: int = 100) -> list[Event]:
        """Return a tenant's latest events, newest first."""
        query = sa.select(events).where(events.c.tenant == tenant_id)
        if kind is not None:
            query = query.where(events.c.kind == kind)
        rows = self._database.fetch_rows(query.order_by(events.c.id.desc()).limit(limit))
        return [read_row(Event, row) for row in rows]


def _is_visible(tenant_id: str, readers: Collection[str]) -> sa.ColumnElement[bool]:
    """Return the SQL condition that one of these principals may read every document an event names.

    Several documents may share a uri, because applications set uris.
    """
    of_tenant = sa.select(documents.c.uri).where(documents.c.tenant == tenant_id)
    is_theirs = is_readable(documents, readers)
    named = events.c.payload[_NAME].astext
    readable = sa.and_(
        named.in_(of_tenant.where(is_theirs)), named.not_in(of_tenant.where(~is_theirs))
    )
    return sa.or_(named.is_(None), readable)
