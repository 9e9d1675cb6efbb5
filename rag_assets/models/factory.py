"""Build models from a tenant's configuration, and find an embedder's id without building it.

Importing this module loads neither onnxruntime nor a provider's SDK.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

from pydantic import SecretStr

from rag_assets.common.errors import ConfigurationError, NoProviderKey
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import AUTO, EmbedderConfig, RerankConfig
from rag_assets.models.embedding.local import LocalEmbedder, OnnxEmbedder
from rag_assets.models.embedding.protocol import CallLimits, Embedder, RevisedEmbedder, add_revision
from rag_assets.models.embedding.remote import BatchApi, RemoteEmbedder, RemoteModel
from rag_assets.models.embedding.vectors import MAX_BATCH
from rag_assets.models.prices import Price, split_embedder_id
from rag_assets.models.providers.base import TRAFFIC_OPTIONS, LocalEmbedding, RemoteEmbedding
from rag_assets.models.providers.registry import get_provider
from rag_assets.models.reranking.rerankers import RerankEndpoint, UrlReranker
from rag_assets.models.transport.connection import Server
from rag_assets.models.transport.retries import Traffic
from rag_assets.models.transport.settings import ConnectionSettings, Credentials

DEFAULT_CONCURRENCY = 8


def _raise_no_key() -> SecretStr:
    raise NoProviderKey("the embedder has no key", hint="set a key with `rag-assets keys set`")


def build_embedder(
    config: EmbedderConfig,
    *,
    credentials: Credentials = _raise_no_key,
    network: PrivateEndpoints | None = None,
    traffic: Traffic | None = None,
) -> Embedder:
    """Build the configured embedder; models, SDKs and keys are loaded when they are first used.

    The provider must not be "auto". Embedders that share the limits of an account share `traffic`.
    """
    offer = _require_offer(config)
    if isinstance(offer, LocalEmbedding):
        embedder = offer.build(config)
    else:
        model = build_remote_model(config)
        get_provider(config.provider).require_extra(config.connection)
        embedder = RemoteEmbedder(
            partial(offer.endpoint, model, credentials, network or PrivateEndpoints()),
            embedder_id=model.embedder_id,
            dimensions=model.dimensions,
            limits=model.limits,
            traffic=traffic or build_traffic(config),
            count=model.count_tokens,
            module=offer.module,
        )
    return embedder if config.revision is None else RevisedEmbedder(embedder, config.revision)


def build_reranker(
    config: RerankConfig,
    *,
    credentials: Credentials = _raise_no_key,
    network: PrivateEndpoints | None = None,
) -> RerankEndpoint:
    """Build the reranker of a provider, or of an endpoint at a url."""
    allowed = network or PrivateEndpoints()
    if config.url is not None:
        server = Server(
            f"{urlsplit(config.url).hostname}/{config.model or 'default'}",
            config.url,
            key_optional=config.api_key is None,
        )
        connect = partial(
            UrlReranker,
            server,
            credentials,
            allowed,
            config.model or "",
            config.takes or "documents",
        )
        return RerankEndpoint(connect, server.id)
    provider = get_provider(config.provider or "")
    if provider.reranking is None:
        raise ConfigurationError(f"the provider {provider.name!r} has no supported reranker")
    provider.require_extra(config.connection)
    model = config.model or next(iter(provider.reranking.models))
    server = Server(
        f"{provider.name}/{model}",
        config.base_url,
        key_optional=False,
        settings=config.connection or ConnectionSettings(),
    )
    return RerankEndpoint(
        partial(provider.reranking.endpoint, server, credentials, allowed, model),
        server.id,
        provider.reranking.module,
    )


def build_former_embedder(config: EmbedderConfig, embedder_id: str) -> Embedder | None:
    """Build the embedder with this id by the rules of earlier versions; None if they give another.

    Earlier versions, for example, put no prompts in front of texts. Vectors that were computed by
    their rules are searched until a sync replaces them.
    """
    if config.path is None or (config.document_prefix, config.query_prefix) != (None, None):
        return None
    former = OnnxEmbedder(
        config.path,
        config.threads,
        dimensions=config.dimensions,
        pooling=config.pooling,
        former=True,
    )
    if add_revision(former.embedder_id, config.revision) != embedder_id:
        return None
    return former if config.revision is None else RevisedEmbedder(former, config.revision)


def build_batch_api(
    config: EmbedderConfig,
    *,
    credentials: Credentials = _raise_no_key,
    network: PrivateEndpoints | None = None,
) -> BatchApi:
    """Build the batch API of a configuration with batch_above, for one event loop."""
    offer = _require_offer(config)
    if isinstance(offer, LocalEmbedding) or offer.batch_api is None:
        raise ConfigurationError(f"the provider {config.provider!r} has no supported batch API")
    return offer.batch_api(build_remote_model(config), credentials, network or PrivateEndpoints())


def build_traffic(config: EmbedderConfig) -> Traffic:
    """Return a new Traffic with the configured limits."""
    return Traffic(
        concurrency=build_remote_model(config).limits.concurrency,
        requests_per_minute=config.requests_per_minute,
        tokens_per_minute=config.tokens_per_minute,
    )


def get_embedder_id(config: EmbedderConfig) -> str:
    """Return build_embedder(config).embedder_id, quickly and without building the embedder."""
    offer = _require_offer(config)
    if isinstance(offer, LocalEmbedding):
        return add_revision(offer.identify(config), config.revision)
    get_provider(config.provider).require_extra(config.connection)
    return add_revision(build_remote_model(config).embedder_id, config.revision)


def require_local_model(config: EmbedderConfig) -> None:
    """Check that a local embedder is usable on this machine; do nothing for a remote embedder.

    An operator's own model, or one from an optional package, is loaded and embeds a text. Raises a
    ConfigurationError with a remedy.
    """
    if not isinstance(config.offer, LocalEmbedding):
        return
    try:
        embedder = config.offer.build(config)
        is_chosen = config.path is not None or config.model is not None
        if is_chosen and isinstance(embedder, LocalEmbedder):
            embedder.check()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"the embedder's model cannot be read: {error.filename or config.path}: {reason}",
            hint="give the user who runs this program access to all files of its folder",
        ) from None


def have_same_vectors(first: EmbedderConfig, second: EmbedderConfig) -> bool:
    """Return whether two configurations give the same vectors; limits and prices may differ."""
    if AUTO in {first.provider, second.provider}:
        # The model that "auto" chooses depends on keys, so the configured values have to be equal.
        values = (
            config.model_dump(exclude={*TRAFFIC_OPTIONS, "price"}) for config in (first, second)
        )
        return next(values) == next(values)
    try:
        return get_embedder_id(first) == get_embedder_id(second)
    except ConfigurationError:
        return first == second


def find_price(config: EmbedderConfig) -> Price | None:
    """Return the price of embedding with this configuration; None if unknown."""
    if config.price is not None:
        return config.price
    if config.base_url and not get_provider(config.provider).charges_list_prices(config.base_url):
        return None
    provider, model = split_embedder_id(get_embedder_id(config))
    return get_provider(provider).find_embedding_price(model)


def build_remote_model(config: EmbedderConfig) -> RemoteModel:
    """Return the configured model of a remote provider."""
    offer = _require_offer(config)
    if isinstance(offer, LocalEmbedding):
        raise ConfigurationError(
            f"the provider {config.provider!r} has no server: it runs on this machine"
        )
    provider = get_provider(config.provider)
    model = offer.get_model(config.model_name, config.dimensions)
    dimensions = config.dimensions or model.dimensions
    documents, queries = config.document_prefix, config.query_prefix
    return RemoteModel(
        provider=config.provider,
        name=config.model_name,
        dimensions=dimensions,
        requested_dimensions=dimensions if model.shortens else None,
        native=model.native or dimensions,
        task_types=model.task_types,
        base_url=config.base_url,
        document_prefix=model.document_prefix if documents is None else documents,
        query_prefix=model.query_prefix if queries is None else queries,
        limits=CallLimits(
            texts=min(config.batch_size or MAX_BATCH, model.request_texts),
            concurrency=config.concurrency or DEFAULT_CONCURRENCY,
            tokens=model.request_tokens,
            input_tokens=config.max_input_tokens or model.input_tokens,
        ),
        key_optional=provider.key == "optional" and config.api_key is None,
        settings=config.connection or ConnectionSettings(),
    )


def _require_offer(config: EmbedderConfig) -> LocalEmbedding | RemoteEmbedding:
    if config.offer is None:
        raise ConfigurationError(
            f"the embedder's provider is not chosen yet: {config.provider}",
            hint="set a provider in tenants.yaml",
        )
    return config.offer
