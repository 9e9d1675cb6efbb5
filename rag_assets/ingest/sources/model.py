"""Listed documents and their facts, and the interfaces of sources and of their stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from rag_assets.common.errors import DocumentVanished, ListingFailed
from rag_assets.common.hashing import compute_key
from rag_assets.common.times import from_nanoseconds, whole_milliseconds
from rag_assets.ingest.sources.disk import DiskReader, FolderIdentity

RACY_NS = 2_000_000_000
"""A file that was modified this shortly before its listing may change again without a new mtime."""

FUTURE_NS = 3_600_000_000_000
"""If a file's mtime lies this far in the future, somebody set it. The next write then changes
it."""

_CACHED_PATHS = 4_096
"""Number of paths that are cached, since a walk often asks for the paths of the same few files."""

READ_AGAIN_NS = 0
"""A listing time that means that the document must be read again, whatever its facts."""


@dataclass(frozen=True, slots=True)
class ListingFacts:
    """The properties of a file that a listing returns without reading the file.

    Attributes:
        inode: number of the file in its file system; 0 if the document is not a file.
        revision: for a pushed record, a value that changes with every change to the record;
            None for other documents.
        version: a value from the source that identifies the content and does not depend on a
            clock, such as the full blob id in a repository. Two versions are equal if and only if
            the contents are equal. None if only the facts of the file are known.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    revision: int | None = None
    version: str | None = None

    @property
    def identity(self) -> int | str:
        """Return the version, the revision or the inode: the first that the source knows."""
        if self.version is not None:
            return f"={self.version}"  # No number of a file or record starts with "=".
        # Earlier versions stored a record's revision as its inode, and hashes of records must not
        # change.
        return self.inode if self.revision is None else self.revision

    def is_unchanged_since(self, other: ListingFacts, listed_at_ns: int) -> bool:
        """Return whether the content is certainly unchanged since the previous listing.

        If there is a version, it alone decides. Without a version, equal facts do not suffice,
        because a file that is written again within the clock's granularity keeps its mtime. So the
        mtime must also have been at least 2 s old when the previous listing started.

        Args:
            other: the facts of the previous listing.
            listed_at_ns: when the previous listing started, in nanoseconds since the epoch;
                READ_AGAIN_NS if the document must be read again.
        """
        if listed_at_ns == READ_AGAIN_NS:
            return False
        if self.version is not None or other.version is not None:
            return self.version == other.version
        is_settled = self.mtime_ns + RACY_NS <= listed_at_ns
        return self == other and (is_settled or self.mtime_ns > listed_at_ns + FUTURE_NS)


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """Metadata that a source supplies for a document; files have no such metadata.

    For values of None, the document has the title in its content, an address derived from source
    and path, the scope of its source or tenant, and the time of the file.
    """

    title: str | None = None
    uri: str | None = None
    access_scope: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    modified_at: datetime | None = None


NO_METADATA = SourceMetadata()


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document as its source lists it, before its content is read.

    Attributes:
        path: POSIX path or id within the source, exactly as the source has it. Bytes of a file
            name that are not UTF-8 are kept as lone surrogates (surrogateescape).
        content_sha256: hash of the content, if the source knows it without reading the content.
        source_id: for a pushed record, its id in its application; None for other documents.
        page_uuid: for a pushed record, the page or database that it belongs to; for a page, its
            own id. None if it does not belong to a page.
        lane: for a pushed record, 0 if a person waits for it, and 1 if it is part of a bulk
            push. None: the rest of the listing decides.
    """

    source: str
    path: str
    document_id: str
    uri: str
    media_type: str | None
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    source_type: str = "file"
    content_sha256: str | None = None
    revision: int | None = None
    source_metadata: SourceMetadata = NO_METADATA
    version: str | None = None
    source_id: str | None = None
    page_uuid: str | None = None
    lane: int | None = None

    @property
    def modified_at(self) -> datetime:
        """Return when the content was written, in UTC and whole milliseconds.

        This is the source's own time, if it has one, else the mtime of a file or the time at which
        a record was pushed.
        """
        if self.source_metadata.modified_at is not None:
            return whole_milliseconds(self.source_metadata.modified_at)
        # A record's ctime is when it was pushed. A file's ctime also changes with its owner.
        return from_nanoseconds(self.mtime_ns if self.revision is None else self.ctime_ns)

    @property
    def facts(self) -> ListingFacts:
        """Return the facts that decide whether the document must be hashed again."""
        return ListingFacts(
            self.size, self.mtime_ns, self.ctime_ns, self.inode, self.revision, self.version
        )


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as listed, without its text; each change gives it a new revision."""

    source_type: str
    source_id: str
    document_id: str
    revision: int
    size: int
    changed_ns: int
    media_type: str
    content_sha256: str
    source_metadata: SourceMetadata
    page_uuid: str | None = None
    lane: int | None = None


class RecordStore(Protocol):
    """The store of one tenant's records."""

    def iter_records(self, source: str) -> Iterator[StoredRecord]:
        """Yield every record of one source, without its text."""

    def text(self, document_id: str) -> str | None:
        """Return the text of one record; None if the record no longer exists."""

    def list_withheld(self, source: str) -> frozenset[str]:
        """Return the ids of documents that listings withhold although their records exist."""

    def find_former_text(self, document_id: str, content_sha256: str) -> str | None:
        """Return an earlier text of a record with this hash; None if it is not kept."""

    def state(self, source: str) -> str:
        """Return a value that changes whenever a record changes; it does not read all records."""


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """An uploaded file as listed, without its content.

    Attributes:
        path: a random path that never changes; the document's id derives from it.
        revision: a number that changes with every change to the upload, and never returns to an
            earlier value.
    """

    path: str
    document_id: str
    revision: int
    file_name: str
    media_type: str
    size: int
    content_sha256: str
    changed_ns: int


