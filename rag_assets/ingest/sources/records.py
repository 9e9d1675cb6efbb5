"""Records that an application pushes, as a source: pages, comments, rows of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rag_assets.common.errors import ConfigurationError, DocumentTooLarge, DocumentVanished
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import ListedDocument, RecordStore, document_id, uri_of
from rag_assets.ingest.sources.safe_files import PIECE_BYTES, readable_size

MAX_RECORD_BYTES = 1 << 20
"""The largest size of a record's text, in bytes of UTF-8."""


class RecordsConfig(SourceConfig):
    """Records that an application pushes over HTTP, one document each.

    Attributes:
        name: the source's given name; part of every document's identity.
        scope: the access scope of records that name none, where it is not the tenant's.
    """

    type: Literal["records"] = "records"


class RecordsSource:
    """Lists and reads the records of one source.

    Args:
        config: the source's configuration.
        records: the tenant's records.
    """

    def __init__(self, config: RecordsConfig, records: RecordStore) -> None:
        self._config = config
        self._records = records

    @property
    def name(self) -> str:
        """The source's given name."""
        return self._config.name

    @property
    def max_bytes(self) -> int:
        """Bytes that no record's text exceeds."""
        return MAX_RECORD_BYTES

    def list(self) -> Iterator[ListedDocument]:
        """The records, streamed.

        A revision changes with every change, so that no clock decides whether one must be read.
        """
        name = self._config.name
        for record in self._records.listed(name):
            path = record_path(record.source_type, record.source_id)
            yield ListedDocument(
                source=name,
                path=path,
                document_id=record.document_id,
                uri=uri_of(name, path),
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
            )

    def state(self) -> str:
        """The newest revision and the number of records."""
        return self._records.state(self._config.name)

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """The text of one record in UTF-8; see DocumentSource.read."""
        name = self._config.name
        text = self._records.text(name, document_id(name, document_path))
        if text is None:
            raise DocumentVanished(f"gone since it was listed: {document_path!r}")
        data = text.encode()
        if len(data) > max_bytes:
            limit = readable_size(max_bytes)
            raise DocumentTooLarge(f"over the limit of {limit}: {document_path!r}")
        return data

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """The text of one record in pieces; see DocumentSource.stream."""
        data = self.read(document_path, max_bytes=max_bytes)
        for start in range(0, len(data), PIECE_BYTES):
            yield data[start : start + PIECE_BYTES]


def _build(config: RecordsConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r}: records need a catalog, and none is open",
            hint="open it with the tenant's catalog",
        )
    return RecordsSource(config, context.records)


RECORDS = SourceKind("records", RecordsConfig, _build, pushed=True)


def record_path(source_type: str, source_id: str) -> str:
    """The path of a record within its source: no kind holds a slash, so each has its own."""
    return f"{source_type}/{source_id}"


def record_document_id(source: str, source_type: str, source_id: str) -> str:
    """The id of the document that a record is."""
    return document_id(source, record_path(source_type, source_id))
