"""Responses that the service writes and its client reads, except hits.

The client ignores unknown fields, so it can also read responses of a newer service. This module
imports only the standard library, so that the client needs only the dependencies of an HTTP client.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Document:
    """A document that the caller may read.

    Attributes:
        uri: address of the document in its source, or address where people read it.
        media_type: media type, derived from the name; None if the name has no known suffix.
    """

    document_id: str
    uri: str
    title: str | None
    media_type: str | None


@dataclass(frozen=True, slots=True)
class Documents:
    """A page of documents, by uri.

    Attributes:
        next: the `after` of the next page; None on the last page.
        disabled: whether the tenant is disabled; then no documents are listed.
    """

    documents: tuple[Document, ...]
    next: str | None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """How far a tenant's index is behind its documents, as of their last listing.

    Attributes:
        chunks: number of searchable chunks.
        stale: number of documents that are searchable in an older version.
        last_indexed_at: when a document was last indexed; None before the first.
        queue_depth: number of documents that wait to be processed.
        disabled: whether the tenant is disabled; then searches find no hits, and documents wait.
    """

    chunks: int
    stale: int
    last_indexed_at: datetime | None
    queue_depth: int
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write.

    Attributes:
        document_id: id of the document.
        outcome: `queued`: the next sync indexes it; `removed`: searches omit it immediately;
            `unchanged`: the write made no difference; `secret`: no part of it is stored;
            `excluded`: it is stored but not searchable, such as a comment resolved long ago;
            `outdated`: a later write of the record came first, so this write is ignored.
        receipt: id of the receipt that will record the result of a purge.
        etag: ETag of the stored record, for If-Match, or null.
    """

    document_id: str
    outcome: Literal["queued", "removed", "unchanged", "secret", "excluded", "outdated"]
    receipt: str | None = None
    etag: str | None = None


RecordStatus: TypeAlias = Literal["queued", "indexed", "excluded", "failed"]


@dataclass(frozen=True, slots=True)
class RecordChunk:
    """A searchable chunk of a record.

    Attributes:
        workspace_id: the tenant.
        source_type: type of the record; `block` for a block of a long page.
        source_id: id of the record.
        chunk_index: position among the chunks of the record, from 0.
        text: text of the chunk.
        content_hash: SHA-256 of the text.
        page_uuid: the page or database to which the record belongs.
        block_ids: ids of the blocks in the chunk.
    """

    workspace_id: str
    source_type: str
    source_id: str
    chunk_index: int
    text: str
    content_hash: str
    page_uuid: str | None = None
    block_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordWhereabouts:
    """The status of a record.

    Attributes:
        document_id: id of its document.
        status: `queued`: the next sync indexes the current version; `indexed`: it is searchable;
            `excluded`: it is left out; `failed`: it cannot be indexed, and an earlier version, if
            any, stays searchable.
        reason: why it is left out, failed, or is not completely searchable.
        updated_at: when it was changed, as reported by its application.
        sha256: hash of the stored record, or of a file's content, for comparison with manifests.
        dropped_chunks: number of chunks that contain a credential and are not searchable.
        chunks: chunks that are searchable now; empty for a writer, or if not requested.
        etag: ETag of the record, or of a block's page, for If-Match.
        chunk_count: number of searchable chunks of the record, or of a block's page.
    """

    document_id: str
    status: RecordStatus
    reason: str | None
    updated_at: datetime | None
    sha256: str
    dropped_chunks: int
    chunks: tuple[RecordChunk, ...]
    etag: str = ""
    chunk_count: int | None = None


@dataclass(frozen=True, slots=True)
class ListedRecord:
    """A record in a list, without its title and text; see RecordWhereabouts.

    Attributes:
        source, type, id, document_id: identifiers of the record.
        page_uuid: the page or database to which it belongs.
        status, reason, updated_at, chunk_count, dropped_chunks: see RecordWhereabouts.
        pushed_at: when its current version was pushed.
    """

    source: str
    type: str
    id: str
    document_id: str
    page_uuid: str | None
    status: RecordStatus
    reason: str | None
    updated_at: datetime | None
    pushed_at: datetime
    chunk_count: int
    dropped_chunks: int