class UploadStore(Protocol):
    """The store of one tenant's uploaded files."""

    def iter_uploads(self, source: str) -> Iterator[StoredUpload]:
        """Yield every upload of one source that is not disabled."""

    def stream(self, source: str, path: str) -> Iterator[bytes]:
        """Yield the content of one upload in pieces; its hash is checked after the last piece.

        Raises:
            DocumentVanished: the upload was deleted.
            BlobMissing, BlobAltered: the content of the upload is lost.
        """

    def stream_former(self, source: str, path: str, content_sha256: str) -> Iterator[bytes] | None:
        """Return an upload's earlier content with this hash, in pieces; None if it is not kept."""


class DocumentSource(Protocol):
    """A source of documents: it lists them, and reads each of them."""

    @property
    def name(self) -> str:
        """Return the source's name from the tenant's configuration, a part of every document_id."""

    @property
    def max_bytes(self) -> int:
        """Return the size in bytes above which a document of this source is refused."""

    def list(self) -> Iterator[ListedDocument]:
        """Yield every document of the source; the source is listed as the iterator is consumed.

        Raises:
            ListingFailed: part of the source cannot be listed. The documents yielded so far are
                incomplete, so a missing document must not be taken as deleted.
        """

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the whole content of one document.

        Raises:
            DocumentTooLarge: the document has more than max_bytes bytes; at most one byte more
                was read.
            DocumentVanished: the document was removed; the next listing will not contain it.
            DocumentRejected: reading the document is not allowed, or no longer allowed.
        """

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of a document in pieces of at most 1 MiB; raises the same as read()."""


@runtime_checkable
class StateSource(Protocol):
    """A source that can detect whether its listing changed without listing its documents."""

    def state(self) -> str:
        """Return a value that changes if and only if the listing changes."""


@runtime_checkable
class FormerContentSource(Protocol):
    """A source that can still return the content of a document as it was listed earlier."""

    def read_former(self, document_path: str, content_sha256: str) -> bytes | None:
        """Return a document's earlier content that has this hash; None if it is not kept."""


@runtime_checkable
class WithholdingSource(Protocol):
    """A source whose own rules withhold some of its existing documents from listings."""

    def list_withheld(self) -> frozenset[str]:
        """Return the ids of the withheld documents; they are not listed, but not deleted either."""


@runtime_checkable
class DiskSource(Protocol):
    """A source with a time limit on reads."""

    @property
    def disk(self) -> DiskReader:
        """Return the reader that sets a time limit on each read of the source's folder."""


@runtime_checkable
class FolderSource(Protocol):
    """A source that reads folders, any of which may be unmounted or replaced."""

    @property
    def folders(self) -> Mapping[str, FolderIdentity]:
        """Return the roots and the mount points below them, as of the last complete listing.

        The keys are paths; the paths of all documents in a folder start with its key. If there is
        only one root, its key is "".
        """

    def locate_folder(self, folder: str) -> Path:
        """Return the absolute path of a folder, given its key in `folders`."""


@runtime_checkable
class FilteringSource(Protocol):
    """A source that leaves out some documents, and reports how many each rule leaves out."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return the number of documents that rules excluded from the last listing, by rule."""


def compute_document_id(source: str, path: str) -> str:
    """Return the id of a document, which stays the same if the source moves to another machine."""
    return compute_key("document", source, path)


def build_uri(source: str, path: str) -> str:
    """Return SOURCE/PATH, percent-encoded as printable ASCII and unique for every file name."""
    return (
        f"{quote_from_bytes(_encode_path(source), safe='')}/{quote_from_bytes(_encode_path(path))}"
    )


@lru_cache(_CACHED_PATHS)
def parse_path(uri: str) -> str:
    """Return the path within the source that a uri from build_uri contains."""
    return unquote_to_bytes(uri.partition("/")[2]).decode("utf-8", "surrogateescape")


def _encode_path(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class ListedPaths:
    """A lookup of the true paths of a source's documents.

    A path that contains a credential is stored masked, and only the source knows the true path. So
    the source is listed once, when the first document with a masked path is to be read.
    """

    def __init__(self, source: DocumentSource) -> None:
        self._source = source
        self._lock = Lock()
        self._by_id: dict[str, str] | None = None

    def find_path(self, document_id: str, stored_path: bytes) -> str:
        """Return the true path of a document, given the path in the catalog."""
        path = stored_path.decode("utf-8", "surrogateescape")
        if compute_document_id(self._source.name, path) == document_id:
            return path
        with self._lock:
            if self._by_id is None:
                self._by_id = self._list_true_paths()
        try:
            return self._by_id[document_id]
        except KeyError:
            raise DocumentVanished("the document was removed after it was listed") from None

    def _list_true_paths(self) -> dict[str, str]:
        try:
            return {document.document_id: document.path for document in self._source.list()}
        except ListingFailed:
            raise DocumentVanished("the source of the document cannot be listed now") from None
