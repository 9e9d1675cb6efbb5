"""Tenants' rerankers, built from configuration, key and network."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rag_assets.billing.key_ring import RERANK, KeyRing
from rag_assets.common.settings import Settings
from rag_assets.models.config import RerankConfig
from rag_assets.models.factory import build_reranker
from rag_assets.models.reranking.protocol import CircuitBreakerReranker, Reranker
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef


class Rerankers:
    """The rerankers of an installation's tenants."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._settings = settings
        self._keys = KeyRing(catalog, settings)

    def get_reranker(self, ref: TenantRef, config: RerankConfig) -> Reranker:
        """Return a tenant's reranker with that configuration, behind a circuit breaker."""
        if config.local_folder is not None:
            return _load_local_reranker(config.local_folder, config.threads)
        purpose = config.provider or RERANK
        credentials = self._keys.credentials(
            ref, purpose, config.api_key, setting="retrieval.rerank.api_key"
        )
        reranker = build_reranker(
            config, credentials=credentials, network=self._settings.private_endpoints
        )
        return CircuitBreakerReranker(reranker)


@lru_cache(maxsize=16)
def _load_local_reranker(folder: Path, threads: int | None) -> Reranker:
    """Load a reranker once for all tenants, which share its threads and its circuit breaker."""
    from rag_assets.models.reranking.cross_encoder import CrossEncoder

    return CircuitBreakerReranker(CrossEncoder(folder, threads))
