"""Endpoints for uploaded files, and the parser of their forms.

A file is stored before the response, and indexed by the next sync.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from rag_assets.api.backend import BackendDependency, IdentityDependency
from rag_assets.api.description import describe_body
from rag_assets.api.guard import Guarded, Streamed
from rag_assets.api.model import DocumentId, SourceName, TenantQuery
from rag_assets.api.problems import document_problems
from rag_assets.api.responses import Upload, Uploaded, Uploads, Written
from rag_assets.common.errors import UploadRefused
from rag_assets.common.failure_kinds import WORDS
from rag_assets.common.invalid_values import invalid
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.pipeline.uploads import get_uploads_source
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.uploads import model as stored_uploads
from rag_assets.tenants.model import Tenant

_FILE = "file"
_MAX_FIELD_BYTES = 1_024
_MAX_PARTS = 20
_HINT = "send multipart/form-data with one `file`, and `replaces` if it replaces an upload"


@dataclass
class _FormPart:
    """The part of a form that is currently parsed."""

    headers: dict[str, str] = field(default_factory=dict)
    name: str = ""
    is_file: bool = False
    value: bytearray = field(default_factory=bytearray)


class UploadForm:
    """A parser of multipart forms with one file.

    Args:
        fields: names of allowed fields besides `file`.

    Attributes:
        file_name: name from the form; None until the file starts.

    Raises:
        UploadRefused: the request is not a form.
    """

    def __init__(self, content_type: str, fields: frozenset[str]) -> None:
        from python_multipart.multipart import MultipartParser, parse_options_header

        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise _build_refusal("the request is not a form with a file")
        self.file_name: str | None = None
        self.values: dict[str, str] = {}
        self._fields = fields
        self._options_of = parse_options_header
        self._part = _FormPart()
        self._header = (bytearray(), bytearray())
        self._parts = 0
        self._pieces: list[bytes] = []
        self._ended = False
        callbacks: Mapping[str, Callable[..., None]] = {
            "on_part_begin": self._begin_part,
            "on_part_data": self._add_data,
            "on_part_end": self._end_part,
            "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_end": self._end,
        }
        self._parser: Any = _parse_form(lambda: MultipartParser(boundary, callbacks))  # type: ignore[arg-type]

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Parse the next bytes of the form, and return the pieces of the file in them.

        Raises:
            UploadRefused: the body is not a form with one file.
        """
        _parse_form(lambda: self._parser.write(data))
        pieces, self._pieces = self._pieces, []
        return iter(pieces)

    def finish(self) -> str:
        """Return the name of the file, after checking that the form is complete.

        Raises:
            UploadRefused: the form is incomplete or lacks a file.
        """
        if not self._ended:
            raise _build_refusal("the form is incomplete")
        if self.file_name is None:
            raise _build_refusal("the form does not contain a file")
        return self.file_name

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise _build_refusal(f"the form has more than {_MAX_PARTS} parts")
        self._part = _FormPart()

    def _end_header(self) -> None:
        name, value = (bytes(part).decode("latin-1") for part in self._header)
        self._part.headers[name.lower()] = value
        self._header = (bytearray(), bytearray())

    def _end_headers(self) -> None:
        part = self._part
        _, options = self._options_of(part.headers.get("content-disposition", ""))
        part.name = _decode(options.get(b"name", b""))
        if part.name == _FILE:
            if self.file_name is not None:
                raise _build_refusal("the form contains several files")
            part.is_file = True
            self.file_name = _decode(options.get(b"filename", b""))
        elif b"filename" in options:
            raise _build_refusal("the field with the file must be named `file`")
        elif part.name not in self._fields or part.name in self.values:
            raise _build_refusal("the form contains an unknown or repeated field")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._part.is_file:
            self._pieces.append(data[start:end])
            return
        self._part.value += data[start:end]
        if len(self._part.value) > _MAX_FIELD_BYTES:
            raise _build_refusal("a field of the form is too long")

    def _end_part(self) -> None:
        if not self._part.is_file:
            self.values[self._part.name] = _decode(bytes(self._part.value))

    def _end(self) -> None:
        self._ended = True


def _parse_form(parse: Callable[[], Any]) -> Any:
    from python_multipart.exceptions import FormParserError

    try:
        return parse()
    except FormParserError:
        # The message of the error may quote the form.
        raise _build_refusal("the form cannot be read") from None


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _build_refusal(reason: str) -> UploadRefused:
    return UploadRefused(reason, hint=_HINT)


