"""Endpoints for pushed records: one by one, many at once, and the content of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import WrapValidator

from rag_assets.api.backend import Backend
from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, Streamed, require_few_values, whole_body
from rag_assets.api.invalid_fields import invalid, invalid_fields
from rag_assets.api.middleware import replayed
from rag_assets.api.problems import Refused, documented
from rag_assets.api.receiving import RawContent
from rag_assets.api.record_drafts import Draft, Drafting
from rag_assets.api.record_states import whereabouts
from rag_assets.api.record_writing import BULK, URGENT, Outcome, write_drafts
from rag_assets.api.responses import RecordLine, RecordLines, RecordWhereabouts, Written
from rag_assets.api.write_model import (
    SOURCE_ID,
    SOURCE_TYPE,
    RecordBody,
    RecordQuery,
    SourceId,
    SourceType,
    records_source,
)
from rag_assets.common.errors import UnknownDocument
from rag_assets.ingest.parsing.media_types import MARKDOWN, PDF, PLAIN
from rag_assets.ingest.sources.records import FILE, MAX_FILE_BYTES, record_document_id
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.privacy.described import described_spans
from rag_assets.privacy.secrets.masking import mask
from rag_assets.privacy.secrets.spans import merged
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import profile_of
from rag_assets.workspace.bodies import (
    BODIES,
    MOST_BLOCKS,
    BlockBody,
    CommentBody,
    DbRowBody,
    FileBody,
    PageBody,
    TemplateBody,
)

MOST_LINES = 1_000
MOST_BYTES = 16 * 1024 * 1024
MOST_VALUES = 6 * MOST_BLOCKS
"""JSON values of a record: each block of a page has up to six."""
_BULK_SECONDS = 60.0
_RECORD = "/records/{source_type}/{source_id:path}"
_CONTENT = "/records/file/{source_id:path}/content"
_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)
_NDJSON = "application/x-ndjson"
_FILE_TYPES = (PDF, MARKDOWN, PLAIN)


def _as_sent(values: Any, _: Any) -> Any:
    """A body as it was sent: which of them it is, the tenant decides."""
    return values


AnyRecordBody = Annotated[
    RecordBody | PageBody | BlockBody | CommentBody | FileBody | TemplateBody | DbRowBody,
    WrapValidator(_as_sent),
]


class OneRecord(Guarded):
    """A guarded route whose body is a record: a page may have very many blocks."""

    # They are validated in a thread, and hold up nobody.
    most_values: ClassVar[int] = MOST_VALUES


class Bulk(Guarded):
    """A guarded route whose body is many lines."""

    most_bytes: ClassVar[int] = MOST_BYTES

    async def admitted(self, request: Request) -> Request:
        """The request as its handler gets it: its body was read."""
        body = await whole_body(request, seconds=_BULK_SECONDS, most=self.most_bytes)
        return Request(request.scope, replayed(body, request.receive))


records = APIRouter(prefix="/rag", tags=["writing"], responses=_REFUSED, route_class=OneRecord)
record_lines = APIRouter(prefix="/rag", tags=["writing"], responses=_REFUSED, route_class=Bulk)
contents = APIRouter(prefix="/rag", tags=["writing"], responses=_REFUSED, route_class=Streamed)


@dataclass(frozen=True, slots=True)
class RecordTarget:
    """The record that a request addresses."""

    tenant_id: str
    source_type: str
    source_id: str
    source: str | None
    by: str
    page_uuid: str | None = None


class TargetQuery(RecordQuery):
    """The source of a record.

    Attributes:
        page_uuid: the page of a block.
    """

    page_uuid: str | None = None


async def _pushed_record(
    request: Request,
    source_type: SourceType,
    source_id: SourceId,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
) -> RecordTarget:
    """The record that an admin pushes."""
    tenant_id = request.state.tenant = identity.administered(parameters.tenant)
    return RecordTarget(tenant_id, source_type, source_id, parameters.source, identity.name)


async def _deleted_record(
    request: Request,
    source_type: SourceType,
    source_id: SourceId,
    parameters: Annotated[TargetQuery, Query()],
    identity: IdentityDependency,
) -> RecordTarget:
    """The record that an admin deletes."""
    tenant_id = request.state.tenant = identity.administered(parameters.tenant)
    page, source = parameters.page_uuid, parameters.source
    return RecordTarget(tenant_id, source_type, source_id, source, identity.name, page)


@records.put(_RECORD, status_code=202, responses=documented(400, 408, 409, 413))
async def put_record(
    record: AnyRecordBody,
    target: Annotated[RecordTarget, Depends(_pushed_record)],
    backend: BackendDependency,
) -> Written:
    """Push a record, or what it is now. For admins.

    The former version is found until the new one is indexed. What is as it was before costs
    nothing; `updated_at` alone makes no difference. Credentials are masked before anything of it
    is indexed; in identifiers and access scopes of records, they are refused.

    Records of a workspace have bodies of their types: page, block, comment, file, template and
    db_row. All others have a text.
    """
    backend.written.take(target.by)

    def put() -> Written:
        drafting, known = _drafting(backend, target.tenant_id, target.source)
        return _write(
            backend, known, drafting.put(target.source_type, target.source_id, record), target.by
        )

    return await backend.write(target.tenant_id, put)


@records.delete(_RECORD, status_code=202, responses=documented(409))
async def delete_record(
    target: Annotated[RecordTarget, Depends(_deleted_record)], backend: BackendDependency
) -> Written:
    """Take a record back. For admins.

    It is found no more from now on; one that is not there stays so. A block of a page is taken out
    of it.
    """
    backend.written.take(target.by)

    def delete() -> Written:
        drafting, known = _drafting(backend, target.tenant_id, target.source)
        draft = drafting.delete(target.source_type, target.source_id, target.page_uuid)
        return _write(backend, known, draft, target.by)

    return await backend.write(target.tenant_id, delete)


async def _asked_record(
    request: Request,
    source_type: SourceType,
    source_id: SourceId,
    parameters: Annotated[TargetQuery, Query()],
    identity: IdentityDependency,
) -> RecordTarget:
    """The record that a caller asks about."""
    tenant_id = request.state.tenant = identity.tenant(parameters.tenant)
    page, source = parameters.page_uuid, parameters.source
    return RecordTarget(tenant_id, source_type, source_id, source, identity.name, page)


@records.get(_RECORD, responses=documented(409))
async def record_state(
    target: Annotated[RecordTarget, Depends(_asked_record)],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> RecordWhereabouts:
    """What became of a record, why, and the chunks that are found of it.

    Of a block, it is what became of its page. 404 as well for whoever may not read it.
    """

    def read() -> RecordWhereabouts:
        tenant = Tenant.from_config(backend.catalog.tenants.get(target.tenant_id).config)
        source = records_source(tenant, target.source, pulled=True)
        kind, id_ = _record_asked(tenant, target)
        return whereabouts(
            backend.reader,
            target.tenant_id,
            identity.caller,
            source_id=id_,
            document_id=record_document_id(source.name, kind, id_),
            scope=source.scope or tenant.access.scope,
            block_id=None if kind == target.source_type else target.source_id,
        )

    return await backend.run(target.tenant_id, identity.name, read)


def _record_asked(tenant: Tenant, target: RecordTarget) -> tuple[str, str]:
    """The type and id of the record that a question is about: of a block, its page's."""
    typed = profile_of(tenant.profile).typed_records
    if not typed or target.source_type != BlockBody.TYPE:
        return target.source_type, target.source_id
    if target.page_uuid is None:
        raise invalid("page_uuid", "it is needed to ask about a block")
    return PageBody.TYPE, target.page_uuid


