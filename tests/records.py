"""Push single records to a catalog and remove them, as requests of an application do."""

from __future__ import annotations

from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.records.model import PushedRecord, RecordChanges, RecordPut
from rag_assets.storage.catalog.records.table import RecordTable


def put_record(records: RecordTable, ref: TenantRef, record: PushedRecord, *, scope: str) -> bool:
    """Store a record; return whether it is new or changed."""
    put = RecordPut(record, scope)
    written = records.write(ref, lambda _: RecordChanges([put]), by="")
    return record.document_id in written.changed


def remove_record(records: RecordTable, ref: TenantRef, document_id: str, by: str) -> bool:
    """Delete a record; return whether it existed."""
    written = records.write(ref, lambda _: RecordChanges((), [document_id]), by=by)
    return document_id in written.removed