@dataclass(frozen=True, slots=True)
class ListedRecords:
    """A page of records, by source, type and id.

    Attributes:
        next: the `after` of the next page; None on the last page.
    """

    records: tuple[ListedRecord, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class ReconciledRecord:
    """A record that differs from the manifest.

    Attributes:
        type, id: type and id of the record.
        difference: `missing`: it is not stored; `stale`: an older version is stored; `extra`: the
            manifest does not name it.
    """

    type: str
    id: str
    difference: Literal["missing", "stale", "extra"]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The differences between the stored records and a manifest.

    Attributes:
        missing, stale, extra: number of records of each kind.
        removed: number of extra records that were removed.
        records: the first 10,000 of each kind, by type and id.
    """

    missing: int
    stale: int
    extra: int
    removed: int
    records: tuple[ReconciledRecord, ...]


@dataclass(frozen=True, slots=True)
class RecordLine:
    """The outcome of a line.

    Attributes:
        line: line number in the body, from 1; empty lines are counted, but have no outcome.
        outcome: as for a single write; `invalid`: the line was ignored, see `errors`;
            `unknown-page`: the block's page was not pushed; `changed-meanwhile`: the record is not
            the version that `if_match` names.
        document_id: id of the document; None for an invalid line.
        errors: the invalid fields.
        etag: as for a single write.
    """

    line: int
    outcome: Literal[
        "queued",
        "removed",
        "unchanged",
        "secret",
        "excluded",
        "outdated",
        "invalid",
        "unknown-page",
        "changed-meanwhile",
    ]
    document_id: str | None = None
    errors: tuple[InvalidField, ...] = ()
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class RecordLines:
    """The outcomes of the lines, in their order."""

    lines: tuple[RecordLine, ...]


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file and its status.

    Attributes:
        id: id of the upload and of its document; it stays when the file is replaced.
        file_name: name for display; credentials in it are masked.
        media_type: type of the file, detected from its content.
        size: size in bytes.
        status: PROCESSING: the next sync indexes it; READY: it is searchable; FAILED: it could not
            be indexed, and an earlier version, if any, stays searchable; DISABLED: it is not
            searchable.
        chunk_count: number of passages of the searchable version.
        uploaded_by: name of the caller.
        retry_at: time of the next automatic attempt, if any.
        reason, remedy: why it failed or waits, and what the uploader can do about it.
        reason_kind: kind of that reason, stable even if its wording changes.
        note: why no passage of it is searchable although it is READY.
    """

    id: str
    source: str
    file_name: str
    media_type: str
    size: int
    sha256: str
    status: str
    chunk_count: int
    enabled: bool
    uploaded_by: str
    created_at: datetime
    updated_at: datetime
    retry_at: datetime | None = None
    reason: str | None = None
    remedy: str | None = None
    reason_kind: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The outcome of an upload.

    Attributes:
        upload: the new upload, or the existing upload with the same bytes.
        duplicate: whether the same bytes were already stored, so that no work is needed.
    """

    upload: Upload
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Uploads:
    """Uploaded files, by name."""

    uploads: tuple[Upload, ...]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """The outcome of a request to index again.

    Attributes:
        documents: number of documents that will be read, parsed and indexed again.
    """

    documents: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a tenant.

    Attributes:
        id: id that rises with time.
        payload: details, which depend on the kind.
    """

    id: int
    kind: str
    at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Events:
    """A page of events, newest first.

    Attributes:
        next: the `after` of the next page; None on the last page.
    """

    events: tuple[Event, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class Health:
    """A sign that the service answers."""

    status: str = "ok"


@dataclass(frozen=True, slots=True)
class InvalidField:
    """An invalid part of a request.

    Attributes:
        field: path of the field, such as filters.paths.0.
    """

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document (RFC 9457).

    Attributes:
        type: URN of the kind of problem, stable across versions.
        request_id: id of the request in the service's log.
        errors: the invalid fields of an invalid request.
        provider, address: the provider whose key is missing, and the path of this service where the
            key is set.
    """

    type: str
    title: str
    status: int
    detail: str | None = None
    request_id: str = ""
    errors: tuple[InvalidField, ...] | None = None
    provider: str | None = None
    address: str | None = None
