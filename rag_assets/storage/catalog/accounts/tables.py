"""Tables of provider keys, service tokens and panel sessions, and of usage, batches and probes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from rag_assets.storage.catalog.tables import (
    json_column,
    metadata,
    now_column,
    tenant_column,
    time_column,
)

provider_keys = sa.Table(
    "provider_keys",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    # A key belongs to a tenant, or to an organization and all of its tenants.
    sa.Column("tenant", sa.Text, sa.ForeignKey("tenants.id", ondelete="CASCADE")),
    sa.Column("organization", sa.Text, sa.ForeignKey("organizations.id", ondelete="CASCADE")),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("nonce", sa.LargeBinary, nullable=False),
    sa.Column("ciphertext", sa.LargeBinary, nullable=False),
    sa.Column("master_key_id", sa.Text, nullable=False),
    sa.Column("last_four", sa.Text, nullable=False),
    now_column("created_at"),
    time_column("last_used_at"),
    sa.Column("last_worked", sa.Boolean),
    sa.UniqueConstraint("tenant", "provider"),
    sa.UniqueConstraint("organization", "provider"),
    sa.CheckConstraint("(tenant IS NULL) <> (organization IS NULL)", name="owner"),
)
"""Encrypted keys of model providers."""

usage = sa.Table(
    "usage",
    metadata,
    tenant_column(),
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cost", sa.Numeric(18, 8), nullable=False, server_default="0"),
    sa.Column("retries", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("texts", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("batch_tokens", sa.BigInteger, nullable=False, server_default="0"),
    # Tokens with an unknown price: `cost` does not include them, although they are not free.
    sa.Column("unpriced_tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("output_tokens", sa.BigInteger, nullable=False, server_default="0"),
)
"""Requests, tokens and cost of each tenant by day and model."""

embedding_batches = sa.Table(
    "embedding_batches",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    tenant_column(primary_key=False),
    sa.Column("tag", sa.Text, nullable=False, unique=True),
    sa.Column("batch_id", sa.Text),
    sa.Column("embedder_id", sa.Text, nullable=False),
    json_column("embedder"),
    # The text_sha256 of the batch's texts, 32 bytes each; empty after the batch was collected or
    # failed.
    sa.Column("hashes", sa.LargeBinary, nullable=False),
    sa.Column("texts", sa.Integer, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("cost", sa.Numeric(18, 8)),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    now_column("submitted_at", "event"),
    now_column("polled_at", "event"),
    time_column("ended_at", "event"),
    sa.CheckConstraint(
        "state IN ('SUBMITTING', 'UNDER_WAY', 'ENDED', 'COLLECTED', 'FAILED')", name="state"
    ),
    sa.Index("ix_embedding_batches_tenant_state", "tenant", "state"),
)
"""Batches submitted to a provider's batch interface."""

embedder_probes = sa.Table(
    "embedder_probes",
    metadata,
    tenant_column(),
    sa.Column("embedder_id", sa.Text, primary_key=True),
    sa.Column("probes_key", sa.Text, nullable=False),
    sa.Column("vectors", sa.LargeBinary, nullable=False),
    now_column("stored_at"),
    now_column("measured_at", "event"),
    sa.Column("distances", sa.ARRAY(sa.Double), nullable=False, server_default="{}"),
    sa.Column("passed", sa.Boolean, nullable=False),
)
"""Vectors of fixed texts, from which a changed model is recognized."""

service_tokens = sa.Table(
    "service_tokens",
    metadata,
    sa.Column("token_id", sa.Text, primary_key=True),
    # A token is for a tenant, or for all present and future projects of an organization.
    sa.Column("tenant", sa.Text, sa.ForeignKey("tenants.id", ondelete="CASCADE")),
    sa.Column("organization", sa.Text, sa.ForeignKey("organizations.id", ondelete="CASCADE")),
    sa.Column("token_sha256", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("principals", sa.ARRAY(sa.Text), nullable=False, server_default="{}"),
    now_column("created_at"),
    time_column("expires_at"),
    time_column("last_used_at", "event"),
    sa.CheckConstraint(
        "role IN ('admin', 'member', 'guest', 'orchestrator', 'writer')", name="role"
    ),
    sa.CheckConstraint("(tenant IS NULL) <> (organization IS NULL)", name="owner"),
    sa.Index(None, "tenant"),
    sa.Index(None, "organization"),
)
"""Tokens of the service, as hashes, with their role and principals."""


def _list_holder_columns() -> tuple[sa.Column[Any], ...]:
    """Return the columns of a session or code for the owner of its token, and for its lifetime."""
    return (
        tenant_column(primary_key=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("principals", sa.ARRAY(sa.Text), nullable=False, server_default="{}"),
        # Revoking a token deletes its sessions.
        sa.Column(
            "token_id", sa.Text, sa.ForeignKey("service_tokens.token_id", ondelete="CASCADE")
        ),
        now_column("created_at"),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )


panel_codes = sa.Table(
    "panel_codes",
    metadata,
    sa.Column("code_sha256", sa.LargeBinary, primary_key=True),
    *_list_holder_columns(),
    # When the token of the started session expires.
    time_column("token_expires_at"),
    sa.Index(None, "tenant"),
    sa.Index(None, "token_id"),
    sa.Index(None, "expires_at"),
)
"""One-time codes that sign a person in to the panel, as hashes."""

panel_sessions = sa.Table(
    "panel_sessions",
    metadata,
    sa.Column("session_sha256", sa.LargeBinary, primary_key=True),
    *_list_holder_columns(),
    now_column("used_at"),
    sa.Index(None, "tenant"),
    sa.Index(None, "token_id"),
    sa.Index(None, "expires_at"),
)
"""Sessions of the panel, as hashes."""
