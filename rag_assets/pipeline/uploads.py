"""Uploaded files: accept, replace and remove them, and delete their unneeded blobs.

No function that adds or removes an upload needs the tenant's lock: short transactions of the
catalog decide which blobs uploads need (see BlobNeeds). Blobs are compared with the catalog to find
missing, altered and unreferenced ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

from rag_assets.common.batches import batched
from rag_assets.common.clock import Clock
from rag_assets.common.errors import (
    BlobAltered,
    BlobMissing,
    DocumentEmpty,
    DocumentRejected,
    DocumentVanished,
    NoUploadsSource,
    UploadRefused,
    UploadTooLarge,
    UploadUnreadable,
)
from rag_assets.ingest.parsing.detection import detect_file
from rag_assets.ingest.parsing.media_types import SUFFIXES, detect_picture_type, find_media_type
from rag_assets.ingest.sources.disk import format_size
from rag_assets.ingest.sources.model import StoredUpload
from rag_assets.ingest.sources.uploads import UploadsConfig, clean_file_name
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.context import RateLimiter
from rag_assets.pipeline.mark_keeper import has_missing_changes
from rag_assets.storage.blobs.store import BlobStore, ReceivedFile, TenantBlobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.uploads.model import NeededBlob, NewUpload, UploadResult
from rag_assets.storage.catalog.uploads.table import TenantUploads
from rag_assets.tenants.kinds import choose_source
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.privacy.masker import Masker

GRACE = timedelta(days=1)
"""Age at which unreferenced blobs and staged files are deleted."""

_BATCH_BLOBS = 500
_MARK_BYTES = 16

BlobFault: TypeAlias = Literal["missing", "altered", "nobody's"]


@dataclass(frozen=True, slots=True)
class BlobDifference:
    """A difference between the blob store and the catalog.

    Attributes:
        sha256: the blob's hash, from its file name or from an upload.
        size: size in bytes, as stored; if the blob is missing, as recorded by the upload.
        document_ids: the uploads that need the blob; empty for an unreferenced blob.
    """

    fault: BlobFault
    sha256: str
    size: int
    document_ids: tuple[str, ...] = ()


def compare_blobs(
    catalog: Catalog,
    blobs: BlobStore,
    ref: TenantRef,
    *,
    is_read: Callable[[str], bool],
    older_than: datetime,
    bytes_per_second: float,
) -> Iterator[BlobDifference]:
    """Compare a tenant's blobs with the uploads that need them; read-only.

    Differences are yielded as they are found. Blobs that change during the comparison are not
    reported.

    Args:
        is_read: decides by document id whether the blob's content is read and hashed.
        older_than: unreferenced blobs are reported only if they were modified before this time.
    """
    of_tenant = blobs.tenant(ref.id, ref.incarnation)
    # List the store first: every blob that is stored after this is in the catalog as well.
    present = {blob.sha256: blob for blob in of_tenant.all()}
    pace = RateLimiter(bytes_per_second)
    # Read all rows at once: reading the files takes longer than a transaction may last.
    for needed in list(catalog.blob_needs.all(ref.id)):
        blob = present.pop(needed.sha256, None)
        fault = _find_fault(of_tenant, needed, pace, lost=blob is None, is_read=is_read)
        if fault is None:
            continue
        with catalog.blob_needs.lock_unneeded(ref, [needed.sha256]) as unneeded:
            is_needed = not unneeded
        if is_needed:
            size = needed.size if blob is None else blob.size
            yield BlobDifference(fault, needed.sha256, size, needed.document_ids)
    for blob in present.values():
        if blob.modified_at < older_than:
            yield BlobDifference("nobody's", blob.sha256, blob.size)


def sweep_blobs(catalog: Catalog, blobs: BlobStore, ref: TenantRef, clock: Clock) -> int:
    """Delete a tenant's old unreferenced blobs and staged files; return the number of blobs.

    Both are deleted when they are a day old. No blob is deleted while the catalog may have been
    restored from an older dump, because it may lack references to blobs that are needed. No file is
    deleted while the clock is not trusted.
    """
    now = get_deletion_time(catalog, clock)
    if isinstance(now, ClockDoubt):
        return 0
    of_tenant = blobs.tenant(ref.id, ref.incarnation)
    before = now - GRACE
    of_tenant.discard_staged(before)
    needed = {blob.sha256 for blob in catalog.blob_needs.all(ref.id)}
    old = (
        blob.sha256
        for blob in of_tenant.all()
        if blob.sha256 not in needed and blob.modified_at < before
    )
    return drop_blobs(catalog, blobs, ref, old)


def drop_blobs(catalog: Catalog, blobs: BlobStore, ref: TenantRef, hashes: Iterable[str]) -> int:
    """Delete the given blobs that the tenant no longer needs; return how many were deleted.

    No blob is deleted while the catalog lacks changes: it may lack a reference, such as a hold.
    After an operator has accepted the catalog, the blobs are deleted as unreferenced blobs.
    """
    if has_missing_changes(blobs.notes, catalog, ref):
        return 0
    of_tenant = blobs.tenant(ref.id, ref.incarnation)
    deleted = 0
    for batch in batched(hashes, _BATCH_BLOBS):
        with catalog.blob_needs.lock_unneeded(ref, batch) as unneeded:
            deleted += sum(of_tenant.delete(sha256) for sha256 in unneeded)
    return deleted


def list_unreferenced_blobs(catalog: Catalog, blobs: BlobStore, ref: TenantRef) -> list[str]:
    """Return the hashes of all unreferenced blobs of a tenant, old and new."""
    present = [blob.sha256 for blob in blobs.tenant(ref.id, ref.incarnation).all()]
    needed = {blob.sha256 for blob in catalog.blob_needs.all(ref.id)}
    return [sha256 for sha256 in present if sha256 not in needed]


def _find_fault(
    blobs: TenantBlobs,
    needed: NeededBlob,
    pace: RateLimiter,
    *,
    lost: bool,
    is_read: Callable[[str], bool],
) -> BlobFault | None:
    if lost:
        # The blob may have been stored after the store was listed.
        return None if blobs.exists(needed.sha256) else "missing"
    if not any(is_read(id_) for id_ in needed.document_ids):
        return None
    try:
        for piece in blobs.stream(needed.sha256):
            pace.add_bytes(len(piece))
    except BlobMissing:
        return "missing"
    except BlobAltered:
        return "altered"
    return None


@dataclass(frozen=True, slots=True)
class UploadedFiles:
    """A tenant's uploads with their contents (see UploadStore)."""

    uploads: TenantUploads
    blobs: BlobStore

    def iter_uploads(self, source: str) -> Iterator[StoredUpload]:
        """See UploadStore.iter_uploads."""
        return self.uploads.iter_uploads(source)

    def stream(self, source: str, path: str) -> Iterator[bytes]:
        """See UploadStore.stream."""
        content = self.uploads.content(source, path)
        if content is None:
            raise DocumentVanished(f"the upload {path!r} was deleted after it was listed")
        yield from self._stream_content(*content)

    def stream_former(self, source: str, path: str, content_sha256: str) -> Iterator[bytes] | None:
        """See UploadStore.stream_former."""
        incarnation = self.uploads.former(source, path, content_sha256)
        return None if incarnation is None else self._stream_content(incarnation, content_sha256)

    def _stream_content(self, incarnation: int, sha256: str) -> Iterator[bytes]:
        return self.blobs.tenant(self.uploads.tenant_id, incarnation).stream(sha256)


