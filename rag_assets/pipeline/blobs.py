"""Compare blobs with the catalog: find missing, altered and unreferenced blobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic, sleep
from typing import Literal, TypeAlias

from rag_assets.common.batches import batched
from rag_assets.common.clock import Clock
from rag_assets.common.errors import BlobAltered, BlobMissing
from rag_assets.pipeline.clock_guard import ClockDoubt, time_for_deletion
from rag_assets.pipeline.mark_keeper import lacks_changes_in
from rag_assets.storage.blobs.store import BlobStore, TenantBlobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.uploads.model import NeededBlob

GRACE = timedelta(days=1)
"""Age at which unreferenced blobs and staged files are deleted."""

_BATCH = 500

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
    bytes_a_second: float,
) -> Iterator[BlobDifference]:
    """Compare a tenant's blobs with the uploads that need them; read-only.

    Differences are yielded as they are found. Blobs that change during the comparison are not
    reported.

    Args:
        catalog, blobs: the installation's catalog and blob store.
        is_read: decides by document id whether the blob's content is read and hashed.
        older_than: unreferenced blobs are reported only if they were modified before this time.
        bytes_a_second: limit of the reading rate.
    """
    of_tenant = blobs.tenant(ref.id, ref.incarnation)
    # List the store first: every blob that is stored after this is in the catalog as well.
    present = {blob.sha256: blob for blob in of_tenant.all()}
    pace = _Pace(bytes_a_second)
    # Read all rows at once: reading the files takes longer than a transaction may last.
    for needed in list(catalog.blob_needs.all(ref.id)):
        blob = present.pop(needed.sha256, None)
        fault = _fault(of_tenant, needed, pace, lost=blob is None, is_read=is_read)
        if fault is not None and _still_needed(catalog, ref, needed):
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

    Args:
        catalog, blobs: the installation's catalog and blob store.
        clock: determines the age of blobs and files.
    """
    now = time_for_deletion(catalog, clock)
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
    """Delete those of the given blobs that a tenant no longer needs; return how many.

    No blob is deleted while the catalog lacks changes: it may lack a reference, such as a hold.
    After an operator has accepted the catalog, the blobs are deleted as unreferenced blobs.
    """
    if lacks_changes_in(blobs.notes, catalog, ref):
        return 0
    of_tenant = blobs.tenant(ref.id, ref.incarnation)
    deleted = 0
    for batch in batched(hashes, _BATCH):
        with catalog.blob_needs.lock_unneeded(ref, batch) as unneeded:
            deleted += sum(of_tenant.delete(sha256) for sha256 in unneeded)
    return deleted


def nobodys_blobs(catalog: Catalog, blobs: BlobStore, ref: TenantRef) -> list[str]:
    """Return the hashes of a tenant's unreferenced blobs, whatever their age."""
    present = [blob.sha256 for blob in blobs.tenant(ref.id, ref.incarnation).all()]
    needed = {blob.sha256 for blob in catalog.blob_needs.all(ref.id)}
    return [sha256 for sha256 in present if sha256 not in needed]


def _fault(
    blobs: TenantBlobs,
    needed: NeededBlob,
    pace: _Pace,
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
            pace.take(len(piece))
    except BlobMissing:
        return "missing"
    except BlobAltered:
        return "altered"
    return None


def _still_needed(catalog: Catalog, ref: TenantRef, needed: NeededBlob) -> bool:
    with catalog.blob_needs.lock_unneeded(ref, [needed.sha256]) as unneeded:
        return not unneeded


class _Pace:
    """Limits the reading rate.

    Args:
        bytes_a_second: the rate.
    """

    def __init__(self, bytes_a_second: float) -> None:
        self._rate = bytes_a_second
        self._began = monotonic()
        self._taken = 0

    def take(self, size: int) -> None:
        """Wait until the rate allows reading this many more bytes."""
        self._taken += size
        ahead = self._taken / self._rate - (monotonic() - self._began)
        if ahead > 0:
            sleep(ahead)
