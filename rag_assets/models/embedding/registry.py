"""From a tenant's configuration to its embedder, and to the embedder's id without making one.

Importing this loads neither onnxruntime nor a provider's SDK. A provider is one entry in
_PROVIDERS: how its id is found cheaply, how it is made; config says which options it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr

from rag_assets.common.errors import ConfigurationError, NoProviderKey
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.embedding.batch_api import BatchApi
from rag_assets.models.embedding.config import MAX_DIMENSIONS, EmbedderConfig
from rag_assets.models.embedding.deterministic import (
    DEFAULT_DIMENSIONS,
    DeterministicEmbedder,
    deterministic_embedder_id,
)
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL, MODELS, describe_folder
from rag_assets.models.embedding.prices import Price, listed_price, provider_and_model
from rag_assets.models.embedding.protocol import Credentials, Embedder
from rag_assets.models.embedding.providers.gemini import GeminiEndpoint
from rag_assets.models.embedding.providers.openai import OpenAIEndpoint
from rag_assets.models.embedding.providers.openai_batches import OpenAIBatches
from rag_assets.models.embedding.providers.remote_model import RemoteModel, remote_model
from rag_assets.models.embedding.remote import Endpoint, RemoteEmbedder
from rag_assets.models.embedding.revision import RevisedEmbedder, revised_id
from rag_assets.models.embedding.traffic import Traffic

__all__ = [
    "MAX_DIMENSIONS",
    "EmbedderConfig",
    "build_batch_api",
    "build_embedder",
    "embedder_id_of",
    "price_of",
    "traffic_of",
]


def _no_key() -> SecretStr:
    raise NoProviderKey("there is no key for the embedder", hint="`rag-assets keys set` sets one")


def build_embedder(
    config: EmbedderConfig,
    *,
    credentials: Credentials = _no_key,
    network: PrivateEndpoints | None = None,
    traffic: Traffic | None = None,
) -> Embedder:
    """Make the configured embedder; models, SDKs and keys are loaded at their first use.

    Args:
        config: whose provider is chosen: not "auto".
        credentials: gives the tenant's key; not asked for what runs on this machine.
        network: servers beyond the public internet that a base_url may lead to.
        traffic: of the tenant at this provider, where several embedders share it; by default one
            of its own, see traffic_of.

    Raises:
        ConfigurationError: the configured model's folder is missing or not usable.
    """
    provider = _provider(config)
    if isinstance(provider, _OnThisMachine):
        embedder: Embedder = provider.build(config)
    else:
        model = remote_model(config)
        embedder = RemoteEmbedder(
            partial(provider.endpoint, model, credentials, network or PrivateEndpoints()),
            embedder_id=model.embedder_id,
            dimensions=model.dimensions,
            limits=model.limits,
            traffic=traffic or traffic_of(config),
            count=model.count_tokens,
        )
    return embedder if config.revision is None else RevisedEmbedder(embedder, config.revision)


def build_batch_api(
    config: EmbedderConfig,
    *,
    credentials: Credentials = _no_key,
    network: PrivateEndpoints | None = None,
) -> BatchApi:
    """Make the batch API of a configuration with batch_above, for one event loop.

    Args:
        config, credentials, network: see build_embedder.

    Raises:
        ConfigurationError: the provider has none.
    """
    if config.provider != "openai":
        raise ConfigurationError(f"no batch API is known of the provider {config.provider!r}")
    return OpenAIBatches(remote_model(config), credentials, network or PrivateEndpoints())


def traffic_of(config: EmbedderConfig) -> Traffic:
    """What a configuration lets through at once and in a minute, nothing of it used yet.

    Args:
        config: of a provider that is asked over the network.
    """
    return Traffic(
        concurrency=remote_model(config).limits.concurrency,
        requests_per_minute=config.requests_per_minute,
        tokens_per_minute=config.tokens_per_minute,
    )


def embedder_id_of(config: EmbedderConfig) -> str:
    """Return build_embedder(config).embedder_id, in well under a millisecond as a rule.

    A model of your own is hashed once per process, about 2 ms per 3 MB.

    Raises:
        ConfigurationError: the configured model's folder is missing or not usable.
    """
    return revised_id(_provider(config).identify(config), config.revision)


def price_of(config: EmbedderConfig) -> Price | None:
    """What embedding costs with this configuration; None if no price is known.

    Raises:
        ConfigurationError: the configured model's folder is missing or not usable.
    """
    if config.price is not None:
        return config.price
    # Whose server it is decides about the price, whatever model it offers.
    if config.base_url is not None:
        return None
    return listed_price(*provider_and_model(embedder_id_of(config)))


@dataclass(frozen=True, slots=True)
class _OnThisMachine:
    identify: Callable[[EmbedderConfig], str]
    build: Callable[[EmbedderConfig], Embedder]


@dataclass(frozen=True, slots=True)
class _OverANetwork:
    identify: Callable[[EmbedderConfig], str]
    endpoint: Callable[[RemoteModel, Credentials, PrivateEndpoints], Endpoint]


def _provider(config: EmbedderConfig) -> _OnThisMachine | _OverANetwork:
    if config.provider not in _PROVIDERS:
        raise ConfigurationError(
            f"the embedder's provider is still open: {config.provider}",
            hint="name a provider in tenants.yaml",
        )
    return _PROVIDERS[config.provider]


def _identify_remote(config: EmbedderConfig) -> str:
    return remote_model(config).embedder_id


def _build_local(config: EmbedderConfig) -> Embedder:
    from rag_assets.models.embedding.local import OnnxEmbedder

    return OnnxEmbedder(
        _folder(config), config.threads, dimensions=config.dimensions, pooling=config.pooling
    )


def _identify_local(config: EmbedderConfig) -> str:
    return describe_folder(
        _folder(config), dimensions=config.dimensions, pooling=config.pooling
    ).embedder_id


def _folder(config: EmbedderConfig) -> Path:
    return config.path or MODELS / (config.model or DEFAULT_MODEL)


def _build_deterministic(config: EmbedderConfig) -> Embedder:
    return DeterministicEmbedder(
        config.dimensions or DEFAULT_DIMENSIONS, config.seconds_per_text or 0.0
    )


def _identify_deterministic(config: EmbedderConfig) -> str:
    return deterministic_embedder_id(config.dimensions or DEFAULT_DIMENSIONS)


_PROVIDERS: Mapping[str, _OnThisMachine | _OverANetwork] = MappingProxyType(
    {
        "local": _OnThisMachine(_identify_local, _build_local),
        "deterministic": _OnThisMachine(_identify_deterministic, _build_deterministic),
        "openai": _OverANetwork(_identify_remote, OpenAIEndpoint),
        "openai-compatible": _OverANetwork(_identify_remote, OpenAIEndpoint),
        "gemini": _OverANetwork(_identify_remote, GeminiEndpoint),
    }
)
