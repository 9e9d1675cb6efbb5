"""Waiting times of pushed records until their current version is listed.

A record waits from its first unlisted push, no matter how often it was pushed since. When it is
listed, its document waits instead: a trigger on `documents` keeps the start of the wait, whatever
is written to the row in the meantime.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, func, or_, select, update

from rag_assets.storage.catalog.database import TenantRef, is_any_of
from rag_assets.storage.catalog.installation.clock import latest_trusted_time
from rag_assets.storage.catalog.records.model import RESOLVED_DAYS, is_found
from rag_assets.storage.catalog.tables import documents, source_records
from rag_assets.tenants.application_settings import SECTION


def find_wait_starts(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, datetime]:
    """Return the start of the wait of records with an unlisted current version, by document."""
    record, row = source_records.c, documents.c
    living = exists().where(
        row.tenant == record.tenant, row.document_id == record.document_id, row.status != "DELETED"
    )
    listed = exists().where(
        row.tenant == record.tenant,
        row.document_id == record.document_id,
        row.status != "DELETED",
        row.revision == record.revision,
    )
    query = select(record.document_id, record.waiting_since).where(
        record.tenant == ref.id,
        is_any_of(record.document_id, document_ids),
        ~listed,
        # A record that is left out and not indexed does not wait.
        or_(is_found(), living),
    )
    return {row.document_id: row.waiting_since for row in connection.execute(query)}


def find_waiting_lanes(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, int]:
    """Return the lanes of records waiting to be indexed in their current version, by document."""
    record = source_records.c
    query = select(record.document_id, record.lane).where(
        record.tenant == ref.id, is_any_of(record.document_id, document_ids), ~_is_settled()
    )
    return {row.document_id: row.lane for row in connection.execute(query)}


def prioritize_waiting(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> None:
    """Give waiting records among these priority over bulk pushes."""
    if not document_ids:
        return
    record, row = source_records.c, documents.c
    waiting = connection.scalars(
        update(source_records)
        .where(
            record.tenant == ref.id, is_any_of(record.document_id, document_ids), record.lane != 0
        )
        .where(~_is_settled())
        .values(lane=0)
        .returning(record.document_id)
    ).all()
    if waiting:
        listed = (row.tenant == ref.id, is_any_of(row.document_id, waiting))
        connection.execute(
            update(documents).where(*listed, row.status == "PROCESSING").values(lane=0)
        )


def _is_settled() -> ColumnElement[bool]:
    """Return the condition that a record was listed and processed in its current version."""
    record, row = source_records.c, documents.c
    return exists().where(
        row.tenant == record.tenant,
        row.document_id == record.document_id,
        row.revision == record.revision,
        row.status.not_in(("PROCESSING", "DELETED")),
    )


def restart_waits(connection: Connection, ref: TenantRef, document_ids: Collection[str]) -> None:
    """Restart the wait of records that were pushed again while they were listed, from that push.

    The wait of their listed versions is recorded separately.
    """
    record, row = source_records.c, documents.c
    connection.execute(
        update(source_records)
        .where(
            record.tenant == ref.id,
            is_any_of(record.document_id, document_ids),
            row.tenant == record.tenant,
            row.document_id == record.document_id,
            row.revision != record.revision,
        )
        .values(waiting_since=record.changed_at)
    )


def start_waits_of_comments(
    connection: Connection, tenant_id: str, former: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    """Start a wait for comments that a new number of days excludes or includes.

    Args:
        connection: the connection of the transaction that changes the number of days.
        former, config: the tenant's configuration before and after the change.
    """
    before, after = _resolved_days(former), _resolved_days(config)
    if before == after:
        return
    record = source_records.c
    was_out, is_out = (
        record.resolved_at + days < latest_trusted_time() for days in (before, after)
    )
    connection.execute(
        update(source_records)
        .where(record.tenant == tenant_id, record.resolved_at.is_not(None), was_out != is_out)
        .values(waiting_since=func.clock_timestamp())
    )


def _resolved_days(config: Mapping[str, Any]) -> timedelta:
    days = config.get(SECTION, {}).get("resolved_comment_days")
    return timedelta(days=RESOLVED_DAYS if days is None else days)
