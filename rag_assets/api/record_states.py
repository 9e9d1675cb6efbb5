"""What became of a pushed record, in words, with the chunks that are found of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rag_assets.api.responses import RecordChunk, RecordWhereabouts
from rag_assets.common.errors import UnknownDocument
from rag_assets.common.failure_kinds import WORDS
from rag_assets.common.hashing import sha256_hex
from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import Caller
from rag_assets.storage.catalog.record_states import RecordState
from rag_assets.storage.index.model import StoredEntry
from rag_assets.workspace.bodies import FileBody, block_of

_BARE = "It has no text that is seen."
_OF_PAGES = {
    "archived": "Its page is archived.",
    "off": "Its page is kept out of the knowledge.",
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
) -> RecordWhereabouts:
    """What became of a record.

    Args:
        reader: reads entries, of what the caller may read.
        tenant_id: the tenant.
        caller: who asks.
        source_id, document_id: of the record.
        scope: the access scope of records that name none, and hang on no page.
        block_id: of a block, whose page the record is: only chunks that it is in.

    Raises:
        UnknownDocument: there is none, or the caller may not read it; or the page has no such
            block.
    """
    principals = reader.policy.principals(caller)
    state = reader.catalog.record_states.of(tenant_id, document_id, principals, scope=scope)
    if state is None:
        raise _unknown(tenant_id)
    archived = block_id is not None and _is_archived(reader, tenant_id, document_id, block_id)
    excluded = archived or state.status == "excluded"
    entries = () if excluded else _entries(reader, tenant_id, caller, document_id)
    return RecordWhereabouts(
        document_id=document_id,
        status="excluded" if archived else state.status,
        reason="The block is archived." if archived else reason(state),
        updated_at=state.updated_at,
        sha256=state.sha256,
        dropped_chunks=state.dropped,
        chunks=tuple(
            chunk
            for chunk in (_chunk(tenant_id, source_id, entry) for entry in entries)
            if block_id is None or block_id in chunk.block_ids
        ),
        etag=f'"{state.etag}"',
    )


def _is_archived(reader: DocumentReader, tenant_id: str, document_id: str, block_id: str) -> bool:
    """Whether a block is hidden on its page.

    Raises:
        UnknownDocument: the page has no such block.
    """
    page = reader.catalog.records.of(tenant_id).text(document_id)
    block = None if page is None else block_of(json.loads(page), block_id)
    if block is None:
        raise _unknown(tenant_id)
    return bool(block.get("archived"))


def _unknown(tenant_id: str) -> UnknownDocument:
    return UnknownDocument(
        f"tenant {tenant_id!r} has no such record", hint="see its type and its id"
    )


def reason(state: RecordState) -> str | None:
    """Why a record is left out, failed, or is not found as a whole; None: nothing is to be said."""
    if state.is_expired:
        return "The comment was resolved too long ago."
    if not state.is_found:
        return "Its content was not put."
    if state.page_is is not None:
        return _OF_PAGES[state.page_is]
    if state.status == "queued":
        return None
    if state.status == "indexed":
        dropped = f"{state.dropped} of its chunks hold a credential and were dropped."
        return dropped if state.dropped else None
    is_bare = state.error_kind == "empty" and state.source_type != FileBody.TYPE
    return _BARE if is_bare else WORDS[state.error_kind or "unreadable"].reason


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
        workspace_id=tenant_id,
        source_type=fields["source_type"],
        source_id=fields.get("source_id") or source_id,
        chunk_index=fields["ordinal"],
        text=fields["text"],
        content_hash=sha256_hex(fields["text"]),
        page_uuid=fields.get("page_uuid"),
        block_ids=tuple(fields.get("block_id") or ()),
    )
