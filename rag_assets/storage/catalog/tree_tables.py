"""Tables of the tree of pages: its pages, and which access scope inherits from which."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Sequence,
    Table,
    Text,
    text,
)

from rag_assets.storage.catalog.columns import metadata, now_column, tenant_column

page_moves = Sequence("page_moves", metadata=metadata)

pages = Table(
    "pages",
    metadata,
    tenant_column(),
    Column("uuid", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    # Null only for the root. The parent may be unknown, because an application may send page and
    # parent in any order.
    Column("parent", Text),
    # Whether its readers are added to the readers of the pages above; otherwise they replace them.
    Column("inherit", Boolean, nullable=False),
    Column("readers", ARRAY(Text), nullable=False, server_default="{}"),
    Column("archived", Boolean, nullable=False, server_default="false"),
    Column("ai", Boolean, nullable=False, server_default="true"),
    # Access scope of its documents, derived from this page and the pages above it.
    Column("scope", Text, nullable=False),
    # The number of the move after which its entries may have another scope; null when they were
    # updated.
    Column("moved", BigInteger),
    now_column("updated_at"),
    CheckConstraint("kind IN ('root', 'page', 'database')", name="kind"),
    Index(None, "tenant", "parent"),
    Index("ix_pages_moved", "tenant", postgresql_where=text("moved IS NOT NULL")),
)

scope_ancestors = Table(
    "scope_ancestors",
    metadata,
    tenant_column(),
    Column("scope", Text, primary_key=True),
    # Readers of this scope also read `scope`: it is one of all scopes from which `scope` inherits,
    # directly or indirectly.
    Column("ancestor", Text, primary_key=True),
    Index(None, "tenant", "ancestor"),
)
