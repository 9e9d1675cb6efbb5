"""Tables of provider keys, service tokens and panel sessions, and of usage, batches and probes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
)

from rag_assets.storage.catalog.tables import (
    json_column,
    metadata,
    now_column,
    tenant_column,
    time_column,
)

provider_keys = Table(
    "provider_keys",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    # A key belongs to a tenant, or to an organization and all of its tenants.
    Column("tenant", Text, ForeignKey("tenants.id", ondelete="CASCADE")),
    Column("organization", Text, ForeignKey("organizations.id", ondelete="CASCADE")),
    Column("provider", Text, nullable=False),
    Column("nonce", LargeBinary, nullable=False),
    Column("ciphertext", LargeBinary, nullable=False),
    Column("master_key_id", Text, nullable=False),
    Column("last_four", Text, nullable=False),
    now_column("created_at"),
    time_column("last_used_at"),
    Column("last_worked", Boolean),
    UniqueConstraint("tenant", "provider"),
    UniqueConstraint("organization", "provider"),
    CheckConstraint("(tenant IS NULL) <> (organization IS NULL)", name="owner"),
)

usage = Table(
    "usage",
    metadata,
    tenant_column(),
    Column("day", Date, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("requests", BigInteger, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost", Numeric(18, 8), nullable=False, server_default="0"),
    Column("retries", BigInteger, nullable=False, server_default="0"),
    Column("texts", BigInteger, nullable=False, server_default="0"),
    Column("batch_tokens", BigInteger, nullable=False, server_default="0"),
    # Tokens with an unknown price: `cost` does not include them, although they are not free.
    Column("unpriced_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
)

embedding_batches = Table(
    "embedding_batches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    tenant_column(primary_key=False),
    Column("tag", Text, nullable=False, unique=True),
    Column("batch_id", Text),
    Column("embedder_id", Text, nullable=False),
    json_column("embedder"),
    # The text_sha256 of the batch's texts, 32 bytes each; empty after the batch was collected or
    # failed.
    Column("hashes", LargeBinary, nullable=False),
    Column("texts", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost", Numeric(18, 8)),
    Column("state", Text, nullable=False),
    Column("error", Text),
    now_column("submitted_at", "event"),
    now_column("polled_at", "event"),
    time_column("ended_at", "event"),
    CheckConstraint(
        "state IN ('SUBMITTING', 'UNDER_WAY', 'ENDED', 'COLLECTED', 'FAILED')", name="state"
    ),
    Index("ix_embedding_batches_tenant_state", "tenant", "state"),
)

embedder_probes = Table(
    "embedder_probes",
    metadata,
    tenant_column(),
    Column("embedder_id", Text, primary_key=True),
    Column("probes_key", Text, nullable=False),
    Column("vectors", LargeBinary, nullable=False),
    now_column("stored_at"),
    now_column("measured_at", "event"),
    Column("distances", ARRAY(Double), nullable=False, server_default="{}"),
    Column("passed", Boolean, nullable=False),
)

service_tokens = Table(
    "service_tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    # A token is for a tenant, or for all present and future projects of an organization.
    Column("tenant", Text, ForeignKey("tenants.id", ondelete="CASCADE")),
    Column("organization", Text, ForeignKey("organizations.id", ondelete="CASCADE")),
    Column("token_sha256", LargeBinary, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("principals", ARRAY(Text), nullable=False, server_default="{}"),
    now_column("created_at"),
    time_column("expires_at"),
    time_column("last_used_at", "event"),
    CheckConstraint("role IN ('admin', 'member', 'guest', 'orchestrator', 'writer')", name="role"),
    CheckConstraint("(tenant IS NULL) <> (organization IS NULL)", name="owner"),
    Index(None, "tenant"),
    Index(None, "organization"),
)


def _holder() -> tuple[Column[Any], ...]:
    """Return the columns for the owner of the token of a session or code, and for its lifetime."""
    return (
        tenant_column(primary_key=False),
        Column("name", Text, nullable=False),
        Column("principals", ARRAY(Text), nullable=False, server_default="{}"),
        # Revoking a token deletes its sessions.
        Column("token_id", Text, ForeignKey("service_tokens.token_id", ondelete="CASCADE")),
        now_column("created_at"),
        Column("expires_at", DateTime(timezone=True), nullable=False),
    )


panel_codes = Table(
    "panel_codes",
    metadata,
    Column("code_sha256", LargeBinary, primary_key=True),
    *_holder(),
    # When the token of the started session expires.
    time_column("token_expires_at"),
    Index(None, "tenant"),
    Index(None, "token_id"),
    Index(None, "expires_at"),
)

panel_sessions = Table(
    "panel_sessions",
    metadata,
    Column("session_sha256", LargeBinary, primary_key=True),
    *_holder(),
    now_column("used_at"),
    Index(None, "tenant"),
    Index(None, "token_id"),
    Index(None, "expires_at"),
)
