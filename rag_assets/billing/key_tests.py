"""Tests of keys: a small call checks whether a provider accepts a key."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rag_assets.billing.embedders import choose_embedder
from rag_assets.billing.key_health import KeyReportingEmbedder
from rag_assets.billing.key_ring import KeyRing
from rag_assets.billing.spending import build_usage
from rag_assets.common.errors import ConfigurationError, KeyUnreadable, NoProviderKey, ProviderError
from rag_assets.common.settings import Settings
from rag_assets.models.config import AUTO, EmbedderConfig
from rag_assets.models.embedding.protocol import Charge
from rag_assets.models.embedding.vectors import embed_query
from rag_assets.models.factory import build_embedder, find_price
from rag_assets.models.prices import split_embedder_id
from rag_assets.models.providers.registry import list_auto_embeddings
from rag_assets.storage.catalog.accounts.credentials import KeyOwner
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.projects import build_example_config, list_project_profiles

_TEXT = "test"


@dataclass(frozen=True, slots=True)
class KeyTest:
    """The outcome of testing a key."""

    worked: bool
    reason: str | None
    """The reason for the failure; None if it worked."""
    latency_ms: int
    """Milliseconds until the answer, including the connection."""


class KeyTests:
    """Tests whether keys work, by embedding one word."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._keys = KeyRing(catalog, settings)

    async def test(self, owner: KeyOwner, provider: str) -> KeyTest:
        """Make one small call with an owner's key; a tenant's usage is recorded without caps."""
        config = self._find_embedder(owner, provider)
        credentials = self._keys.credentials(owner, provider, config.api_key)
        # Read before the call, so that a missing key is not reported as an outcome.
        secret = credentials()
        embedder = build_embedder(
            config, credentials=lambda: secret, network=self._settings.private_endpoints
        )
        if config.api_key is None:
            embedder = KeyReportingEmbedder(
                embedder, lambda worked: self._keys.record_use(owner, provider, worked=worked)
            )
        reason, charge, began = None, Charge(), time.monotonic()
        try:
            answer = await embed_query(embedder, _TEXT)
            charge = Charge(answer.tokens, answer.requests, 1)
        except (NoProviderKey, KeyUnreadable):
            raise
        except ProviderError as error:
            reason = error.message
        finally:
            latency = time.monotonic() - began
            await embedder.close()
        if isinstance(owner, TenantRef) and charge.tokens:
            account = split_embedder_id(embedder.embedder_id)
            self._catalog.usage.add(owner, *account, build_usage(charge, find_price(config)))
        return KeyTest(reason is None, reason, round(latency * 1000))

    def _find_embedder(self, owner: KeyOwner, provider: str) -> EmbedderConfig:
        if isinstance(owner, TenantRef):
            tenant = Tenant.from_config(self._catalog.tenants.get(owner.id).config)
            embedder = tenant.embedder
        else:
            embedder = self._find_embedder_of_projects()
        if embedder.provider == provider:
            return embedder
        if provider in list_auto_embeddings():
            auto = embedder if embedder.provider == AUTO else EmbedderConfig(provider=AUTO)
            return choose_embedder(auto.model_copy(update={"only": provider})).embedder
        raise ConfigurationError(
            f"a key for {provider} cannot be tested: this provider does not embed texts here",
            hint="only the key of the provider that embeds the texts can be tested",
        )

    def _find_embedder_of_projects(self) -> EmbedderConfig:
        """Return the embedder in the initial configuration of projects."""
        initial_config = TenantsFile(
            self._settings.tenants_file, cache=self._settings.local / "cache"
        ).load_initial_project_config()
        for profile in list_project_profiles():
            return Tenant.from_config(build_example_config(initial_config, profile)).embedder
        return EmbedderConfig(provider=AUTO)
