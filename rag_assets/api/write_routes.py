"""Endpoints that write: records, deletions, reindexing, reconciliation.

A write is stored in the catalog before the response is sent, and applied by the next sync, which
the daemon's file sensor requests. Only removals take effect before the response.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Collection, Iterator
from functools import partial
from typing import IO, Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError

from rag_assets.api.backend import BackendDependency, IdentityDependency
from rag_assets.api.description import describe_body
from rag_assets.api.guard import Guarded, Streamed, open_to_writers
from rag_assets.api.model import (
    DeleteQuery,
    DocumentId,
    RecordQuery,
    Reindex,
    ReindexDocument,
    ReindexPage,
    ReindexSource,
)
from rag_assets.api.problems import HttpRefusal, document_problems
from rag_assets.api.responses import Reconciled, ReconciledRecord, Reindexed, Written
from rag_assets.common.clock import Clock
from rag_assets.common.errors import UnknownDocument, UnknownSource
from rag_assets.common.invalid_values import allowed_value, invalid
from rag_assets.ingest.sources.record_bodies import BODIES, BlockBody
from rag_assets.pipeline.uploads import drop_blobs
from rag_assets.records.text_records import find_records_source
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.records.manifests import ManifestLine
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile


def request_reindex(catalog: Catalog, tenant_id: str, body: Reindex, by: str) -> Reindexed:
    """Request that documents are read, parsed and indexed again, including failed documents.

    Raises:
        UnknownTenant, UnknownDocument, UnknownSource: the id is unknown.
    """
    record = catalog.tenants.get(tenant_id)
    requests = catalog.reindex_requests
    if isinstance(body, ReindexDocument):
        documents = requests.request_document(record.ref, body.id, by)
        if not documents:
            raise UnknownDocument(
                f"tenant {tenant_id!r} has no such document",
                hint="use an id from the list of documents",
            )
    elif isinstance(body, ReindexPage):
        documents = requests.request_page(record.ref, body.id, body.scope, by)
        if not documents and not _is_in_tree(catalog, tenant_id, body):
            raise UnknownDocument(
                f"tenant {tenant_id!r} has no such {body.scope}",
                hint="use the id with which the application pushes it",
            )
    elif isinstance(body, ReindexSource):
        names = [source.name for source in Tenant.from_config(record.config).sources]
        if body.id not in names:
            raise UnknownSource(
                f"tenant {tenant_id!r} has no such source",
                hint=f"its sources are: {', '.join(names) or 'none'}",
            )
        documents = requests.request_source(record.ref, body.id, by)
    else:
        # A pending embedding model takes effect now, and starts to cost money.
        catalog.application_settings.take_pending_model(record.ref, by)
        documents = requests.request_tenant(record.ref, by)
    return Reindexed(documents=documents)


def _is_in_tree(catalog: Catalog, tenant_id: str, body: ReindexPage) -> bool:
    """Return whether the tree contains the page or database, even without records."""
    kind = catalog.pages.find_kind(tenant_id, body.id)
    return kind is not None and (kind == "database") == (body.scope == "database")


_REFUSED = document_problems(401, 403, 404, 422, 429, 500, 503)

writing = APIRouter(prefix="/rag", tags=["writing"], responses=_REFUSED, route_class=Guarded)


@writing.delete("/documents/{document_id}", status_code=202, responses=document_problems(409))
async def delete_document(
    request: Request,
    document_id: DocumentId,
    parameters: Annotated[DeleteQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Written:
    """Delete a document of any source. For admins.

    Searches omit it immediately. A deleted file stays in its source, and is indexed again when it
    changes. A purge continues in the background: it removes the document from every store and file,
    verifies the removal, and writes the receipt that the response names. Documents on hold are not
    purged.
    """
    tenant_id = request.state.tenant = identity.require_admin_tenant(parameters.tenant)

    def delete() -> Written:
        record = backend.catalog.tenants.get(tenant_id)
        if parameters.purge:
            erasure = backend.catalog.erasures.begin_purge(
                record.ref, [document_id], by=identity.name, at=Clock().now()
            )
            return Written(document_id, "removed", receipt=str(erasure.id))
        is_removed = backend.uploads.remove(record.ref, document_id, identity.name)
        if not is_removed:
            is_removed = backend.catalog.removals.remove(record.ref, document_id, identity.name)
        return Written(document_id=document_id, outcome="removed" if is_removed else "unchanged")

    return await backend.write(tenant_id, delete)


@writing.post("/reindex", status_code=202, responses=document_problems(400, 408, 413))
async def reindex(
    request: Request, body: Reindex, identity: IdentityDependency, backend: BackendDependency
) -> Reindexed:
    """Read, parse and index documents again, including failed documents. For admins.

    Until then, their current versions stay searchable. Texts that already have a vector keep it.
    """
    tenant_id = request.state.tenant = identity.require_admin_tenant(body.tenant_id)
    return await backend.write(
        tenant_id, partial(request_reindex, backend.catalog, tenant_id, body, identity.name)
    )


_MAX_BYTES = 1 << 30
_MAX_LINE_BYTES = 1 << 16
_MAX_SILENCE_SECONDS = 10.0
_TOO_SLOW, _TOO_LARGE = 408, 413
_TYPES = tuple(type_ for type_ in BODIES if type_ != BlockBody.TYPE)
"""Types of typed records in a manifest; blocks are compared with their page."""

reconciling = APIRouter(prefix="/rag", tags=["writing"], responses=_REFUSED, route_class=Streamed)


class ReconcileQuery(RecordQuery):
    """Options of a comparison with a manifest.

    Attributes:
        apply: remove the records that the manifest does not name.
        allow_deletes: remove them even if there are many.
        as_of: when the manifest was created; by default, and at the latest, when it is received.
            Records that were pushed later are not removed.
    """

    apply: bool = False
    allow_deletes: bool = False
    as_of: AwareDatetime | None = None


class _ManifestRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    id: Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=512)]
    updated_at: AwareDatetime | None = None
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None


@reconciling.post(
    "/reconcile",
    responses=document_problems(408, 409, 413),
    openapi_extra=describe_body(
        "application/x-ndjson",
        {
            "type": "string",
            "description": "One JSON object per line: `type`, `id`, and `updated_at` or `sha256`.",
        },
    ),
)
@open_to_writers
async def reconcile(
    request: Request,
    parameters: Annotated[ReconcileQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Reconciled:
    """Compare a manifest of all records with the stored records. For admins and writers.

    The response lists missing, stale and extra records. Blocks need no line, because they are
    compared with their page. With `apply`, extra records and all records of extra pages are
    removed. Removals of more than 20 records that are more than 30 % of all records require
    `allow_deletes`; removals by manifests of the last 24 hours count as well. A manifest may have
    at most 1 GiB.
    """
    tenant_id = request.state.tenant = identity.require_writer_tenant(parameters.tenant)
    received_at = await backend.run(tenant_id, identity.name, backend.catalog.database.time)
    # The clock of the application may be fast, but records pushed from now on must not be removed.
    as_of = min(parameters.as_of or received_at, received_at)

    with tempfile.TemporaryFile() as file:
        await _save_body(request, file)

        def compare() -> Reconciled:
            record = backend.catalog.tenants.get(tenant_id)
            tenant = Tenant.from_config(record.config)
            source = find_records_source(tenant, parameters.source)
            types = _TYPES if get_profile(tenant.profile).typed_records else None
            file.seek(0)
            comparison = backend.catalog.record_manifests.compare(
                record.ref,
                source.name,
                _iter_lines(file, types),
                remove_extra=parameters.apply,
                allow_deletes=parameters.allow_deletes,
                window_hours=source.deletion_window_hours,
                as_of=as_of,
                by=identity.name,
            )
            if comparison.blobs:
                drop_blobs(backend.catalog, backend.blobs, record.ref, comparison.blobs)
            records = (
                ReconciledRecord(source_type, source_id, difference)
                for source_type, source_id, difference in comparison.named
            )
            return Reconciled(
                **comparison.counts, removed=comparison.removed, records=tuple(records)
            )

        if parameters.apply:
            return await backend.write(tenant_id, compare)
        return await backend.run(tenant_id, identity.name, compare)


async def _save_body(request: Request, file: IO[bytes]) -> None:
    """Write the body to a file as it arrives; refuse a body that pauses or is over 1 GiB."""
    stream, size = aiter(request.stream()), 0
    while True:
        try:
            async with asyncio.timeout(_MAX_SILENCE_SECONDS):
                data = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            message = f"no data arrived for {_MAX_SILENCE_SECONDS:g} seconds"
            raise HttpRefusal(_TOO_SLOW, message, {"Connection": "close"}) from None
        size += len(data)
        if size > _MAX_BYTES:
            raise HttpRefusal(
                _TOO_LARGE, "a manifest may have at most 1 GiB", {"Connection": "close"}
            )
        await run_sync(file.write, data)


def _iter_lines(file: IO[bytes], types: Collection[str] | None) -> Iterator[ManifestLine]:
    """Yield the lines of a manifest; `types` are the allowed types, or None to allow any."""
    number = 0
    while line := file.readline(_MAX_LINE_BYTES):
        number += 1
        if line.strip():
            parsed = _parse_line(line, number)
            if types is not None and parsed.source_type not in types:
                raise invalid("type", f"line {number}: the type must be one of: {', '.join(types)}")
            yield parsed


def _parse_line(line: bytes, number: int) -> ManifestLine:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise invalid("body", f"line {number}: it must be a JSON object of at most 64 KiB")
    try:
        row = _ManifestRow.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise invalid(str(first["loc"][0]), f"line {number}: {allowed_value(first)}") from None
    return ManifestLine(row.type, row.id, row.updated_at, row.sha256)
