"""The choice of an embedder if a tenant's provider is "auto", and the source of its key."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rag_assets.models.config import AUTO, EmbedderConfig
from rag_assets.models.providers.base import Provider
from rag_assets.models.providers.registry import (
    find_chat_provider,
    get_provider,
    list_auto_embeddings,
)

KeySource: TypeAlias = Literal["none needed", "variable", "stored", "missing"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The embedder of a tenant.

    Attributes:
        embedder: the chosen embedder; its provider is never "auto".
        key: the source of the provider's key; with "missing", embedding is not possible yet.
    """

    embedder: EmbedderConfig
    key: KeySource


def choose(
    embedder: EmbedderConfig,
    *,
    chat_model: str | None = None,
    stored: Set[str] = frozenset(),
    serving: str | None = None,
) -> Choice:
    """Choose a tenant's embedder.

    A configured provider is used. "auto" follows the chat model's provider, since the tenant has
    its key anyway. If that provider is unknown or offers no embeddings, the first provider for
    which the tenant has a key is chosen. `only` restricts the choice to one provider. The serving
    generation's provider is kept while the tenant has a key for it, since with another provider all
    embeddings would have to be paid for again.

    Args:
        embedder: the configured embedder.
        chat_model: the name of the tenant's chat model.
        stored: the providers for which the tenant has a stored key.
        serving: the provider of the serving generation.
    """
    if embedder.provider == AUTO:
        preferred = _order_providers(find_chat_provider(chat_model))
        if embedder.only is not None:
            serving, preferred = None, (embedder.only,)
        kept = (serving,) if serving in list_auto_embeddings() else ()
        usable = (provider for provider in (*kept, *preferred) if provider in stored)
        embedder = _auto(embedder, next(usable, preferred[0]))
    return Choice(embedder, _key_source(embedder, stored))


def _order_providers(chat_provider: Provider | None) -> tuple[str, ...]:
    """Return the providers of embeddings for a tenant with that chat provider, in order."""
    offered = list_auto_embeddings()
    if chat_provider is None:
        return tuple(offered)
    own = (chat_provider.name,) if chat_provider.name in offered else ()
    return (*own, *chat_provider.embeddings_of)


def _auto(embedder: EmbedderConfig, provider: str) -> EmbedderConfig:
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


def _key_source(embedder: EmbedderConfig, stored: Set[str]) -> KeySource:
    key = get_provider(embedder.provider).key
    is_identity = embedder.connection is not None and embedder.connection.uses_identity
    if key == "none" or is_identity:
        return "none needed"
    if embedder.api_key is not None:
        return "variable"
    if embedder.provider in stored:
        return "stored"
    return "none needed" if key == "optional" else "missing"
