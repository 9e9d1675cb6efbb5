"""Rows of uploads: their columns and deletion, and SQL conditions on uploads and records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from rag_assets.storage.catalog.database import TenantRef, is_of_documents, matches_document
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.erasure.receipts import held_texts
from rag_assets.storage.catalog.tables import documents, record_revisions, source_records
from rag_assets.storage.catalog.uploads.model import NewUpload, record_files, uploads


def build_upload_columns(new: NewUpload) -> dict[str, Any]:
    """Return the columns of `uploads` for a received file, with a new revision."""
    return {
        "source": new.source,
        "revision": record_revisions.next_value(),
        "file_name": new.file_name,
        "media_type": new.media_type,
        "size": new.size,
        "content_sha256": new.content_sha256,
        "uploaded_by": new.uploaded_by,
    }


def delete_uploads(
    connection: sa.Connection, ref: TenantRef, upload_ids: Collection[str]
) -> list[str]:
    """Delete uploads, their former contents, and the data kept because they were disabled.

    Returns:
        hashes of the deleted contents; empty if the uploads do not exist.
    """
    former, deleted = (
        connection.scalars(
            sa.delete(table)
            .where(is_of_documents(table.c, ref.id, upload_ids))
            .returning(table.c.content_sha256)
        ).all()
        for table in (record_files, uploads)
    )
    if deleted:
        covered = sa.exists().where(matches_document(documents.c, held_texts.c), is_held())
        connection.execute(
            sa.delete(held_texts).where(is_of_documents(held_texts.c, ref.id, upload_ids), ~covered)
        )
    return [*deleted, *former]


def is_pushed_again() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's record or upload changed since it was listed."""
    return sa.or_(
        *(
            sa.exists().where(
                matches_document(table.c, documents.c),
                table.c.revision.is_distinct_from(documents.c.revision),
                *conditions,
            )
            for table, conditions in (
                (source_records, ()),
                (uploads, (uploads.c.enabled, ~is_of_record())),
            )
        )
    )


def is_of_record() -> sa.ColumnElement[bool]:
    """Return the SQL condition that an upload is the content of a pushed record."""
    record = source_records.alias("its_record")
    return sa.exists().where(matches_document(record.c, uploads.c))


def _has_content() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a pushed record is a file whose content is in an upload."""
    content = uploads.alias("its_content")
    return sa.exists().where(matches_document(content.c, source_records.c))


def has_unlisted_content() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a record or upload has content that is not listed yet."""
    return sa.or_(
        *(
            sa.exists().where(
                matches_document(table.c, documents.c),
                table.c.content_sha256.is_distinct_from(documents.c.content_sha256),
                *conditions,
            )
            for table, conditions in ((source_records, (~_has_content(),)), (uploads, ()))
        )
    )
