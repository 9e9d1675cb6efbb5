"""The operations of the service; each function returns the Call of an operation.

Every operation takes `tenant`, which may be left out if the token covers a single tenant or the
client has a default tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

from pydantic import ValidationError

from rag_assets.api.responses import (
    Document,
    Documents,
    Event,
    Events,
    Health,
    InvalidField,
    ListedRecord,
    ListedRecords,
    Problem,
    Reconciled,
    RecordLines,
    RecordStatus,
    RecordWhereabouts,
    Reindexed,
    Status,
    Uploaded,
    Uploads,
    Written,
)
from rag_assets.api.workspace_responses import WorkspaceStatus
from rag_assets.client.calls import FormFile, Pages, join_lines, operation
from rag_assets.client.errors import build_refusal
from rag_assets.common.invalid_values import allowed_value
from rag_assets.search.answers import AnswerResult
from rag_assets.search.model import Question, SearchAnswer

MetadataValue: TypeAlias = bool | int | float | str | list[str]

_PAGE_ITEMS = 100
_ANSWER_SECONDS = 120.0
"""Timeout of an answer: time for a search, plus twice the longest time of a chat model."""
_STATUS: Any = WorkspaceStatus | Status
_UPLOAD_SECONDS = 120.0
"""Timeout of an upload: time to write and examine a large file."""
_RECORD = "/rag/records/{source_type}/{source_id}"
_write = partial(operation, query=("source", "tenant"))


@operation("POST", "/rag/query", SearchAnswer)
def query(question: Question | str, *, tenant: str | None = None) -> dict[str, Any]:
    """Search a tenant's knowledge.

    Args:
        question: text, or a Question with filters, a threshold and other options.
    """
    return {"body": _build_question_body(question, tenant)}


@operation("POST", "/rag/answer", AnswerResult, repeatable=False, seconds=_ANSWER_SECONDS)
def answer(
    question: Question | str, *, max_tokens: int | None = None, tenant: str | None = None
) -> dict[str, Any]:
    """Answer a question with the tenant's chat model; the answer's sentences cite sources.

    An answer costs money, so the request is not repeated if the connection breaks.

    Args:
        question: see query; its token_budget limits the passages that the model gets.
        max_tokens: maximum tokens that the model may write, including hidden reasoning.
    """
    body = _build_question_body(question, tenant)
    return {"body": body if max_tokens is None else {**body, "max_tokens": max_tokens}}


@operation("GET", "/rag/documents", Documents)
def documents(
    *, after: str | None = None, limit: int = _PAGE_ITEMS, tenant: str | None = None
) -> None:
    """Return a page of the documents that the caller may read, ordered by uri.

    Args:
        after: the `next` of the previous page.
        limit: maximum number of documents, up to 1,000.
    """


def all_documents(
    *, page: int = _PAGE_ITEMS, tenant: str | None = None
) -> Pages[Documents, Document]:
    """Iterate over all documents that the caller may read, ordered by uri."""
    return Pages(documents(limit=page, tenant=tenant), lambda fetched: fetched.documents)


@operation("DELETE", "/rag/documents/{document_id}", Written)
def delete_document(
    document_id: str, *, purge: bool | None = None, tenant: str | None = None
) -> None:
    """Delete a document of any source; searches omit it immediately. For admins.

    Args:
        purge: also delete it from every store and every file.
    """


@_write("PUT", _RECORD, Written)
def put_record(
    source_type: str,
    source_id: str,
    text: str,
    *,
    media_type: str | None = None,
    title: str | None = None,
    uri: str | None = None,
    scope: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, MetadataValue] | None = None,
    updated_at: datetime | None = None,
    version: int | None = None,
    etag: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> None:
    """Push a new or changed record; the next sync indexes it. For admins and writers.

    Args:
        source_type, source_id: type and id in the application, such as page and 4711.
        text: all searchable text of the record.
        media_type: format of the text; Markdown by default.
        title: by default the title found in the text.
        uri: address where people read the record: http, https, mailto, or a path below the name of
            its source.
        scope: the access scope; by default the source's scope.
        tags, metadata: values to filter by.
        updated_at: when the text was last changed, with a time zone; orders the writes.
        version: a number that rises with each change; orders the writes instead of `updated_at`.
        etag: ETag of the version to replace; None replaces any version.
        source: the tenant's source of records; may be left out if there is only one.
    """


@operation("DELETE", _RECORD, Written)
def delete_record(
    source_type: str,
    source_id: str,
    *,
    page_uuid: str | None = None,
    updated_at: datetime | None = None,
    version: int | None = None,
    etag: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> None:
    """Delete a record; searches omit it immediately. For admins and writers.

    Args:
        source_type, source_id, source: the values with which it was pushed.
        page_uuid: the page that contains the block, if the record is a block.
        updated_at, version: time and version of the deletion, which is ignored after a later write.
        etag: ETag of the version to delete; None deletes any version.
    """


@_write("PUT", _RECORD, Written)
def put_typed_record(
    source_type: str,
    source_id: str,
    body: Mapping[str, Any],
    *,
    etag: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Push a new or changed record of a workspace; the next sync indexes it.

    For admins and writers.

    Args:
        source_type: page, block, comment, file, template or db_row.
        source_id: id of the record in its application.
        body: the fields of a record of this type.
        etag: ETag of the version to replace (for a block, the ETag of its page); None replaces any
            version.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return {"body": dict(body)}


@_write("POST", "/rag/records", RecordLines, seconds=_UPLOAD_SECONDS)
def write_records(
    lines: Sequence[Mapping[str, Any]], *, source: str | None = None, tenant: str | None = None
) -> dict[str, Any]:
    """Push and delete many records in one transaction; an invalid line does not affect the others.

    For admins and writers.

    Args:
        lines: at most 1,000 lines. Each has `op` (put or delete), `type`, `id`, optionally
            `if_match` to replace only one version, and the fields of a single write.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return {"lines": join_lines(lines)}


