"""Reconciles the catalog's tenants with tenants.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.pipeline.generations import fill_in_recipes
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.reconciliation import plan_tenants


def reconcile_tenants(catalog: Catalog, settings: Settings) -> list[TenantRecord]:
    """Bring the catalog's tenants in line with the file; returns all of them.

    Raises:
        ConfigurationError: the file, or a tenant in it, is not usable; nothing was changed.
    """
    listed = TenantsFile(settings.tenants_file, cache=settings.local / "cache").load()
    known = {record.id: record for record in catalog.tenants.all()}
    _require_none_of_the_api(listed, known)
    changes = plan_tenants(listed, known)
    for config, _ in changes.put:
        _require_reranker(config)
    for config, enabled in changes.put:
        former = known.get(str(config["id"]))
        if former is not None and former.configured != config:
            fill_in_recipes(catalog, former)
        catalog.tenants.put(str(config["id"]), config, enabled=enabled, origin="file")
    for tenant_id in changes.disable:
        catalog.tenants.set_state(tenant_id, "DISABLED")
    if changes.put or changes.disable:
        return catalog.tenants.all()
    return list(known.values())


def _require_none_of_the_api(
    listed: Mapping[str, Mapping[str, Any]], known: Mapping[str, TenantRecord]
) -> None:
    """Refuse a file that lists what was made over the API: which of the two counts is not clear."""
    made = {id_: record for id_, record in known.items() if record.origin == "api"}
    if not made:
        return
    projects = {
        (record.config.get("profile"), record.organization, record.project): id_
        for id_, record in made.items()
    }
    for tenant_id, config in listed.items():
        place = (config.get("profile"), config.get("organization"), config.get("project"))
        if (present := tenant_id if tenant_id in made else projects.get(place)) is not None:
            record = made[present]
            raise ConfigurationError(
                f"tenants.yaml lists {tenant_id!r}, and tenant {present!r}, project"
                f" {record.project!r} of organization {record.organization!r}, was made over the"
                " API",
                hint="take it out of tenants.yaml; or do so, `rag-assets tenants remove"
                f" {present} --yes`, and put it in again",
            )


def _require_reranker(config: Mapping[str, Any]) -> None:
    """Load a reranker before the change is accepted: a search would continue without it."""
    rerank = Tenant.from_config(config).retrieval.rerank
    if rerank is not None and rerank.folder is not None:
        from rag_assets.models.reranking.cross_encoder import require_cross_encoder

        require_cross_encoder(rerank.folder)
