"""Endpoints for uploaded files.

Like a record, a file is stored before the response, and indexed by the next sync.

The file's content is returned in the pieces in which it arrives. If the rest of the form is large,
the form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, Streamed
from rag_assets.api.model import DocumentId, SourceNamed, TenantQuery
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
_FIELD_BYTES = 1_024
_MOST_PARTS = 20
_HINT = "send multipart/form-data with one `file`, and with `replaces` if it replaces an upload"


@dataclass
class _Part:
    """The part of a form that is being parsed."""

    headers: dict[str, str] = field(default_factory=dict)
    name: str = ""
    is_file: bool = False
    value: bytearray = field(default_factory=bytearray)


class UploadForm:
    """A form with one file.

    Args:
        content_type: header of the request.
        fields: names of the fields that the form may have in addition to `file`.

    Attributes:
        file_name: name from the form; None until the file starts.
        values: values of the fields so far.

    Raises:
        UploadRefused: the request is not a form.
    """

    def __init__(self, content_type: str, fields: frozenset[str]) -> None:
        from python_multipart.multipart import MultipartParser, parse_options_header

        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise _refusal("the request is not a form with a file")
        self.file_name: str | None = None
        self.values: dict[str, str] = {}
        self._fields = fields
        self._options_of = parse_options_header
        self._part = _Part()
        self._header = (bytearray(), bytearray())
        self._parts = 0
        self._pieces: list[bytes] = []
        self._ended = False
        callbacks: Mapping[str, Callable[..., None]] = {
            "on_part_begin": self._begin_part,
            "on_part_data": self._take_data,
            "on_part_end": self._end_part,
            "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_end": self._end,
        }
        self._parser: Any = _parse_form(lambda: MultipartParser(boundary, callbacks))  # type: ignore[arg-type]

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Parse the next bytes of the form; return the pieces of the file's content in them.

        Raises:
            UploadRefused: the body is not a form with one file.
        """
        _parse_form(lambda: self._parser.write(data))
        pieces, self._pieces = self._pieces, []
        return iter(pieces)

    def finish(self) -> str:
        """Check that the form is complete, and return the name of the file.

        Raises:
            UploadRefused: the form is incomplete or lacks a file.
        """
        if not self._ended:
            raise _refusal("the form is incomplete")
        if self.file_name is None:
            raise _refusal("the form contains no file")
        return self.file_name

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise _refusal(f"the form has more than {_MOST_PARTS} parts")
        self._part = _Part()

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
                raise _refusal("the form contains several files")
            part.is_file = True
            self.file_name = _decode(options.get(b"filename", b""))
        elif b"filename" in options:
            raise _refusal("the field with the file must be named `file`")
        elif part.name not in self._fields or part.name in self.values:
            raise _refusal("the form contains an unknown or repeated field")

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._part.is_file:
            self._pieces.append(data[start:end])
            return
        self._part.value += data[start:end]
        if len(self._part.value) > _FIELD_BYTES:
            raise _refusal("a field of the form is too long")

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
        raise _refusal("the form cannot be read") from None


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _refusal(why: str) -> UploadRefused:
    return UploadRefused(why, hint=_HINT)


_REFUSED = document_problems(401, 403, 404, 409, 422, 429, 500, 503)
_ID = re.compile(r"[0-9a-f]{32}")
_DONE = 200
FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
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
                            "description": "Id of the upload that it is the new version of.",
                        },
                    },
                }
            }
        },
    }
}
"""The request body of an upload in the OpenAPI description."""

REPLACES = "replaces"

uploading = APIRouter(prefix="/rag", tags=["uploads"], responses=_REFUSED, route_class=Guarded)
streaming = APIRouter(prefix="/rag", tags=["uploads"], responses=_REFUSED, route_class=Streamed)


class UploadQuery(TenantQuery):
    """The source of uploads.

    Attributes:
        source: the tenant's source of uploads; may be left out if there is only one.
    """

    source: SourceNamed | None = None


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

    The previous version stays searchable until the new version is indexed, and also if the new
    version fails. The same bytes are stored only once: the response to a duplicate is 200 with
    `duplicate`, and a failed file is tried again. The type of the file is detected from its
    content. A caller without permission is refused before the file is read.
    """
    tenant_id = request.state.tenant = identity.require_admin_tenant(parameters.tenant)
    ref, source = await backend.run(
        tenant_id, identity.name, partial(_target, backend, tenant_id, parameters.source)
    )
    form = UploadForm(request.headers.get("content-type", ""), frozenset({REPLACES}))
    async with backend.receiving.file(
        request,
        form,
        source,
        tenant_id=tenant_id,
        caller=identity.name,
        receive=partial(backend.uploads.receive, ref),
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
        response.status_code = _DONE
    return Uploaded(upload=_to_response(stored.upload), duplicate=stored.duplicate)


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
        found = backend.catalog.uploads.all(tenant_id, parameters.source)
        return Uploads(tuple(map(_to_response, found)))

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
        known = backend.catalog.tenants.get(tenant_id)
        gone = backend.uploads.remove(known.ref, upload_id, identity.name)
        return Written(document_id=upload_id, outcome="removed" if gone else "unchanged")

    return await backend.write(tenant_id, delete)


def find_replaced_upload_id(form: UploadForm) -> str | None:
    """Return the id of the upload that a form replaces, if any.

    Raises:
        InvalidFields: the value is not an id.
    """
    given = form.values.get(REPLACES)
    if given is not None and not _ID.fullmatch(given):
        raise invalid(REPLACES, "it must be the id of an upload")
    return given


def _target(
    backend: Backend, tenant_id: str, source: str | None
) -> tuple[TenantRef, UploadsConfig]:
    record = backend.catalog.tenants.get(tenant_id)
    return record.ref, get_uploads_source(Tenant.from_config(record.config), source)


def _to_response(found: stored_uploads.Upload) -> Upload:
    words = None if found.error_kind is None else WORDS[found.error_kind]
    return Upload(
        id=found.id,
        source=found.source,
        file_name=found.file_name,
        media_type=found.media_type,
        size=found.size,
        sha256=found.content_sha256,
        status=found.status,
        chunk_count=found.chunk_count,
        enabled=found.enabled,
        uploaded_by=found.uploaded_by,
        created_at=found.created_at,
        updated_at=found.updated_at,
        retry_at=found.retry_at,
        reason=None if words is None else words.reason,
        remedy=None if words is None else words.remedy,
        reason_kind=found.error_kind,
        note=found.note,
    )
