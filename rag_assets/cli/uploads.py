"""Commands for uploaded files of tenants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError, RagAssetsError, UnknownDocument

if TYPE_CHECKING:
    from rag_assets.ingest.sources.uploads import UploadsConfig
    from rag_assets.pipeline.uploads import UploadService
    from rag_assets.storage.catalog.database import TenantRef
    from rag_assets.storage.catalog.uploads.model import UploadResult

SourceOption = Annotated[
    str | None, typer.Option("--source", help="The source of uploads, if the tenant has several.")
]
UploadArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the upload.")]
_PIECE_BYTES = 1 << 20

app = typer.Typer()


@app.command("add")
@with_session
def add(
    session: Session,
    tenant_id: TenantArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files.")],
    *,
    replaces: Annotated[
        str | None,
        typer.Option("--replaces", help="Id of the upload that the file replaces."),
    ] = None,
    source: SourceOption = None,
    as_json: Json = False,
) -> None:
    """Upload files to a tenant; the next sync indexes them."""
    from rag_assets.pipeline.uploads import get_uploads_source
    from rag_assets.tenants.model import Tenant

    if replaces is not None and len(files) > 1:
        raise ConfigurationError(
            "--replaces cannot be used with several files", hint="use --replaces with only one FILE"
        )
    record = session.get_active_tenant(tenant_id)
    config = get_uploads_source(Tenant.from_config(record.config), source)
    uploads = _open_uploads(session)
    stored: list[tuple[Path, UploadResult]] = []
    refused: list[tuple[Path, RagAssetsError]] = []
    for file in files:
        try:
            stored.append((file, _store_file(uploads, record.ref, config, file, replaces)))
        except RagAssetsError as error:
            if len(files) == 1:
                raise
            refused.append((file, error))
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "uploads": [
                    {**_to_json(result), "duplicate": result.duplicate} for _, result in stored
                ],
                "refused": [
                    {"file": file.name, "error": reason.advice} for file, reason in refused
                ],
            }
        )
    else:
        for _, result in stored:
            outcome = "was already stored" if result.duplicate else "uploaded"
            say(f"{result.upload.file_name}: {outcome}, as {result.upload.id}")
        for file, reason in refused:
            say(f"{file.name}: refused: {reason.advice}")
        if any(not result.duplicate for _, result in stored):
            say(f"`rag-assets sync {tenant_id}` indexes them, or the daemon within a minute.")
    if refused:
        raise ConfigurationError(
            f"{len(refused)} of {len(files)} files were refused",
            hint="correct each refused file as described above, and upload it again",
        )


@app.command("list")
@with_reading_session
def list_uploads(
    session: Session,
    tenant_id: TenantArgument,
    *,
    source: SourceOption = None,
    as_json: Json = False,
) -> None:
    """List a tenant's uploads with their status."""
    session.catalog.tenants.get(tenant_id)
    stored_uploads = session.catalog.uploads.all(tenant_id, source)
    if as_json:
        print_json({"tenant": tenant_id, "uploads": stored_uploads})
        return
    print_table(
        ["file", "id", "status", "chunks", "bytes", "by", "uploaded", "reason"],
        [
            (
                *(upload.file_name, upload.id, upload.status, upload.chunk_count, upload.size),
                *(upload.uploaded_by, f"{upload.updated_at:%Y-%m-%d %H:%M} UTC"),
                upload.error_message or upload.note,
            )
            for upload in stored_uploads
        ],
    )


@app.command("delete")
@with_session
def delete(
    session: Session, tenant_id: TenantArgument, upload_id: UploadArgument, *, as_json: Json = False
) -> None:
    """Delete an upload, so that searches no longer return it."""
    record = session.catalog.tenants.get(tenant_id)
    if not _open_uploads(session).remove(record.ref, upload_id, operator()):
        raise UnknownDocument(
            f"tenant {tenant_id!r} has no such upload",
            hint=f"run `rag-assets uploads list {tenant_id}` to see the ids",
        )
    if as_json:
        print_json({"tenant": tenant_id, "id": upload_id, "deleted": True})
        return
    say(f"{upload_id} is deleted: searches no longer return it.")


@app.command("disable")
@with_session
def disable(
    session: Session, tenant_id: TenantArgument, upload_id: UploadArgument, *, as_json: Json = False
) -> None:
    """Exclude an upload from searches, and keep its computed data."""
    _set_enabled(session, tenant_id, upload_id, enabled=False, as_json=as_json)


@app.command("enable")
@with_session
def enable(
    session: Session, tenant_id: TenantArgument, upload_id: UploadArgument, *, as_json: Json = False
) -> None:
    """Include an upload in searches again, without embedding it again."""
    _set_enabled(session, tenant_id, upload_id, enabled=True, as_json=as_json)


def _set_enabled(
    session: Session, tenant_id: str, upload_id: str, *, enabled: bool, as_json: bool
) -> None:
    record = session.catalog.tenants.get(tenant_id)
    session.catalog.uploads.set_enabled(record.ref, upload_id, operator(), enabled=enabled)
    if as_json:
        print_json({"tenant": tenant_id, "id": upload_id, "enabled": enabled})
        return
    outcome = "is found again after the next sync" if enabled else "is no longer found"
    say(f"{upload_id} {outcome}.")


def _open_uploads(session: Session) -> UploadService:
    from rag_assets.pipeline.uploads import UploadService
    from rag_assets.privacy.masker import get_masker
    from rag_assets.storage.blobs.store import open_blobs

    settings = session.settings
    return UploadService(session.catalog, open_blobs(settings), lambda: get_masker(settings.local))


def _store_file(
    uploads: UploadService, ref: TenantRef, source: UploadsConfig, path: Path, replaces: str | None
) -> UploadResult:
    from rag_assets.pipeline.uploads import require_size

    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", hint="choose a file that you can read"
        ) from None
    with file, uploads.receive(ref) as received:
        while piece := file.read(_PIECE_BYTES):
            require_size(received.size + len(piece), source)
            received.write(piece)
        return uploads.accept(
            ref, source, received, file_name=path.name, by=operator(), replaces=replaces
        )


def _to_json(upload_result: UploadResult) -> dict[str, object]:
    upload = upload_result.upload
    return {
        "id": upload.id,
        "file_name": upload.file_name,
        "media_type": upload.media_type,
        "size": upload.size,
        "status": upload.status,
    }