@operation(
    "POST",
    "/rag/reconcile",
    Reconciled,
    query=("apply", "allow_deletes", "as_of", "source", "tenant"),
    seconds=_UPLOAD_SECONDS,
)
def reconcile(
    manifest: Sequence[Mapping[str, Any]],
    *,
    apply: bool | None = None,
    allow_deletes: bool | None = None,
    as_of: datetime | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Compare a manifest of all records with the stored records. For admins and writers.

    Args:
        manifest: for each record, its `type`, its `id`, and `updated_at` or `sha256`.
        apply: remove the records that the manifest does not name.
        allow_deletes: remove them even if there are many.
        as_of: when the manifest was created; by default, when it is sent.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return {"lines": join_lines(manifest)}


@_write("PUT", "/rag/records/file/{source_id}/content", Written, seconds=_UPLOAD_SECONDS)
def put_record_content(
    source_id: str, content: bytes, *, source: str | None = None, tenant: str | None = None
) -> dict[str, Any]:
    """Upload the content of a file that was pushed to a workspace. For admins and writers.

    Args:
        source_id: id of the file.
        content: PDF, Markdown, plain text, Word, HTML, CSV or TSV.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return {"content": content}


@operation("GET", _RECORD, RecordWhereabouts)
def record(
    source_type: str,
    source_id: str,
    *,
    page_uuid: str | None = None,
    chunks: bool | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> None:
    """Return the status of a record, the reason for the status, and the searchable chunks.

    Args:
        source_type, source_id, source: the values with which it was pushed.
        page_uuid: the page that contains the block, if the record is a block.
        chunks: whether to include the texts of the chunks; False leaves them out.
    """


@operation("GET", "/rag/records", ListedRecords)
def records(
    *,
    status: RecordStatus | None = None,
    type: str | None = None,  # noqa: A002 - as the service calls it
    page_uuid: str | None = None,
    after: str | None = None,
    limit: int | None = None,
    tenant: str | None = None,
) -> None:
    """Return a page of records with the status of each, without titles and texts.

    Args:
        status: only records with this status.
        type: only records of this type.
        page_uuid: only records on this page or database.
        after: the `next` of the previous page.
        limit: maximum number of records, up to 1,000.
    """


def all_records(
    *, status: RecordStatus | None = None, page: int = _PAGE_ITEMS, tenant: str | None = None
) -> Pages[ListedRecords, ListedRecord]:
    """Iterate over all records with the status of each; see records.

    Args:
        status: only records with this status.
    """
    return Pages(records(status=status, limit=page, tenant=tenant), lambda fetched: fetched.records)


@_write("POST", "/rag/uploads", Uploaded, seconds=_UPLOAD_SECONDS)
def upload(
    file_name: str,
    content: bytes,
    *,
    replaces: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Upload a file or a new version of a file; the next sync indexes it. For admins.

    The same bytes are stored only once, so the request may be repeated.

    Args:
        file_name: its suffix determines the format if the file is text.
        replaces: id of the upload to replace.
        source: the tenant's source of uploads; may be left out if there is only one.
    """
    return {"file": FormFile(file_name, content, {"replaces": replaces})}


@operation("GET", "/rag/uploads", Uploads)
def uploads(*, source: str | None = None, tenant: str | None = None) -> None:
    """Return the uploaded files by name, with the status of each. For admins.

    Args:
        source: only files of this source.
    """


@operation("DELETE", "/rag/uploads/{upload_id}", Written)
def delete_upload(upload_id: str, *, tenant: str | None = None) -> None:
    """Delete an uploaded file; searches omit it immediately. For admins."""


@operation("POST", "/rag/reindex", Reindexed, repeatable=False)
def reindex(
    *,
    source: str | None = None,
    document: str | None = None,
    page: str | None = None,
    database: str | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Read, parse and index documents again, including failed documents. For admins.

    At most one argument besides `tenant` is allowed; without one, all documents of the tenant are
    indexed again. The request is not repeated if the connection breaks.

    Args:
        source: name of a source.
        document: id of a document.
        page: uuid of a workspace's page, which is indexed with its blocks, comments and files.
        database: uuid of a workspace's database, which is indexed with its rows.
    """
    scopes = {"source": source, "document": document, "page": page, "database": database}
    given_scopes = {scope: id_ for scope, id_ in scopes.items() if id_ is not None}
    if len(given_scopes) > 1:
        raise TypeError(f"reindex() accepts only one of the arguments {', '.join(scopes)}")
    body: dict[str, Any] = {"scope": "tenant"}
    for scope, id_ in given_scopes.items():
        body = {"scope": scope, "id": id_}
    return {"body": _add_tenant(tenant, body)}


@operation("GET", "/rag/events", Events)
def events(
    *,
    after: int | None = None,
    kind: str | None = None,
    limit: int = _PAGE_ITEMS,
    tenant: str | None = None,
) -> None:
    """Return a page of events, newest first; a member gets only their own searches.

    Args:
        after: the `next` of the previous page.
        kind: only events of this kind, such as document_indexed.
        limit: maximum number of events, up to 1,000.
    """


def all_events(
    *, kind: str | None = None, page: int = _PAGE_ITEMS, tenant: str | None = None
) -> Pages[Events, Event]:
    """Iterate over all events, newest first.

    Args:
        kind: only events of this kind.
    """
    return Pages(events(kind=kind, limit=page, tenant=tenant), lambda fetched: fetched.events)


@operation("GET", "/rag/status", _STATUS)
def status(*, tenant: str | None = None) -> None:
    """Return how far a tenant's index is behind its documents."""


@operation("GET", "/health/live", Health, tenanted=False)
def live() -> None:
    """Check whether the service answers."""


@operation("GET", "/health/ready", Health, tenanted=False)
def ready() -> None:
    """Check whether the service and its servers answer; raise Unavailable if not."""


@operation("GET", "/metrics", str, tenanted=False)
def metrics() -> None:
    """Return metrics in the text format of Prometheus."""


def _build_question_body(question: Question | str, tenant: str | None) -> dict[str, Any]:
    if isinstance(question, str):
        question = _build_question(question)
    # The tenant's defaults apply to unset fields, and an older service may not know every field.
    return _add_tenant(tenant, question.model_dump(mode="json", exclude_unset=True))


def _build_question(words: str) -> Question:
    try:
        return Question(query=words)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise build_refusal(
            Problem(
                "urn:rag-assets:problem:invalid-request",
                "The request is not valid",
                HTTPStatus.UNPROCESSABLE_ENTITY,
                errors=(InvalidField(field, allowed_value(first)),),
            )
        ) from None


def _add_tenant(tenant: str | None, body: dict[str, Any]) -> dict[str, Any]:
    return body if tenant is None else {**body, "tenant": tenant}
