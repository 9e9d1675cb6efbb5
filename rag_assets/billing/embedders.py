"""Tenants' embedders, built from configuration, key, network and limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rag_assets.billing.embedder_choice import Choice, choose
from rag_assets.billing.key_health import KeyReportingBatchApi, KeyReportingEmbedder
from rag_assets.billing.key_ring import KeyRing
from rag_assets.billing.opt_in import NotOptedInEmbedder, lacks_opt_in
from rag_assets.common.settings import Settings
from rag_assets.models.config import AUTO, EmbedderConfig
from rag_assets.models.embedding.batch_api import BatchApi
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.factory import (
    build_batch_api,
    build_embedder,
    build_former,
    get_embedder_id,
    remote_model,
)
from rag_assets.models.providers.base import LocalEmbedding, RemoteEmbedding
from rag_assets.models.transport.retries import Traffic
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


class Embedders:
    """The embedders of an installation's tenants.

    Args:
        catalog: holds the tenants and their keys.
        settings: the installation's settings.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self.settings = settings
        self._keys = KeyRing(catalog, settings)

    def tenant(self, record: TenantRecord) -> Tenant:
        """Return a tenant of the catalog with its chosen embedder; the provider is never "auto".

        Raises:
            ConfigurationError: the tenant's configuration is not usable.
        """
        return self.chosen(record, Tenant.from_config(record.config))

    def chosen(self, record: TenantRecord, tenant: Tenant) -> Tenant:
        """Return a tenant, read from its record, with its chosen embedder.

        Raises:
            ConfigurationError: the tenant's configuration is not usable.
        """
        embedder = tenant.embedder
        if embedder.provider == AUTO:
            embedder = self._choice(record, tenant).embedder
        if embedder.batch_above is not None and lacks_opt_in(record):
            # No batch is submitted either: texts go to the embedder, which refuses them.
            embedder = embedder.model_copy(update={"batch_above": None})
        return tenant.model_copy(update={"embedder": embedder})

    def choice(self, record: TenantRecord) -> Choice:
        """Return a tenant's embedder, and the source of its key.

        Raises:
            ConfigurationError: the tenant's configuration is not usable.
        """
        return self._choice(record, Tenant.from_config(record.config))

    def of_documents(self, record: TenantRecord, config: EmbedderConfig) -> Embedder:
        """Return the embedder with that configuration for a tenant's documents.

        It refuses every call while the tenant lacks the opt-in of its organization.

        Raises:
            ConfigurationError: the embedder's model is missing or not usable.
        """
        embedder = self.of(record.ref, config)
        return NotOptedInEmbedder(embedder, record) if lacks_opt_in(record) else embedder

    def of(self, ref: TenantRef, config: EmbedderConfig) -> Embedder:
        """Return a tenant's embedder with that configuration; its key is read when it is needed.

        Raises:
            ConfigurationError: the embedder's model is missing or not usable.
        """
        if isinstance(config.offer, LocalEmbedding):
            return _load_local_embedder(config)
        embedder = build_embedder(
            config,
            credentials=self._keys.credentials(ref, config.provider, config.api_key),
            network=self.settings.private_endpoints,
            traffic=_traffic(_Route.of(ref, config)),
        )
        if config.api_key is not None:
            return embedder
        return KeyReportingEmbedder(
            embedder, lambda worked: self._keys.record_use(ref, config.provider, worked=worked)
        )

    def require_key(self, ref: TenantRef, config: EmbedderConfig) -> None:
        """Require that a tenant has the key of an embedder, if the embedder needs a key.

        Raises:
            ProviderRefused, ConfigurationError: the key is missing or unreadable.
        """
        key = choose(config, stored=self._keys.stored(ref)).key
        if key != "none needed":
            self._keys.credentials(ref, config.provider, config.api_key)()

    def of_generation(self, ref: TenantRef, tenant: Tenant, generation: Generation) -> Embedder:
        """Return the embedder that built a generation, with present limits, for its queries.

        Args:
            tenant: the tenant's present configuration.
            generation: the generation to be searched.

        Raises:
            ConfigurationError: the embedder's model is missing or not usable.
        """
        built = EmbedderConfig.model_validate(generation.embedder)
        present = tenant.embedder
        same = present.provider == built.provider
        remote = isinstance(present.offer, RemoteEmbedding)
        if same and remote and get_embedder_id(present) == generation.embedder_id:
            return self.of(ref, present)
        if isinstance(built.offer, LocalEmbedding):
            return _load_local_embedder_with_id(built, generation.embedder_id)
        return self.of(ref, built)

    def _choice(self, record: TenantRecord, tenant: Tenant) -> Choice:
        if isinstance(tenant.embedder.offer, LocalEmbedding):
            return choose(tenant.embedder)
        serving = self._catalog.generations.serving(record.id)
        return choose(
            tenant.embedder,
            chat_model=tenant.chat_model.model if tenant.chat_model else None,
            stored=self._keys.stored(record.ref),
            serving=str(serving.embedder.get("provider", "")) if serving else None,
        )

    def batch_api(self, ref: TenantRef, config: EmbedderConfig) -> BatchApi:
        """Return the batch API of an embedder, for one event loop.

        Args:
            config: the configuration when the batch was submitted. The tenant's present key is used
                if it is for the same server.

        Raises:
            ConfigurationError: the embedder's provider has no batch API, or the tenant's
                configuration is not usable.
        """
        present = self.tenant(self._catalog.tenants.get(ref.id)).embedder
        if (present.provider, present.base_url) == (config.provider, config.base_url):
            config = config.model_copy(update={"api_key": present.api_key})
        api = build_batch_api(
            config,
            credentials=self._keys.credentials(ref, config.provider, config.api_key),
            network=self.settings.private_endpoints,
        )
        if config.api_key is not None:
            return api
        return KeyReportingBatchApi(
            api, lambda worked: self._keys.record_use(ref, config.provider, worked=worked)
        )


@lru_cache(maxsize=16)
def _load_local_embedder(config: EmbedderConfig) -> Embedder:
    """Load an embedder that needs no key once; all tenants share it."""
    return build_embedder(config)


@lru_cache(maxsize=16)
def _load_local_embedder_with_id(config: EmbedderConfig, embedder_id: str) -> Embedder:
    """Load the embedder with an id, if necessary by the rules of an earlier version."""
    embedder = _load_local_embedder(config)
    if embedder.embedder_id == embedder_id:
        return embedder
    return build_former(config, embedder_id) or embedder


@dataclass(frozen=True, slots=True)
class _Route:
    """The settings that all of a tenant's requests to a provider share, whatever the model."""

    ref: TenantRef
    provider: str
    base_url: str | None
    concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None

    @classmethod
    def of(cls, ref: TenantRef, config: EmbedderConfig) -> _Route:
        return cls(
            ref,
            config.provider,
            config.base_url,
            remote_model(config).limits.concurrency,
            config.requests_per_minute,
            config.tokens_per_minute,
        )


@lru_cache(maxsize=4096)
def _traffic(route: _Route) -> Traffic:
    """Return a route's limits, shared by a process's embedders, since providers limit accounts."""
    return Traffic(
        concurrency=route.concurrency,
        requests_per_minute=route.requests_per_minute,
        tokens_per_minute=route.tokens_per_minute,
    )
