"""Reads the state that decides whether a tenant is due: a listing and a few rows."""

from __future__ import annotations

from datetime import timedelta

from rag_assets.billing.spending import require_price
from rag_assets.common.errors import ListingFailed
from rag_assets.common.settings import Settings
from rag_assets.models.factory import embedder_id_of
from rag_assets.pipeline.context import build_of, config_key
from rag_assets.pipeline.source_listing import ListingDigest, open_sources, settings_key
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant
from sensors.due import TenantState


def tenant_state(
    catalog: Catalog, record: TenantRecord, tenant: Tenant, settings: Settings
) -> TenantState:
    """List a tenant's sources and read their records in the catalog.

    Raises:
        ConfigurationError: there are caps on spending, and no price is known.
    """
    require_price(tenant)
    digests: dict[str, str] = {}
    unlisted: dict[str, str] = {}
    for config, source in zip(tenant.sources, open_sources(tenant, settings, catalog), strict=True):
        digest = ListingDigest(settings_key(tenant, config))
        try:
            for _ in digest.through(source.list()):
                pass
        except ListingFailed as error:
            unlisted[source.name] = error.message
        else:
            digests[source.name] = digest.hexdigest()
    embedder_id = embedder_id_of(tenant.embedder)
    key = config_key(tenant, embedder_id)
    # Not the newest: the configuration may be an older one again.
    live = catalog.generations.live(record.id)
    build = build_of(live, tenant, embedder_id)
    oldest = (
        catalog.documents.oldest_change(record.id) if tenant.retention_days is not None else None
    )
    retention = timedelta(days=tenant.retention_days or 0)
    return TenantState(
        tenant_id=record.id,
        digests=digests,
        unlisted=unlisted,
        config_key=key,
        syncs=catalog.syncs.all(record.id),
        # A build that has not begun yet lacks every document.
        pending=catalog.index.pending_count(record.id, build.number if build else 0, key),
        removals=sum(len(ids) for ids in catalog.index.removals(record.id).values()),
        partly_replaced=sum(len(catalog.index.dirty(record.id, build.number)) for build in live),
        recently_changed=catalog.documents.reread_count(record.id, digests),
        next_expiry=None if oldest is None else oldest + retention,
    )
