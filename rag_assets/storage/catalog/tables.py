"""The Postgres schema `rag_catalog`, and the tables that several parts of the catalog use.

Tables of accounts, erasures and uploads are in their packages. A table that only one module uses is
in that module.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Sequence,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.common.failure_kinds import FAILURE_KINDS
from rag_assets.plugins.registry import installed_systems

# It must not be the name of a database user: Postgres would then search it before the schema of
# Dagster's tables, and both have a table `alembic_version`.
SCHEMA = "rag_catalog"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)


def tenant_column(*, primary_key: bool = True) -> Column[str]:
    """Return the column with a row's tenant; deleting the tenant also deletes the row."""
    return Column(
        "tenant",
        Text,
        ForeignKey("tenants.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


TimeKind: TypeAlias = Literal["event", "retry"]
"""How a future time is corrected that was recorded while the clock was fast.

An event's time is replaced by the current time, from which ages and pauses then count. A retry
becomes due immediately. Times without a kind stay as they are.
"""


def now_column(name: str, kind: TimeKind | None = None) -> Column[object]:
    """Return a column for a required time, by default the time at which the row is inserted.

    Args:
        kind: how a time in the future is corrected; see TimeKind.
    """
    when = DateTime(timezone=True)
    return Column(name, when, nullable=False, server_default=func.now(), info={"time": kind})


def time_column(name: str, kind: TimeKind | None = None) -> Column[object]:
    """Return a column for an optional time."""
    return Column(name, DateTime(timezone=True), info={"time": kind})


def json_column(name: str, default: str = "{}") -> Column[object]:
    """Return a column for a required JSON value; the default is an empty object."""
    return Column(name, JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))


# Never reused, so that a new tenant with a purged tenant's id never finds its records.
incarnations = Sequence("incarnations", metadata=metadata)

tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("incarnation", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("origin", Text, nullable=False),
    # The home folder whose tenants.yaml lists the tenant; null for tenants of the API.
    Column("home", Uuid),
    json_column("config"),
    # From the configuration: applications use these to name the tenant of their project.
    Column("profile", Text, nullable=False, server_default="documents"),
    Column("organization", Text),
    Column("project", Text),
    # Whether the profile requires a project, which then has one tenant.
    Column("of_project", Boolean, nullable=False, server_default="false"),
    # Which credential rules its stores were scanned with, and the results; see rescans.
    json_column("scanned"),
    now_column("created_at"),
    now_column("updated_at"),
    CheckConstraint("state IN ('ACTIVE', 'DISABLED', 'REMOVING')", name="state"),
    CheckConstraint("origin IN ('file', 'api', 'agents')", name="origin"),
    Index(
        "uq_tenants_organization_project_profile",
        "organization",
        "project",
        "profile",
        unique=True,
        postgresql_where=text("of_project"),
    ),
)

organizations = Table(
    "organizations",
    metadata,
    Column("id", Text, primary_key=True),
    # Whether documents are embedded and searched for projects that require an opt-in.
    Column("rag_guidelines", Boolean, key="has_opted_in", nullable=False, server_default="false"),
    # The model for its projects that have no chat model of their own.
    Column("chat_model", Text),
    now_column("updated_at"),
)

documents = Table(
    "documents",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    # For a pushed record: its id in its application, and its page or database.
    Column("source_id", Text),
    Column("page_uuid", Text),
    # File names are bytes: not all are valid UTF-8.
    Column("path", LargeBinary, nullable=False),
    Column("uri", Text, nullable=False),
    Column("title", Text),
    # The title that its source gives; otherwise, the title is read from its content.
    Column("said_title", Text),
    Column("media_type", Text),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("ctime_ns", BigInteger, nullable=False),
    Column("inode", Numeric(20, 0), nullable=False),
    # The revision of the pushed record that was listed; null for other documents.
    Column("revision", BigInteger),
    # The version of its content from its source, a Git blob id; null if the source gives none.
    Column("version", Text),
    Column("listed_at_ns", BigInteger, nullable=False),
    Column("content_sha256", Text),
    # The content that was last embedded, and when; a new build or title does not change these
    # values.
    Column("embedded_sha256", Text),
    time_column("embedded_at", "event"),
    # When that content was written; touching a file does not change it.
    Column("modified_at", DateTime(timezone=True), nullable=False),
    Column("access_scope", Text, nullable=False, server_default="public"),
    Column("tags", ARRAY(Text), nullable=False, server_default="{}"),
    json_column("metadata"),
    # Ends with the number of reindex requests, if there were any.
    Column("document_key", Text, nullable=False),
    # The number of reindex requests for the document.
    Column("edition", Integer, nullable=False, server_default="0"),
    Column("lane", SmallInteger, nullable=False, server_default="0"),
    Column("status", Text, nullable=False),
    Column("error_message", Text),
    # The error for the people of the tenant: a kind of rag_assets.common.failure_kinds.
    Column("error_kind", Text),
    Column("failed_document_key", Text),
    Column("failed_config_key", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    time_column("retry_at", "retry"),
    Column("chunk_count", Integer, nullable=False, server_default="0"),
    Column("dropped_count", Integer, nullable=False, server_default="0"),
    now_column("first_seen"),
    now_column("changed_at", "event"),
    now_column("updated_at", "event"),
    # When it started to wait to be indexed, or to be removed from the index; set by a trigger.
    now_column("waiting_since"),
    CheckConstraint("status IN ('PROCESSING', 'READY', 'FAILED', 'DELETED')", name="status"),
    CheckConstraint(
        "error_kind IN ({})".format(", ".join(f"'{kind}'" for kind in FAILURE_KINDS)),
        name="error_kind",
    ),
    Index(None, "tenant", "source", "status"),
    Index(None, "tenant", "content_sha256"),
    Index(None, "tenant", "embedded_sha256", "embedded_at"),
    # URIs may be too long for an index.
    Index("ix_documents_tenant_uri", "tenant", text("md5(uri)")),
    Index(
        "ix_documents_tenant_page_uuid",
        "tenant",
        "page_uuid",
        postgresql_where=text("page_uuid IS NOT NULL"),
    ),
)

generations = Table(
    "generations",
    metadata,
    tenant_column(),
    Column("generation", Integer, primary_key=True),
    Column("generation_key", Text, nullable=False),
    Column("index_name", Text, nullable=False),
    Column("index_uuid", Text, nullable=False),
    Column("embedder_id", Text, nullable=False),
    json_column("embedder"),
    Column("dimensions", Integer, nullable=False),
    Column("state", Text, nullable=False),
    now_column("created_at", "event"),
    time_column("retired_at", "event"),
    # Only stored in Postgres, so that write access to the index is not enough to forge digests.
    Column("digest_key", LargeBinary),
    # Null in builds of earlier versions if their configuration was replaced since.
    Column("recipe", JSONB),
    # Why it is held.
    Column("reason", Text),
    time_column("completed_at", "event"),
    time_column("published_at"),
    # The checks that decided whether it was published or held.
    Column("checks", JSONB),
    # Cost of its embeddings in dollars.
    Column("spent", Numeric(18, 8), nullable=False, server_default="0"),
    # Figures of its largest slice.
    Column("embedded_texts", Integer, nullable=False, server_default="0"),
    Column("embedding_seconds", Double, nullable=False, server_default="0"),
    Column("written_entries", Integer, nullable=False, server_default="0"),
    Column("writing_seconds", Double, nullable=False, server_default="0"),
    # Whether its vectors are in the separate vector store, too; null: they are not.
    Column("vectors_beside", Text),
    # Time until which the separate store is not used, after it did not answer.
    time_column("vectors_retry_at", "retry"),
    # By use of a search: the measured cosine and its reason, or the floors of questions so far.
    json_column("thresholds"),
    CheckConstraint("vectors_beside IN ('filling', 'answering')", name="vectors_beside"),
    CheckConstraint(
        "state IN ('BUILDING', 'COMPLETE', 'HELD', 'SERVING', 'RETIRED', 'REMOVING')", name="state"
    ),
)

document_index = Table(
    "document_index",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("document_id", Text, primary_key=True),
    # The version that may be returned; null until the first version is complete.
    Column("indexed_key", Text),
    Column("document_key", Text),
    Column("config_key", Text),
    # The hash of that version's content; null if it was indexed before this was recorded.
    Column("content_sha256", Text),
    # Keys of that version in the lake; null if it was indexed before they were recorded.
    Column("parse_key", Text),
    Column("chunk_set_key", Text),
    Column("chunk_count", Integer, nullable=False, server_default="0"),
    # Number of tokens in that version's passages; null if it was indexed before they were counted.
    Column("token_count", Integer),
    # Whether other versions may have entries: set before a write, cleared after clean-up.
    Column("dirty", Boolean, nullable=False, server_default=text("true")),
    time_column("indexed_at"),
    # Why the document waits in a second build; `documents` has the reason for the configured build.
    Column("failed_document_key", Text),
    Column("failed_config_key", Text),
    Column("error_message", Text),
    time_column("retry_at", "retry"),
    ForeignKeyConstraint(
        ["tenant", "generation"],
        ["generations.tenant", "generations.generation"],
        ondelete="CASCADE",
    ),
    Index(None, "tenant", "chunk_set_key"),
    Index("ix_document_index_dirty", "tenant", "generation", postgresql_where=text("dirty")),
    Index(
        "ix_document_index_waiting",
        "tenant",
        "generation",
        postgresql_where=text("retry_at IS NOT NULL"),
    ),
)

serving = Table(
    "serving",
    metadata,
    tenant_column(),
    Column("generation", Integer, nullable=False),
    Column("index_name", Text, nullable=False),
    Column("index_uuid", Text, nullable=False),
    Column("embedder_id", Text, nullable=False),
    now_column("published_at"),
    # The build that answers, regardless of the configuration.
    Column("pinned_generation", Integer),
    time_column("pinned_at"),
    Column("pinned_by", Text),
    Column("pin_reason", Text),
    ForeignKeyConstraint(
        ["tenant", "generation"], ["generations.tenant", "generations.generation"]
    ),
)

access_scopes = Table(
    "access_scopes",
    metadata,
    tenant_column(),
    Column("scope", Text, primary_key=True),
    Column("principal", Text, primary_key=True),
    now_column("granted_at"),
)

tombstones = Table(
    "tombstones",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("content_sha256", Text, nullable=False),
    now_column("pruned_at"),
    # Whether a request may index the document again unchanged.
    Column("invalidated", Boolean, nullable=False, server_default=text("false")),
)

# Shared by all tenants, so that no revision is ever used twice.
record_revisions = Sequence("record_revisions", metadata=metadata)

source_records = Table(
    "source_records",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    Column("source_type", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    Column("document_id", Text, nullable=False),
    Column("record_key", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("content_sha256", Text, nullable=False),
    json_column("said"),
    time_column("modified_at"),
    now_column("changed_at"),
    # When it was last pushed unchanged; before that, the time of its change.
    time_column("pushed_at", "event"),
    # The page or database that it is attached to, if any.
    Column("page_uuid", Text),
    # When a comment was resolved; null for other records.
    time_column("resolved_at"),
    # 0 if a person waits for it, 1 for bulk writes.
    Column("lane", SmallInteger, nullable=False, server_default="0"),
    # Time of the first change that had not been listed yet when the current change arrived.
    now_column("waiting_since"),
    Index(None, "tenant", "document_id", unique=True),
    Index(
        "ix_source_records_tenant_page_uuid",
        "tenant",
        "page_uuid",
        postgresql_where=text("page_uuid IS NOT NULL"),
    ),
)

# The latest time and version that an application gave for a record, or for a part of it. A row
# outlives its record, so that a write older than the record's deletion is recognized.
record_clocks = Table(
    "record_clocks",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    # Hash of the id of a block that was written separately; empty for the whole record.
    Column("part", Text, primary_key=True, server_default=""),
    time_column("updated_at"),
    Column("version", BigInteger),
)

# Former texts of records, as long as a run that listed them may need them.
record_texts = Table(
    "record_texts",
    metadata,
    tenant_column(),
    Column("document_id", Text, primary_key=True),
    Column("content_sha256", Text, primary_key=True),
    Column("text", Text, nullable=False),
    now_column("kept_at"),
)

syncs = Table(
    "syncs",
    metadata,
    tenant_column(),
    Column("source", Text, primary_key=True),
    # Digest of the last listing with all changes recorded in `documents`.
    Column("listing_digest", Text),
    Column("listed_at_ns", BigInteger),
    Column("config_key", Text),
    Column("held_deletions", Integer, nullable=False, server_default="0"),
    Column("held_reason", Text),
    # Path, inode and file system of the root and of each mount point at the last listing.
    Column("folders", JSONB),
    # Number of documents due for pruning, if so many that a person must confirm it.
    Column("held_prunes", Integer, nullable=False, server_default="0"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
    time_column("retry_at", "retry"),
    time_column("succeeded_at"),
)

slices = Table(
    "slices",
    metadata,
    tenant_column(),
    Column("run_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("config_key", Text, nullable=False),
    json_column("document_ids", "[]"),
    json_column("unlisted", "[]"),
    now_column("created_at"),
    # Dollars spent by the sync that the run belongs to, including earlier runs of the same command.
    Column("spent", Numeric(18, 8), nullable=False, server_default="0"),
)

# Number of the tenant's changes that a restored catalog must not forget. The stores keep this
# number as well.
catalog_marks = Table(
    "catalog_marks",
    metadata,
    tenant_column(),
    Column("mark", BigInteger, nullable=False),
    # Tag of the last change: it differs in a restored catalog that went on with other changes.
    Column("tag", Text),
    # Whether a store has kept the mark.
    Column("kept", Boolean, nullable=False, server_default="false"),
)

tenant_locks = Table(
    "tenant_locks",
    metadata,
    # No foreign key: the lock is held while the tenant's row is being removed.
    Column("tenant", Text, primary_key=True),
    json_column("holder"),
    now_column("acquired_at"),
)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    tenant_column(primary_key=False),
    Column("kind", Text, nullable=False),
    now_column("at", "event"),
    json_column("payload"),
    Index(None, "tenant", "kind", "id"),
    Index(None, "tenant", "id"),
    # For the list of a member's own searches.
    Index(
        "ix_events_tenant_caller",
        "tenant",
        text("(payload ->> 'caller')"),
        "id",
        postgresql_where=text("payload ->> 'caller' IS NOT NULL"),
    ),
)

check_results = Table(
    "check_results",
    metadata,
    tenant_column(),
    Column("asset", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("passed", Boolean),
    Column("severity", Text),
    Column("description", Text),
    time_column("evaluated_at", "event"),
    Column("error", Text),
)


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


def all_tables() -> list[Table]:
    """Return the tables of the core and of all systems, sorted by their foreign keys."""
    installed_systems().load("tables")
    return metadata.sorted_tables
