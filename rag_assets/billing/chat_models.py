"""Tenants' chat models, built from configuration, key and network, and their costs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from rag_assets.billing.key_health import KeyReportingChat
from rag_assets.billing.key_ring import KeyRing
from rag_assets.billing.spending import Cap, find_present_caps, find_stopping_cap
from rag_assets.common.errors import (
    CapReached,
    ChatError,
    ChatFailed,
    ChatTimeout,
    NoChatModel,
    NoProviderKey,
)
from rag_assets.common.formatting import dollars
from rag_assets.common.settings import Settings
from rag_assets.models.chat import ChatModel, Completion, RemoteChat, estimate_input_tokens
from rag_assets.models.config import MAX_OWN_MODEL_SECONDS, ChatModelConfig, EmbedderConfig
from rag_assets.models.prices import ChatPrice
from rag_assets.models.providers.base import ChatOffer, Provider
from rag_assets.models.providers.registry import find_chat_provider, get_provider
from rag_assets.models.transport.connection import Server
from rag_assets.models.transport.settings import ConnectionSettings, Credentials
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant

_LOG = logging.getLogger(__name__)
_FREE = ChatPrice(input_per_million=0, output_per_million=0)


class ChatSpending:
    """Reserves the costs of answers in progress, by tenant.

    The highest possible cost of an answer is reserved until its real cost is recorded. So
    concurrent answers cannot exceed a cap together.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._in_progress: dict[TenantRef, float] = {}

    def reserve(self, ref: TenantRef, tenant: Tenant, cost: float) -> None:
        """Reserve the highest possible cost of an answer, in dollars.

        Raise CapReached if it would exceed a cap of the day or the month.
        """
        with self._lock:
            in_progress = self._in_progress.get(ref, 0.0)
            if tenant.caps.per_day is not None or tenant.caps.per_month is not None:
                present = find_present_caps(self._catalog, ref, tenant, run=0.0)
                periodic = [
                    cap.add_spending(in_progress) for cap in present if cap.until is not None
                ]
                if (cap := find_stopping_cap(periodic, cost)) is not None:
                    raise _build_cap_error(cap, cost)
            self._in_progress[ref] = in_progress + cost

    def settle(
        self, ref: TenantRef, reserved: float, provider: str, model: str, used: Usage
    ) -> None:
        """Record the usage of an answer, then release its reservation."""
        try:
            if used:
                self._catalog.usage.add(ref, provider, model, used)
        except Exception as error:
            # The answer is complete and charged, so a failed record must not discard it.
            _LOG.warning(f"{ref.id}: usage was not recorded: {type(error).__name__}")
        finally:
            with self._lock:
                still_reserved = self._in_progress.pop(ref, 0.0) - reserved
                if still_reserved > 0:
                    self._in_progress[ref] = still_reserved


class BilledChat:
    """A chat model that bills a tenant; the price must be known if the tenant has caps."""

    def __init__(
        self,
        model: ChatModel,
        spending: ChatSpending,
        ref: TenantRef,
        tenant: Tenant,
        *,
        provider: str,
        name: str,
        price: ChatPrice | None,
    ) -> None:
        self._model = model
        self._spending = spending
        self._ref = ref
        self._tenant = tenant
        self._name = (provider, name)
        self._price = price

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """Answer a prompt if its highest possible cost is within all caps; see ChatModel."""
        read = estimate_input_tokens(instructions, prompt)
        highest_cost = (self._price or _FREE).compute_cost(read, max_tokens)
        await self._reserve(highest_cost)
        used = Usage()
        try:
            completion = await self._model.complete(
                instructions, prompt, max_tokens=max_tokens, seconds=seconds
            )
            used = _build_usage(
                completion.requests, completion.input_tokens, completion.output_tokens, self._price
            )
        except ChatError as error:
            # A provider also charges for an answer that failed, at least for its input.
            paid = error.requests and isinstance(error, ChatFailed | ChatTimeout)
            used = _build_usage(error.requests, read if paid else 0, 0, self._price)
            raise
        finally:
            # This continues if the caller is cancelled in the meantime.
            await asyncio.shield(
                asyncio.to_thread(self._spending.settle, self._ref, highest_cost, *self._name, used)
            )
        return completion

    async def close(self) -> None:
        """See ChatModel."""
        await self._model.close()

    async def _reserve(self, amount: float) -> None:
        """Reserve dollars; release them if the caller is cancelled while they are reserved."""
        reserving = asyncio.ensure_future(
            asyncio.to_thread(self._spending.reserve, self._ref, self._tenant, amount)
        )
        try:
            await asyncio.shield(reserving)
        except asyncio.CancelledError:
            reserving.add_done_callback(lambda done: self._release(done, amount))
            raise

    def _release(self, reserving: asyncio.Future[None], amount: float) -> None:
        if not reserving.cancelled() and reserving.exception() is None:
            self._spending.settle(self._ref, amount, *self._name, Usage())


