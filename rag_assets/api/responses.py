"""Responses of the service besides hits, as it writes them and its client reads them.

A reader ignores fields that it does not know, so that a client also reads a newer service. Nothing
but the standard library is imported here: a client needs no more than an HTTP client does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Document:
    """A document that may be read.

    Attributes:
        uri: its address: in the source, or where people read it.
        media_type: by its name; None if that has no known ending.
    """

    document_id: str
    uri: str
    title: str | None
    media_type: str | None


@dataclass(frozen=True, slots=True)
class Documents:
    """A page of documents, by uri.

    Attributes:
        next: the `after` of the next page; None on the last.
        disabled: whether the tenant is, so that none is listed.
    """

    documents: tuple[Document, ...]
    next: str | None
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """How far a tenant's index is behind its documents, as they were listed last.

    Attributes:
        chunks: that can be found.
        stale: documents that are found in a former version.
        last_indexed_at: when a document last came into the index; None before the first.
        queue_depth: documents that wait for work.
        disabled: whether the tenant is: nothing is found, and what waits does so until it is not.
    """

    chunks: int
    stale: int
    last_indexed_at: datetime | None
    queue_depth: int
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write.

    Attributes:
        document_id: of the document concerned.
        outcome: `queued`: the next sync indexes it; `removed`: found no more from now on;
            `unchanged`: it was so before; `secret`: nothing of it is kept; `excluded`: it is kept
            and not found, as a comment that was resolved long ago; `outdated`: a later write of
            the record came first, and nothing changes.
        receipt: of a purge: the id of the receipt that its end will be recorded with.
        etag: of a record as it is stored now, for If-Match; null where there is none.
    """

    document_id: str
    outcome: Literal["queued", "removed", "unchanged", "secret", "excluded", "outdated"]
    receipt: str | None = None
    etag: str | None = None


RecordStatus: TypeAlias = Literal["queued", "indexed", "excluded", "failed"]


@dataclass(frozen=True, slots=True)
class RecordChunk:
    """A chunk of a record, as it is found.

    Attributes:
        workspace_id: the tenant.
        source_type: of the record; `block` of a block of a long page.
        source_id: of the record.
        chunk_index: its place among the chunks of the record, from 0.
        text: of the chunk.
        content_hash: SHA-256 of the text.
        page_uuid: the page or database that the record hangs on.
        block_ids: of the blocks in it.
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
    """What became of a record.

    Attributes:
        document_id: of its document.
        status: `queued`: the next sync indexes it as it is now; `indexed`: it is found;
            `excluded`: it is left out; `failed`: it cannot be indexed, and its former version, if
            there was one, is found.
        reason: why it is left out, failed, or is not found as a whole.
        updated_at: when it was changed, as its application said.
        sha256: of what is stored of it, or of a file's content: what manifests are compared with.
        dropped_chunks: of it that hold a credential, and are not found.
        chunks: that are found of it now; none to a writer, or where they were not asked for.
        etag: of the record, or of the page of a block, for If-Match.
        chunk_count: how many chunks are found of it, or of the page of a block.
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
        source, type, id, document_id: of the record.
        page_uuid: the page or database that it hangs on.
        status, reason, updated_at, chunk_count, dropped_chunks: see RecordWhereabouts.
        pushed_at: when its present version came.
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
        next: the `after` of the next page; None on the last.
    """

    records: tuple[ListedRecord, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class ReconciledRecord:
    """A record that differs from the manifest.

    Attributes:
        type, id: of the record.
        difference: `missing`: it is not stored; `stale`: it is stored as it was; `extra`: the
            manifest does not name it.
    """

    type: str
    id: str
    difference: Literal["missing", "stale", "extra"]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How the stored records differ from a manifest.

    Attributes:
        missing, stale, extra: how many of each.
        removed: extra ones that were removed.
        records: the first 10,000 of each, by type and id.
    """

    missing: int
    stale: int
    extra: int
    removed: int
    records: tuple[ReconciledRecord, ...]


@dataclass(frozen=True, slots=True)
class RecordLine:
    """What became of a line.

    Attributes:
        line: its number in the body, from 1; empty ones are counted, and have no outcome.
        outcome: as of a single write; `invalid`: nothing was done, and `errors` say why;
            `unknown-page`: the block's page was not pushed; `changed-meanwhile`: the record is not
            the version that `if_match` names.
        document_id: of the document concerned; None of an invalid line.
        errors: its fields that are not valid.
        etag: as of a single write.
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
    """What became of the lines, in their order."""

    lines: tuple[RecordLine, ...]


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file, and what became of it.

    Attributes:
        id: of its document, too; it stays when the file is replaced.
        file_name: as it is shown; credentials in it are masked.
        media_type: what it is, by its content.
        size: bytes.
        status: PROCESSING: the next sync indexes it; READY: it is found; FAILED: it could not be
            indexed, and its former version, if there was one, is found; DISABLED: nobody finds it.
        chunk_count: passages of the version that is found.
        uploaded_by: name of the caller.
        retry_at: when it is tried again by itself, if it is.
        reason, remedy: why it failed or waits, and what can be done about it by those who upload.
        reason_kind: the kind of that reason, which stays whatever the words are.
        note: why nothing of it is found although it is READY.
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
    """What became of a file that was sent.

    Attributes:
        upload: it, or the one that has the same bytes.
        duplicate: whether its bytes were there already, so that nothing is to be done.
    """

    upload: Upload
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Uploads:
    """Uploaded files, by name."""

    uploads: tuple[Upload, ...]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What was queued.

    Attributes:
        documents: how many will be read, parsed and indexed anew.
    """

    documents: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        id: rises with time.
        payload: details, by kind.
    """

    id: int
    kind: str
    at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Events:
    """A page of events, the newest first.

    Attributes:
        next: the `after` of the next page; None on the last.
    """

    events: tuple[Event, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class Health:
    """That the service answers."""

    status: str = "ok"


@dataclass(frozen=True, slots=True)
class InvalidField:
    """A part of a request that is not usable.

    Attributes:
        field: where it stands, as in filters.paths.0.
    """

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document (RFC 9457).

    Attributes:
        type: names the kind of problem, and stays the same from version to version.
        request_id: under which the service's log knows it.
        errors: of a request that is not valid.
        provider, address: whose key is missing, and where it is set on this service.
    """

    type: str
    title: str
    status: int
    detail: str | None = None
    request_id: str = ""
    errors: tuple[InvalidField, ...] | None = None
    provider: str | None = None
    address: str | None = None
