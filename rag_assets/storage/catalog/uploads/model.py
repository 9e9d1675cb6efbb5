"""Uploaded files: their tables, and the values that callers see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from rag_assets.common.failure_kinds import FailureKind
from rag_assets.storage.catalog.tables import metadata, now_column, tenant_column

uploads = sa.Table(
    "uploads",
    metadata,
    tenant_column(),
    # The id of its document, and its own id: it stays when the file is replaced.
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    # Created once at random; the document's id is derived from it.
    sa.Column("path", sa.Text, nullable=False),
    # From the sequence of records, so that no number is ever used twice.
    sa.Column("revision", sa.BigInteger, nullable=False),
    # Without folders and unprintable characters, and with credentials masked.
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("content_sha256", sa.Text, nullable=False),
    sa.Column("uploaded_by", sa.Text, nullable=False),
    # A disabled upload cannot be found; its computed data is kept.
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.text("true")),
    now_column("created_at"),
    now_column("updated_at"),
    sa.Index(None, "tenant", "content_sha256"),
)
"""Uploaded files, without their contents."""

record_files = sa.Table(
    "record_files",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("content_sha256", sa.Text, primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    now_column("kept_at"),
    sa.Index(None, "tenant", "content_sha256"),
)
"""Former contents of file records, kept as long as a run that listed them may need them."""

held_uploads = sa.Table(
    "held_uploads",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("content_sha256", sa.Text, nullable=False),
    sa.Column("uploaded_by", sa.Text, nullable=False),
    now_column("updated_at"),
)
"""Former versions of held uploads.

A trigger writes a row when a held file is replaced or deleted.
"""


@dataclass(frozen=True, slots=True)
class NewUpload:
    """A received file that is to be stored as an upload.

    Attributes:
        max_documents, max_total_bytes: limits for all files of the source; None: unlimited.
    """

    source: str
    file_name: str
    media_type: str
    size: int
    content_sha256: str
    uploaded_by: str
    max_documents: int | None = None
    max_total_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An uploaded file."""

    id: str
    file_name: str
    media_type: str
    size: int
    content_sha256: str
    uploaded_by: str
    enabled: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Upload(UploadedFile):
    """An uploaded file, and the state of its document.

    Attributes:
        status: status of its document; PROCESSING before its first listing.
        note: why searches do not find it although it is READY.
    """

    source: str
    status: str
    chunk_count: int
    error_message: str | None
    error_kind: FailureKind | None
    retry_at: datetime | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class UploadResult:
    """The result of storing a file.

    Attributes:
        duplicate: whether its bytes were already stored, so that no work is needed.
    """

    upload: Upload
    duplicate: bool
    former: str | None = None


@dataclass(frozen=True, slots=True)
class NeededBlob:
    """A blob that is needed by uploads of a tenant, by a hold, or by a run."""

    sha256: str
    size: int
    document_ids: tuple[str, ...]
