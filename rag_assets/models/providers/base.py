"""The definition of a provider of models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.invalid_values import allowed_value
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat import SdkChatEndpoint
from rag_assets.models.embedding.model_folder import Pooling
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.embedding.remote import BatchApi, KnownModel, RemoteModel, SdkEndpoint
from rag_assets.models.prices import FREE, ChatPrice, Price
from rag_assets.models.reranking.rerankers import SdkReranker
from rag_assets.models.transport.connection import Server
from rag_assets.models.transport.settings import ConnectionSettings, Credentials

KeyUse: TypeAlias = Literal["required", "optional", "none"]
"""Whether requests carry a tenant's key; "none": the provider runs on this machine."""

TRAFFIC_OPTIONS = frozenset(
    {"requests_per_minute", "tokens_per_minute", "concurrency", "batch_size"}
)
REMOTE_OPTIONS = TRAFFIC_OPTIONS | {
    *("model", "dimensions", "base_url", "api_key", "max_input_tokens"),
    *("document_prefix", "query_prefix", "connection"),
}
"""The fields of EmbedderConfig that every remote provider supports."""


class EmbedderOptions(Protocol):
    """The configuration of an embedder; see EmbedderConfig."""

    @property
    def model(self) -> str | None: ...  # noqa: D102
    @property
    def path(self) -> Path | None: ...  # noqa: D102
    @property
    def dimensions(self) -> int | None: ...  # noqa: D102
    @property
    def pooling(self) -> Pooling | None: ...  # noqa: D102
    @property
    def document_prefix(self) -> str | None: ...  # noqa: D102
    @property
    def query_prefix(self) -> str | None: ...  # noqa: D102
    @property
    def threads(self) -> int | None: ...  # noqa: D102
    @property
    def seconds_per_text(self) -> float | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class LocalEmbedding:
    """A provider's embedding models that run on this machine."""

    options: frozenset[str]
    """Names of the fields of EmbedderConfig that are supported."""
    check: Callable[[EmbedderOptions], None]
    """Raises ValueError if configured options contradict each other."""
    identify: Callable[[EmbedderOptions], str]
    build: Callable[[EmbedderOptions], Embedder]


@dataclass(frozen=True, slots=True)
class RemoteEmbedding:
    """The embedding models of a remote provider."""

    endpoint: Callable[[RemoteModel, Credentials, PrivateEndpoints], SdkEndpoint[Any]]
    models: Mapping[str, KnownModel]
    unlisted: KnownModel
    """The properties assumed for other models; their dimensions must be configured."""
    default_model: str | None = None
    """Model that is used if none is configured; None if a model must be configured."""
    auto_dimensions: int | None = None
    """Dimensions of the default model, if `auto` may choose this provider."""
    batch_api: Callable[[RemoteModel, Credentials, PrivateEndpoints], BatchApi] | None = None
    """Creates the batch API for one event loop; None if the provider has no batch API."""
    options: frozenset[str] = REMOTE_OPTIONS
    module: str | None = None
    """Module of the provider's SDK, which requests import."""

    def get_model(self, model: str, dimensions: int | None) -> KnownModel:
        """Return a model's listed properties; for an unlisted model, assumed properties."""
        listed = self.models.get(model)
        if listed is not None:
            return listed
        if dimensions is None:
            raise ValueError(
                f"the model {model!r} is not known: set its dimensions"
                f" (known are {', '.join(self.models)})"
            )
        return replace(self.unlisted, dimensions=dimensions)


@dataclass(frozen=True, slots=True)
class ChatOffer:
    """The chat models of a remote provider."""

    endpoint: Callable[[Server, Credentials, PrivateEndpoints, str], SdkChatEndpoint[Any]]
    prices: Mapping[str, ChatPrice] = field(default_factory=lambda: MappingProxyType({}))
    module: str | None = None


