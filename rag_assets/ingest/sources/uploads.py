"""Uploaded files of people and applications, as a source; names that are safe to display."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from rag_assets.common.errors import ConfigurationError, DocumentTooLarge
from rag_assets.common.times import from_nanoseconds
from rag_assets.ingest.parsing.registry import PARSERS
from rag_assets.ingest.sources.disk import format_size
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import (
    ListedDocument,
    SourceMetadata,
    StoredUpload,
    UploadStore,
    build_uri,
)

MAX_NAME_LENGTH = 200
"""Maximum number of characters of a name that are kept."""

_SEPARATORS = re.compile(r"[/\\]")
_BLANKS = re.compile(r"\s+")
_MAX_SUFFIX_CHARACTERS = 16
# Control characters, format characters (which may change the direction of text), surrogates,
# private-use characters and unassigned characters.
_UNSHOWN = "C"


def clean_file_name(name: str) -> str:
    """Return a file name without its folders and without characters that cannot be shown.

    A name that is too long is cut before its suffix, so that the suffix still shows the file type.
    The result is "" if no character remains.
    """
    last = _SEPARATORS.split(name)[-1]
    # Replace blanks first, since line ends and tabs are control characters too.
    visible = "".join(
        character
        for character in _BLANKS.sub(" ", last)
        if not unicodedata.category(character).startswith(_UNSHOWN)
    )
    plain = _BLANKS.sub(" ", unicodedata.normalize("NFC", visible)).strip()
    if plain in {".", ".."}:
        return ""
    if len(plain) <= MAX_NAME_LENGTH:
        return plain
    stem, dot, suffix = plain.rpartition(".")
    if not stem or len(suffix) > _MAX_SUFFIX_CHARACTERS:
        return plain[:MAX_NAME_LENGTH].strip()
    end = f"{dot}{suffix}"
    return stem[: MAX_NAME_LENGTH - len(end)].strip() + end


DEFAULT_MAX_BYTES = 50 * 1024 * 1024


class UploadsConfig(SourceConfig):
    """The configuration of a source of uploaded files, one document each.

    Attributes:
        name: the source's configured name; part of every document's identity.
        max_bytes: larger files are refused.
        media_types: accepted types, as detected from the content; by default all readable
            types.
        max_documents, max_total_bytes: limits for all files of the source together, including
            disabled files; by default unlimited.
        scope: the access scope of its documents, if it differs from the tenant's.
    """

    type: Literal["uploads"] = "uploads"
    max_bytes: int = Field(default=DEFAULT_MAX_BYTES, gt=0)
    media_types: tuple[str, ...] = ()
    max_documents: int | None = Field(default=None, gt=0)
    max_total_bytes: int | None = Field(default=None, gt=0)

    @field_validator("media_types")
    @classmethod
    def _require_readable_types(cls, media_types: tuple[str, ...]) -> tuple[str, ...]:
        for media_type in media_types:
            if media_type not in PARSERS:
                raise ValueError(f"it must be among: {', '.join(sorted(PARSERS))}")
        return media_types

    def accepts(self, media_type: str) -> bool:
        """Return whether the source accepts files of this media type."""
        return not self.media_types or media_type in self.media_types


class UploadsSource:
    """A source of uploaded files."""

    def __init__(self, config: UploadsConfig, uploads: UploadStore) -> None:
        self.name, self.max_bytes = config.name, config.max_bytes
        self._uploads = uploads

    def list(self) -> Iterator[ListedDocument]:
        """Yield enabled uploads as documents; revisions, not times, show which must be read."""
        name = self.name
        for upload in self._uploads.iter_uploads(name):
            yield ListedDocument(
                source=name,
                path=upload.path,
                document_id=upload.document_id,
                uri=build_uri(name, upload.path),
                media_type=upload.media_type,
                size=upload.size,
                mtime_ns=0,
                ctime_ns=upload.changed_ns,
                inode=0,
                source_type="upload",
                content_sha256=upload.content_sha256,
                revision=upload.revision,
                source_metadata=SourceMetadata(
                    uri=build_upload_uri(name, upload),
                    # Set the time, so that the same bytes are tried again if they are uploaded
                    # again.
                    modified_at=from_nanoseconds(upload.changed_ns),
                ),
            )

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the content of one file; see DocumentSource.read."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of one file in pieces; see DocumentSource.stream."""
        bytes_left = max_bytes
        for piece in self._uploads.stream(self.name, document_path):
            bytes_left -= len(piece)
            if bytes_left < 0:
                limit = format_size(max_bytes)
                raise DocumentTooLarge(
                    f"the file {document_path!r} is over the limit of {limit}",
                    hint="increase max_bytes of the source, or upload a smaller file",
                )
            yield piece


def build_upload_uri(source: str, upload: StoredUpload) -> str:
    """Return the unique uri of an upload: source, path and file name."""
    return build_uri(source, f"{upload.path}/{upload.file_name}")


def _build(config: UploadsConfig, context: SourceContext) -> UploadsSource:
    if context.uploads is None:
        raise ConfigurationError(
            f"source {config.name!r}: uploads need a catalog, but no catalog is open",
            hint="open the source with the tenant's catalog",
        )
    return UploadsSource(config, context.uploads)


UPLOADS = SourceKind("uploads", UploadsConfig, _build, uploaded=True, source_types=("upload",))
