"""Contents of pushed records: files (stored as uploads), and former contents kept for runs.

A run reads the contents that it has listed, even if they are pushed again in the meantime. Texts
are kept as rows, files as blobs. Contents that no run can need any more are deleted by the next
listing, or by an earlier push while no run is active.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.errors import UnknownDocument
from rag_assets.ingest.sources.record_bodies import build_block_search_text
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    notify,
    unnest_pairs,
)
from rag_assets.storage.catalog.journal.security_changes import raise_mark
from rag_assets.storage.catalog.lock import is_locked
from rag_assets.storage.catalog.records.model import find_wait_starts, prioritize_waiting
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    record_revisions,
    record_texts,
    source_records,
)
from rag_assets.storage.catalog.uploads.model import NewUpload, record_files, uploads
from rag_assets.storage.catalog.uploads.rows import build_upload_columns, is_of_record


def keep_texts(connection: sa.Connection, ref: TenantRef, contents: Mapping[str, str]) -> None:
    """Keep the texts of records that are about to be replaced, for runs that have listed them."""
    if not contents:
        return
    columns = source_records.c
    given = sa.func.unnest(
        sa.literal([*contents], sa.ARRAY(sa.Text)),
        sa.literal([*contents.values()], sa.ARRAY(sa.Text)),
    )
    new = given.table_valued("document_id", "content_sha256", name="new").render_derived()
    former = sa.select(
        columns.tenant, columns.document_id, columns.content_sha256, columns.text
    ).where(
        columns.tenant == ref.id,
        columns.document_id == new.c.document_id,
        columns.content_sha256 != new.c.content_sha256,
    )
    _keep(connection, record_texts, former)
    connection.execute(_build_former_contents_deletion(record_texts, ref, [*contents]))


def find_pages_with_blocks(
    connection: sa.Connection, ref: TenantRef, blocks: Mapping[str, Collection[str]]
) -> set[str]:
    """Return the pages whose present text, or a kept former text, contains one of their blocks.

    Args:
        connection: a connection in a transaction that has not changed the pages yet.
        blocks: ids of blocks, by the document of their page.
    """
    pairs = [
        (page, build_block_search_text(block)) for page, ids in blocks.items() for block in ids
    ]
    if not pairs:
        return set()
    wanted = unnest_pairs(pairs, name="wanted")
    texts = (
        sa.select(table.c.document_id)
        .join(wanted, table.c.document_id == wanted.c.key)
        .where(table.c.tenant == ref.id, sa.func.strpos(table.c.text, wanted.c.value) > 0)
        for table in (source_records, record_texts)
    )
    return {*connection.scalars(sa.union(*texts))}


def keep_file(connection: sa.Connection, ref: TenantRef, document_id: str) -> list[str]:
    """Keep the content of a file that is about to be replaced, for runs that have listed it.

    Returns:
        hashes of former contents that were deleted, because no run needs them.
    """
    own = uploads.c
    former = sa.select(own.tenant, own.document_id, own.content_sha256, own.size).where(
        own.tenant == ref.id, own.document_id == document_id
    )
    _keep(connection, record_files, former)
    forget = _build_former_contents_deletion(record_files, ref, [document_id])
    return [*connection.scalars(forget.returning(record_files.c.content_sha256))]


def delete_unneeded_contents(connection: sa.Connection, ref: TenantRef) -> list[str]:
    """Delete the former contents that no document needs; return the hashes of deleted files.

    Call it only if no other run of the tenant is active.
    """
    texts, files = (
        sa.delete(table).where(table.c.tenant == ref.id, ~_is_needed(table))
        for table in (record_texts, record_files)
    )
    connection.execute(texts)
    return [*connection.scalars(files.returning(record_files.c.content_sha256))]


def find_readable_contents(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> frozenset[tuple[str, str]]:
    """Return (document, content hash) for each present or kept content of these documents."""
    texts, records, former_files, files = (
        sa.select(table.c.document_id, table.c.content_sha256).where(
            is_of_documents(table.c, ref.id, document_ids)
        )
        for table in (record_texts, source_records, record_files, uploads)
    )
    query = texts.union_all(records, former_files, files.where(is_of_record()))
    return frozenset((row.document_id, row.content_sha256) for row in connection.execute(query))


def _keep(connection: sa.Connection, table: sa.Table, former: sa.Select[Any]) -> None:
    new = upsert(table).from_select([*former.selected_columns.keys()], former)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant", "document_id", "content_sha256"],
            set_={"kept_at": sa.func.now()},
        )
    )


def _build_former_contents_deletion(
    table: sa.Table, ref: TenantRef, document_ids: Collection[str]
) -> sa.Delete:
    """Return the statement that deletes former contents that no run can have listed.

    Contents kept by this transaction stay, because a run that starts now lists them.
    """
    return sa.delete(table).where(
        is_of_documents(table.c, ref.id, document_ids),
        table.c.kept_at < sa.func.now(),
        ~is_locked(ref.id),
        ~_is_needed(table),
    )


def _is_needed(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document still needs this former content.

    A file is needed only until it is indexed. A text is also needed as long as any build has a
    version of it, because it shows which blocks of a page can be found; see find_pages_with_blocks.
    """
    listed = sa.exists().where(
        *_match_content(documents, table),
        documents.c.status != "DELETED",
        *((documents.c.status == "PROCESSING",) if table is record_files else ()),
    )
    if table is record_files:
        return listed
    return sa.or_(listed, sa.exists().where(*_match_content(document_index, table)))


