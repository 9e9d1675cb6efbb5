"""Audit: the rows of one tenant that an auditor reads, from one snapshot of the catalog.

Each method streams its rows, so that memory does not grow with their number. No query selects a
secret, a question, or a column with document text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from rag_assets.storage.catalog.accounts.tables import provider_keys, service_tokens
from rag_assets.storage.catalog.database import Database, TenantRef, matches_any
from rag_assets.storage.catalog.erasure.receipts import ChainReport, holds, receipts, verify_chain
from rag_assets.storage.catalog.journal.events import SEARCHES
from rag_assets.storage.catalog.journal.security_changes import security_changes
from rag_assets.storage.catalog.tables import (
    access_scopes,
    check_results,
    documents,
    events,
    generations,
    scope_ancestors,
    serving,
    syncs,
    tenants,
)
from rag_assets.storage.catalog.tenants.table import (
    TenantRecord,
    build_unknown_tenant_error,
    read_tenant,
    select_tenants,
)

Record = Mapping[str, Any]
_BATCH: Final = 1_000
_FIELDS_OF_SEARCHES: Final = (
    *("search_id", "caller", "mode", "top_k", "latency_ms", "degraded", "altered", "error"),
)
"""Fields of search events that contain neither a question nor a passage."""
_COLUMNS_OF_BUILDS: Final = (
    *("generation", "state", "index_name", "embedder_id", "dimensions", "reason", "checks"),
    *("spent", "created_at", "completed_at", "published_at", "retired_at"),
)


class AuditRecords:
    """The rows of one tenant in one snapshot of the catalog; see open_audit."""

    def __init__(self, connection: sa.Connection, tenant_id: str) -> None:
        self._connection = connection
        row = connection.execute(select_tenants().where(tenants.c.id == tenant_id)).first()
        if row is None:
            raise build_unknown_tenant_error(tenant_id)
        self.record: TenantRecord = read_tenant(row)
        self.created_at: datetime = row.created_at
        self.read_at: datetime = connection.execute(sa.select(sa.func.now())).scalar_one()

    @property
    def ref(self) -> TenantRef:
        """Return the tenant's id and incarnation."""
        return self.record.ref

    def sources(self) -> Iterator[Record]:
        """Return each source's last listing and its number of documents by status."""
        counts: dict[str, dict[str, int]] = {}
        by_status = (
            sa.select(documents.c.source, documents.c.status, sa.func.count().label("documents"))
            .where(documents.c.tenant == self.ref.id)
            .group_by(documents.c.source, documents.c.status)
        )
        for row in self._stream(by_status):
            counts.setdefault(row["source"], {})[row["status"]] = row["documents"]
        names = ("source", "succeeded_at", "held_deletions", "held_reason", "held_prunes")
        listings = {row["source"]: row for row in self._iter_rows(syncs, *names, "last_error")}
        for source in sorted({*counts, *listings}):
            yield {
                "source": source,
                "documents": counts.get(source, {}),
                **listings.get(source, {}),
            }

    def grants(self) -> Iterator[Record]:
        """Return the principals that may read each access scope, with the time of each grant."""
        return self._iter_rows(access_scopes, "scope", "principal", "granted_at")

    def inherited_scopes(self) -> Iterator[Record]:
        """Return each scope with the scopes from which it inherits readers."""
        return self._iter_rows(scope_ancestors, "scope", "ancestor")

    def tokens(self) -> Iterator[Record]:
        """Return the service tokens, without their hashes."""
        times = ("created_at", "expires_at", "last_used_at")
        return self._iter_rows(service_tokens, "token_id", "role", "principals", *times)

    def provider_keys(self) -> Iterator[Record]:
        """Return the providers for which the tenant has its own key, without any part of a key."""
        return self._iter_rows(provider_keys, "provider", "created_at", "last_used_at")

    def holds(self) -> Iterator[Record]:
        """Return the holds, oldest first."""
        return self._iter_rows(holds, "id", "source", "document_id", "reason", "by", "set_at")

    def security_changes(self) -> Iterator[Record]:
        """Return changes of tokens, grants and holds, and purges, since the tenant was created."""
        columns = security_changes.c
        query = (
            sa.select(columns.epoch, columns.at, columns.kind, columns.name, columns.about)
            .where(columns.tenant == self.ref.id, columns.at >= self.created_at)
            .order_by(columns.epoch, columns.id)
        )
        return self._stream(query)

    def builds(self) -> Iterator[Record]:
        """Return every build and whether it serves searches, without its keys and endpoint."""
        query = (
            sa.select(
                *(generations.c[name] for name in _COLUMNS_OF_BUILDS),
                serving.c.generation.is_not(None).label("answers"),
            )
            .outerjoin(
                serving,
                (serving.c.tenant == generations.c.tenant)
                & (serving.c.generation == generations.c.generation),
            )
            .where(generations.c.tenant == self.ref.id)
            .order_by(generations.c.generation)
        )
        return self._stream(query)

    def checks(self) -> Iterator[Record]:
        """Return the last result of every check."""
        verdict = ("passed", "severity", "description", "evaluated_at", "error")
        return self._iter_rows(check_results, "asset", "name", *verdict)

    def searches(self) -> Iterator[Record]:
        """Return search events: caller, time and counts, but neither questions nor results."""
        query = (
            sa.select(events.c.id, events.c.at, events.c.kind, events.c.payload)
            .where(events.c.tenant == self.ref.id, matches_any(events.c.kind, SEARCHES))
            .order_by(events.c.id)
        )
        for row in self._stream(query):
            payload = row["payload"]
            shown = {name: payload[name] for name in _FIELDS_OF_SEARCHES if name in payload}
            counts = {
                f"{name}_count": len(payload[field])
                for field, name in (("ids", "passages"), ("chosen", "hits"))
                if isinstance(payload.get(field), list)
            }
            yield {"id": row["id"], "at": row["at"], "kind": row["kind"], **shown, **counts}

    def search_totals(self) -> Iterator[Record]:
        """Return the number of searches by day (UTC) and caller."""
        day = sa.func.to_char(sa.func.timezone("UTC", events.c.at), "YYYY-MM-DD").label("day")
        caller = events.c.payload["caller"].astext.label("caller")
        query = (
            sa.select(day, caller, sa.func.count().label("searches"))
            .where(events.c.tenant == self.ref.id, events.c.kind == "rag_search_started")
            .group_by(day, caller)
            .order_by(day, caller)
        )
        return self._stream(query)

    def chain(self) -> ChainReport:
        """Verify the chain of all receipts of the installation; return the result."""
        return verify_chain(self._connection)

    def receipts(self) -> Iterator[Record]:
        """Return the receipts of this incarnation of the tenant, as they are stored."""
        query = (
            sa.select(receipts)
            .where(receipts.c.tenant == self.ref.id, receipts.c.incarnation == self.ref.incarnation)
            .order_by(receipts.c.number)
        )
        return self._stream(query)

    def count_former_receipts(self) -> int:
        """Return the number of receipts of former tenants with the same id."""
        query = sa.select(sa.func.count()).where(
            receipts.c.tenant == self.ref.id, receipts.c.incarnation != self.ref.incarnation
        )
        return self._connection.execute(query).scalar_one()

    def _iter_rows(self, table: sa.FromClause, *names: str) -> Iterator[Record]:
        columns = [table.c[name] for name in names]
        query = sa.select(*columns).where(table.c.tenant == self.ref.id)
        return self._stream(query.order_by(*columns[:2]))

    def _stream(self, query: sa.Select[Any]) -> Iterator[Record]:
        rows = self._connection.execute(query, execution_options={"yield_per": _BATCH})
        return (dict(row) for row in rows.mappings())


@contextmanager
def open_audit(database: Database, tenant_id: str) -> Iterator[AuditRecords]:
    """Open the audit records of a tenant, all read in one transaction.

    Raises:
        UnknownTenant: no tenant has that id.
    """
    with database.snapshot() as connection:
        yield AuditRecords(connection, tenant_id)
