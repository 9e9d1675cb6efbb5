"""Records that an application pushes, as a source: pages, comments, application-specific rows.

Records may be attached to pages, which form a tree below the root. A record has the access scope of
its page. If the page sets no readers, the nearest page above that does decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from rag_assets.common.errors import ConfigurationError, DocumentTooLarge, DocumentVanished
from rag_assets.ingest.sources.disk import PIECE_BYTES, format_size
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import (
    ListedDocument,
    RecordStore,
    UploadStore,
    build_uri,
    compute_document_id,
)

ROOT: Final = "root"
"""The page above all others, which exists without being pushed."""
NOBODY: Final = "tree:nobody"
"""The scope of documents on a page that is unknown, or is below an unknown page."""
EXCLUDED: Final = "tree:excluded"
"""The scope of pages that are archived or excluded from search: they are not indexed."""
PAGE_UUID: Final = r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$"
"""Pattern of the id of a page or a database."""
MAX_UUID_LENGTH: Final = 128
"""Limit of an id, in characters."""
UUID_RULE: Final = (
    "its id must start with a letter or digit, and contain only letters, digits and . _ : @ -"
    f" (at most {MAX_UUID_LENGTH} characters)"
)
"""The pattern in words."""


def build_page_scope(uuid: str) -> str:
    """Return the access scope of a page that has its own list of readers."""
    return f"page:{uuid}"


MAX_RECORD_BYTES = 1 << 20
"""Maximum size of a record's text, in UTF-8 bytes."""
MAX_PAGE_BYTES = 16 << 20
"""Maximum size in bytes of a record that is a page; a page may come in several requests."""
MAX_FILE_BYTES = 50 * 1024 * 1024
"""Maximum size in bytes of the content of a record that is a file."""
FILE = "file"
"""The type of records whose content is uploaded separately, if records have types."""


class RecordsConfig(SourceConfig):
    """The configuration of a source of records pushed over HTTP, one document each.

    Attributes:
        name: the source's configured name; part of every document's identity.
        scope: the access scope of records that do not name a scope, if it differs from the
            tenant's.
    """

    type: Literal["records"] = "records"


class RecordsSource:
    """A source of records pushed by an application; without `files`, every record is a text."""

    def __init__(
        self, config: RecordsConfig, records: RecordStore, files: UploadStore | None = None
    ) -> None:
        self.name = config.name
        self.max_bytes = MAX_RECORD_BYTES if files is None else MAX_FILE_BYTES
        self._records = records
        self._files = files

    def list(self) -> Iterator[ListedDocument]:
        """Yield records as documents; their revisions, not times, show which must be read."""
        name = self.name
        for record in self._records.iter_records(name):
            path = build_record_path(record.source_type, record.source_id)
            yield ListedDocument(
                source=name,
                path=path,
                document_id=record.document_id,
                uri=build_uri(name, path),
                media_type=record.media_type,
                size=record.size,
                mtime_ns=0,
                ctime_ns=record.changed_ns,
                inode=0,
                source_type=record.source_type,
                content_sha256=record.content_sha256,
                revision=record.revision,
                source_metadata=record.source_metadata,
                source_id=record.source_id,
                page_uuid=record.page_uuid,
                lane=record.lane,
            )

    def state(self) -> str:
        """Return a value that changes whenever a record changes; see StateSource."""
        return self._records.state(self.name)

    def list_withheld(self) -> frozenset[str]:
        """Return the ids of withheld records; see WithholdingSource."""
        return self._records.list_withheld(self.name)

    def read_former(self, document_path: str, content_sha256: str) -> bytes | None:
        """Return a former content of a record; see FormerContentSource."""
        if self._files is not None and document_path.startswith(f"{FILE}/"):
            pieces = self._files.stream_former(self.name, document_path, content_sha256)
            return None if pieces is None else b"".join(pieces)
        id_ = compute_document_id(self.name, document_path)
        text = self._records.find_former_text(id_, content_sha256)
        return None if text is None else text.encode()

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the text of a record in UTF-8, or the content of a file; see DocumentSource."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of one record in pieces; see DocumentSource.stream."""
        bytes_left = max_bytes
        for piece in self._stream_unlimited(document_path):
            bytes_left -= len(piece)
            if bytes_left < 0:
                limit = format_size(max_bytes)
                raise DocumentTooLarge(f"the record {document_path!r} is over the limit of {limit}")
            yield piece

    def _stream_unlimited(self, document_path: str) -> Iterator[bytes]:
        if document_path.startswith(f"{FILE}/") and self._files is not None:
            yield from self._files.stream(self.name, document_path)
            return
        text = self._records.text(compute_document_id(self.name, document_path))
        if text is None:
            raise DocumentVanished(f"the record {document_path!r} was removed after it was listed")
        data = text.encode()
        for start in range(0, len(data), PIECE_BYTES):
            yield data[start : start + PIECE_BYTES]


def _build(config: RecordsConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r}: records need a catalog, but no catalog is open",
            hint="open the source with the tenant's catalog",
        )
    return RecordsSource(config, context.records, context.uploads if context.typed else None)


RECORDS = SourceKind("records", RecordsConfig, _build, pushed=True)


def build_record_path(source_type: str, source_id: str) -> str:
    """Return the path TYPE/ID of a record in its source; unique, as types contain no slash."""
    return f"{source_type}/{source_id}"


def compute_record_document_id(source: str, source_type: str, source_id: str) -> str:
    """Return the id of a record's document."""
    return compute_document_id(source, build_record_path(source_type, source_id))
