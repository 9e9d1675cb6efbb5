"""A tenant's embedder: its configuration and its key put together, in this one place."""

from __future__ import annotations

from functools import lru_cache

from rag_assets.catalog.catalog import Catalog
from rag_assets.catalog.database import TenantRef
from rag_assets.catalog.tenants import TenantRecord
from rag_assets.embedding.protocol import Embedder
from rag_assets.embedding.registry import EmbedderConfig, build_embedder
from rag_assets.settings import Settings
from rag_assets.tenants.model import Tenant


class Embedders:
    """The embedders of an installation's tenants.

    Args:
        catalog: holds the tenants and their keys.
        settings: of the installation.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    def tenant(self, record: TenantRecord) -> Tenant:
        """A tenant of the catalog, with the embedder that it gets.

        Raises:
            ConfigurationError: something in its configuration is not usable.
        """
        return Tenant.from_config(record.config)

    def of(self, ref: TenantRef, config: EmbedderConfig) -> Embedder:
        """A tenant's embedder of that configuration; its key is looked for when it is needed.

        Raises:
            ConfigurationError: its model is missing or not usable.
        """
        return _on_this_machine(config)


@lru_cache(maxsize=16)
def _on_this_machine(config: EmbedderConfig) -> Embedder:
    """Loaded once for all tenants: what needs no key is nobody's own."""
    return build_embedder(config)