class UploadService:
    """Accepts uploaded files, and removes them."""

    def __init__(self, catalog: Catalog, blobs: BlobStore, masker: Callable[[], Masker]) -> None:
        self._catalog = catalog
        self._blobs = blobs
        self._masker = masker

    def receive(self, ref: TenantRef) -> ReceivedFile:
        """Return a new file, to be written and accepted; see TenantBlobs.receive."""
        return self._blobs.tenant(ref.id, ref.incarnation).receive()

    def accept(
        self,
        ref: TenantRef,
        source: UploadsConfig,
        received: ReceivedFile,
        *,
        file_name: str,
        by: str,
        replaces: str | None = None,
    ) -> UploadResult:
        """Examine a completely received file, and store it; see examine() and store()."""
        new = self.examine(source, received, file_name=file_name, by=by)
        return self.store(ref, new, received, replaces=replaces)

    def examine(
        self,
        source: UploadsConfig,
        received: ReceivedFile,
        *,
        file_name: str,
        by: str,
        accepts_pictures: bool = False,
    ) -> NewUpload:
        """Detect the type of a completely received file, and stage the file durably.

        Args:
            accepts_pictures: whether pictures are accepted as well, since OCR reads them.

        Raises:
            UploadRefused: the file is empty, nameless or too large, or cannot be read.
            ServiceUnavailable: the file cannot be stored now.
        """
        name = clean_file_name(file_name)
        if not name:
            raise UploadRefused("the file has no name", hint="send the file's name with the file")
        if not received.size:
            raise _build_empty_file_error()
        require_size(received.size, source)
        media_type = _detect_media_type(received, name, source, accepts_pictures=accepts_pictures)
        received.stage()
        return NewUpload(
            source=source.name,
            file_name=self._masker().text(name),
            media_type=media_type,
            size=received.size,
            content_sha256=received.sha256,
            uploaded_by=by,
            max_documents=source.max_documents,
            max_total_bytes=source.max_total_bytes,
        )

    def store(
        self,
        ref: TenantRef,
        new: NewUpload,
        received: ReceivedFile,
        *,
        replaces: str | None = None,
    ) -> UploadResult:
        """Store a file that was examined; the next sync indexes it.

        Raises:
            UnknownDocument: the upload to replace does not exist.
            UploadsFull: the source's limits for uploads are reached.
            TenantGone: the tenant was removed.
            ServiceUnavailable: the file cannot be stored now.
        """
        stored = self._catalog.uploads.store(ref, new, received.keep, replaces=replaces)
        if stored.former is not None:
            drop_blobs(self._catalog, self._blobs, ref, [stored.former])
        return stored

    def store_content(
        self,
        ref: TenantRef,
        new: NewUpload,
        received: ReceivedFile,
        *,
        document_id: str,
        path: str,
    ) -> bool:
        """Store the content of a pushed record that is a file; the next sync indexes it.

        Return whether the content is new or has changed.

        Raises:
            UnknownDocument: the record does not exist.
            TenantGone: the tenant was removed.
            ServiceUnavailable: the file cannot be stored now.
        """
        changed, forgotten = self._catalog.file_contents.store(
            ref, new, received.keep, document_id=document_id, path=path
        )
        if forgotten:
            drop_blobs(self._catalog, self._blobs, ref, forgotten)
        return changed

    def remove(self, ref: TenantRef, upload_id: str, by: str) -> bool:
        """Delete an upload and its file; searches stop returning it. Return whether it existed."""
        hashes = self._catalog.uploads.remove(ref, upload_id, by)
        if hashes:
            drop_blobs(self._catalog, self._blobs, ref, hashes)
        return bool(hashes)


