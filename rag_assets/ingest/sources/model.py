"""Listed documents, and the interface of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from rag_assets.common.hashing import key_of
from rag_assets.common.times import from_nanoseconds, whole_milliseconds
from rag_assets.ingest.sources.disk_reader import DiskReader
from rag_assets.ingest.sources.roots import FolderIdentity

RACY_NS = 2_000_000_000
"""A file modified this shortly before its listing may change again without a new mtime."""

FUTURE_NS = 3_600_000_000_000
"""A file dated this far ahead was dated by hand: the next write gives it another mtime."""

_PATHS = 4_096
"""Paths that are kept: a walk asks for those of few files, and often."""

READ_AGAIN_NS = 0
"""The time of listing of a document that must be read again, regardless of its facts."""


@dataclass(frozen=True, slots=True)
class ListingFacts:
    """The facts of a file from a listing, without reading it.

    Attributes:
        size: bytes.
        mtime_ns, ctime_ns: nanoseconds since the epoch, by the file system's clock.
        inode: number of the file within its file system; 0 where there is no file.
        revision: of a pushed record, new whenever anything of it changes; None for all else.
        version: equal for equal content and for no other, as its source says without a clock: a
            full blob id of a repository. None where the facts of a file have to do.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    revision: int | None = None
    version: str | None = None

    @property
    def identity(self) -> int | str:
        """Distinguishes states of the same size and times."""
        if self.version is not None:
            return f"={self.version}"  # No number of a file or record begins like that.
        # Records once had their revision in place of the inode: hashes of both must not change.
        return self.inode if self.revision is None else self.revision

    def unchanged_since(self, other: ListingFacts, listed_at_ns: int) -> bool:
        """Whether the content is certainly unchanged since the other facts were listed.

        A version decides alone. Without one, equal facts are not enough: a file written again
        within the clock's granularity keeps its mtime. So the mtime must also have been 2 s old
        when the other listing began.

        Args:
            other: the facts of the previous listing.
            listed_at_ns: when the previous listing began, in nanoseconds since the epoch;
                READ_AGAIN_NS if it must be read again.
        """
        if listed_at_ns == READ_AGAIN_NS:
            return False
        if self.version is not None or other.version is not None:
            return self.version == other.version
        settled = self.mtime_ns + RACY_NS <= listed_at_ns
        return self == other and (settled or self.mtime_ns > listed_at_ns + FUTURE_NS)


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """Metadata of a document from its source; files have none.

    Attributes:
        title: None: the one found in its content.
        uri: its address for readers; None: derived from source and path.
        access_scope: None: its source's, else the tenant's.
        modified_at: when its present content was made.
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
    """One document as its source lists it; its content has not been read.

    Attributes:
        source: the source's given name.
        path: POSIX path or id within the source, exactly as the source has it; bytes of a file
            name that are no UTF-8 are kept as lone surrogates (surrogateescape).
        document_id: see document_id().
        uri: printable ASCII form of source and path, for people, tables and logs.
        media_type: guessed from the suffix, None for an unknown one.
        size, mtime_ns, ctime_ns, inode: see ListingFacts.
        source_type: what kind of document the source holds.
        content_sha256: hash of its content, if the source has it without reading.
        revision: of a pushed record; None for all else.
        source_metadata: its metadata from the source.
        version: see ListingFacts.
        source_id: of a pushed record, its id in its application; None for all else.
        page_uuid: of a pushed record, the page or database that it belongs to, of a page its own
            id; None where there is none.
        lane: of a pushed record, 0 where a person waits for it, 1 of many at once; None: what else
            was listed decides.
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
        """The source's time of the content, else the time of writing: UTC, milliseconds."""
        if self.source_metadata.modified_at is not None:
            return whole_milliseconds(self.source_metadata.modified_at)
        # A record's time of change is when it was pushed; a file's moves when its owner does.
        return from_nanoseconds(self.mtime_ns if self.revision is None else self.ctime_ns)

    @property
    def facts(self) -> ListingFacts:
        """The facts that decide whether the document must be hashed again."""
        return ListingFacts(
            self.size, self.mtime_ns, self.ctime_ns, self.inode, self.revision, self.version
        )


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it is listed, without its text.

    Attributes:
        source_type: its kind in the application: page, comment.
        source_id: its id among records of that kind.
        revision: a number that it never had before, new whenever anything of it changes.
        size: bytes of its text in UTF-8.
        changed_ns: when it was pushed, in nanoseconds since the epoch.
        page_uuid: the page or database that it hangs on, if it does.
        lane: see ListedDocument.
    """

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

    def listed(self, source: str) -> Iterator[StoredRecord]:
        """Every record of one source, streamed, without the texts."""
        ...

    def text(self, document_id: str) -> str | None:
        """The text of one record; None if the record no longer exists."""
        ...

    def withheld(self, source: str) -> frozenset[str]:
        """Ids of documents that are not listed, though their records are there."""
        ...

    def former_text(self, document_id: str, content_sha256: str) -> str | None:
        """The text that a record had, if it is kept for runs that have listed it."""
        ...

    def state(self, source: str) -> str:
        """Equal for equal records of one source, without reading each of them."""
        ...


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """An uploaded file as it is listed, without its content.

    Attributes:
        path: made once at random; the document's id derives from it.
        revision: a number that it never had before, new whenever anything of it changes.
        file_name: fit to be shown.
        media_type: what it is, by its content.
        size: bytes.
        changed_ns: when it was uploaded, in nanoseconds since the epoch.
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

    def listed(self, source: str) -> Iterator[StoredUpload]:
        """Every enabled upload of one source, streamed."""
        ...

    def stream(self, source: str, path: str) -> Iterator[bytes]:
        """The content of one upload in pieces, verified when the last one was read.

        Raises:
            DocumentVanished: it was deleted.
            BlobMissing, BlobAltered: its content is lost.
        """
        ...

    def former(self, source: str, path: str, content_sha256: str) -> Iterator[bytes] | None:
        """A content that an upload had, as stream() gives it; None if it is not kept for runs."""
        ...


