"""Endpoints for pushed records: put, delete, list, and their status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field, StringConstraints, WrapValidator

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, open_to_writers
from rag_assets.api.model import RecordQuery, SourceId, SourceType, TenantQuery, parse_if_match
from rag_assets.api.problems import document_problems
from rag_assets.api.responses import (
    ListedRecord,
    ListedRecords,
    RecordChunk,
    RecordStatus,
    RecordWhereabouts,
    Written,
)
from rag_assets.common.errors import UnknownDocument
from rag_assets.common.failure_kinds import WORDS, empty_note
from rag_assets.common.formatting import format_count
from rag_assets.common.hashing import sha256_hex
from rag_assets.common.invalid_values import invalid
from rag_assets.common.principals import WRITER
from rag_assets.ingest.sources.record_bodies import (
    MAX_BLOCKS,
    BlockBody,
    CommentBody,
    DbRowBody,
    FileBody,
    PageBody,
    TemplateBody,
    find_block,
)
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.records.drafts import Draft, DraftBuilder
from rag_assets.records.text_records import RecordBody, UpdatedAt, Version, find_records_source
from rag_assets.records.writing import URGENT, write_drafts
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.records.model import UNORDERED, WriteClock
from rag_assets.storage.catalog.records.states import RecordFilter, RecordState
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.storage.index.model import StoredEntry
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

_NO_TEXT = "It has no visible text."
_NOT_IN_TREE = (
    "Nobody may read it, because its page or a page above it is not in the tree. Put the "
    "missing pages into the tree."
)
_PAGE_REASONS = {
    "archived": "Its page is archived.",
    "off": "Its page is excluded from searches.",
}


def read_record_status(
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
    """Read the status of a record.

    Args:
        caller: a writer sees all records, but gets no chunks.
        source_id, document_id: identifiers of the record.
        scope: default access scope, for records without a scope and without a page.
        block_id: id of a block of the record, which must be a page; selects this block's chunks.

    Raises:
        UnknownDocument: the record does not exist, the caller may not read it, or the page lacks
            the block.
    """
    is_writer = caller.role == WRITER
    principals = None if is_writer else reader.policy.principals(caller)
    state = reader.catalog.record_states.find(tenant_id, document_id, principals, scope=scope)
    if state is None:
        raise _build_unknown_record(tenant_id)
    archived = block_id is not None and _is_archived(reader, tenant_id, document_id, block_id)
    excluded = archived or state.status == "excluded"
    is_unread = excluded or is_writer or not with_chunks
    entries: Sequence[StoredEntry] = ()
    if not is_unread:
        with suppress(UnknownDocument):
            entries = reader.entries(tenant_id, caller, document_id)
    return RecordWhereabouts(
        document_id=document_id,
        status="excluded" if archived else state.status,
        reason="The block is archived." if archived else describe_reason(state),
        updated_at=state.updated_at,
        sha256=state.sha256,
        dropped_chunks=state.dropped,
        chunk_count=0 if excluded else state.chunk_count,
        chunks=tuple(
            chunk
            for chunk in (_to_record_chunk(tenant_id, source_id, entry) for entry in entries)
            if block_id is None or block_id in chunk.block_ids
        ),
        etag=f'"{state.etag}"',
    )


def _is_archived(reader: DocumentReader, tenant_id: str, document_id: str, block_id: str) -> bool:
    """Return whether a block is archived on its page."""
    page = reader.catalog.records.for_tenant(tenant_id).text(document_id)
    block = None if page is None else find_block(json.loads(page), block_id)
    if block is None:
        raise _build_unknown_record(tenant_id)
    return bool(block.get("archived"))


def _build_unknown_record(tenant_id: str) -> UnknownDocument:
    return UnknownDocument(
        f"tenant {tenant_id!r} has no such record", hint="check the type and the id of the record"
    )


def list_record_states(
    reader: DocumentReader,
    tenant: Tenant,
    caller: Caller,
    record_filter: RecordFilter,
    *,
    limit: int,
) -> list[RecordState]:
    """Return the states of the records that a caller may read; a writer sees all records."""
    scopes = {
        source.name: source.scope or tenant.access.scope
        for source in tenant.sources
        if tenant.source_kind(source).holds_records
    }
    principals = None if caller.role == WRITER else reader.policy.principals(caller)
    return reader.catalog.record_states.page(
        tenant.id, principals, record_filter, scopes=scopes, limit=limit
    )


def describe_reason(state: RecordState) -> str | None:
    """Return why a record is not, or not completely, searchable; None if it is."""
    if state.is_expired:
        return "The comment was resolved too long ago."
    if not state.is_found:
        return "Its content was not uploaded."
    if state.page_is is not None:
        return _PAGE_REASONS[state.page_is]
    if state.status in {"queued", "indexed"}:
        return _explain_gap(state)
    lacks_text = state.error_kind == "empty" and state.source_type != FileBody.TYPE
    return _NO_TEXT if lacks_text else WORDS[state.error_kind or "unreadable"].reason


def _explain_gap(state: RecordState) -> str | None:
    """Return what is incomplete about an indexed or queued record; None if nothing is."""
    if not state.is_placed:
        return _NOT_IN_TREE
    if state.status == "queued":
        return None
    if state.dropped and state.chunk_count:
        dropped = format_count(state.dropped, "chunk")
        return f"{dropped} with a credential {'was' if state.dropped == 1 else 'were'} dropped."
    return empty_note(state.chunk_count, state.dropped)


def _to_record_chunk(tenant_id: str, source_id: str, entry: StoredEntry) -> RecordChunk:
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


MAX_VALUES = 6 * MAX_BLOCKS
"""Maximum JSON values of a record: each block of a page has up to six."""
_RECORD = "/records/{source_type}/{source_id:path}"
REFUSED = document_problems(401, 403, 404, 422, 429, 500, 503)
"""OpenAPI responses of refused requests about records."""
_OUTDATED: dict[int | str, dict[str, Any]] = {
    200: {"model": Written, "description": "A later write of the record came first"}
}
WRITE_RESPONSES = _OUTDATED | document_problems(400, 409, 412)


# The body stays as it was sent, because the tenant determines its type.
AnyRecordBody = Annotated[
    RecordBody | PageBody | BlockBody | CommentBody | FileBody | TemplateBody | DbRowBody,
    WrapValidator(lambda values, _: values),
]


class RecordRoute(Guarded):
    """A guarded route for a record, with a high limit for pages with many blocks."""

    # Blocks are validated in a thread, where they do not delay other requests.
    most_values: ClassVar[int] = MAX_VALUES


records = APIRouter(prefix="/rag", tags=["writing"], responses=REFUSED, route_class=RecordRoute)


@dataclass(frozen=True, slots=True)
class RecordTarget:
    """The record that a request addresses.

    Attributes:
        source: name of the record's source; None if the request names none.
        page_uuid: page of the record if it is a block.
        clock: time and version of a deletion.
    """

    tenant_id: str
    source_type: str
    source_id: str
    source: str | None
    by: str
    page_uuid: str | None = None
    clock: WriteClock = UNORDERED
    with_chunks: bool = True


class TargetQuery(RecordQuery):
    """The source of a record.

    Attributes:
        page_uuid: the page of a block.
    """

    page_uuid: str | None = None


class StatusQuery(TargetQuery):
    """A request for the status of a record.

    Attributes:
        chunks: whether the response includes the texts of its chunks.
    """

    chunks: bool = True


class DeletionQuery(TargetQuery):
    """A record to delete.

    Attributes:
        updated_at: when it was deleted; a deletion older than the last write is outdated.
        version: version of the deletion, a number that rises with each change of the record.
    """

    updated_at: UpdatedAt | None = None
    version: Version | None = None


_Name = Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00]+$")]
_RecordKey = Annotated[
    str, StringConstraints(max_length=700, pattern=r"^[^/\x00]+/[^/\x00]+/[^\x00]+$")
]
IfMatch = Annotated[str | None, Header(max_length=1_000)]


async def _get_push_target(
    request: Request,
    source_type: SourceType,
    source_id: SourceId,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
) -> RecordTarget:
    """Return the target of a push by an admin or a writer."""
    tenant_id = request.state.tenant = identity.require_writer_tenant(parameters.tenant)
    return RecordTarget(tenant_id, source_type, source_id, parameters.source, identity.name)


async def _get_deletion_target(
    request: Request,
    source_type: SourceType,
    source_id: SourceId,
    parameters: Annotated[DeletionQuery, Query()],
    identity: IdentityDependency,
) -> RecordTarget:
    """Return the target of a deletion by an admin or a writer."""
    tenant_id = request.state.tenant = identity.require_writer_tenant(parameters.tenant)
    page, source = parameters.page_uuid, parameters.source
    clock = WriteClock(parameters.updated_at, parameters.version)
    return RecordTarget(tenant_id, source_type, source_id, source, identity.name, page, clock)


@records.put(_RECORD, status_code=202, responses=WRITE_RESPONSES | document_problems(408, 413))
@open_to_writers
async def put_record(
    record: AnyRecordBody,
    target: Annotated[RecordTarget, Depends(_get_push_target)],
    backend: BackendDependency,
    response: Response,
    if_match: IfMatch = None,
) -> Written:
    """Push a new or changed record. For admins and writers.

    The previous version stays searchable until the new version is indexed. An unchanged record
    costs nothing, even with a new `updated_at`. A write that is older than the last write, by
    `version` or otherwise by `updated_at`, is not stored, and the response is 200 with `outdated`.
    Credentials are masked before a record is indexed; in identifiers and access scopes, they are
    refused.

    Records of a workspace have a body for each type: page, block, comment, file, template and
    db_row. All other records have a text.
    """
    backend.written.take(target.by)

    def put() -> Written:
        drafting, tenant_record = get_draft_builder(backend, target.tenant_id, target.source)
        draft = drafting.put(target.source_type, target.source_id, record)
        return _write(backend, tenant_record, draft, target.by, if_match)

    return _set_headers(await backend.write(target.tenant_id, put), response)


@records.delete(_RECORD, status_code=202, responses=WRITE_RESPONSES)
@open_to_writers
async def delete_record(
    target: Annotated[RecordTarget, Depends(_get_deletion_target)],
    backend: BackendDependency,
    response: Response,
    if_match: IfMatch = None,
) -> Written:
    """Delete a record. For admins and writers.

    Searches omit the record immediately. Deleting a missing record is allowed. A block is removed
    from its page. A page is deleted with all its records and all pages below it. A deletion that is
    older than the last write is `outdated`, and so is a later write that is older than the
    deletion.
    """
    backend.written.take(target.by)

    def delete() -> Written:
        drafting, tenant_record = get_draft_builder(backend, target.tenant_id, target.source)
        draft = drafting.delete(
            target.source_type, target.source_id, target.page_uuid, target.clock
        )
        return _write(backend, tenant_record, draft, target.by, if_match)

    return _set_headers(await backend.write(target.tenant_id, delete), response)


async def _get_status_target(
    request: Request,
    source_type: SourceType,
    source_id: SourceId,
    parameters: Annotated[StatusQuery, Query()],
    identity: IdentityDependency,
) -> RecordTarget:
    """Return the target of a request for the status of a record."""
    tenant_id = request.state.tenant = identity.require_tenant(parameters.tenant)
    page, source = parameters.page_uuid, parameters.source
    return RecordTarget(
        tenant_id,
        source_type,
        source_id,
        source,
        identity.name,
        page,
        with_chunks=parameters.chunks,
    )


class RecordsQuery(TenantQuery):
    """Filters and paging of a list of records.

    Attributes:
        status: only records with this status.
        type: only records of this type.
        page_uuid: only records of this page or database.
        after: the `next` of the previous page.
        limit: maximum number of records.
    """

    status: RecordStatus | None = None
    type: _Name | None = None
    page_uuid: _Name | None = None
    after: _RecordKey | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


@records.get("/records")
@open_to_writers
async def list_records(
    request: Request,
    parameters: Annotated[RecordsQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> ListedRecords:
    """List records with the status of each, without titles and texts.

    The list contains the records that the caller may read; for a writer, all records.
    """
    tenant_id = request.state.tenant = identity.require_tenant(parameters.tenant)
    source, type_, id_ = (parameters.after or "//").split("/", 2)
    record_filter = RecordFilter(
        status=parameters.status,
        source_type=parameters.type,
        page_uuid=parameters.page_uuid,
        after=(source, type_, id_) if parameters.after else None,
    )

    def read() -> ListedRecords:
        tenant = Tenant.from_config(backend.catalog.tenants.get(tenant_id).config)
        limit = parameters.limit
        states = list_record_states(
            backend.reader, tenant, identity.caller, record_filter, limit=limit + 1
        )
        shown_records = tuple(_to_listed_record(state) for state in states[:limit])
        last = shown_records[-1] if len(states) > limit else None
        next_ = None if last is None else f"{last.source}/{last.type}/{last.id}"
        return ListedRecords(shown_records, next_)

    return await backend.run(tenant_id, identity.name, read)


def _to_listed_record(state: RecordState) -> ListedRecord:
    return ListedRecord(
        source=state.source,
        type=state.source_type,
        id=state.source_id,
        document_id=state.document_id,
        page_uuid=state.page_uuid,
        status=state.status,
        reason=describe_reason(state),
        updated_at=state.updated_at,
        pushed_at=state.pushed_at,
        chunk_count=state.chunk_count,
        dropped_chunks=state.dropped,
    )


@records.get(_RECORD, responses=document_problems(409))
@open_to_writers
async def record_state(
    target: Annotated[RecordTarget, Depends(_get_status_target)],
    identity: IdentityDependency,
    backend: BackendDependency,
    response: Response,
) -> RecordWhereabouts:
    """Return the status of a record, its reason, and the record's searchable chunks.

    A block has the status of its page; an archived block is excluded. The response is also 404 if
    the caller may not read the record. A writer sees every record, without its chunks.
    """

    def read() -> RecordWhereabouts:
        tenant = Tenant.from_config(backend.catalog.tenants.get(target.tenant_id).config)
        source = find_records_source(tenant, target.source, pulled=True)
        kind, id_ = _find_requested_record(tenant, target)
        return read_record_status(
            backend.reader,
            target.tenant_id,
            identity.caller,
            source_id=id_,
            document_id=compute_record_document_id(source.name, kind, id_),
            scope=source.scope or tenant.access.scope,
            block_id=None if kind == target.source_type else target.source_id,
            with_chunks=target.with_chunks,
        )

    state = await backend.run(target.tenant_id, identity.name, read)
    response.headers["ETag"] = state.etag
    return state


def _find_requested_record(tenant: Tenant, target: RecordTarget) -> tuple[str, str]:
    """Return the type and id of the requested record, or of the page of a requested block."""
    typed = get_profile(tenant.profile).typed_records
    if not typed or target.source_type != BlockBody.TYPE:
        return target.source_type, target.source_id
    if target.page_uuid is None:
        raise invalid("page_uuid", "it is required for a block")
    return PageBody.TYPE, target.page_uuid


def _set_headers(written: Written, response: Response) -> Written:
    """Set the status and the ETag of the response to a write."""
    if written.outcome == "outdated":
        response.status_code = 200
    if written.etag is not None:
        response.headers["ETag"] = written.etag
    return written


def _write(
    backend: Backend, tenant_record: TenantRecord, draft: Draft, by: str, if_match: str | None
) -> Written:
    if if_match is not None:
        draft = replace(draft, etags=parse_if_match(if_match))
    [outcome] = write_drafts(
        backend.catalog, backend.blobs, tenant_record.ref, [draft], by=by, lane=URGENT
    )
    if isinstance(outcome, Exception):
        raise outcome
    return Written(outcome.document_id, outcome.outcome, etag=outcome.etag)


def get_draft_builder(
    backend: Backend, tenant_id: str, source: str | None
) -> tuple[DraftBuilder, TenantRecord]:
    """Return the builder of drafts from a tenant's pushed bodies, and the row of the tenant."""
    tenant_record = backend.catalog.tenants.get(tenant_id)
    tenant = Tenant.from_config(tenant_record.config)
    masker = backend.retriever.masker
    return DraftBuilder(tenant, find_records_source(tenant, source), masker), tenant_record
