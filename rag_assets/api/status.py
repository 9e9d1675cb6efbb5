"""The status of a tenant: how far its index is behind its documents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace

from rag_assets.api.responses import Status
from rag_assets.api.workspace_responses import EmbeddingModel, WorkspaceStatus
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.application_settings import (
    SECTION,
    is_pending,
    overlaid,
    wanted_embedder,
)
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import configured_embedder, configured_sources, profile_of


def tenant_status(
    catalog: Catalog, record: TenantRecord, *, readers: Collection[str] | None
) -> WorkspaceStatus | Status:
    """Return the status of a tenant, with more fields if its records are typed.

    The status is read with a single SQL statement.

    Args:
        readers: count only documents that one of these principals may read; None, for an admin,
            counts all documents.
    """
    profile = installed_systems().profiles.get(record.profile)
    if profile is not None and profile.typed_records:
        return status_of_records(catalog, record, readers=readers)
    found = catalog.freshness.read(record.id, _sources(record), readers=readers)
    return Status(**asdict(found), disabled=record.state != "ACTIVE")


def status_of_records(
    catalog: Catalog, record: TenantRecord, *, readers: Collection[str] | None
) -> WorkspaceStatus:
    """Return the status of a tenant of typed records; see tenant_status()."""
    found = catalog.record_freshness.read(record.id, _sources(record), readers=readers)
    backend = record.config.get(SECTION, {}).get("vector_backend", "elasticsearch")
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
    """Return the model that waits until the whole tenant is indexed again; None without one."""
    operators = configured_embedder(record.configured)
    if not profile_of(record.profile).keeps_model or not is_pending(record.settings, operators):
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


def _sources(record: TenantRecord) -> list[str]:
    return [source["name"] for source in configured_sources(record.config)]