def _build_usage(requests: int, read: int, written: int, price: ChatPrice | None) -> Usage:
    tokens = read + written
    return Usage(
        requests=requests,
        retries=max(0, requests - 1),
        tokens=tokens,
        unpriced_tokens=tokens if price is None else 0,
        cost=0.0 if price is None else price.compute_cost(read, written),
        output_tokens=written,
    )


def _build_cap_error(cap: Cap, cost: float) -> CapReached:
    when = f"answers are available again after {cap.until:%Y-%m-%d %H:%M} UTC"
    return CapReached(
        f"the cap of {cap.limit_text} is reached: {cap.spent_text},"
        f" and an answer may cost {dollars(cost)}",
        hint=f"{when}; to get answers now, raise caps.{cap.name}",
        until=cap.until,
    )


@dataclass(frozen=True, slots=True)
class TenantChat:
    """A tenant's chat model with its configured limits; each answer is billed to the tenant."""

    id: str
    model: ChatModel
    config: ChatModelConfig


class ChatModels:
    """The chat models of an installation's tenants, with their connections, for one event loop."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._keys = KeyRing(catalog, settings)
        self._spending = ChatSpending(catalog)
        self._network = settings.private_endpoints
        self._chats: dict[TenantRef, tuple[Mapping[str, Any], TenantChat]] = {}

    async def get_chat(self, record: TenantRecord) -> TenantChat:
        """Return a tenant's chat model; the provider's key is read on the first request."""
        former = self._chats.get(record.ref)
        if former is not None and former[0] == record.config:
            return former[1]
        chat = self._build_chat(record.ref, Tenant.from_config(record.config))
        self._chats[record.ref] = (record.config, chat)
        if former is not None:
            await former[1].model.close()
        return chat

    async def close(self) -> None:
        """Close this event loop's connections."""
        for _, chat in list(self._chats.values()):
            await chat.model.close()

    def _build_chat(self, ref: TenantRef, tenant: Tenant) -> TenantChat:
        config, provider, offer = find_chat_model(tenant)
        price = find_chat_price(config, provider)
        _require_price(tenant, price)
        server = Server(
            f"{provider.name}/{config.model}",
            config.base_url,
            key_optional=provider.key == "optional" and config.api_key is None,
            silent_seconds=MAX_OWN_MODEL_SECONDS if config.tokens_per_second else None,
            settings=config.connection or ConnectionSettings(),
        )
        provider.require_extra(config.connection)
        credentials = self._get_credentials(ref, tenant.embedder, config, provider)
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

    def _get_credentials(
        self, ref: TenantRef, embedder: EmbedderConfig, config: ChatModelConfig, provider: Provider
    ) -> Credentials:
        same_provider = not provider.own_server and embedder.provider == provider.name
        if config.api_key is None and same_provider and embedder.base_url != config.base_url:
            # All servers of such a provider share one stored key, and that key is the embedder's.
            return _raise_no_key
        return self._keys.credentials(
            ref, provider.name, config.api_key, setting="chat_model.api_key"
        )


def find_chat_model(tenant: Tenant) -> tuple[ChatModelConfig, Provider, ChatOffer]:
    """Return the configuration of a tenant's chat model, its provider, and the provider's offer."""
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
    return provider.find_chat_price(config.model) if listed else None


def _require_price(tenant: Tenant, price: ChatPrice | None) -> None:
    caps = [name for name in ("per_day", "per_month") if getattr(tenant.caps, name) is not None]
    if price is None and caps:
        raise NoChatModel(
            f"tenant {tenant.id!r}: caps.{caps[0]} cannot be enforced: the price of its chat"
            " model is unknown",
            hint="set chat_model.prices: {input_per_million: …, output_per_million: …}, in dollars"
            " (0 for a server of your own)",
        )


def _raise_no_key() -> NoReturn:
    raise NoProviderKey("the stored key is for a different server")
