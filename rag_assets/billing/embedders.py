"""Tenants' embedders and rerankers, built from configuration, key and network, and the opt-in."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, Unpack

from rag_assets.billing.key_health import KeyReportingBatchApi, KeyReportingEmbedder
from rag_assets.billing.key_ring import RERANK, KeyRing
from rag_assets.common.errors import NotOptedIn
from rag_assets.common.settings import Settings
from rag_assets.models.config import AUTO, EmbedderConfig, RerankConfig
from rag_assets.models.embedding.protocol import Embedder, EmbedOptions, WrappedEmbedder
from rag_assets.models.embedding.remote import BatchApi
from rag_assets.models.factory import (
    build_batch_api,
    build_embedder,
    build_former_embedder,
    build_remote_model,
    build_reranker,
    get_embedder_id,
)
from rag_assets.models.providers.base import LocalEmbedding, Provider, RemoteEmbedding
from rag_assets.models.providers.registry import (
    find_chat_provider,
    get_provider,
    list_auto_embeddings,
)
from rag_assets.models.reranking.rerankers import CircuitBreakerReranker, Reranker
from rag_assets.models.transport.retries import Traffic
from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

KeySource: TypeAlias = Literal["none needed", "variable", "stored", "missing"]


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """The embedder that was chosen for a tenant."""

    embedder: EmbedderConfig
    key: KeySource
    """The source of the provider's key; with "missing", embedding is not possible yet."""


def choose_embedder(
    embedder: EmbedderConfig,
    *,
    chat_model: str | None = None,
    stored: Set[str] = frozenset(),
    serving: str | None = None,
) -> EmbedderChoice:
    """Choose a tenant's embedder.

    A configured provider is used. "auto" follows the chat model's provider, since the tenant has
    its key anyway. If that provider is unknown or offers no embeddings, the first provider with a
    stored key is chosen. `only` restricts the choice to one provider. The serving generation's
    provider is kept while the tenant has a key for it, since with another provider all embeddings
    would have to be paid for again.
    """
    if embedder.provider == AUTO:
        preferred = _order_providers(find_chat_provider(chat_model))
        if embedder.only is not None:
            serving, preferred = None, (embedder.only,)
        kept = (serving,) if serving in list_auto_embeddings() else ()
        usable = (provider for provider in (*kept, *preferred) if provider in stored)
        embedder = _build_auto_config(embedder, next(usable, preferred[0]))
    return EmbedderChoice(embedder, _find_key_source(embedder, stored))


def _order_providers(chat_provider: Provider | None) -> tuple[str, ...]:
    """Return the providers of embeddings to try for a tenant, in order of preference."""
    offered = list_auto_embeddings()
    if chat_provider is None:
        return tuple(offered)
    own = (chat_provider.name,) if chat_provider.name in offered else ()
    return (*own, *chat_provider.embeddings_of)


def _build_auto_config(embedder: EmbedderConfig, provider: str) -> EmbedderConfig:
    offer = list_auto_embeddings()[provider]
    chosen: dict[str, Any] = {
        "provider": provider,
        "model": offer.default_model,
        "dimensions": offer.auto_dimensions,
    }
    for options in embedder.providers or ():
        if options.provider == provider:
            chosen |= options.model_dump(exclude_none=True)
    configured = embedder.model_dump(exclude_none=True, exclude={"only", "providers"})
    return EmbedderConfig.model_validate({**configured, **chosen})


def _find_key_source(embedder: EmbedderConfig, stored: Set[str]) -> KeySource:
    key = get_provider(embedder.provider).key
    is_identity = embedder.connection is not None and embedder.connection.uses_identity
    if key == "none" or is_identity:
        return "none needed"
    if embedder.api_key is not None:
        return "variable"
    if embedder.provider in stored:
        return "stored"
    return "none needed" if key == "optional" else "missing"


def lacks_opt_in(record: TenantRecord) -> bool:
    """Return whether a tenant must not be embedded until its organization opts in."""
    return get_profile(record.profile).opt_in_problem is not None and not record.has_opted_in


def require_opt_in(profile: str, organization: str | None, *, has_opted_in: bool) -> None:
    """Require that an organization has opted in, if the profile of its tenant requires that."""
    problem = get_profile(profile).opt_in_problem
    if problem is not None and not has_opted_in:
        raise _build_opt_in_error(problem, organization)


def _build_opt_in_error(problem: str, organization: str | None) -> NotOptedIn:
    error: type[NotOptedIn] = installed_systems().parts("problems")[problem].load()
    return error.from_organization(organization)


class NotOptedInEmbedder(WrappedEmbedder):
    """An embedder that refuses every call because the tenant's organization has not opted in."""

    def __init__(self, embedder: Embedder, record: TenantRecord) -> None:
        super().__init__(embedder)
        self._problem = get_profile(record.profile).opt_in_problem or ""
        self._organization = record.organization

    async def embed(self, texts: Sequence[str], **options: Unpack[EmbedOptions]) -> NoReturn:
        """Refuse the call with the problem that the profile names."""
        raise _build_opt_in_error(self._problem, self._organization)


