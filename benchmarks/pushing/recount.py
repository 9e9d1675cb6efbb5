"""Count a workspace's queue again from rows, independently of the product's SQL.

The product's figure is that of `GET /rag/status` for an admin, from the function that answers it,
in the transaction whose rows are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from benchmarks.pushing.site import Workspace
from rag_assets.api.knowledge_routes import read_status_of_records
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database

_RECORDS = """
SELECT document_id, source_type, revision, resolved_at FROM rag_catalog.source_records
WHERE tenant = :tenant
"""
_CONTENTS = "SELECT document_id FROM rag_catalog.uploads WHERE tenant = :tenant"
_DOCUMENTS = """
SELECT document_id, revision, status, access_scope FROM rag_catalog.documents
WHERE tenant = :tenant
"""
_HELD = "SELECT document_id FROM rag_catalog.document_index WHERE tenant = :tenant"
_ANSWERING = """
SELECT document_id
FROM rag_catalog.document_index JOIN rag_catalog.serving USING (tenant, generation)
WHERE tenant = :tenant AND indexed_key IS NOT NULL
"""
_RESOLVED_DAYS = 30


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The depth of the queue at one moment.

    Attributes:
        reported: depth that the product reports.
        recounted: depth counted from rows at the same moment.
    """

    reported: int
    recounted: int


def count_queue(workspace: Workspace) -> QueueDepth:
    """Return the queue depth reported to an admin and its recount from rows, in one snapshot."""
    with workspace.catalog.database.begin() as connection:
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        catalog = Catalog(_SingleTransaction(connection))
        record = catalog.tenants.get(workspace.id)
        reported = read_status_of_records(catalog, record, readers=None).queue_depth
        days = record.config.get("workspace", {}).get("resolved_comment_days", _RESOLVED_DAYS)
        since = datetime.now(UTC) - timedelta(days=days)
        return QueueDepth(reported, _recount(connection, workspace.id, since))


def _recount(connection: Connection, tenant_id: str, since: datetime) -> int:
    """Count the documents and records that wait; leave out comments resolved before `since`."""

    def rows(query: str) -> dict[str, Any]:
        result = connection.execute(text(query), {"tenant": tenant_id})
        return {row.document_id: row for row in result}

    records, documents = rows(_RECORDS), rows(_DOCUMENTS)
    uploaded_ids, indexed_ids, serving_ids = rows(_CONTENTS), rows(_HELD), rows(_ANSWERING)

    def is_left_out(record: Any) -> bool:
        if record.source_type == "file":
            return record.document_id not in uploaded_ids
        return record.resolved_at is not None and record.resolved_at < since

    def waits(id_: str) -> bool:
        record, document = records.get(id_), documents.get(id_)
        is_deleted = document is None or document.status == "DELETED"
        if record is not None and is_left_out(record):
            return document is not None and (not is_deleted or id_ in indexed_ids)
        if document is None or is_deleted:
            return record is not None or id_ in indexed_ids
        if record is not None and record.revision != document.revision:
            return True
        if document.access_scope == "tree:excluded":
            return id_ in indexed_ids
        only_next = document.status == "READY" and id_ not in serving_ids
        return bool(document.status == "PROCESSING") or only_next

    return sum(map(waits, records.keys() | documents.keys()))


class _SingleTransaction(Database):
    """A database that executes everything in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        yield self._connection