def _match_content(states: sa.Table, contents: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    names = ("tenant", "document_id", "content_sha256")
    return tuple(states.c[name] == contents.c[name] for name in names)


class FileContents(CatalogQueries):
    """Stores the contents of pushed files, in `uploads`; listings read only the files' records."""

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

        Returns:
            whether the content changed, and hashes of former contents that no run needs.

        Raises:
            UnknownDocument: the record does not exist.
        """
        record, table = source_records.c, uploads.c
        the_record = (record.tenant == ref.id, record.document_id == document_id)
        former = sa.select(table.content_sha256, table.media_type).where(
            table.tenant == ref.id, table.document_id == document_id
        )
        with self._database.begin_exclusive(ref) as connection:
            if connection.scalar(sa.select(record.document_id).where(*the_record)) is None:
                raise UnknownDocument(
                    f"tenant {ref.id!r} has no file with this id",
                    hint="push the file before its content",
                )
            before = connection.execute(former).first()
            raise_mark(connection, ref)
            keep()
            now = (new.content_sha256, new.media_type)
            if before is not None and tuple(before) == now:
                pushed = sa.update(source_records).where(*the_record)
                connection.execute(pushed.values(pushed_at=sa.func.clock_timestamp()))
                prioritize_waiting(connection, ref, [document_id])
                return False, []
            since = find_wait_starts(connection, ref, [document_id])
            values = {
                "tenant": ref.id,
                "document_id": document_id,
                "path": path,
                **build_upload_columns(new),
            }
            forgotten = keep_file(connection, ref, document_id)
            written = upsert(uploads).values(values)
            changed = {**build_upload_columns(new), "updated_at": sa.func.clock_timestamp()}
            connection.execute(
                written.on_conflict_do_update(
                    index_elements=["tenant", "document_id"], set_=changed
                )
            )
            # Listings read the record: a new revision shows them the change.
            connection.execute(
                sa.update(source_records)
                .where(*the_record)
                .values(
                    revision=record_revisions.next_value(),
                    changed_at=sa.func.clock_timestamp(),
                    waiting_since=since.get(document_id, sa.func.clock_timestamp()),
                    lane=0,
                )
            )
            notify(connection, ref.id)
        return True, forgotten
