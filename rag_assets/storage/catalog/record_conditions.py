"""Conditions on `source_records`: which records are listed, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Integer, and_, cast, exists, func, literal, or_, select

from rag_assets.ingest.parsing.media_types import TYPED_RECORD
from rag_assets.storage.catalog.clock import latest_trusted_time
from rag_assets.storage.catalog.tables import source_records, tenants
from rag_assets.storage.catalog.upload_tables import uploads
from rag_assets.tenants.application_settings import SECTION

RESOLVED_DAYS = 30
"""Days for which a resolved comment can be found, unless the tenant sets another number."""


def is_found() -> ColumnElement[bool]:
    """Return the condition that a record is listed: not expired, and with its content."""
    columns = source_records.c
    content = uploads.alias("content")
    has_content = exists().where(
        content.c.tenant == columns.tenant, content.c.document_id == columns.document_id
    )
    is_whole = or_(columns.media_type != TYPED_RECORD, columns.source_type != "file", has_content)
    return and_(or_(columns.resolved_at.is_(None), ~is_expired()), is_whole)


def is_expired() -> ColumnElement[bool]:
    """Return the condition that a record is a comment resolved too long ago to be found."""
    return and_(source_records.c.resolved_at.is_not(None), expires_at() < latest_trusted_time())


def expires_at() -> ColumnElement[datetime]:
    """Return the time from which a resolved comment can no longer be found; null: never."""
    columns = source_records.c
    set_days = tenants.c.config[(SECTION, "resolved_comment_days")].astext
    days = (
        select(func.coalesce(cast(set_days, Integer), RESOLVED_DAYS))
        .where(tenants.c.id == columns.tenant)
        .scalar_subquery()
    )
    return columns.resolved_at + days * literal(timedelta(days=1))