def get_uploads_source(tenant: Tenant, wanted: str | None = None) -> UploadsConfig:
    """Return the source for a tenant's uploads: the named source, or the only source."""
    takes = {s.name: s for s in tenant.sources if isinstance(s, UploadsConfig)}
    return choose_source(tenant.id, takes, wanted, kind="uploads", refusal=NoUploadsSource)


def require_size(size: int, source: UploadsConfig) -> None:
    """Reject a file that is larger than its source accepts."""
    if size > source.max_bytes:
        raise UploadTooLarge(
            f"the file is larger than {format_size(source.max_bytes)}",
            hint="split the file, or remove parts of it that nobody needs",
        )


def _list_accepted_formats(source: UploadsConfig) -> str | None:
    """Return a hint that names the formats a source accepts; None if it accepts all."""
    names = [
        min(
            (s for s, named in SUFFIXES.items() if named == media_type), key=len, default=media_type
        )
        for media_type in source.media_types
    ]
    return f"save the file in an accepted format: {', '.join(names)}" if names else None


def _build_empty_file_error() -> UploadRefused:
    return UploadRefused("the file is empty", hint="choose a file with content")


def _detect_media_type(
    received: ReceivedFile, name: str, source: UploadsConfig, *, accepts_pictures: bool
) -> str:
    """Return the media type of a file, by its content; its name decides among text formats."""
    try:
        with received.opened() as file:
            if accepts_pictures and (picture := detect_picture_type(file.read(_MARK_BYTES))):
                return picture
            file.seek(0)
            media_type = detect_file(file, find_media_type(name))
    except DocumentEmpty:
        raise _build_empty_file_error() from None
    except DocumentRejected as error:
        raise UploadUnreadable(
            error.message, hint=_list_accepted_formats(source) or error.hint
        ) from None
    if not source.accepts(media_type):
        raise UploadUnreadable(
            f"files of type {media_type} are not accepted here", hint=_list_accepted_formats(source)
        )
    return media_type
