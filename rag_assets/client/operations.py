"""The operations of the service; each function returns the Call of an operation.

Every operation takes `tenant`, which may be left out if the token covers a single tenant or the
client has a default tenant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
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
from rag_assets.client.calls import Call, FormFile, Pages
from rag_assets.client.errors import refusal
from rag_assets.search.answers import AnswerResult
from rag_assets.search.model import Question, SearchAnswer

MetadataValue: TypeAlias = bool | int | float | str | list[str]

_PAGE = 100
_ANSWER_SECONDS = 120.0
"""Timeout of an answer: time for a search, plus twice the longest time of a chat model."""
_STATUS: Any = WorkspaceStatus | Status
_UPLOAD_SECONDS = 120.0
"""Timeout of an upload: time to write and examine a large file."""
_RECORD = "/rag/records/{source_type}/{source_id}"


def query(question: Question | str, *, tenant: str | None = None) -> Call[SearchAnswer]:
    """Search a tenant's knowledge.

    Args:
        question: text, or a Question with filters, a threshold and other options.
    """
    return Call("POST", "/rag/query", SearchAnswer, body=_build_question_body(question, tenant))


def answer(
    question: Question | str, *, max_tokens: int | None = None, tenant: str | None = None
) -> Call[AnswerResult]:
    """Answer a question with the tenant's chat model; its sentences cite their sources.

    An answer costs money, so the request is not repeated if the connection breaks.

    Args:
        question: see query; its token_budget limits the passages that the model gets.
        max_tokens: maximum tokens that the model may write, including hidden reasoning.
    """
    body = _build_question_body(question, tenant)
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    return Call(
        "POST",
        "/rag/answer",
        AnswerResult,
        body=body,
        repeatable=False,
        seconds=_ANSWER_SECONDS,
    )


def documents(
    *, after: str | None = None, limit: int = _PAGE, tenant: str | None = None
) -> Call[Documents]:
    """Return a page of the documents that the caller may read, ordered by uri.

    Args:
        after: the `next` of the previous page.
        limit: maximum number of documents, up to 1,000.
    """
    parameters = {"after": after, "limit": limit, "tenant": tenant}
    return Call("GET", "/rag/documents", Documents, parameters=parameters)


def all_documents(*, page: int = _PAGE, tenant: str | None = None) -> Pages[Documents, Document]:
    """Iterate over all documents that the caller may read, ordered by uri.

    Args:
        page: number of documents in each request; pages are fetched as needed.
    """
    first = documents(limit=page, tenant=tenant)
    return Pages(first, lambda fetched: fetched.documents, lambda fetched: fetched.next)


def delete_document(
    document_id: str, *, purge: bool | None = None, tenant: str | None = None
) -> Call[Written]:
    """Delete a document of any source; searches omit it immediately. For admins.

    Args:
        purge: also delete it from every store and every file.
    """
    return Call(
        "DELETE",
        "/rag/documents/{document_id}",
        Written,
        named={"document_id": document_id},
        parameters={"purge": purge, "tenant": tenant},
    )


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
) -> Call[Written]:
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
    fields = {
        "media_type": media_type,
        "title": title,
        "uri": uri,
        "scope": scope,
        "tags": list(tags) or None,
        "metadata": None if metadata is None else dict(metadata),
        "updated_at": _format_time(updated_at),
        "version": version,
    }
    return Call(
        "PUT",
        _RECORD,
        Written,
        named={"source_type": source_type, "source_id": source_id},
        parameters={"source": source, "tenant": tenant},
        body={"text": text, **{name: value for name, value in fields.items() if value is not None}},
        **_build_conditions(etag),
    )


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
) -> Call[Written]:
    """Delete a record; searches omit it immediately. For admins and writers.

    Args:
        source_type, source_id, source: the values with which it was pushed.
        page_uuid: page of the block, if the record is a block.
        updated_at, version: time and version of the deletion, which is ignored after a later write.
        etag: ETag of the version to delete; None deletes any version.
    """
    return Call(
        "DELETE",
        _RECORD,
        Written,
        named={"source_type": source_type, "source_id": source_id},
        parameters={
            "page_uuid": page_uuid,
            "updated_at": _format_time(updated_at),
            "version": version,
            "source": source,
            "tenant": tenant,
        },
        **_build_conditions(etag),
    )


def put_typed_record(
    source_type: str,
    source_id: str,
    body: Mapping[str, Any],
    *,
    etag: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> Call[Written]:
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
    return Call(
        "PUT",
        _RECORD,
        Written,
        named={"source_type": source_type, "source_id": source_id},
        parameters={"source": source, "tenant": tenant},
        body=dict(body),
        **_build_conditions(etag),
    )


def write_records(
    lines: Sequence[Mapping[str, Any]], *, source: str | None = None, tenant: str | None = None
) -> Call[RecordLines]:
    """Push and delete many records in one transaction; an invalid line does not affect the others.

    For admins and writers.

    Args:
        lines: at most 1,000 lines. Each has `op` (put or delete), `type`, `id`, optionally
            `if_match` to replace only one version, and the fields of a single write.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return Call(
        "POST",
        "/rag/records",
        RecordLines,
        parameters={"source": source, "tenant": tenant},
        lines="\n".join(json.dumps(dict(line)) for line in lines),
        seconds=_UPLOAD_SECONDS,
    )


