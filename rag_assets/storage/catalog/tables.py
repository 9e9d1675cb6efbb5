"""The Postgres schema `rag_catalog`, and the tables that several parts of the catalog use.

Tables of accounts, erasures and uploads are in their packages. A table that only one module uses is
in that module.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.common.failure_kinds import FAILURE_KINDS
from rag_assets.plugins.registry import installed_systems

# It must not be the name of a database user: Postgres would then search it before the schema of
# Dagster's tables, and both have a table `alembic_version`.
SCHEMA = "rag_catalog"

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)


def tenant_column(*, primary_key: bool = True) -> sa.Column[str]:
    """Return the column with a row's tenant; deleting the tenant also deletes the row."""
    return sa.Column(
        "tenant",
        sa.Text,
        sa.ForeignKey("tenants.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


TimeKind: TypeAlias = Literal["event", "retry"]
"""How a future time is corrected that was recorded while the clock was fast.

An event's time is replaced by the current time, from which ages and pauses then count. A retry
becomes due immediately. Times without a kind stay as they are.
"""


def now_column(name: str, kind: TimeKind | None = None) -> sa.Column[object]:
    """Return a column for a required time, by default the time at which the row is inserted.

    Args:
        kind: how a time in the future is corrected; see TimeKind.
    """
    when = sa.DateTime(timezone=True)
    return sa.Column(name, when, nullable=False, server_default=sa.func.now(), info={"time": kind})


def time_column(name: str, kind: TimeKind | None = None) -> sa.Column[object]:
    """Return a column for an optional time."""
    return sa.Column(name, sa.DateTime(timezone=True), info={"time": kind})


def json_column(name: str, default: str = "{}") -> sa.Column[object]:
    """Return a column for a required JSON value; the default is an empty object."""
    return sa.Column(name, JSONB, nullable=False, server_default=sa.text(f"'{default}'::jsonb"))


# Never reused, so that a new tenant with a purged tenant's id never finds its records.
incarnations = sa.Sequence("incarnations", metadata=metadata)

ONE_TENANT_PER_PROJECT = "uq_tenants_organization_project_profile"

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    # The home folder whose tenants.yaml lists the tenant; null for tenants of the API.
    sa.Column("home", sa.Uuid),
    json_column("config"),
    # From the configuration: applications use these to name the tenant of their project.
    sa.Column("profile", sa.Text, nullable=False, server_default="documents"),
    sa.Column("organization", sa.Text),
    sa.Column("project", sa.Text),
    # Whether the profile requires a project, which then has one tenant.
    sa.Column("of_project", sa.Boolean, nullable=False, server_default="false"),
    # Which credential rules its stores were scanned with, and the results; see rescans.
    json_column("scanned"),
    now_column("created_at"),
    now_column("updated_at"),
    sa.CheckConstraint("state IN ('ACTIVE', 'DISABLED', 'REMOVING')", name="state"),
    sa.Index(
        ONE_TENANT_PER_PROJECT,
        "organization",
        "project",
        "profile",
        unique=True,
        postgresql_where=sa.text("of_project"),
    ),
)
"""Tenants: configuration, state, and the credential rules that their stores were scanned with."""

organizations = sa.Table(
    "organizations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    # Whether documents are embedded and searched for projects that require an opt-in.
    sa.Column(
        "rag_guidelines", sa.Boolean, key="has_opted_in", nullable=False, server_default="false"
    ),
    # The model for its projects that have no chat model of their own.
    sa.Column("chat_model", sa.Text),
    now_column("updated_at"),
)
"""Settings that all projects of an organization share."""

documents = sa.Table(
    "documents",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("source_type", sa.Text, nullable=False),
    # For a pushed record: its id in its application, and its page or database.
    sa.Column("source_id", sa.Text),
    sa.Column("page_uuid", sa.Text),
    # File names are bytes: not all are valid UTF-8.
    sa.Column("path", sa.LargeBinary, nullable=False),
    sa.Column("uri", sa.Text, nullable=False),
    sa.Column("title", sa.Text),
    # The title that its source gives; otherwise, the title is read from its content.
    sa.Column("said_title", sa.Text),
    sa.Column("media_type", sa.Text),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("mtime_ns", sa.BigInteger, nullable=False),
    sa.Column("ctime_ns", sa.BigInteger, nullable=False),
    sa.Column("inode", sa.Numeric(20, 0), nullable=False),
    # The revision of the pushed record that was listed; null for other documents.
    sa.Column("revision", sa.BigInteger),
    # The version of its content from its source, a Git blob id; null if the source gives none.
    sa.Column("version", sa.Text),
    sa.Column("listed_at_ns", sa.BigInteger, nullable=False),
    sa.Column("content_sha256", sa.Text),
    # The content that was last embedded, and when; a new build or title does not change these
    # values.
    sa.Column("embedded_sha256", sa.Text),
    time_column("embedded_at", "event"),
    # When that content was written; touching a file does not change it.
    sa.Column("modified_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("access_scope", sa.Text, nullable=False, server_default="public"),
    sa.Column("tags", sa.ARRAY(sa.Text), nullable=False, server_default="{}"),
    json_column("metadata"),
    # Ends with the number of reindex requests, if there were any.
    sa.Column("document_key", sa.Text, nullable=False),
    # The number of reindex requests for the document.
    sa.Column("edition", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lane", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("error_message", sa.Text),
    # The error for the people of the tenant: a kind of rag_assets.common.failure_kinds.
    sa.Column("error_kind", sa.Text),
    sa.Column("failed_document_key", sa.Text),
    sa.Column("failed_config_key", sa.Text),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    time_column("retry_at", "retry"),
    sa.Column("chunk_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("dropped_count", sa.Integer, nullable=False, server_default="0"),
    now_column("first_seen"),
    now_column("changed_at", "event"),
    now_column("updated_at", "event"),
    # When it started to wait to be indexed, or to be removed from the index; set by a trigger.
    now_column("waiting_since"),
    sa.CheckConstraint("status IN ('PROCESSING', 'READY', 'FAILED', 'DELETED')", name="status"),
    sa.CheckConstraint(
        "error_kind IN ({})".format(", ".join(f"'{kind}'" for kind in FAILURE_KINDS)),
        name="error_kind",
    ),
    sa.Index(None, "tenant", "source", "status"),
    sa.Index(None, "tenant", "content_sha256"),
    sa.Index(None, "tenant", "embedded_sha256", "embedded_at"),
    # URIs may be too long for an index.
    sa.Index("ix_documents_tenant_uri", "tenant", sa.text("md5(uri)")),
    sa.Index(
        "ix_documents_tenant_page_uuid",
        "tenant",
        "page_uuid",
        postgresql_where=sa.text("page_uuid IS NOT NULL"),
    ),
)
"""Documents of all sources: the last listing, the status, and the reason of a failure."""

generations = sa.Table(
    "generations",
    metadata,
    tenant_column(),
    sa.Column("generation", sa.Integer, primary_key=True),
    sa.Column("generation_key", sa.Text, nullable=False),
    sa.Column("index_name", sa.Text, nullable=False),
    sa.Column("index_uuid", sa.Text, nullable=False),
    sa.Column("embedder_id", sa.Text, nullable=False),
    json_column("embedder"),
    sa.Column("dimensions", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    now_column("created_at", "event"),
    time_column("retired_at", "event"),
    # Only stored in Postgres, so that write access to the index is not enough to forge digests.
    sa.Column("digest_key", sa.LargeBinary),
    # Null in builds of earlier versions if their configuration was replaced since.
    sa.Column("recipe", JSONB),
    # Why it is held.
    sa.Column("reason", sa.Text),
    time_column("completed_at", "event"),
    time_column("published_at"),
    # The checks that decided whether it was published or held.
    sa.Column("checks", JSONB),
    # Cost of its embeddings in dollars.
    sa.Column("spent", sa.Numeric(18, 8), nullable=False, server_default="0"),
    # Figures of its largest slice.
    sa.Column("embedded_texts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("embedding_seconds", sa.Double, nullable=False, server_default="0"),
    sa.Column("written_entries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("writing_seconds", sa.Double, nullable=False, server_default="0"),
    # Whether its vectors are in the separate vector store, too; null: they are not.
    sa.Column("vectors_beside", sa.Text),
    # Time until which the separate store is not used, after it did not answer.
    time_column("vectors_retry_at", "retry"),
    # By use of a search: the measured cosine and its reason, or the floors of questions so far.
    json_column("thresholds"),
    sa.CheckConstraint("vectors_beside IN ('filling', 'answering')", name="vectors_beside"),
    sa.CheckConstraint(
        "state IN ('BUILDING', 'COMPLETE', 'HELD', 'SERVING', 'RETIRED', 'REMOVING')", name="state"
    ),
)
"""Builds of a tenant's index, each with its embedder, state and cost."""

document_index = sa.Table(
    "document_index",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("generation", sa.Integer, primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True),
    # The version that may be returned; null until the first version is complete.
    sa.Column("indexed_key", sa.Text),
    sa.Column("document_key", sa.Text),
    sa.Column("config_key", sa.Text),
    # The hash of that version's content; null if it was indexed before this was recorded.
    sa.Column("content_sha256", sa.Text),
    # Keys of that version in the lake; null if it was indexed before they were recorded.
    sa.Column("parse_key", sa.Text),
    sa.Column("chunk_set_key", sa.Text),
    sa.Column("chunk_count", sa.Integer, nullable=False, server_default="0"),
    # Number of tokens in that version's passages; null if it was indexed before they were counted.
    sa.Column("token_count", sa.Integer),
    # Whether other versions may have entries: set before a write, cleared after clean-up.
    sa.Column("dirty", sa.Boolean, nullable=False, server_default=sa.text("true")),
    time_column("indexed_at"),
    # Why the document waits in a second build; `documents` has the reason for the configured build.
    sa.Column("failed_document_key", sa.Text),
    sa.Column("failed_config_key", sa.Text),
    sa.Column("error_message", sa.Text),
    time_column("retry_at", "retry"),
    sa.ForeignKeyConstraint(
        ["tenant", "generation"],
        ["generations.tenant", "generations.generation"],
        ondelete="CASCADE",
    ),
    sa.Index(None, "tenant", "chunk_set_key"),
    sa.Index("ix_document_index_dirty", "tenant", "generation", postgresql_where=sa.text("dirty")),
    sa.Index(
        "ix_document_index_waiting",
        "tenant",
        "generation",
        postgresql_where=sa.text("retry_at IS NOT NULL"),
    ),
)
"""The searchable version of each document in each build, with its keys in the lake."""

serving = sa.Table(
    "serving",
    metadata,
    tenant_column(),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("index_name", sa.Text, nullable=False),
    sa.Column("index_uuid", sa.Text, nullable=False),
    sa.Column("embedder_id", sa.Text, nullable=False),
    now_column("published_at"),
    # The build that answers, regardless of the configuration.
    sa.Column("pinned_generation", sa.Integer),
    time_column("pinned_at"),
    sa.Column("pinned_by", sa.Text),
    sa.Column("pin_reason", sa.Text),
    sa.ForeignKeyConstraint(
        ["tenant", "generation"], ["generations.tenant", "generations.generation"]
    ),
)
"""The build that answers searches of each tenant."""

access_scopes = sa.Table(
    "access_scopes",
    metadata,
    tenant_column(),
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("principal", sa.Text, primary_key=True),
    now_column("granted_at"),
)
"""Principals that may read each access scope."""

tombstones = sa.Table(
    "tombstones",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("content_sha256", sa.Text, nullable=False),
    now_column("pruned_at"),
    # Whether a request may index the document again unchanged.
    sa.Column("invalidated", sa.Boolean, nullable=False, server_default=sa.text("false")),
)
"""Pruned documents, which are not indexed again while their content stays the same."""

# Shared by all tenants, so that no revision is ever used twice.
record_revisions = sa.Sequence("record_revisions", metadata=metadata)

source_records = sa.Table(
    "source_records",
    metadata,
    tenant_column(),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("source_type", sa.Text, primary_key=True),
    sa.Column("source_id", sa.Text, primary_key=True),
    sa.Column("document_id", sa.Text, nullable=False),
    sa.Column("record_key", sa.Text, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("content_sha256", sa.Text, nullable=False),
    json_column("said"),
    time_column("modified_at"),
    now_column("changed_at"),
    # When it was last pushed unchanged; before that, the time of its change.
    time_column("pushed_at", "event"),
    # The page or database that it is attached to, if any.
    sa.Column("page_uuid", sa.Text),
    # When a comment was resolved; null for other records.
    time_column("resolved_at"),
    # 0 if a person waits for it, 1 for bulk writes.
    sa.Column("lane", sa.SmallInteger, nullable=False, server_default="0"),
    # Time of the first change that had not been listed yet when the current change arrived.
    now_column("waiting_since"),
    sa.Index(None, "tenant", "document_id", unique=True),
    sa.Index(
        "ix_source_records_tenant_page_uuid",
        "tenant",
        "page_uuid",
        postgresql_where=sa.text("page_uuid IS NOT NULL"),
    ),
)
"""The current version of each pushed record."""

record_clocks = sa.Table(
    "record_clocks",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    # Hash of the id of a block that was written separately; empty for the whole record.
    sa.Column("part", sa.Text, primary_key=True, server_default=""),
    time_column("updated_at"),
    sa.Column("version", sa.BigInteger),
)
"""The latest time and version that an application gave for a record, or for a part of it.

A row outlives its record, so that a write older than the record's deletion is recognized.
"""

record_texts = sa.Table(
    "record_texts",
    metadata,
    tenant_column(),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("content_sha256", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    now_column("kept_at"),
)
"""Former texts of records, kept as long as a run that listed them may need them."""

syncs = sa.Table(
    "syncs",
    metadata,
    tenant_column(),
    sa.Column("source", sa.Text, primary_key=True),
    # Digest of the last listing with all changes recorded in `documents`.
    sa.Column("listing_digest", sa.Text),
    sa.Column("listed_at_ns", sa.BigInteger),
    sa.Column("config_key", sa.Text),
    sa.Column("held_deletions", sa.Integer, nullable=False, server_default="0"),
    sa.Column("held_reason", sa.Text),
    # Path, inode and file system of the root and of each mount point at the last listing.
    sa.Column("folders", JSONB),
    # Duration of the last listing; 0 if unknown, or if files have changed since.
    sa.Column("listing_seconds", sa.Double, nullable=False, server_default="0"),
    # Number of documents due for pruning, if so many that a person must confirm it.
    sa.Column("held_prunes", sa.Integer, nullable=False, server_default="0"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("last_error", sa.Text),
    time_column("retry_at", "retry"),
    time_column("succeeded_at"),
)
"""The last listing of each source, with held deletions and failed attempts."""

slices = sa.Table(
    "slices",
    metadata,
    tenant_column(),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("config_key", sa.Text, nullable=False),
    json_column("document_ids", "[]"),
    json_column("unlisted", "[]"),
    now_column("created_at"),
    # Dollars spent by the sync that the run belongs to, including earlier runs of the same command.
    sa.Column("spent", sa.Numeric(18, 8), nullable=False, server_default="0"),
)
"""The slice of documents that each tenant's current run processes."""

catalog_marks = sa.Table(
    "catalog_marks",
    metadata,
    tenant_column(),
    sa.Column("mark", sa.BigInteger, nullable=False),
    # Tag of the last change: it differs in a restored catalog that went on with other changes.
    sa.Column("tag", sa.Text),
    # Whether a store has kept the mark.
    sa.Column("kept", sa.Boolean, nullable=False, server_default="false"),
)
"""Number of the tenant's changes that a restored catalog must not forget.

The stores keep this number as well.
"""

tenant_locks = sa.Table(
    "tenant_locks",
    metadata,
    # No foreign key: the lock is held while the tenant's row is being removed.
    sa.Column("tenant", sa.Text, primary_key=True),
    json_column("holder"),
    now_column("acquired_at"),
)
"""The process that holds each tenant's lock."""

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    tenant_column(primary_key=False),
    sa.Column("kind", sa.Text, nullable=False),
    now_column("at", "event"),
    json_column("payload"),
    sa.Index(None, "tenant", "kind", "id"),
    sa.Index(None, "tenant", "id"),
    # For the list of a member's own searches.
    sa.Index(
        "ix_events_tenant_caller",
        "tenant",
        sa.text("(payload ->> 'caller')"),
        "id",
        postgresql_where=sa.text("payload ->> 'caller' IS NOT NULL"),
    ),
)
"""Events of tenants; see the kinds of events."""

check_results = sa.Table(
    "check_results",
    metadata,
    tenant_column(),
    sa.Column("asset", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("passed", sa.Boolean),
    sa.Column("severity", sa.Text),
    sa.Column("description", sa.Text),
    time_column("evaluated_at", "event"),
    sa.Column("error", sa.Text),
)
"""The latest result of each check."""


page_moves = sa.Sequence("page_moves", metadata=metadata)

pages = sa.Table(
    "pages",
    metadata,
    tenant_column(),
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    # Null only for the root. The parent may be unknown, because an application may send page and
    # parent in any order.
    sa.Column("parent", sa.Text),
    # Whether its readers are added to the readers of the pages above; otherwise they replace them.
    sa.Column("inherit", sa.Boolean, nullable=False),
    sa.Column("readers", sa.ARRAY(sa.Text), nullable=False, server_default="{}"),
    sa.Column("archived", sa.Boolean, nullable=False, server_default="false"),
    sa.Column("ai", sa.Boolean, nullable=False, server_default="true"),
    # Access scope of its documents, derived from this page and the pages above it.
    sa.Column("scope", sa.Text, nullable=False),
    # The number of the move after which its entries may have another scope; null when they were
    # updated.
    sa.Column("moved", sa.BigInteger),
    now_column("updated_at"),
    sa.CheckConstraint("kind IN ('root', 'page', 'database')", name="kind"),
    sa.Index(None, "tenant", "parent"),
    sa.Index("ix_pages_moved", "tenant", postgresql_where=sa.text("moved IS NOT NULL")),
)
"""Pages and databases that applications push, with their readers."""

scope_ancestors = sa.Table(
    "scope_ancestors",
    metadata,
    tenant_column(),
    sa.Column("scope", sa.Text, primary_key=True),
    # Readers of this scope also read `scope`: it is one of all scopes from which `scope` inherits,
    # directly or indirectly.
    sa.Column("ancestor", sa.Text, primary_key=True),
    sa.Index(None, "tenant", "ancestor"),
)
"""Access scopes from which each scope inherits readers."""


def list_all_tables() -> list[sa.Table]:
    """Return the tables of the core and of all systems, sorted by their foreign keys."""
    installed_systems().load("tables")
    return metadata.sorted_tables