class Embedders:
    """The embedders of an installation's tenants."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self.settings = settings
        self._keys = KeyRing(catalog, settings)

    def tenant(self, record: TenantRecord) -> Tenant:
        """Return a tenant with its chosen embedder, whose provider is never "auto"."""
        return self.choose_embedder_of(record, Tenant.from_config(record.config))

    def choose_embedder_of(self, record: TenantRecord, tenant: Tenant) -> Tenant:
        """Return `tenant`, which was read from `record`, with the embedder chosen for it."""
        embedder = tenant.embedder
        if embedder.provider == AUTO:
            embedder = self._choose_embedder_of(record, tenant).embedder
        if embedder.batch_above is not None and lacks_opt_in(record):
            # No batch is submitted either: texts go to the embedder, which refuses them.
            embedder = embedder.model_copy(update={"batch_above": None})
        return tenant.model_copy(update={"embedder": embedder})

    def choice(self, record: TenantRecord) -> EmbedderChoice:
        """Return a tenant's embedder, and the source of its key."""
        return self._choose_embedder_of(record, Tenant.from_config(record.config))

    def get_document_embedder(self, record: TenantRecord, config: EmbedderConfig) -> Embedder:
        """Return the embedder for documents; it refuses calls while the opt-in is missing."""
        embedder = self.get_embedder(record.ref, config)
        return NotOptedInEmbedder(embedder, record) if lacks_opt_in(record) else embedder

    def get_embedder(self, ref: TenantRef, config: EmbedderConfig) -> Embedder:
        """Return an embedder that uses a tenant's key; the key is read on the first request."""
        if isinstance(config.offer, LocalEmbedding):
            return _load_local_embedder(config)
        embedder = build_embedder(
            config,
            credentials=self._keys.credentials(ref, config.provider, config.api_key),
            network=self.settings.private_endpoints,
            traffic=_get_traffic(
                ref,
                config.provider,
                config.base_url,
                concurrency=build_remote_model(config).limits.concurrency,
                requests_per_minute=config.requests_per_minute,
                tokens_per_minute=config.tokens_per_minute,
            ),
        )
        if config.api_key is not None:
            return embedder
        return KeyReportingEmbedder(
            embedder, lambda worked: self._keys.record_use(ref, config.provider, worked=worked)
        )

    def require_key(self, ref: TenantRef, config: EmbedderConfig) -> None:
        """Require that a tenant has the key of an embedder, if the embedder needs a key."""
        key = choose_embedder(config, stored=self._keys.list_stored_providers(ref)).key
        if key != "none needed":
            self._keys.credentials(ref, config.provider, config.api_key)()

    def get_generation_embedder(
        self, ref: TenantRef, tenant: Tenant, generation: Generation
    ) -> Embedder:
        """Return an embedder for questions: the generation's, with the limits configured now."""
        built = EmbedderConfig.model_validate(generation.embedder)
        present = tenant.embedder
        same = present.provider == built.provider
        remote = isinstance(present.offer, RemoteEmbedding)
        if same and remote and get_embedder_id(present) == generation.embedder_id:
            return self.get_embedder(ref, present)
        if isinstance(built.offer, LocalEmbedding):
            return _load_local_embedder_with_id(built, generation.embedder_id)
        return self.get_embedder(ref, built)

    def _choose_embedder_of(self, record: TenantRecord, tenant: Tenant) -> EmbedderChoice:
        if isinstance(tenant.embedder.offer, LocalEmbedding):
            return choose_embedder(tenant.embedder)
        serving = self._catalog.generations.serving(record.id)
        return choose_embedder(
            tenant.embedder,
            chat_model=tenant.chat_model.model if tenant.chat_model else None,
            stored=self._keys.list_stored_providers(record.ref),
            serving=str(serving.embedder.get("provider", "")) if serving else None,
        )

    def batch_api(self, ref: TenantRef, config: EmbedderConfig) -> BatchApi:
        """Return the batch API of an embedder, as configured when the batch was submitted.

        The tenant's present key is used if it is for the same server. The API belongs to one event
        loop.
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
    """Return an embedder that needs no key; it is loaded once, and all tenants share it."""
    return build_embedder(config)


@lru_cache(maxsize=16)
def _load_local_embedder_with_id(config: EmbedderConfig, embedder_id: str) -> Embedder:
    """Return the local embedder with this id, if needed by the rules of an earlier version."""
    embedder = _load_local_embedder(config)
    if embedder.embedder_id == embedder_id:
        return embedder
    return build_former_embedder(config, embedder_id) or embedder


@lru_cache(maxsize=4096)
def _get_traffic(
    ref: TenantRef,
    provider: str,
    base_url: str | None,
    *,
    concurrency: int,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
) -> Traffic:
    """Return the limits of a tenant's account at a provider, shared by all its embedders."""
    return Traffic(
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
    )


class Rerankers:
    """The rerankers of an installation's tenants."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._settings = settings
        self._keys = KeyRing(catalog, settings)

    def get_reranker(self, ref: TenantRef, config: RerankConfig) -> Reranker:
        """Return a tenant's reranker with that configuration, behind a circuit breaker."""
        if config.local_folder is not None:
            return _load_local_reranker(config.local_folder, config.threads)
        purpose = config.provider or RERANK
        credentials = self._keys.credentials(
            ref, purpose, config.api_key, setting="retrieval.rerank.api_key"
        )
        reranker = build_reranker(
            config, credentials=credentials, network=self._settings.private_endpoints
        )
        return CircuitBreakerReranker(reranker)


@lru_cache(maxsize=16)
def _load_local_reranker(folder: Path, threads: int | None) -> Reranker:
    """Load a reranker once for all tenants, which share its threads and its circuit breaker."""
    from rag_assets.models.reranking.cross_encoder import CrossEncoder

    return CircuitBreakerReranker(CrossEncoder(folder, threads))
