"""The endpoint for the content of a pushed file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.routing import Match
from starlette.types import Scope

from rag_assets.api.backend import Backend
from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Streamed, open_to_writers
from rag_assets.api.problems import documented
from rag_assets.api.receiving import RawContent
from rag_assets.api.record_routes import REFUSED, RecordTarget
from rag_assets.api.responses import Written
from rag_assets.api.write_model import RecordQuery, SourceId
from rag_assets.common.errors import UnknownDocument
from rag_assets.common.invalid_values import invalid
from rag_assets.ingest.parsing.media_types import CSV, DOCX, HTML, MARKDOWN, PDF, PLAIN, TSV
from rag_assets.ingest.sources.records import FILE, MAX_FILE_BYTES, record_document_id
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.privacy.described import described_spans
from rag_assets.privacy.secrets.spans import mask, merge_spans
from rag_assets.records.text_records import records_source
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import profile_of

_CONTENT = "/records/file/{source_id:path}/content"
_FILE_TYPES = (PDF, MARKDOWN, PLAIN, DOCX, HTML, CSV, TSV)


class _OfContent(Streamed):
    """A route for contents; it does not match if `/content` is a part of the record's id."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route matches a request.

        Routes match the decoded path. Without this check, an id that ends in `/content`, with an
        encoded slash, would look like the content of a file with a shorter id.
        """
        raw = scope.get("raw_path")
        if raw is not None and not raw.endswith(b"/content"):
            return Match.NONE, {}
        return super().matches(scope)


contents = APIRouter(prefix="/rag", tags=["writing"], responses=REFUSED, route_class=_OfContent)


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
@open_to_writers
async def put_content(
    request: Request,
    source_id: SourceId,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Written:
    """Upload the content of a file that was pushed. For admins and writers.

    The content is PDF, Markdown, plain text, Word, HTML, CSV or TSV; if OCR is on, also a PNG,
    JPEG, TIFF or WebP picture. Its bytes determine the format; the file's name distinguishes text
    formats. It may have at most 50 MiB.
    """
    tenant_id = request.state.tenant = identity.written(parameters.tenant)
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
    """A pushed file whose content is about to be received.

    Attributes:
        known: record of the tenant.
        name: name for display; credentials in it are masked.
        takes: the accepted size and formats.
        may_be_picture: whether pictures are accepted, because OCR is on for the tenant.
    """

    known: TenantRecord
    document_id: str
    name: str
    takes: UploadsConfig
    may_be_picture: bool


def _file(backend: Backend, target: RecordTarget) -> _File:
    """Return the file that receives its content, with the accepted size and formats.

    Raises:
        UnknownDocument: the file was not pushed.
        InvalidFields: the tenant's records are not typed.
    """
    known = backend.catalog.tenants.get(target.tenant_id)
    tenant = Tenant.from_config(known.config)
    if not profile_of(tenant.profile).typed_records:
        raise invalid("source_type", "records of this tenant have no content besides their text")
    source = records_source(tenant, target.source, pulled=True).name
    document_id = record_document_id(source, FILE, target.source_id)
    record = backend.catalog.records.find(target.tenant_id, document_id)
    if record is None:
        raise UnknownDocument(
            "no file with this id was pushed", hint="push the file before its content"
        )
    takes = UploadsConfig(name=source, max_bytes=MAX_FILE_BYTES, media_types=_FILE_TYPES)
    name = str(json.loads(record.text)["name"])
    # The name is masked because it is shown in more places than the record, which is stored
    # unchanged.
    shown = mask(name, merge_spans(described_spans(name)))
    return _File(known, document_id, shown, takes, may_be_picture=tenant.parser.ocr)
