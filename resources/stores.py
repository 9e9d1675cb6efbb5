"""Dagster resources for an installation's Postgres, Elasticsearch, lake and embedders.

Without an address in the settings, they use the embedded server of the home folder.
"""

from functools import lru_cache, partial

import dagster as dg

from rag_assets.billing.embedders import Embedders
from rag_assets.common.settings import Settings
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.resources.installation import InstallationResource
from rag_assets.runtime.stack import Endpoints, LocalStack
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.store import StoreConfig, VectorStore, open_store
from rag_assets.storage.installation.identity import Identity, open_catalog, require_cluster
from rag_assets.storage.lake.store import Lake


class PostgresResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The catalog's Postgres."""

    installation: dg.ResourceDependency[InstallationResource]

    def catalog(self) -> Catalog:
        """Return the catalog, opened once per process.

        Raises:
            ServiceUnavailable: Postgres does not respond.
        """
        return _open(self.installation.settings)[0]

    def identity(self) -> Identity:
        """Return the installation that the catalog belongs to."""
        return _open(self.installation.settings)[1]


class ElasticsearchResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The vector store's Elasticsearch."""

    installation: dg.ResourceDependency[InstallationResource]

    def store(self) -> VectorStore:
        """Return the vector store, opened once per process.

        Raises:
            ServiceUnavailable: Elasticsearch or Postgres is not running.
        """
        return _open_store(self.installation.settings)


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The lake of all tenants."""

    installation: dg.ResourceDependency[InstallationResource]

    def lake(self) -> Lake:
        """Return the lake, without opening its tables."""
        return Lake(self.installation.settings.lake_url)


def close_all() -> None:
    """Close all connections of this process."""
    for opened in _opened:
        opened.close()
    _opened.clear()
    _open_catalog.cache_clear()
    _create_store.cache_clear()


def _open(settings: Settings) -> tuple[Catalog, Identity]:
    own = _find_endpoints(settings)
    return _open_catalog(settings, own.database_url, own.owner_url)


def _open_store(settings: Settings) -> VectorStore:
    own = _find_endpoints(settings)
    return _create_store(settings, own.elasticsearch, own.database_url, own.owner_url)


def _find_endpoints(settings: Settings) -> Endpoints:
    stack = LocalStack(settings)
    stack.keep_private()
    return stack.endpoints()


_opened: list[Catalog | VectorStore] = []


@lru_cache(maxsize=4)
def _open_catalog(settings: Settings, url: str, owner_url: str) -> tuple[Catalog, Identity]:
    stack = LocalStack(settings)
    catalog, identity = open_catalog(
        settings, url, owner_url, before_upgrade=stack.require_no_older_process
    )
    _opened.append(catalog)
    lake, blobs = Lake(settings.lake_url), open_blobs(settings)
    keeper = CatalogMarkKeeper(catalog, lake, blobs, partial(_open_store, settings))
    catalog.database.after_raise = keeper.keep
    return catalog, identity


@lru_cache(maxsize=4)
def _create_store(
    settings: Settings, server: ElasticsearchConnection, catalog_url: str, owner_url: str
) -> VectorStore:
    catalog, identity = _open_catalog(settings, catalog_url, owner_url)
    config = StoreConfig(
        server,
        prefix=identity.prefixes[0],
        vectors_url=settings.vectors_url or catalog_url,
        installation=identity.id,
        former_prefixes=identity.prefixes[1:],
        layout=settings.elasticsearch.layout,
    )
    store = open_store(config)
    _opened.append(store)
    require_cluster(catalog, store, identity)
    return store


class EmbedderResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Finds the embedder of a tenant."""

    installation: dg.ResourceDependency[InstallationResource]

    def embedders(self, catalog: Catalog) -> Embedders:
        """Return the embedders of the tenants in a catalog."""
        return Embedders(catalog, self.installation.settings)
