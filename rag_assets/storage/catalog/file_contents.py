"""Contents of pushed records that are files, each stored as an upload of the record's document."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.errors import UnknownDocument
from rag_assets.storage.catalog.changes import notify
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.former_contents import keep_file
from rag_assets.storage.catalog.marks import next_mark
from rag_assets.storage.catalog.tables import record_revisions, source_records
from rag_assets.storage.catalog.upload_model import NewUpload
from rag_assets.storage.catalog.upload_rows import upload_values
from rag_assets.storage.catalog.upload_tables import uploads
from rag_assets.storage.catalog.waits import hasten, waiting_since


class FileContents:
    """The contents of files, in `uploads`; listings read the files' records instead."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(
        self,
        ref: TenantRef,
        new: NewUpload,
        keep: Callable[[], None],
        *,
        document_id: str,
        path: str,
    ) -> tuple[bool, list[str]]:
        """Store the content of a pushed file.

        The replaced content is kept for runs that have listed it.

        Args:
            new: the content.
            keep: stores its blob.
            document_id, path: the record's document id, and its path in the source.

        Returns:
            whether the content changed, and hashes of former contents that no run needs.

        Raises:
            UnknownDocument: the record does not exist.
            TenantGone: the tenant was removed.
        """
        record, table = source_records.c, uploads.c
        the_record = (record.tenant == ref.id, record.document_id == document_id)
        former = select(table.content_sha256, table.media_type).where(
            table.tenant == ref.id, table.document_id == document_id
        )
        with self._database.begin_exclusive(ref) as connection:
            if connection.scalar(select(record.document_id).where(*the_record)) is None:
                raise UnknownDocument(
                    f"tenant {ref.id!r} has no such file", hint="push the file before its content"
                )
            before = connection.execute(former).first()
            next_mark(connection, ref)
            keep()
            now = (new.content_sha256, new.media_type)
            if before is not None and tuple(before) == now:
                pushed = update(source_records).where(*the_record)
                connection.execute(pushed.values(pushed_at=func.clock_timestamp()))
                hasten(connection, ref, [document_id])
                return False, []
            since = waiting_since(connection, ref, [document_id])
            values = {
                "tenant": ref.id,
                "document_id": document_id,
                "path": path,
                **upload_values(new),
            }
            forgotten = keep_file(connection, ref, document_id)
            written = upsert(uploads).values(values)
            changed = {**upload_values(new), "updated_at": func.clock_timestamp()}
            connection.execute(
                written.on_conflict_do_update(
                    index_elements=["tenant", "document_id"], set_=changed
                )
            )
            # Listings read the record: a new revision shows them the change.
            connection.execute(
                update(source_records)
                .where(*the_record)
                .values(
                    revision=record_revisions.next_value(),
                    changed_at=func.clock_timestamp(),
                    waiting_since=since.get(document_id, func.clock_timestamp()),
                    lane=0,
                )
            )
            notify(connection, ref.id)
        return True, forgotten
