"""What a provider of models offers, in one value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat.prices import ChatPrice
from rag_assets.models.chat.remote import ChatEndpoint
from rag_assets.models.embedding.batch_api import BatchApi
from rag_assets.models.embedding.model_folder import Pooling
from rag_assets.models.embedding.prices import FREE, Price
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.embedding.remote import Endpoint
from rag_assets.models.embedding.remote_model import KnownModel, RemoteModel
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.sdk_connection import Server

KeyUse: TypeAlias = Literal["required", "optional", "none"]
"""Whether requests carry a tenant's key; "none": there are no requests."""

TRAFFIC_OPTIONS = frozenset(
    {"requests_per_minute", "tokens_per_minute", "concurrency", "batch_size"}
)
REMOTE_OPTIONS = TRAFFIC_OPTIONS | {
    *("model", "dimensions", "base_url", "api_key", "max_input_tokens"),
    *("document_prefix", "query_prefix"),
}
"""What every provider over the network takes of EmbedderConfig."""


class EmbedderOptions(Protocol):
    """What a tenant configures of an embedder; see EmbedderConfig."""

    @property
    def model(self) -> str | None: ...  # noqa: D102
    @property
    def path(self) -> Path | None: ...  # noqa: D102
    @property
    def dimensions(self) -> int | None: ...  # noqa: D102
    @property
    def pooling(self) -> Pooling | None: ...  # noqa: D102
    @property
    def threads(self) -> int | None: ...  # noqa: D102
    @property
    def seconds_per_text(self) -> float | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class LocalEmbedding:
    """Embedding on this machine.

    Attributes:
        options: of EmbedderConfig that it takes.
        check: raises ValueError where options do not fit together.
        identify: finds the embedder's id without loading a model.
        build: makes the embedder.
    """

    options: frozenset[str]
    check: Callable[[EmbedderOptions], None]
    identify: Callable[[EmbedderOptions], str]
    build: Callable[[EmbedderOptions], Embedder]


@dataclass(frozen=True, slots=True)
class RemoteEmbedding:
    """Embedding over the network.

    Attributes:
        endpoint: makes the connection for one event loop; nothing is opened yet.
        models: that are known by name.
        unlisted: what is assumed of other models, beside the dimensions that are configured.
        default_model: where none is configured; None where one has to be.
        auto_dimensions: of the default model, where `auto` may choose this provider.
        batch_api: makes the batch API for one event loop; None if there is none.
        options: of EmbedderConfig that it takes.
    """

    endpoint: Callable[[RemoteModel, Credentials, PrivateEndpoints], Endpoint]
    models: Mapping[str, KnownModel]
    unlisted: KnownModel
    default_model: str | None = None
    auto_dimensions: int | None = None
    batch_api: Callable[[RemoteModel, Credentials, PrivateEndpoints], BatchApi] | None = None
    options: frozenset[str] = REMOTE_OPTIONS

    def known(self, model: str, dimensions: int | None) -> KnownModel:
        """What holds for a model; of one that is not listed, what is assumed of it.

        Raises:
            ValueError: it is not listed, and its dimensions are not configured.
        """
        listed = self.models.get(model)
        if listed is not None:
            return listed
        if dimensions is None:
            raise ValueError(
                f"the model {model!r} is not known: give its dimensions"
                f" (known are {', '.join(self.models)})"
            )
        return replace(self.unlisted, dimensions=dimensions, most=dimensions)


@dataclass(frozen=True, slots=True)
class ChatOffer:
    """Chat models over the network.

    Attributes:
        endpoint: makes the connection to a model for one event loop; nothing is opened yet.
        prices: by model, at the provider's own server.
    """

    endpoint: Callable[[Server, Credentials, PrivateEndpoints, str], ChatEndpoint]
    prices: Mapping[str, ChatPrice] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models.

    Attributes:
        name: in tenants.yaml, in stored keys and in the ids of embedders.
        key: whether requests carry a tenant's key.
        own_server: whether it has a server of its own; else a base_url is needed.
        embedding: None if it offers none.
        chat: None if it offers none, or none that is supported.
        chat_names: what the names of its chat models look like, also behind a gateway.
        embeddings_of: providers whose embeddings `auto` chooses for its chat models, in order of
            preference, where it offers none itself.
    """

    name: str
    key: KeyUse = "required"
    own_server: bool = True
    embedding: LocalEmbedding | RemoteEmbedding | None = None
    chat: ChatOffer | None = None
    chat_names: re.Pattern[str] | None = None
    embeddings_of: tuple[str, ...] = ()

    def embedding_price(self, model: str) -> Price | None:
        """The price of a model at the provider's own server; None if none is known."""
        if isinstance(self.embedding, LocalEmbedding):
            return FREE
        listed = self.embedding.models.get(model) if self.embedding else None
        return listed.price if listed else None

    def chat_price(self, model: str) -> ChatPrice | None:
        """The price of a chat model at the provider's own server; None if none is known."""
        return self.chat.prices.get(model.removeprefix("models/")) if self.chat else None
