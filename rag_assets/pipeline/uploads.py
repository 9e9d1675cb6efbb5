"""Uploaded files on their way into a tenant's sources, and out of the blob store.

No function here needs the tenant's lock: short transactions of the catalog decide which blobs
uploads need (see BlobNeeds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.common.errors import (
    DocumentEmpty,
    DocumentRejected,
    DocumentVanished,
    NoUploadsSource,
    UploadRefused,
    UploadTooLarge,
    UploadUnreadable,
)
from rag_assets.ingest.parsing.detection import detect_file
from rag_assets.ingest.parsing.media_types import SUFFIXES, media_type_of, picture_type
from rag_assets.ingest.sources.disk import readable_size
from rag_assets.ingest.sources.model import StoredUpload
from rag_assets.ingest.sources.uploads import UploadsConfig, shown_name
from rag_assets.pipeline.blobs import drop_blobs
from rag_assets.storage.blobs.store import BlobStore, ReceivedFile
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.uploads.model import NewUpload, UploadResult
from rag_assets.storage.catalog.uploads.table import TenantUploads
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.sources import chosen_source

_MARK_BYTES = 16

if TYPE_CHECKING:
    from rag_assets.privacy.masker import Masker


@dataclass(frozen=True, slots=True)
class UploadedFiles:
    """A tenant's uploads with their contents (see UploadStore).

    Attributes:
        uploads: the catalog's records of them.
        blobs: their contents.
    """

    uploads: TenantUploads
    blobs: BlobStore

    def listed(self, source: str) -> Iterator[StoredUpload]:
        """See UploadStore.listed."""
        return self.uploads.listed(source)

    def stream(self, source: str, path: str) -> Iterator[bytes]:
        """See UploadStore.stream."""
        found = self.uploads.content(source, path)
        if found is None:
            raise DocumentVanished(f"the upload {path!r} was deleted after it was listed")
        yield from self._content(*found)

    def former(self, source: str, path: str, content_sha256: str) -> Iterator[bytes] | None:
        """See UploadStore.former."""
        incarnation = self.uploads.former(source, path, content_sha256)
        return None if incarnation is None else self._content(incarnation, content_sha256)

    def _content(self, incarnation: int, sha256: str) -> Iterator[bytes]:
        return self.blobs.tenant(self.uploads.tenant_id, incarnation).stream(sha256)


class Uploads:
    """Accepts uploaded files, and removes them.

    Args:
        catalog, blobs: the installation's catalog and blob store.
        masker: masks credentials in names; called when there is a name.
    """

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
        pictures: bool = False,
    ) -> NewUpload:
        """Identify a completely received file, and stage it durably.

        Args:
            source: the source that the file belongs to.
            received: the file's content.
            file_name: the name given with the file.
            by: name of the caller.
            pictures: whether pictures are accepted as well, since OCR reads them.

        Raises:
            UploadRefused: the file is empty, has no name, is too large or cannot be read.
            ServiceUnavailable: the file cannot be stored now.
        """
        name = shown_name(file_name)
        if not name:
            raise UploadRefused("the file has no name", hint="send the file's name with the file")
        if not received.size:
            raise _empty_file_error()
        require_size(received.size, source)
        media_type = _media_type(received, name, source, pictures=pictures)
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

        Args:
            new: the result of examine().
            received: the file's content.
            replaces: id of the upload that the file replaces.

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

        Args:
            ref, new, received: see store().
            document_id, path: the record's document id, and its path in the source.

        Returns:
            Whether the content is new or has changed.

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
        """Delete an upload: searches no longer return it, and its file is deleted from the store.

        Returns:
            Whether it existed.
        """
        hashes = self._catalog.uploads.remove(ref, upload_id, by)
        if hashes:
            drop_blobs(self._catalog, self._blobs, ref, hashes)
        return bool(hashes)


def uploads_source(tenant: Tenant, wanted: str | None = None) -> UploadsConfig:
    """Return the source for a tenant's uploads: the given one, or the only one.

    Raises:
        NoUploadsSource: no such source exists, or several do and no name is given.
    """
    takes = {s.name: s for s in tenant.sources if isinstance(s, UploadsConfig)}
    return chosen_source(tenant.id, takes, wanted, kind="uploads", refusal=NoUploadsSource)


def require_size(size: int, source: UploadsConfig) -> None:
    """Reject a file that is larger than its source accepts.

    Raises:
        UploadTooLarge: the file is too large.
    """
    if size > source.max_bytes:
        raise UploadTooLarge(
            f"the file is larger than {readable_size(source.max_bytes)}",
            hint="split the file, or remove parts of it that nobody needs",
        )


def _list_accepted_formats(source: UploadsConfig) -> str | None:
    """Return the formats that a source accepts, as a remedy; None if it accepts all."""
    names = [
        min(
            (s for s, named in SUFFIXES.items() if named == media_type), key=len, default=media_type
        )
        for media_type in source.media_types
    ]
    return f"save the file in an accepted format: {', '.join(names)}" if names else None


def _empty_file_error() -> UploadRefused:
    return UploadRefused("the file is empty", hint="choose a file with content")


def _media_type(received: ReceivedFile, name: str, source: UploadsConfig, *, pictures: bool) -> str:
    """Return the media type of a file, by its content; its name decides among text formats."""
    try:
        with received.opened() as file:
            if pictures and (picture := picture_type(file.read(_MARK_BYTES))):
                return picture
            file.seek(0)
            media_type = detect_file(file, media_type_of(name))
    except DocumentEmpty:
        raise _empty_file_error() from None
    except DocumentRejected as error:
        raise UploadUnreadable(
            error.message, hint=_list_accepted_formats(source) or error.hint
        ) from None
    if not source.accepts(media_type):
        raise UploadUnreadable(
            f"files of type {media_type} are not accepted here", hint=_list_accepted_formats(source)
        )
    return media_type
