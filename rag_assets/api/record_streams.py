"""Endpoints that receive contents of files, and many records at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request
from starlette.routing import Match
from starlette.types import Scope

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.description import Description, describe_body
from rag_assets.api.guard import (
    Guarded,
    RawBodyParser,
    Streamed,
    open_to_writers,
    read_body,
    require_few_values,
)
from rag_assets.api.middleware import replay_body
from rag_assets.api.model import RecordQuery, SourceId, parse_if_match
from rag_assets.api.problems import (
    HttpRefusal,
    document_problems,
    list_invalid_fields,
)
from rag_assets.api.record_routes import MAX_VALUES, REFUSED, RecordTarget, get_draft_builder
from rag_assets.api.responses import RecordLine, RecordLines, Written
from rag_assets.common.errors import UnknownDocument, VersionChanged
from rag_assets.common.invalid_values import InvalidFields, invalid
from rag_assets.ingest.parsing.media_types import CSV, DOCX, HTML, MARKDOWN, PDF, PLAIN, TSV
from rag_assets.ingest.sources.record_bodies import BODIES
from rag_assets.ingest.sources.records import FILE, MAX_FILE_BYTES, compute_record_document_id
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.privacy.described import find_described_spans
from rag_assets.privacy.secrets.spans import mask, merge_spans
from rag_assets.records.drafts import Draft, DraftBuilder, pop_clock
from rag_assets.records.text_records import SOURCE_ID, SOURCE_TYPE, find_records_source
from rag_assets.records.writing import BULK, Outcome, write_drafts
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

_CONTENT = "/records/file/{source_id:path}/content"
_FILE_TYPES = (PDF, MARKDOWN, PLAIN, DOCX, HTML, CSV, TSV)


class _ContentRoute(Streamed):
    """A route for contents, which does not match an id that ends in `/content`."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route matches a request.

        In the decoded path, an id that ends in `/content` with an encoded slash would look like the
        content of a file with a shorter id.
        """
        raw = scope.get("raw_path")
        if raw is not None and not raw.endswith(b"/content"):
            return Match.NONE, {}
        return super().matches(scope)


contents = APIRouter(prefix="/rag", tags=["writing"], responses=REFUSED, route_class=_ContentRoute)


@contents.put(
    _CONTENT,
    status_code=202,
    responses=document_problems(408, 409, 413, 415),
    openapi_extra=describe_body("application/octet-stream", {"type": "string"}),
)
@open_to_writers
async def put_content(
    request: Request,
    source_id: SourceId,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Written:
    """Upload the content of a file that was pushed. For admins and writers.

    The content may be PDF, Markdown, plain text, Word, HTML, CSV or TSV; with OCR, also a PNG,
    JPEG, TIFF or WebP picture. Its bytes determine the format; the file's name distinguishes text
    formats. It may have at most 50 MiB.
    """
    tenant_id = request.state.tenant = identity.require_writer_tenant(parameters.tenant)
    backend.written.take(identity.name)
    target = RecordTarget(tenant_id, FILE, source_id, parameters.source, identity.name)
    file = await backend.run(tenant_id, identity.name, partial(_find_pushed_file, backend, target))
    async with backend.file_receiver.receive(
        request,
        RawBodyParser(),
        file.limits,
        tenant_id=tenant_id,
        caller=identity.name,
        create=partial(backend.uploads.receive, file.tenant_record.ref),
    ) as received:
        new = await backend.run(
            tenant_id,
            identity.name,
            partial(
                backend.uploads.examine,
                file.limits,
                received,
                file_name=file.name,
                by=identity.name,
                accepts_pictures=file.may_be_picture,
            ),
        )
        changed = await backend.write(
            tenant_id,
            partial(
                backend.uploads.store_content,
                file.tenant_record.ref,
                new,
                received,
                document_id=file.document_id,
                path=f"{FILE}/{source_id}",
            ),
        )
    return Written(file.document_id, "queued" if changed else "unchanged")


@dataclass(frozen=True, slots=True)
class _PushedFile:
    """A pushed file before its content is received.

    Attributes:
        name: name for display; credentials in it are masked.
        limits: the accepted size and formats.
        may_be_picture: whether pictures are accepted, because OCR is on for the tenant.
    """

    tenant_record: TenantRecord
    document_id: str
    name: str
    limits: UploadsConfig
    may_be_picture: bool


def _find_pushed_file(backend: Backend, target: RecordTarget) -> _PushedFile:
    """Return the pushed file that the next content belongs to.

    Raises:
        UnknownDocument: the file was not pushed.
        InvalidFields: the tenant's records are not typed.
    """
    tenant_record = backend.catalog.tenants.get(target.tenant_id)
    tenant = Tenant.from_config(tenant_record.config)
    if not get_profile(tenant.profile).typed_records:
        raise invalid("source_type", "records of this tenant cannot have a file as content")
    source = find_records_source(tenant, target.source, pulled=True).name
    document_id = compute_record_document_id(source, FILE, target.source_id)
    record = backend.catalog.records.find(target.tenant_id, document_id)
    if record is None:
        raise UnknownDocument(
            "no file with this id was pushed", hint="push the file before its content"
        )
    limits = UploadsConfig(name=source, max_bytes=MAX_FILE_BYTES, media_types=_FILE_TYPES)
    name = str(json.loads(record.text)["name"])
    # The record is stored unmasked, but its name is shown in more places.
    shown_name = mask(name, merge_spans(find_described_spans(name)))
    return _PushedFile(
        tenant_record, document_id, shown_name, limits, may_be_picture=tenant.parser.ocr
    )


MAX_LINES = 1_000
MAX_BYTES = 16 * 1024 * 1024
_BULK_SECONDS = 60.0


class BulkRoute(Guarded):
    """A guarded route for a body with many lines."""

    most_bytes: ClassVar[int] = MAX_BYTES

    async def admit_request(self, request: Request) -> Request:
        """Return the request for the handler, after reading its body."""
        body = await read_body(request, seconds=_BULK_SECONDS, most=self.most_bytes)
        return Request(request.scope, replay_body(body, request.receive))


record_lines = APIRouter(prefix="/rag", tags=["writing"], responses=REFUSED, route_class=BulkRoute)


@record_lines.post(
    "/records",
    responses=document_problems(400, 408, 409, 413),
    openapi_extra=describe_body(
        "application/x-ndjson",
        {
            "type": "string",
            "description": "One JSON object per line: `op` (put or delete), `type`, `id`,"
            " `if_match`, and the fields of a single write.",
        },
    ),
)
@open_to_writers
async def write_records(
    request: Request,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> RecordLines:
    """Push and delete many records, with a JSON object on each line. For admins and writers.

    A request may have at most 1,000 lines. They are applied in order and in one transaction; an
    invalid line does not affect the others. Records that are pushed singly are indexed before
    records that are pushed here.
    """
    tenant_id = request.state.tenant = identity.require_writer_tenant(parameters.tenant)
    sent = enumerate((await request.body()).split(b"\n"), start=1)
    lines = {number: line for number, line in sent if line.strip()}
    if len(lines) > MAX_LINES:
        raise HttpRefusal(413, f"send at most {MAX_LINES:,} lines at once")
    if lines:
        backend.written.take(identity.name, len(lines))
    description = request.app.state.description

    def write() -> RecordLines:
        drafting, tenant_record = get_draft_builder(backend, tenant_id, parameters.source)
        drafts = [*_iter_drafts(drafting, lines.values())]
        outcomes = write_drafts(
            backend.catalog, backend.blobs, tenant_record.ref, drafts, by=identity.name, lane=BULK
        )
        results = (
            _to_record_line(*pair, description) for pair in zip(lines, outcomes, strict=True)
        )
        return RecordLines(tuple(results))

    return await backend.write(tenant_id, write)


def _iter_drafts(drafting: DraftBuilder, lines: Iterable[bytes]) -> Iterator[Draft | InvalidFields]:
    for line in lines:
        try:
            yield _parse_draft(drafting, line)
        except InvalidFields as error:
            yield error


def _parse_draft(drafting: DraftBuilder, line: bytes) -> Draft:
    try:
        values = json.loads(line, parse_constant=_reject_constant)
        require_few_values(line, most=MAX_VALUES)
    except (ValueError, RecursionError):
        raise invalid("body", "it is not JSON") from None
    except HttpRefusal as error:
        raise invalid("body", str(error.detail)) from None
    if not isinstance(values, dict):
        raise invalid("body", "it must be a JSON object")
    fields = {name: values.pop(name, None) for name in ("op", "type", "id")}
    for name, value in fields.items():
        if not isinstance(value, str) or not _VALIDATORS[name](value):
            raise invalid(name, _PROBLEMS[name])
    if_match = values.pop("if_match", None)
    if not isinstance(if_match, str | None):
        raise invalid("if_match", "it must be the ETag of the record")
    if fields["op"] == "delete":
        page_uuid = values.pop("page_uuid", None)
        clock = pop_clock(values)
        if values:
            raise invalid(next(iter(values)), "there is no such field")
        draft = drafting.delete(fields["type"], fields["id"], page_uuid, clock)
    else:
        draft = drafting.put(fields["type"], fields["id"], values)
    return draft if if_match is None else replace(draft, etags=parse_if_match(if_match))


def _reject_constant(_: str) -> None:
    raise ValueError


_VALIDATORS = {
    "op": lambda value: value in {"put", "delete"},
    "type": lambda value: SOURCE_TYPE.fullmatch(value) is not None,
    "id": lambda value: SOURCE_ID.fullmatch(value) is not None,
}
_PROBLEMS = {
    "op": "it must be put or delete",
    "type": f"it must be a type of records, in a workspace one of: {', '.join(BODIES)}",
    "id": "it must be text of up to 512 characters, without control characters",
}


def _to_record_line(number: int, outcome: Outcome, description: Description) -> RecordLine:
    if isinstance(outcome, InvalidFields):
        errors = tuple(list_invalid_fields(outcome.errors, description.names | _VALIDATORS.keys()))
        return RecordLine(number, "invalid", errors=errors)
    if isinstance(outcome, UnknownDocument):
        return RecordLine(number, "unknown-page")
    if isinstance(outcome, VersionChanged):
        return RecordLine(number, "changed-meanwhile")
    return RecordLine(number, outcome.outcome, outcome.document_id, etag=outcome.etag)