_REFUSED = document_problems(401, 403, 404, 409, 422, 429, 500, 503)
_ID = re.compile(r"[0-9a-f]{32}")
_OK = 200
FORM = describe_body(
    "multipart/form-data",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["file"],
        "properties": {
            "file": {
                "type": "string",
                "format": "binary",
                "description": "The file, with its name.",
            },
            "replaces": {
                "type": "string",
                "pattern": "^[0-9a-f]{32}$",
                "description": "Id of the upload that the file replaces.",
            },
        },
    },
)
"""The request body of an upload in the OpenAPI description."""

REPLACES = "replaces"

uploading = APIRouter(prefix="/rag", tags=["uploads"], responses=_REFUSED, route_class=Guarded)
streaming = APIRouter(prefix="/rag", tags=["uploads"], responses=_REFUSED, route_class=Streamed)


class UploadQuery(TenantQuery):
    """The source of uploads.

    Attributes:
        source: the tenant's source of uploads; may be left out if there is only one.
    """

    source: SourceName | None = None


@streaming.post(
    "/uploads",
    status_code=202,
    responses={200: {"model": Uploaded}, **document_problems(408, 413, 415)},
    openapi_extra=FORM,
)
async def upload(
    request: Request,
    response: Response,
    parameters: Annotated[UploadQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Uploaded:
    """Upload a file or a new version of a file. For admins.

    The previous version stays searchable until the new version is indexed, also if the new version
    fails. The same bytes are stored only once: the response to a duplicate is 200 with `duplicate`,
    and a failed file is retried. The file's content determines its type. Callers without permission
    are refused before the file is read.
    """
    tenant_id = request.state.tenant = identity.require_admin_tenant(parameters.tenant)

    def find_target() -> tuple[TenantRef, UploadsConfig]:
        record = backend.catalog.tenants.get(tenant_id)
        tenant = Tenant.from_config(record.config)
        return record.ref, get_uploads_source(tenant, parameters.source)

    ref, source = await backend.run(tenant_id, identity.name, find_target)
    form = UploadForm(request.headers.get("content-type", ""), frozenset({REPLACES}))
    async with backend.file_receiver.receive(
        request,
        form,
        source,
        tenant_id=tenant_id,
        caller=identity.name,
        create=partial(backend.uploads.receive, ref),
    ) as received:
        name, replaces = form.finish(), find_replaced_upload_id(form)
        new = await backend.run(
            tenant_id,
            identity.name,
            partial(backend.uploads.examine, source, received, file_name=name, by=identity.name),
        )
        stored = await backend.write(
            tenant_id, partial(backend.uploads.store, ref, new, received, replaces=replaces)
        )
    if stored.duplicate:
        response.status_code = _OK
    return Uploaded(upload=_to_upload_response(stored.upload), duplicate=stored.duplicate)


@uploading.get("/uploads")
async def uploads(
    request: Request,
    parameters: Annotated[UploadQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Uploads:
    """List the uploaded files by name, with their status. For admins."""
    tenant_id = request.state.tenant = identity.require_admin_tenant(parameters.tenant)

    def read() -> Uploads:
        backend.catalog.tenants.get(tenant_id)
        stored_uploads = backend.catalog.uploads.all(tenant_id, parameters.source)
        return Uploads(tuple(map(_to_upload_response, stored_uploads)))

    return await backend.run(tenant_id, identity.name, read)


@uploading.delete("/uploads/{upload_id}", status_code=202)
async def delete_upload(
    request: Request,
    upload_id: DocumentId,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Written:
    """Delete an uploaded file. For admins.

    Searches omit it immediately, and its bytes are deleted. Deleting a missing file is allowed.
    """
    tenant_id = request.state.tenant = identity.require_admin_tenant(parameters.tenant)

    def delete() -> Written:
        record = backend.catalog.tenants.get(tenant_id)
        is_removed = backend.uploads.remove(record.ref, upload_id, identity.name)
        return Written(document_id=upload_id, outcome="removed" if is_removed else "unchanged")

    return await backend.write(tenant_id, delete)


def find_replaced_upload_id(form: UploadForm) -> str | None:
    """Return the id of the upload that a form replaces, if any."""
    upload_id = form.values.get(REPLACES)
    if upload_id is not None and not _ID.fullmatch(upload_id):
        raise invalid(REPLACES, "it must be the id of an upload")
    return upload_id


def _to_upload_response(stored: stored_uploads.Upload) -> Upload:
    words = None if stored.error_kind is None else WORDS[stored.error_kind]
    return Upload(
        id=stored.id,
        source=stored.source,
        file_name=stored.file_name,
        media_type=stored.media_type,
        size=stored.size,
        sha256=stored.content_sha256,
        status=stored.status,
        chunk_count=stored.chunk_count,
        enabled=stored.enabled,
        uploaded_by=stored.uploaded_by,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        retry_at=stored.retry_at,
        reason=None if words is None else words.reason,
        remedy=None if words is None else words.remedy,
        reason_kind=stored.error_kind,
        note=stored.note,
    )
