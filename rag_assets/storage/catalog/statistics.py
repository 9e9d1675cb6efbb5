"""The columns of which Postgres may, and may not, keep statistics.

ANALYZE copies sample values into `pg_statistic`, where they remain after their rows are deleted,
until the next ANALYZE. Columns with contents of documents, sources or requests, or with a secret,
therefore have no statistics; no query plan needs them. Every column that could hold text is listed
here, so that a new column requires a decision.
"""

from __future__ import annotations

from collections.abc import Mapping

UNSAMPLED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "check_results": ("description", "error"),
    "documents": (
        *("path", "uri", "title", "said_title", "tags", "metadata", "error_message"),
        "source_type",
    ),
    "embedding_batches": ("error",),
    "events": ("payload",),
    "generations": ("digest_key", "embedder"),
    "knowledge_staging": (
        *("agent_type", "task_type", "technology", "failure_description", "error_message"),
        *("solution_steps", "gate_type", "human_feedback", "revision_approach"),
        "approved_approach",
    ),
    "provider_keys": ("nonce", "ciphertext", "last_four"),
    "service_tokens": ("token_sha256", "principals"),
    "slices": ("unlisted",),
    "source_records": ("source_type", "source_id", "text", "said"),
    "syncs": ("last_error",),
    "tenants": ("config",),
}
"""Columns without statistics, by table."""

UNSAMPLED_INDEX_COLUMNS: Mapping[str, tuple[int, ...]] = {"ix_events_tenant_caller": (2,)}
"""Expressions without statistics, by index: their column numbers, from 1."""

SAMPLED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "access_scopes": ("tenant", "scope", "principal"),
    "check_results": ("tenant", "asset", "name", "severity"),
    "checkpoints": ("tenant", "checkpoint_type"),
    "document_index": ("tenant", "document_id", "indexed_key", "document_key", "config_key"),
    "documents": (
        *("tenant", "document_id", "source", "media_type", "content_sha256", "access_scope"),
        *("document_key", "status", "failed_document_key", "failed_config_key"),
    ),
    "embedder_probes": ("tenant", "embedder_id", "probes_key", "vectors", "distances"),
    "embedding_batches": (
        *("tenant", "tag", "batch_id", "embedder_id", "embedder", "hashes", "state"),
    ),
    "events": ("tenant", "kind"),
    "generations": (
        *("tenant", "generation_key", "index_name", "index_uuid", "embedder_id", "state"),
    ),
    "knowledge_staging": ("tenant", "entry_type"),
    "provider_keys": ("tenant", "provider", "master_key_id"),
    "service_tokens": ("token_id", "tenant", "role"),
    "serving": ("tenant", "index_name", "index_uuid", "embedder_id"),
    "slices": ("tenant", "run_id", "config_key", "document_ids"),
    "source_records": (
        *("tenant", "source", "document_id", "record_key", "media_type", "content_sha256"),
    ),
    "syncs": ("tenant", "source", "listing_digest", "config_key"),
    "tenant_locks": ("tenant", "holder"),
    "tenants": ("id", "state", "origin"),
    "tombstones": ("tenant", "document_id", "content_sha256"),
    "usage": ("tenant", "provider", "model"),
}
"""Columns with statistics, by table: ids, hashes, states and names that operators give."""