def _format_time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _build_conditions(etag: str | None) -> dict[str, Any]:
    """Return the arguments of a Call that is refused unless the stored version has the ETag.

    If such a call is sent twice, the first attempt changes the version and the second is refused.
    So the call is not repeatable. Without an ETag, there are no arguments.
    """
    return {} if etag is None else {"headers": {"If-Match": etag}, "repeatable": False}


def reconcile(
    manifest: Sequence[Mapping[str, Any]],
    *,
    apply: bool | None = None,
    allow_deletes: bool | None = None,
    as_of: datetime | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> Call[Reconciled]:
    """Compare a manifest of all records with the stored records. For admins and writers.

    Args:
        manifest: for each record, its `type`, its `id`, and `updated_at` or `sha256`.
        apply: remove the records that the manifest does not name.
        allow_deletes: remove them even if there are many.
        as_of: when the manifest was created; by default, when it is sent.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return Call(
        "POST",
        "/rag/reconcile",
        Reconciled,
        parameters={
            "apply": apply,
            "allow_deletes": allow_deletes,
            "as_of": _format_time(as_of),
            "source": source,
            "tenant": tenant,
        },
        lines="\n".join(json.dumps(dict(line)) for line in manifest),
        seconds=_UPLOAD_SECONDS,
    )


def put_record_content(
    source_id: str, content: bytes, *, source: str | None = None, tenant: str | None = None
) -> Call[Written]:
    """Upload the content of a file that was pushed to a workspace. For admins and writers.

    Args:
        source_id: id of the file.
        content: PDF, Markdown, plain text, Word, HTML, CSV or TSV.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return Call(
        "PUT",
        "/rag/records/file/{source_id}/content",
        Written,
        named={"source_id": source_id},
        parameters={"source": source, "tenant": tenant},
        content=content,
        seconds=_UPLOAD_SECONDS,
    )


def record(
    source_type: str,
    source_id: str,
    *,
    page_uuid: str | None = None,
    chunks: bool | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> Call[RecordWhereabouts]:
    """Return the status of a record, its reason, and the record's searchable chunks.

    Args:
        source_type, source_id, source: the values with which it was pushed.
        page_uuid: the page of a block.
        chunks: whether to include the texts of the chunks; False leaves them out.
    """
    return Call(
        "GET",
        _RECORD,
        RecordWhereabouts,
        named={"source_type": source_type, "source_id": source_id},
        parameters={
            "page_uuid": page_uuid,
            "chunks": chunks,
            "source": source,
            "tenant": tenant,
        },
    )


def records(
    *,
    status: RecordStatus | None = None,
    type: str | None = None,  # noqa: A002 - as the service calls it
    page_uuid: str | None = None,
    after: str | None = None,
    limit: int | None = None,
    tenant: str | None = None,
) -> Call[ListedRecords]:
    """Return a page of records with the status of each, without titles and texts.

    Args:
        status: only records with this status.
        type: only records of this type.
        page_uuid: only records on this page or database.
        after: the `next` of the previous page.
        limit: maximum number of records, up to 1,000.
    """
    parameters = {"status": status, "type": type, "page_uuid": page_uuid}
    parameters |= {"after": after, "tenant": tenant}
    return Call("GET", "/rag/records", ListedRecords, parameters={**parameters, "limit": limit})


def all_records(
    *, status: RecordStatus | None = None, page: int = _PAGE, tenant: str | None = None
) -> Pages[ListedRecords, ListedRecord]:
    """Iterate over all records with the status of each; see records.

    Args:
        status: only records with this status.
        page: number of records in each request; pages are fetched as needed.
    """
    first = records(status=status, limit=page, tenant=tenant)
    return Pages(first, lambda fetched: fetched.records, lambda fetched: fetched.next)


def upload(
    file_name: str,
    content: bytes,
    *,
    replaces: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> Call[Uploaded]:
    """Upload a file or a new version of a file; the next sync indexes it. For admins.

    The same bytes are stored only once, so the request may be repeated.

    Args:
        file_name: its suffix determines the format if the file is text.
        replaces: id of the upload to replace.
        source: the tenant's source of uploads; may be left out if there is only one.
    """
    return Call(
        "POST",
        "/rag/uploads",
        Uploaded,
        parameters={"source": source, "tenant": tenant},
        file=FormFile(file_name, content, {"replaces": replaces}),
        seconds=_UPLOAD_SECONDS,
    )


def uploads(*, source: str | None = None, tenant: str | None = None) -> Call[Uploads]:
    """Return the uploaded files by name, with the status of each. For admins.

    Args:
        source: only files of this source.
    """
    return Call("GET", "/rag/uploads", Uploads, parameters={"source": source, "tenant": tenant})


def delete_upload(upload_id: str, *, tenant: str | None = None) -> Call[Written]:
    """Delete an uploaded file; searches omit it immediately. For admins."""
    return Call(
        "DELETE",
        "/rag/uploads/{upload_id}",
        Written,
        named={"upload_id": upload_id},
        parameters={"tenant": tenant},
    )


def reindex(
    *,
    source: str | None = None,
    document: str | None = None,
    page: str | None = None,
    database: str | None = None,
    tenant: str | None = None,
) -> Call[Reindexed]:
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
    chosen = {scope: id_ for scope, id_ in scopes.items() if id_ is not None}
    if len(chosen) > 1:
        raise TypeError(f"reindex() accepts only one of the arguments {', '.join(scopes)}")
    body: dict[str, Any] = {"scope": "tenant"}
    for scope, id_ in chosen.items():
        body = {"scope": scope, "id": id_}
    return Call("POST", "/rag/reindex", Reindexed, body=_add_tenant(tenant, body), repeatable=False)


def events(
    *,
    after: int | None = None,
    kind: str | None = None,
    limit: int = _PAGE,
    tenant: str | None = None,
) -> Call[Events]:
    """Return a page of events, newest first; a member gets only their own searches.

    Args:
        after: the `next` of the previous page.
        kind: only events of this kind, such as document_indexed.
        limit: maximum number of events, up to 1,000.
    """
    parameters = {"after": after, "kind": kind, "limit": limit, "tenant": tenant}
    return Call("GET", "/rag/events", Events, parameters=parameters)


def all_events(
    *, kind: str | None = None, page: int = _PAGE, tenant: str | None = None
) -> Pages[Events, Event]:
    """Iterate over all events, newest first.

    Args:
        kind: only events of this kind.
        page: number of events in each request; pages are fetched as needed.
    """
    first = events(kind=kind, limit=page, tenant=tenant)
    return Pages(first, lambda fetched: fetched.events, lambda fetched: fetched.next)


def status(*, tenant: str | None = None) -> Call[WorkspaceStatus | Status]:
    """Return how far a tenant's index is behind its documents."""
    return Call("GET", "/rag/status", _STATUS, parameters={"tenant": tenant})


def live() -> Call[Health]:
    """Check whether the service answers."""
    return Call("GET", "/health/live", Health, tenanted=False)


def ready() -> Call[Health]:
    """Check whether the service and its servers answer; raise Unavailable if not."""
    return Call("GET", "/health/ready", Health, tenanted=False)


def metrics() -> Call[str]:
    """Return metrics in the text format of Prometheus."""
    return Call("GET", "/metrics", str, tenanted=False)


def _build_question_body(question: Question | str, tenant: str | None) -> dict[str, Any]:
    if isinstance(question, str):
        question = _build_question(question)
    # The tenant's defaults apply to unset fields, and an older service may not know every field.
    return _add_tenant(tenant, question.model_dump(mode="json", exclude_unset=True))


def _build_question(words: str) -> Question:
    try:
        return Question(query=words)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise refusal(
            Problem(
                "urn:rag-assets:problem:invalid-request",
                "The request is not valid",
                HTTPStatus.UNPROCESSABLE_ENTITY,
                errors=(InvalidField(field, first["msg"]),),
            )
        ) from None


def _add_tenant(tenant: str | None, body: dict[str, Any]) -> dict[str, Any]:
    return body if tenant is None else {**body, "tenant": tenant}
