"""The catalog's tables, in the Postgres schema `rag_catalog`.

Some serve sources and services that are added later (source_records, knowledge_staging,
checkpoints, provider_keys, usage); they are here from the first migration because state cannot
be retrofitted into a running installation.
"""

from __future__ import annotations

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

# Not the name of a database user: Postgres would then find these tables before Dagster's own,
# whose migrations are kept in a table of the same name as ours.
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


# Never reused, so that nothing has to be remembered of a tenant that was purged.
incarnations = Sequence("incarnations", metadata=metadata)


def _tenant(*, primary_key: bool = True) -> Column[str]:
    return Column(
        "tenant",
        Text,
        ForeignKey("tenants.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def _now(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def _time(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True))


def _json(name: str, default: str = "{}") -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))


tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("incarnation", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("origin", Text, nullable=False),
    _json("config"),
    _now("created_at"),
    _now("updated_at"),
    CheckConstraint("state IN ('ACTIVE', 'DISABLED', 'REMOVING')", name="state"),
    CheckConstraint("origin IN ('file', 'api')", name="origin"),
)

documents = Table(
    "documents",
    metadata,
    _tenant(),
    Column("document_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    # File names are bytes: not every one is valid UTF-8.
    Column("path", LargeBinary, nullable=False),
    Column("uri", Text, nullable=False),
    Column("title", Text),
    Column("media_type", Text),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("ctime_ns", BigInteger, nullable=False),
    Column("inode", Numeric(20, 0), nullable=False),
    Column("listed_at_ns", BigInteger, nullable=False),
    Column("content_sha256", Text),
    Column("access_scope", Text, nullable=False, server_default="public"),
    Column("tags", ARRAY(Text), nullable=False, server_default="{}"),
    _json("metadata"),
    Column("document_key", Text, nullable=False),
    Column("lane", SmallInteger, nullable=False, server_default="0"),
    Column("status", Text, nullable=False),
    Column("error_message", Text),
    Column("failed_document_key", Text),
    Column("failed_config_key", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    _time("retry_at"),
    Column("chunk_count", Integer, nullable=False, server_default="0"),
    Column("dropped_count", Integer, nullable=False, server_default="0"),
    _now("first_seen"),
    _now("changed_at"),
    _now("updated_at"),
    CheckConstraint("status IN ('PROCESSING', 'READY', 'FAILED', 'DELETED')", name="status"),
    Index(None, "tenant", "source", "status"),
    Index(None, "tenant", "content_sha256"),
)

generations = Table(
    "generations",
    metadata,
    _tenant(),
    Column("generation", Integer, primary_key=True),
    Column("generation_key", Text, nullable=False),
    Column("index_name", Text, nullable=False),
    Column("index_uuid", Text, nullable=False),
    Column("embedder_id", Text, nullable=False),
    _json("embedder"),
    Column("dimensions", Integer, nullable=False),
    Column("state", Text, nullable=False),
    _now("created_at"),
    _time("retired_at"),
    CheckConstraint("state IN ('BUILDING', 'SERVING', 'RETIRED', 'REMOVING')", name="state"),
)

document_index = Table(
    "document_index",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("document_id", Text, primary_key=True),
    # Null until the first version is complete; then the version that may be returned.
    Column("indexed_key", Text),
    Column("document_key", Text),
    Column("config_key", Text),
    Column("chunk_count", Integer, nullable=False, server_default="0"),
    # Entries of another version may be in the index: set before a write, cleared after clean-up.
    Column("dirty", Boolean, nullable=False, server_default=text("true")),
    _time("indexed_at"),
    ForeignKeyConstraint(
        ["tenant", "generation"],
        ["generations.tenant", "generations.generation"],
        ondelete="CASCADE",
    ),
    Index("ix_document_index_dirty", "tenant", "generation", postgresql_where=text("dirty")),
)

serving = Table(
    "serving",
    metadata,
    _tenant(),
    Column("generation", Integer, nullable=False),
    Column("index_name", Text, nullable=False),
    Column("index_uuid", Text, nullable=False),
    Column("embedder_id", Text, nullable=False),
    _now("published_at"),
    ForeignKeyConstraint(
        ["tenant", "generation"], ["generations.tenant", "generations.generation"]
    ),
)

access_scopes = Table(
    "access_scopes",
    metadata,
    _tenant(),
    Column("scope", Text, primary_key=True),
    Column("principal", Text, primary_key=True),
    _now("granted_at"),
)

tombstones = Table(
    "tombstones",
    metadata,
    _tenant(),
    Column("document_id", Text, primary_key=True),
    Column("content_sha256", Text, nullable=False),
    _now("pruned_at"),
)

provider_keys = Table(
    "provider_keys",
    metadata,
    _tenant(),
    Column("provider", Text, primary_key=True),
    Column("nonce", LargeBinary, nullable=False),
    Column("ciphertext", LargeBinary, nullable=False),
    Column("master_key_id", Text, nullable=False),
    Column("last_four", Text, nullable=False),
    _now("created_at"),
    _time("last_used_at"),
    Column("last_worked", Boolean),
)

source_records = Table(
    "source_records",
    metadata,
    _tenant(),
    Column("source", Text, primary_key=True),
    Column("source_type", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    _json("record"),
    Column("content_sha256", Text, nullable=False),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    _now("updated_at"),
)

knowledge_staging = Table(
    "knowledge_staging",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    _tenant(primary_key=False),
    Column("entry_type", Text, nullable=False),
    Column("project_id", Uuid),
    Column("agent_type", Text, nullable=False),
    Column("task_type", Text),
    Column("technology", Text),
    Column("failure_description", Text),
    Column("error_message", Text),
    Column("solution_steps", Text),
    Column("gate_type", Text),
    Column("human_feedback", Text),
    Column("revision_approach", Text),
    Column("approved_approach", Text),
    Column("success_verified", Boolean, nullable=False, server_default=text("false")),
    Column("embedded", Boolean, nullable=False, server_default=text("false")),
    _now("timestamp"),
    _time("embedded_at"),
    CheckConstraint(
        "(entry_type = 'failure_solution' AND failure_description IS NOT NULL)"
        " OR (entry_type = 'gate_rejection' AND gate_type IS NOT NULL)"
        " OR (entry_type = 'gate_approval' AND gate_type IS NOT NULL)",
        name="entry_type",
    ),
    Index(None, "tenant", "project_id"),
    Index(None, "tenant", "embedded"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    _tenant(),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("checkpoint_type", Text, nullable=False),
    Column("project_id", Uuid),
    _now("requested_at"),
    _time("processed_at"),
)

usage = Table(
    "usage",
    metadata,
    _tenant(),
    Column("day", Date, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("requests", BigInteger, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost", Numeric(18, 8), nullable=False, server_default="0"),
    Column("retries", BigInteger, nullable=False, server_default="0"),
    Column("texts", BigInteger, nullable=False, server_default="0"),
    Column("batch_tokens", BigInteger, nullable=False, server_default="0"),
    # Tokens that no price was known for: their cost is not in cost, which does not make it nothing.
    Column("unpriced_tokens", BigInteger, nullable=False, server_default="0"),
)

embedding_batches = Table(
    "embedding_batches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _tenant(primary_key=False),
    Column("tag", Text, nullable=False, unique=True),
    Column("batch_id", Text),
    Column("embedder_id", Text, nullable=False),
    _json("embedder"),
    # The text_sha256 of its texts, 32 bytes each; none once it is closed.
    Column("hashes", LargeBinary, nullable=False),
    Column("texts", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost", Numeric(18, 8)),
    Column("state", Text, nullable=False),
    Column("error", Text),
    _now("submitted_at"),
    _now("polled_at"),
    _time("ended_at"),
    CheckConstraint(
        "state IN ('SUBMITTING', 'UNDER_WAY', 'ENDED', 'COLLECTED', 'FAILED')", name="state"
    ),
    Index("ix_embedding_batches_tenant_state", "tenant", "state"),
)

service_tokens = Table(
    "service_tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    _tenant(primary_key=False),
    Column("token_sha256", LargeBinary, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("principals", ARRAY(Text), nullable=False, server_default="{}"),
    _now("created_at"),
    _time("expires_at"),
    _time("last_used_at"),
    CheckConstraint("role IN ('admin', 'member')", name="role"),
    Index(None, "tenant"),
)

embedder_probes = Table(
    "embedder_probes",
    metadata,
    _tenant(),
    Column("embedder_id", Text, primary_key=True),
    Column("probes_key", Text, nullable=False),
    Column("vectors", LargeBinary, nullable=False),
    _now("stored_at"),
    _now("measured_at"),
    Column("distances", ARRAY(Double), nullable=False, server_default="{}"),
    Column("passed", Boolean, nullable=False),
)

syncs = Table(
    "syncs",
    metadata,
    _tenant(),
    Column("source", Text, primary_key=True),
    # Digest of the last listing whose changes are all recorded in documents.
    Column("listing_digest", Text),
    Column("listed_at_ns", BigInteger),
    Column("config_key", Text),
    Column("held_deletions", Integer, nullable=False, server_default="0"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
    _time("retry_at"),
    _time("succeeded_at"),
)

slices = Table(
    "slices",
    metadata,
    _tenant(),
    Column("run_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("config_key", Text, nullable=False),
    _json("document_ids", "[]"),
    _json("unlisted", "[]"),
    _now("created_at"),
    # Dollars, by the sync that the run belongs to: runs of one command before it included.
    Column("spent", Numeric(18, 8), nullable=False, server_default="0"),
)

tenant_locks = Table(
    "tenant_locks",
    metadata,
    # No foreign key: the lock is held while the tenant's row is being removed.
    Column("tenant", Text, primary_key=True),
    _json("holder"),
    _now("acquired_at"),
)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _tenant(primary_key=False),
    Column("kind", Text, nullable=False),
    _now("at"),
    _json("payload"),
    Index(None, "tenant", "kind", "id"),
)
