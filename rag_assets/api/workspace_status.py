"""The status of a workspace: waiting and excluded documents, its model and its back end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace

from rag_assets.api.workspace_responses import EmbeddingModel, WorkspaceStatus
from rag_assets.models.config.embedder import EmbedderConfig
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.application_settings import PROFILE, is_pending, overlaid, wanted_embedder
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import configured_embedder, configured_sources


def workspace_status(
    catalog: Catalog, record: TenantRecord, *, readers: Collection[str] | None
) -> WorkspaceStatus:
    """Return the status of a workspace, from a single statement.

    Args:
        readers: count only documents that one of these principals may read; None, for an admin,
            counts all documents.
    """
    sources = [source["name"] for source in configured_sources(record.config)]
    found = catalog.workspace_freshness.of(record.id, sources, readers=readers)
    backend = record.config.get(PROFILE, {}).get("vector_backend", "elasticsearch")
    return WorkspaceStatus(
        **asdict(found.freshness),
        disabled=record.state != "ACTIVE",
        excluded=found.excluded,
        failed=found.failed,
        oldest_wait_seconds=found.oldest_wait_seconds,
        pending_model=pending_model(record) if readers is None else None,
        vector_backend=backend,
        backfilled=found.backfilled if backend == "pgvector" else None,
    )


def pending_model(record: TenantRecord) -> EmbeddingModel | None:
    """Return the model that waits until the whole workspace is indexed again; None if none does."""
    operators = configured_embedder(record.configured)
    if record.profile != PROFILE or not is_pending(record.settings, operators):
        return None
    settings = record.settings
    wanted = replace(settings, embedder=wanted_embedder(settings, operators))
    embedder = Tenant.from_config(overlaid(record.configured, wanted)).embedder
    return EmbeddingModel(
        settings.provider or embedder.provider, model_name(embedder), embedder.dimensions
    )


def model_name(embedder: EmbedderConfig) -> str:
    """Return the name of an embedder's model for display."""
    return embedder.model_name or (embedder.path.name if embedder.path else DEFAULT_MODEL)
