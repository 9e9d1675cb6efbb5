"""The status of pushed records, with the reason in words and the searchable chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rag_assets.api.responses import RecordChunk, RecordWhereabouts
from rag_assets.common.errors import UnknownDocument
from rag_assets.common.failure_kinds import WORDS, empty_note
from rag_assets.common.hashing import sha256_hex
from rag_assets.common.principals import WRITER
from rag_assets.ingest.sources.record_bodies import FileBody, find_block
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.records.states import RecordFilter, RecordState
from rag_assets.storage.index.model import StoredEntry
from rag_assets.tenants.model import Tenant

_BARE = "It has no visible text."
_UNPLACED = (
    "Nobody may read it, because its page or a page above it is not in the tree. Put the "
    "missing pages into the tree."
)
_OF_PAGES = {
    "archived": "Its page is archived.",
    "off": "Its page is excluded from searches.",
}


def whereabouts(
    reader: DocumentReader,
    tenant_id: str,
    caller: Caller,
    *,
    source_id: str,
    document_id: str,
    scope: str,
    block_id: str | None = None,
    with_chunks: bool = True,
) -> RecordWhereabouts:
    """Return the status of a record.

    Args:
        reader: reads the entries that the caller may read.
        caller: the caller who asks. A writer sees all records, but gets no chunks.
        source_id, document_id: identifiers of the record.
        scope: default access scope, for records without a scope and without a page.
        block_id: id of a block, if the record is a page; then only the chunks of this block are
            returned.
        with_chunks: whether to read the texts of the chunks.

    Raises:
        UnknownDocument: the record does not exist, the caller may not read it, or the page lacks
            the block.
    """
    is_writer = caller.role == WRITER
    principals = None if is_writer else reader.policy.principals(caller)
    state = reader.catalog.record_states.find(tenant_id, document_id, principals, scope=scope)
    if state is None:
        raise _unknown(tenant_id)
    archived = block_id is not None and _is_archived(reader, tenant_id, document_id, block_id)
    excluded = archived or state.status == "excluded"
    is_unread = excluded or is_writer or not with_chunks
    entries = () if is_unread else _entries(reader, tenant_id, caller, document_id)
    return RecordWhereabouts(
        document_id=document_id,
        status="excluded" if archived else state.status,
        reason="The block is archived." if archived else reason(state),
        updated_at=state.updated_at,
        sha256=state.sha256,
        dropped_chunks=state.dropped,
        chunk_count=0 if excluded else state.chunk_count,
        chunks=tuple(
            chunk
            for chunk in (_chunk(tenant_id, source_id, entry) for entry in entries)
            if block_id is None or block_id in chunk.block_ids
        ),
        etag=f'"{state.etag}"',
    )


def _is_archived(reader: DocumentReader, tenant_id: str, document_id: str, block_id: str) -> bool:
    """Return whether a block is archived on its page.

    Raises:
        UnknownDocument: the page lacks the block.
    """
    page = reader.catalog.records.for_tenant(tenant_id).text(document_id)
    block = None if page is None else find_block(json.loads(page), block_id)
    if block is None:
        raise _unknown(tenant_id)
    return bool(block.get("archived"))


def _unknown(tenant_id: str) -> UnknownDocument:
    return UnknownDocument(
        f"tenant {tenant_id!r} has no such record", hint="check the type and the id of the record"
    )


def listed_records(
    reader: DocumentReader,
    tenant: Tenant,
    caller: Caller,
    chosen: RecordFilter,
    *,
    limit: int,
) -> list[RecordState]:
    """Return the states of the records that a caller may read; a writer sees all records."""
    scopes = {
        source.name: source.scope or tenant.access.scope
        for source in tenant.sources
        if tenant.source_kind(source).of_records
    }
    principals = None if caller.role == WRITER else reader.policy.principals(caller)
    return reader.catalog.record_states.page(
        tenant.id, principals, chosen, scopes=scopes, limit=limit
    )


def reason(state: RecordState) -> str | None:
    """Return why a record is left out, failed, or is not completely searchable; otherwise None."""
    if state.is_expired:
        return "The comment was resolved too long ago."
    if not state.is_found:
        return "Its content was not uploaded."
    if state.page_is is not None:
        return _OF_PAGES[state.page_is]
    if state.status in {"queued", "indexed"}:
        return _note(state)
    is_bare = state.error_kind == "empty" and state.source_type != FileBody.TYPE
    return _BARE if is_bare else WORDS[state.error_kind or "unreadable"].reason


def _note(state: RecordState) -> str | None:
    """Return the note on an indexed or queued record; None if the record is complete."""
    if not state.is_placed:
        return _UNPLACED
    if state.status == "queued":
        return None
    if state.dropped and state.chunk_count:
        return f"{state.dropped} of its chunks hold a credential and were dropped."
    return empty_note(state.chunk_count, state.dropped)


def _entries(
    reader: DocumentReader, tenant_id: str, caller: Caller, document_id: str
) -> Sequence[StoredEntry]:
    try:
        return reader.entries(tenant_id, caller, document_id)
    except UnknownDocument:
        return ()


def _chunk(tenant_id: str, source_id: str, entry: StoredEntry) -> RecordChunk:
    fields = entry.fields
    return RecordChunk(
        tenant_id,
        source_type=fields["source_type"],
        source_id=fields.get("source_id") or source_id,
        chunk_index=fields["ordinal"],
        text=fields["text"],
        content_hash=sha256_hex(fields["text"]),
        page_uuid=fields.get("page_uuid"),
        block_ids=tuple(fields.get("block_id") or ()),
    )