@dataclass(frozen=True, slots=True)
class KnownReranker:
    """A provider's reranker, as its documentation describes it."""

    tokens: int
    """Maximum tokens of a question and one passage together."""
    per_thousand_searches: float | None = None
    """Price in dollars of a thousand questions with up to 100 passages each."""
    per_million_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class RerankOffer:
    """The rerankers of a remote provider."""

    endpoint: Callable[[Server, Credentials, PrivateEndpoints, str], SdkReranker[Any]]
    models: Mapping[str, KnownReranker]
    """Rerankers by name; the first is the default."""
    module: str


@dataclass(frozen=True, slots=True)
class Extra:
    """The extra of this project that installs a provider's SDK."""

    name: str
    module: str
    is_for_identity: bool = False
    """Whether only connections with a cloud identity import it."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models."""

    name: str
    """Name of the provider in tenants.yaml, in stored keys and in the ids of embedders."""
    key: KeyUse = "required"
    """Whether requests carry a tenant's key."""
    own_server: bool = True
    """Whether the provider has its own server; otherwise a base_url is required."""
    embedding: LocalEmbedding | RemoteEmbedding | None = None
    chat: ChatOffer | None = None
    reranking: RerankOffer | None = None
    settings: type[ConnectionSettings] = ConnectionSettings
    """Class of the settings of its connections, which are `connection` in tenants.yaml."""
    extra: Extra | None = None
    """The extra that installs the provider's SDK; None if the SDK is always installed."""
    own_domains: tuple[str, ...] = ()
    """Domains of other servers that also charge the listed prices."""
    chat_names: re.Pattern[str] | None = None
    """Pattern of the names of its chat models, including names that a gateway uses."""
    embeddings_of: tuple[str, ...] = ()
    """For a provider without embeddings, the providers of embeddings that `auto` chooses for its
    chat models, in order of preference."""

    def find_embedding_price(self, model: str) -> Price | None:
        """Return the price of a model at the provider's own server; None if unknown."""
        if isinstance(self.embedding, LocalEmbedding):
            return FREE
        listed = self.embedding.models.get(model) if self.embedding else None
        return listed.price if listed else None

    def find_chat_price(self, model: str) -> ChatPrice | None:
        """Return the price of a chat model at the provider's own server; None if unknown."""
        return self.chat.prices.get(model.removeprefix("models/")) if self.chat else None

    def charges_list_prices(self, base_url: str | None) -> bool:
        """Return whether listed prices apply at a base_url; None is the provider's own server."""
        if base_url is None:
            return True
        host = urlsplit(base_url).hostname or ""
        return any(host.endswith(f".{domain}") for domain in self.own_domains)

    def read_settings(self, values: Any) -> ConnectionSettings | None:
        """Return the validated settings of a connection; raise a ValueError if they are not valid.

        Return None if the provider has no settings and the configuration has none.
        """
        if isinstance(values, self.settings):
            return values
        if values is None and self.settings is ConnectionSettings:
            return None
        try:
            return self.settings.model_validate(values or {})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(("connection", *map(str, first["loc"])))
            reason = allowed_value(first)
            names = ", ".join(self.settings.model_fields) or "none"
        raise ValueError(f"{where}: {reason} (settings of the provider {self.name!r}: {names})")

    def require_extra(self, settings: ConnectionSettings | None = None) -> None:
        """Check that the provider's SDK is installed, without importing it."""
        extra = self.extra
        if extra is None or (
            extra.is_for_identity and not (settings is not None and settings.uses_identity)
        ):
            return
        try:
            is_installed = find_spec(extra.module) is not None
        except ModuleNotFoundError:  # the package that contains the module
            is_installed = False
        if not is_installed:
            raise ConfigurationError(
                f"the provider {self.name!r} needs a package that is not installed: {extra.module}",
                hint=f"install it: pip install 'rag-assets[{extra.name}]'",
            )


def require_one_credential(settings: ConnectionSettings | None, api_key: str | None) -> None:
    """Raise a ValueError for a configuration that has both an API key and a cloud identity."""
    if api_key is not None and settings is not None and settings.uses_identity:
        raise ValueError("api_key and connection.identity cannot be combined: set only one of them")
