"""Tenants' chat models, built from configuration, key, network settings and spending caps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from rag_assets.billing.chat_spending import BilledChat, ChatSpending
from rag_assets.billing.key_health import KeyReportingChat
from rag_assets.billing.key_ring import KeyRing
from rag_assets.common.errors import NoChatModel, NoProviderKey
from rag_assets.common.settings import Settings
from rag_assets.models.chat import ChatModel, RemoteChat
from rag_assets.models.config import MOST_SECONDS_OF_OWN, ChatModelConfig, EmbedderConfig
from rag_assets.models.prices import ChatPrice
from rag_assets.models.providers.base import ChatOffer, Provider
from rag_assets.models.providers.registry import find_chat_provider, get_provider
from rag_assets.models.transport.connection import Server
from rag_assets.models.transport.settings import ConnectionSettings, Credentials
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class TenantChat:
    """A chat model as one tenant uses it.

    Attributes:
        id: provider and model.
        model: the chat model; it bills the tenant.
        config: the configuration, with the limits of an answer.
    """

    id: str
    model: ChatModel
    config: ChatModelConfig


class ChatModels:
    """The chat models of an installation's tenants, with their connections, for one event loop.

    Args:
        catalog: holds tenants, keys and usage.
        settings: the installation's settings.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._keys = KeyRing(catalog, settings)
        self._spending = ChatSpending(catalog)
        self._network = settings.private_endpoints
        self._made: dict[TenantRef, tuple[Mapping[str, Any], TenantChat]] = {}

    async def of(self, record: TenantRecord) -> TenantChat:
        """Return a tenant's chat model; its key is read when it is needed.

        Raises:
            NoChatModel: the tenant's chat model is missing or not usable.
            ConfigurationError: the tenant's configuration is not usable.
        """
        former = self._made.get(record.ref)
        if former is not None and former[0] == record.config:
            return former[1]
        made = self._make(record.ref, Tenant.from_config(record.config))
        self._made[record.ref] = (record.config, made)
        if former is not None:
            await former[1].model.close()
        return made

    async def close(self) -> None:
        """Close this event loop's connections."""
        for _, chat in list(self._made.values()):
            await chat.model.close()

    def _make(self, ref: TenantRef, tenant: Tenant) -> TenantChat:
        config, provider, offer = find_chat_model(tenant)
        price = find_chat_price(config, provider)
        _require_price(tenant, price)
        server = Server(
            f"{provider.name}/{config.model}",
            config.base_url,
            key_optional=provider.key == "optional" and config.api_key is None,
            silent_seconds=MOST_SECONDS_OF_OWN if config.tokens_per_second else None,
            settings=config.connection or ConnectionSettings(),
        )
        provider.require_extra(config.connection)
        credentials = self._credentials(ref, tenant.embedder, config, provider)
        connect = partial(offer.endpoint, server, credentials, self._network, config.model)
        model: ChatModel = RemoteChat(connect, server.id, module=offer.module)
        if config.api_key is None:
            model = KeyReportingChat(
                model, lambda worked: self._keys.record_use(ref, provider.name, worked=worked)
            )
        paid = BilledChat(
            model,
            self._spending,
            ref,
            tenant,
            provider=provider.name,
            name=config.model,
            price=price,
        )
        return TenantChat(server.id, paid, config)

    def _credentials(
        self,
        ref: TenantRef,
        embedder: EmbedderConfig,
        config: ChatModelConfig,
        provider: Provider,
    ) -> Credentials:
        same_provider = not provider.own_server and embedder.provider == provider.name
        if config.api_key is None and same_provider and embedder.base_url != config.base_url:
            # All servers of such a provider share one stored key, and that key is the embedder's.
            return _no_key
        return self._keys.credentials(
            ref, provider.name, config.api_key, setting="chat_model.api_key"
        )


def find_chat_model(tenant: Tenant) -> tuple[ChatModelConfig, Provider, ChatOffer]:
    """Return a tenant's chat model, its provider, and the provider's offer.

    Raises:
        NoChatModel: the chat model is missing, or its provider is not supported.
    """
    config = tenant.chat_model
    if config is None:
        raise NoChatModel(
            f"tenant {tenant.id!r} has no chat model",
            hint="set one in tenants.yaml, for example chat_model: gpt-4.1-mini",
        )
    if config.provider is not None:
        provider: Provider | None = get_provider(config.provider)
    else:
        provider = find_chat_provider(config.model)
    if provider is not None and provider.chat is not None:
        return config, provider, provider.chat
    raise NoChatModel(
        f"tenant {tenant.id!r}: the provider of the chat model {config.model!r} is unknown",
        hint="set chat_model: {model: …, provider: openai-compatible, base_url: …} for a server"
        " that implements OpenAI's API",
    )


def find_chat_price(config: ChatModelConfig, provider: Provider) -> ChatPrice | None:
    """Return the price of a chat model; None if it is unknown."""
    if config.prices is not None:
        return config.prices
    # The price depends on the operator of the server, whichever model it offers.
    listed = provider.charges_list_prices(config.base_url)
    return provider.chat_price(config.model) if listed else None


def _require_price(tenant: Tenant, price: ChatPrice | None) -> None:
    caps = [name for name in ("per_day", "per_month") if getattr(tenant.caps, name) is not None]
    if price is None and caps:
        raise NoChatModel(
            f"tenant {tenant.id!r}: caps.{caps[0]} cannot be enforced: the price of its chat"
            " model is unknown",
            hint="set chat_model.prices: {input_per_million: …, output_per_million: …}, in dollars"
            " (0 for a server of your own)",
        )


def _no_key() -> NoReturn:
    raise NoProviderKey("the stored key is for a different server")