@record_lines.post(
    "/records",
    responses=documented(400, 408, 409, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                _NDJSON: {
                    "schema": {
                        "type": "string",
                        "description": "A JSON object a line: `op` (put or delete), `type`, `id`,"
                        " and what the body of a single write has.",
                    }
                }
            },
        }
    },
)
async def write_records(
    request: Request,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> RecordLines:
    """Push and delete many records: a JSON object a line, at most 1,000 lines. For admins.

    Lines are followed in their order, in one transaction; one that is not valid stops no other.
    What is pushed here yields to records that are pushed one by one.
    """
    tenant_id = request.state.tenant = identity.administered(parameters.tenant)
    lines = [line for line in (await request.body()).split(b"\n") if line.strip()]
    if len(lines) > MOST_LINES:
        raise Refused(413, f"send at most {MOST_LINES:,} lines at once")
    if lines:
        backend.written.take(identity.name, len(lines))
    names = request.app.state.description.names

    def write() -> RecordLines:
        drafting, known = _drafting(backend, tenant_id, parameters.source)
        drafts = [*_drafts(drafting, lines)]
        outcomes = write_drafts(
            backend.catalog, backend.blobs, known.ref, drafts, by=identity.name, lane=BULK
        )
        found = (_line(at, one, names) for at, one in enumerate(outcomes, start=1))
        return RecordLines(tuple(found))

    return await backend.write(tenant_id, write)


@contents.put(
    _CONTENT,
    status_code=202,
    responses=documented(408, 409, 413, 415),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def put_content(
    request: Request,
    source_id: SourceId,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Written:
    """Put the content of a file that was pushed: PDF, Markdown or plain text. For admins.

    Where OCR is on, also a PNG, JPEG, TIFF or WebP picture. What it is, its bytes tell; its name
    tells formats that are text apart. At most 50 MiB.
    """
    tenant_id = request.state.tenant = identity.administered(parameters.tenant)
    backend.written.take(identity.name)
    target = RecordTarget(tenant_id, FILE, source_id, parameters.source, identity.name)
    file = await backend.run(tenant_id, identity.name, partial(_file, backend, target))
    async with backend.receiving.file(
        request,
        RawContent(),
        file.takes,
        tenant_id=tenant_id,
        caller=identity.name,
        receive=partial(backend.uploads.receive, file.known.ref),
    ) as received:
        new = await backend.run(
            tenant_id,
            identity.name,
            partial(
                backend.uploads.examine,
                file.takes,
                received,
                file_name=file.name,
                by=identity.name,
                pictures=file.may_be_picture,
            ),
        )
        changed = await backend.write(
            tenant_id,
            partial(
                backend.uploads.store_content,
                file.known.ref,
                new,
                received,
                document_id=file.document_id,
                path=f"{FILE}/{source_id}",
            ),
        )
    return Written(file.document_id, "queued" if changed else "unchanged")


@dataclass(frozen=True, slots=True)
class _File:
    """The file whose content is put.

    Attributes:
        known: its tenant.
        name: fit to be shown.
        takes: what is taken of it.
        may_be_picture: whether OCR reads pictures for its tenant.
    """

    known: TenantRecord
    document_id: str
    name: str
    takes: UploadsConfig
    may_be_picture: bool


def _file(backend: Backend, target: RecordTarget) -> _File:
    """The file whose content is put, and what is taken of it.

    Raises:
        UnknownDocument: it was not pushed.
        RequestValidationError: the tenant's records have no types.
    """
    known = backend.catalog.tenants.get(target.tenant_id)
    tenant = Tenant.from_config(known.config)
    if not profile_of(tenant.profile).typed_records:
        raise invalid("source_type", "records of this tenant have no content but their text")
    source = records_source(tenant, target.source, pulled=True).name
    document_id = record_document_id(source, FILE, target.source_id)
    record = backend.catalog.records.find(target.tenant_id, document_id)
    if record is None:
        raise UnknownDocument("there is no such file", hint="push the file before its content")
    takes = UploadsConfig(name=source, max_bytes=MAX_FILE_BYTES, media_types=_FILE_TYPES)
    name = str(json.loads(record.text)["name"])
    # The name is shown in more places than the record, which is kept as it was sent.
    shown = mask(name, merged(described_spans(name)))
    return _File(known, document_id, shown, takes, may_be_picture=tenant.parser.ocr)


def _drafting(
    backend: Backend, tenant_id: str, source: str | None
) -> tuple[Drafting, TenantRecord]:
    known = backend.catalog.tenants.get(tenant_id)
    tenant = Tenant.from_config(known.config)
    masker = backend.retriever.masker
    return Drafting(tenant, records_source(tenant, source), masker), known


def _write(backend: Backend, known: TenantRecord, draft: Draft, by: str) -> Written:
    [outcome] = write_drafts(backend.catalog, backend.blobs, known.ref, [draft], by=by, lane=URGENT)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _drafts(drafting: Drafting, lines: list[bytes]) -> Iterator[Draft | RequestValidationError]:
    for line in lines:
        try:
            yield _draft(drafting, line)
        except RequestValidationError as error:
            yield error


def _draft(drafting: Drafting, line: bytes) -> Draft:
    try:
        values = json.loads(line, parse_constant=_no_number)
        require_few_values(line, most=MOST_VALUES)
    except (ValueError, RecursionError):
        raise invalid("body", "it is no JSON") from None
    except Refused as error:
        raise invalid("body", str(error.detail)) from None
    if not isinstance(values, dict):
        raise invalid("body", "it must be a JSON object")
    named = {name: values.pop(name, None) for name in ("op", "type", "id")}
    for name, value in named.items():
        if not isinstance(value, str) or not _NAMED[name](value):
            raise invalid(name, _PROBLEMS[name])
    if named["op"] == "delete":
        page_uuid = values.pop("page_uuid", None)
        if values:
            raise invalid(next(iter(values)), "there is no such field")
        return drafting.delete(named["type"], named["id"], page_uuid)
    return drafting.put(named["type"], named["id"], values)


def _no_number(_: str) -> None:
    raise ValueError


_NAMED = {
    "op": lambda value: value in {"put", "delete"},
    "type": lambda value: SOURCE_TYPE.fullmatch(value) is not None,
    "id": lambda value: SOURCE_ID.fullmatch(value) is not None,
}
_PROBLEMS = {
    "op": "it must be put or delete",
    "type": f"it must be a type of records, in a workspace one of: {', '.join(BODIES)}",
    "id": "it must be text of up to 512 characters, without control characters",
}


def _line(number: int, outcome: Outcome, names: frozenset[str]) -> RecordLine:
    if isinstance(outcome, RequestValidationError):
        errors = tuple(invalid_fields(outcome.errors(), names | _NAMED.keys()))
        return RecordLine(number, "invalid", errors=errors)
    if isinstance(outcome, UnknownDocument):
        return RecordLine(number, "unknown-page")
    return RecordLine(number, outcome.outcome, outcome.document_id)
