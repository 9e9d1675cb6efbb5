"""The tenants' embedders, one per configuration and process."""

from functools import lru_cache

import dagster as dg

from rag_assets.embedding.protocol import Embedder
from rag_assets.embedding.registry import EmbedderConfig, build_embedder
from rag_assets.tenants.model import Tenant


class EmbedderResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Finds the embedder of a tenant."""

    def of(self, tenant: Tenant) -> Embedder:
        """The embedder that the tenant's configuration names.

        Raises:
            ConfigurationError: its model is missing or not usable.
        """
        return _embedder(tenant.embedder)


@lru_cache(maxsize=16)
def _embedder(config: EmbedderConfig) -> Embedder:
    return build_embedder(config)
