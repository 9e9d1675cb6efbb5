"""The operations of the service, each as the call that requests it.

Every operation takes `tenant`, which may be left out if the token is for one only, or if the
client was given one.
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
from rag_assets.retrieval.answers import AnswerResult
from rag_assets.retrieval.model import Question, SearchAnswer

MetadataValue: TypeAlias = bool | int | float | str | list[str]

_PAGE = 100
_ANSWER_SECONDS = 120.0
_STATUS: Any = WorkspaceStatus | Status
"""A search, and twice what a chat model may take at most."""
_UPLOAD_SECONDS = 120.0
"""Until a large file is written and examined."""
_RECORD = "/rag/records/{source_type}/{source_id}"


def query(question: Question | str, *, tenant: str | None = None) -> Call[SearchAnswer]:
    """Search a tenant's knowledge.

    Args:
        question: in words; as a Question with filters, a threshold and whatever else it takes.
    """
    return Call("POST", "/rag/query", SearchAnswer, body=_question_body(question, tenant))


def answer(
    question: Question | str, *, max_tokens: int | None = None, tenant: str | None = None
) -> Call[AnswerResult]:
    """Have the tenant's chat model answer, in sentences that cite what they rest on.

    It is paid for, so it is not sent twice where a connection broke.

    Args:
        question: as for query; its token_budget is that of the passages the model is given.
        max_tokens: that it may write, thoughts that are not shown included.
    """
    body = _question_body(question, tenant)
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
    """One page of the documents that may be read, by uri.

    Args:
        after: the `next` of the page before.
        limit: documents at most, up to 1,000.
    """
    parameters = {"after": after, "limit": limit, "tenant": tenant}
    return Call("GET", "/rag/documents", Documents, parameters=parameters)


def all_documents(*, page: int = _PAGE, tenant: str | None = None) -> Pages[Documents, Document]:
    """Every document that may be read, by uri.

    Args:
        page: how many are fetched at a time, when they are needed.
    """
    first = documents(limit=page, tenant=tenant)
    return Pages(first, lambda found: found.documents, lambda found: found.next)


def delete_document(
    document_id: str, *, purge: bool | None = None, tenant: str | None = None
) -> Call[Written]:
    """Delete a document of any source; it is found no more from now on. For admins.

    One that is deleted already stays so.

    Args:
        document_id: of the document.
        purge: delete it for good, from every store and every file.
        tenant: may be left out if the token is for one only.
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
    """Push a record of an application, or what it is now; the next sync indexes it. For admins.

    Args:
        source_type, source_id: what it is in its application, as in page and 4711.
        text: all that is to be found of it.
        media_type: how the text is to be read; as Markdown by default.
        title: by default the one found in the text.
        uri: its address where people read it: http, https, mailto, or a path below its source's
            name.
        scope: the access scope; by default its source's.
        tags, metadata: to filter by.
        updated_at: when the text was last changed, with a time zone; an older write is outdated.
        version: a number that rises with each change, and orders writes in place of `updated_at`.
        etag: of the version that it replaces; None: it replaces any.
        source: the tenant's source of records; may be left out if there is only one.
    """
    fields = {
        "media_type": media_type,
        "title": title,
        "uri": uri,
        "scope": scope,
        "tags": list(tags) or None,
        "metadata": None if metadata is None else dict(metadata),
        "updated_at": _stamp(updated_at),
        "version": version,
    }
    return Call(
        "PUT",
        _RECORD,
        Written,
        named={"source_type": source_type, "source_id": source_id},
        parameters={"source": source, "tenant": tenant},
        body={"text": text, **{name: value for name, value in fields.items() if value is not None}},
        **_conditions(etag),
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
    """Take a record back; it is found no more from now on. For admins.

    Args:
        source_type, source_id, source: as it was pushed.
        page_uuid: of a block, its page.
        updated_at, version: of the deletion, which is outdated where a later write came first.
        etag: of the version that is deleted; None: any.
    """
    return Call(
        "DELETE",
        _RECORD,
        Written,
        named={"source_type": source_type, "source_id": source_id},
        parameters={
            "page_uuid": page_uuid,
            "updated_at": _stamp(updated_at),
            "version": version,
            "source": source,
            "tenant": tenant,
        },
        **_conditions(etag),
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
    """Push a record of a workspace, or what it is now; the next sync indexes it. For admins.

    Args:
        source_type: page, block, comment, file, template or db_row.
        source_id: of the record, in its application.
        body: what a record of this type has.
        etag: of the version that it replaces, of a block that of its page; None: it replaces any.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return Call(
        "PUT",
        _RECORD,
        Written,
        named={"source_type": source_type, "source_id": source_id},
        parameters={"source": source, "tenant": tenant},
        body=dict(body),
        **_conditions(etag),
    )


def write_records(
    lines: Sequence[Mapping[str, Any]], *, source: str | None = None, tenant: str | None = None
) -> Call[RecordLines]:
    """Push and delete many records in one transaction; a bad line stops no other. For admins.

    Args:
        lines: each with `op` (put or delete), `type`, `id`, `if_match` if it is to replace one
            version alone, and what a single write has; at most 1,000.
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


def _stamp(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _conditions(etag: str | None) -> dict[str, Any]:
    """Return the arguments of a call that replaces one version alone.

    Sent again, it would be refused for the version that it has made itself.
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
    """Compare the manifest of all records with those that are stored. For admins.

    Args:
        manifest: of each record its `type`, its `id`, and `updated_at` or `sha256`.
        apply: remove those that it does not name.
        allow_deletes: however many they are.
        as_of: when the manifest was made; by default, when it is sent.
        source: the tenant's source of records; may be left out if there is only one.
    """
    return Call(
        "POST",
        "/rag/reconcile",
        Reconciled,
        parameters={
            "apply": apply,
            "allow_deletes": allow_deletes,
            "as_of": _stamp(as_of),
            "source": source,
            "tenant": tenant,
        },
        lines="\n".join(json.dumps(dict(line)) for line in manifest),
        seconds=_UPLOAD_SECONDS,
    )


def put_record_content(
    source_id: str, content: bytes, *, source: str | None = None, tenant: str | None = None
) -> Call[Written]:
    """Put the content of a file of a workspace that was pushed. For admins.

    Args:
        source_id: of the file.
        content: PDF, Markdown or plain text.
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
    """What became of a record, why, and the chunks that are found of it.

    Args:
        source_type, source_id, source: as it was pushed.
        page_uuid: the page of a block.
        chunks: False leaves the texts of the chunks out.
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
    """Return a page of records with what became of each, without titles and texts.

    Args:
        status: only those of which this became.
        type: only those of this type.
        page_uuid: only those on this page or database.
        after: the `next` of the page before.
        limit: records at most, up to 1,000.
    """
    parameters = {"status": status, "type": type, "page_uuid": page_uuid}
    parameters |= {"after": after, "tenant": tenant}
    return Call("GET", "/rag/records", ListedRecords, parameters={**parameters, "limit": limit})


def all_records(
    *, status: RecordStatus | None = None, page: int = _PAGE, tenant: str | None = None
) -> Pages[ListedRecords, ListedRecord]:
    """Return every record with what became of it; see records.

    Args:
        status: only those of which this became.
        page: how many are fetched at a time, when they are needed.
    """
    first = records(status=status, limit=page, tenant=tenant)
    return Pages(first, lambda found: found.records, lambda found: found.next)


def upload(
    file_name: str,
    content: bytes,
    *,
    replaces: str | None = None,
    source: str | None = None,
    tenant: str | None = None,
) -> Call[Uploaded]:
    """Upload a file, or the new version of one; the next sync indexes it. For admins.

    The same bytes are not stored twice, so it may be sent again.

    Args:
        file_name: its suffix decides among formats that are text.
        content: of the file.
        replaces: id of the upload that it is the new version of.
        source: the tenant's source of uploads; may be left out if there is only one.
        tenant: may be left out if the token is for one only.
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
    """The uploaded files by name, with what became of them. For admins.

    Args:
        source: only of this source.
        tenant: may be left out if the token is for one only.
    """
    return Call("GET", "/rag/uploads", Uploads, parameters={"source": source, "tenant": tenant})


def delete_upload(upload_id: str, *, tenant: str | None = None) -> Call[Written]:
    """Delete an uploaded file; it is found no more from now on. For admins.

    Args:
        upload_id: its id.
        tenant: may be left out if the token is for one only.
    """
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
    """Have documents read, parsed and indexed anew, failed ones too. For admins.

    Sent twice it happens twice, so it is not sent again where a connection broke.

    Args:
        source: all of this source, by its name.
        document: only this one, by its id.
        page: of a workspace, a page with its blocks, comments and files.
        database: of a workspace, a database with its rows. Without any of these all of the
            tenant's.
    """
    named = {"source": source, "document": document, "page": page, "database": database}
    given = {scope: id_ for scope, id_ in named.items() if id_ is not None}
    if len(given) > 1:
        raise TypeError(f"reindex() takes one of {', '.join(named)}")
    body: dict[str, Any] = {"scope": "tenant"}
    for scope, id_ in given.items():
        body = {"scope": scope, "id": id_}
    return Call("POST", "/rag/reindex", Reindexed, body=_of(tenant, body), repeatable=False)


def events(
    *,
    after: int | None = None,
    kind: str | None = None,
    limit: int = _PAGE,
    tenant: str | None = None,
) -> Call[Events]:
    """One page of what happened, the newest first: to a member only their own searches.

    Args:
        after: the `next` of the page before.
        kind: only of this kind, as in document_indexed.
        limit: events at most, up to 1,000.
    """
    parameters = {"after": after, "kind": kind, "limit": limit, "tenant": tenant}
    return Call("GET", "/rag/events", Events, parameters=parameters)


def all_events(
    *, kind: str | None = None, page: int = _PAGE, tenant: str | None = None
) -> Pages[Events, Event]:
    """Everything that happened, the newest first.

    Args:
        kind: only of this kind.
        page: how many are fetched at a time, when they are needed.
    """
    first = events(kind=kind, limit=page, tenant=tenant)
    return Pages(first, lambda found: found.events, lambda found: found.next)


def status(*, tenant: str | None = None) -> Call[WorkspaceStatus | Status]:
    """How far a tenant's index is behind its documents; a workspace tells more."""
    return Call("GET", "/rag/status", _STATUS, parameters={"tenant": tenant})


def live() -> Call[Health]:
    """Whether the service answers at all."""
    return Call("GET", "/health/live", Health, tenanted=False)


def ready() -> Call[Health]:
    """Whether its servers answer, too; raises Unavailable if not."""
    return Call("GET", "/health/ready", Health, tenanted=False)


def metrics() -> Call[str]:
    """Metrics for Prometheus, in its text format."""
    return Call("GET", "/metrics", str, tenanted=False)


def _question_body(question: Question | str, tenant: str | None) -> dict[str, Any]:
    given = _question(question) if isinstance(question, str) else question
    # What was not given is left to the tenant, and a former service need not know of it.
    return _of(tenant, given.model_dump(mode="json", exclude_unset=True))


def _question(words: str) -> Question:
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


def _of(tenant: str | None, body: dict[str, Any]) -> dict[str, Any]:
    return body if tenant is None else {**body, "tenant": tenant}
