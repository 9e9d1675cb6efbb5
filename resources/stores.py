"""Dagster resources of Postgres, Elasticsearch and the lake.

Each has a configured address, or the installation's own: of the environment, otherwise of the
embedded servers.
"""

from functools import lru_cache

import dagster as dg

from rag_assets.common.settings import Settings
from rag_assets.local_stack.elasticsearch_access import connection_at
from rag_assets.local_stack.stack import Endpoints, LocalStack
from rag_assets.pipeline.mark_keeper import MarkKeeper
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.store import StoreConfig, VectorStore, open_store
from rag_assets.storage.installation.identity import Identity, open_catalog, require_cluster
from rag_assets.storage.lake.store import Lake


class PostgresResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The catalog's Postgres.

    Attributes:
        url: its address; the installation's own by default.
    """

    url: str | None = None

    def catalog(self) -> Catalog:
        """The catalog, opened once per process.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        return _opened_catalog(*_catalog_urls(self.url))[0]

    def identity(self) -> Identity:
        """Return the installation that the catalog belongs to."""
        return _opened_catalog(*_catalog_urls(self.url))[1]


class ElasticsearchResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The vector store's Elasticsearch.

    Attributes:
        url: its address, in place of the installation's own; account and certificate stay.
    """

    url: str | None = None

    def store(self) -> VectorStore:
        """The vector store, opened once per process.

        Raises:
            ServiceUnavailable: Elasticsearch is not running.
        """
        settings = Settings.from_environment()
        own = _own(settings)
        vectors = settings.vectors_url or own.database_url
        server = own.elasticsearch if self.url is None else connection_at(settings, self.url)
        return _store(server, own.database_url, own.owner_url, vectors)


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The lake of all tenants.

    Attributes:
        url: a folder or an object store's address; the installation's own by default.
    """

    url: str | None = None

    def lake(self) -> Lake:
        """The lake; nothing is opened yet."""
        return Lake(self.url or Settings.from_environment().lake_url)


def close_all() -> None:
    """Close every connection of this process."""
    for opened in _opened:
        opened.close()
    _opened.clear()
    _opened_catalog.cache_clear()
    _store.cache_clear()


def _catalog_urls(url: str | None) -> tuple[str, str]:
    """Return the catalog's address for runs, and that for upgrades."""
    if url is not None:
        return url, url
    own = _own(Settings.from_environment())
    return own.database_url, own.owner_url


def _own(settings: Settings) -> Endpoints:
    stack = LocalStack(settings)
    stack.keep_private()
    return stack.endpoints()


_opened: list[Catalog | VectorStore] = []


@lru_cache(maxsize=4)
def _opened_catalog(url: str, owner_url: str) -> tuple[Catalog, Identity]:
    settings = Settings.from_environment()
    stack = LocalStack(settings)
    catalog, identity = open_catalog(
        settings, url, owner_url, before_upgrade=stack.require_no_older_process
    )
    _opened.append(catalog)
    lake, blobs = Lake(settings.lake_url), open_blobs(settings)
    keeper = MarkKeeper(catalog, lake, blobs, ElasticsearchResource().store)
    catalog.database.after_raise = keeper.keep
    return catalog, identity


@lru_cache(maxsize=4)
def _store(
    server: ElasticsearchConnection, catalog_url: str, owner_url: str, vectors_url: str
) -> VectorStore:
    catalog, identity = _opened_catalog(catalog_url, owner_url)
    config = StoreConfig(
        server,
        prefix=identity.prefixes[0],
        vectors_url=vectors_url,
        installation=identity.id,
        former_prefixes=identity.prefixes[1:],
        layout=Settings.from_environment().elasticsearch.layout,
    )
    store = open_store(config)
    _opened.append(store)
    require_cluster(catalog, store, identity)
    return store
