"""Tables of uploaded files, with their contents in blobs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Table, Text, text

from rag_assets.storage.catalog.columns import metadata, now_column, tenant_column

uploads = Table(
    "uploads",
    metadata,
    tenant_column(),
    # The id of its document, and its own id: it stays when the file is replaced.
    Column("document_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    # Created once at random; the document's id is derived from it.
    Column("path", Text, nullable=False),
    # From the sequence of records, so that no number is ever used twice.
    Column("revision", BigInteger, nullable=False),
    # Without folders and unprintable characters, and with credentials masked.
    Column("file_name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content_sha256", Text, nullable=False),
    Column("uploaded_by", Text, nullable=False),
    # A disabled upload cannot be found; its computed data is kept.
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    now_column("created_at"),
    now_column("updated_at"),
    Index(None, "tenant", "content_sha256"),
)

# Former contents of file records, as long as a run that listed them may need them.
record_files = Table(
    "record_files",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("content_sha256", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    now_column("kept_at"),
    Index(None, "tenant", "content_sha256"),
)

# Written by a trigger, when a held file is replaced or deleted.
held_uploads = Table(
    "held_uploads",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("source", Text, nullable=False),
    Column("file_name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content_sha256", Text, nullable=False),
    Column("uploaded_by", Text, nullable=False),
    now_column("updated_at"),
)