class DocumentSource(Protocol):
    """A place that holds documents."""

    @property
    def name(self) -> str:
        """The name given in the tenant's configuration; part of every document_id."""
        ...

    @property
    def max_bytes(self) -> int:
        """Size in bytes above which a document of this source is refused."""
        ...

    def list(self) -> Iterator[ListedDocument]:
        """Everything the source holds; the iterator reads on as it is consumed.

        Raises:
            ListingFailed: something cannot be listed. What was yielded before is not the whole
                source, so nothing may be concluded from what is missing.
        """
        ...

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """The whole content of one document.

        Raises:
            DocumentTooLarge: it holds more than max_bytes; at most one byte more was read.
            DocumentVanished: it was removed; the next listing lacks it.
            DocumentRejected: it is not, or no longer, something that may be read.
        """
        ...

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """The content of one document in pieces of at most 1 MiB; errors as in read()."""
        ...


@runtime_checkable
class KnowsState(Protocol):
    """A source that knows whether anything changed, without listing what it holds."""

    def state(self) -> str:
        """Equal if and only if the listing is equal."""
        ...


@runtime_checkable
class KeepsFormerContents(Protocol):
    """A source that still has a content that it has listed, after that has changed."""

    def former(self, document_path: str, content_sha256: str) -> bytes | None:
        """The content with this hash that a document had; None if it is not kept."""
        ...


@runtime_checkable
class Withholds(Protocol):
    """A source that has documents which it does not list, by its own rules."""

    def withheld(self) -> frozenset[str]:
        """Their ids: that they are missing in a listing is no loss."""
        ...


@runtime_checkable
class ReadsDisk(Protocol):
    """A source whose reads are bounded in time."""

    @property
    def disk(self) -> DiskReader:
        """Bounds reads, of one document or of many together."""
        ...


@runtime_checkable
class ReadsFolders(Protocol):
    """A source that reads folders, each of which may be unmounted or replaced by another one."""

    @property
    def folders(self) -> Mapping[str, FolderIdentity]:
        """The roots and the mount points below them, as of the last listing that ended.

        By path: that of documents in them begins with it. The only root is "".
        """
        ...

    def place_of(self, folder: str) -> Path:
        """The absolute path of one of `folders`."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """A source that leaves out some of what it could list, and says how much and why."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many documents each rule has left out of the last listing."""
        ...


def document_id(source: str, path: str) -> str:
    """The document's identity: it survives a move of the whole source to another machine.

    Args:
        source: the source's given name.
        path: the document's path or id within the source, never an absolute path.
    """
    return key_of("document", source, path)


def uri_of(source: str, path: str) -> str:
    """Source and path as one printable ASCII string; any file name has one, and only one."""
    return f"{quote_from_bytes(_encoded(source), safe='')}/{quote_from_bytes(_encoded(path))}"


@lru_cache(_PATHS)
def path_of(uri: str) -> str:
    """The inverse of uri_of(): the path within the source."""
    return unquote_to_bytes(uri.partition("/")[2]).decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
