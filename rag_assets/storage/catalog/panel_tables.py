"""Tables of the panel's sessions, and of the codes in links that start sessions; hashes only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ARRAY, Column, DateTime, ForeignKey, Index, LargeBinary, Table, Text

from rag_assets.storage.catalog.columns import metadata, now_column, tenant_column, time_column


def _holder() -> tuple[Column[Any], ...]:
    """Return the columns for the owner of a session's token, and for its lifetime."""
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
