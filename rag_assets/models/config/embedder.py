"""The configuration of a tenant's embedder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    StringConstraints,
    model_validator,
)

from rag_assets.models.embedding.model_folder import Pooling
from rag_assets.models.embedding.prices import Price
from rag_assets.models.providers.base import (
    TRAFFIC_OPTIONS,
    LocalEmbedding,
    RemoteEmbedding,
    require_one_credential,
    with_settings,
)
from rag_assets.models.providers.registry import (
    EMBEDDING,
    PROVIDERS,
    auto_embeddings,
    provider_of,
)
from rag_assets.models.transport.settings import (
    BaseUrl,
    ConnectionSettings,
    ModelName,
    key_reference,
)

MAX_DIMENSIONS = 4096
"""Maximum length of a vector that Elasticsearch indexes."""

Prefix: TypeAlias = Annotated[str, StringConstraints(max_length=1000)]

AUTO = "auto"
"""The value of `provider` with which the provider is derived from the tenant's chat model and
keys."""

_ANY = frozenset({"provider", "price", "revision"})
# No key is among them, since it would belong to a provider that is not chosen yet.
_AUTO_OPTIONS = TRAFFIC_OPTIONS | {"only", "providers"}

if TYPE_CHECKING:
    ProviderName: TypeAlias = str
    AutoProviderName: TypeAlias = str
else:
    ProviderName = Literal[(*EMBEDDING, AUTO)]
    AutoProviderName = Literal[tuple(auto_embeddings())]


class ProviderOptions(BaseModel):
    """The options of a provider that "auto" may choose.

    Attributes:
        provider: the provider that may be chosen.
        model: model in place of the provider's default model.
        base_url: address of a server other than the provider's own, such as a gateway.
        price: price in dollars, if it differs from the listed price or is not listed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: AutoProviderName
    model: ModelName | None = None
    base_url: BaseUrl | None = None
    price: Price | None = None


class EmbedderConfig(BaseModel):
    """A tenant's embedder; by default the model shipped with the package.

    Attributes:
        provider: "local" runs an ONNX model on this machine's cores. The others use a server,
            with the tenant's own key or its organization's: "openai", "gemini", "azure", "vertex",
            "bedrock", "voyage", "cohere"; "ollama", "vllm" and "openai-compatible" (any server that
            implements OpenAI's API) by their base_url. "auto" is derived from the tenant's chat
            model and keys. "deterministic" computes vectors from a hash of the text. It is for
            tests and benchmarks, since such vectors do not reflect meaning.
        model: the model's name at its provider; local: all-MiniLM-L6-v2, which is shipped, or
            multilingual-e5-small, which the extra "multilingual" installs.
        path: local: the absolute folder of a model of your own, instead of a shipped model.
        dimensions: length of a vector, if there is a choice or the model is unknown. local:
            needed only if the model's config.json does not set it. deterministic: any, by default
            384.
        pooling: local: how token vectors are combined, if the model's folder does not set it.
        threads: local: texts embedded concurrently; by default the cores of this process.
        seconds_per_text: deterministic: time spent on each text.
        base_url: address of a server other than the provider's own; it has to be public and
            encrypted unless the operator allows it.
        api_key: the environment variable that contains the key, as $NAME, instead of a stored
            key.
        connection: settings of the provider, such as the region of a cloud; each provider's
            page lists them.
        document_prefix, query_prefix: text put before each text or question, if a model
            requires it; local: in place of the prompts of the model's folder.
        requests_per_minute, tokens_per_minute: the limits of the account, enforced here so that
            the provider need not refuse requests.
        concurrency: maximum number of requests in progress.
        max_input_tokens: maximum tokens of a text; a longer text is reported and never sent.
        batch_size: number of texts in a request.
        price: price in dollars, if it differs from the listed price or is not listed.
        revision: any word, such as a date. Vectors that were computed under another revision
            are not used. For a provider that changed a model without renaming it.
        only: auto: the provider to use, whatever the chat model is.
        providers: auto: the options of each provider that it may choose.
        batch_above: openai: a run with more texts to embed than this sends them through the
            provider's batch API, at half the price and within a day; by default no run does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: ProviderName = "local"
    model: ModelName | None = None
    path: Path | None = None
    dimensions: int | None = Field(default=None, ge=1, le=MAX_DIMENSIONS)
    pooling: Pooling | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    seconds_per_text: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    base_url: BaseUrl | None = None
    api_key: Annotated[str, key_reference("embedder.api_key")] | None = None
    connection: SerializeAsAny[ConnectionSettings] | None = None
    document_prefix: Prefix | None = None
    query_prefix: Prefix | None = None
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1, le=256)
    max_input_tokens: int | None = Field(default=None, ge=1)
    batch_size: int | None = Field(default=None, ge=1, le=100)
    price: Price | None = None
    revision: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]{1,40}$")
    batch_above: int | None = Field(default=None, ge=0)
    only: AutoProviderName | None = None
    providers: tuple[ProviderOptions, ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_connection(cls, values: Any) -> Any:
        named = values.get("provider") if isinstance(values, dict) else None
        return with_settings(values, PROVIDERS.get(str(named)))

    @model_validator(mode="after")
    def _require_options_of_the_provider(self) -> Self:
        taken = _ANY | (self.offer.options if self.offer else _AUTO_OPTIONS)
        foreign = [name for name, value in self if value is not None and name not in taken]
        if foreign:
            raise ValueError(f"the provider {self.provider!r} takes no {', '.join(foreign)}")
        return self

    @model_validator(mode="after")
    def _require_distinct_providers(self) -> Self:
        names = [options.provider for options in self.providers or ()]
        if len(set(names)) < len(names):
            raise ValueError("providers names one of them twice")
        return self

    @model_validator(mode="after")
    def _require_usable_model(self) -> Self:
        if isinstance(self.offer, LocalEmbedding):
            self.offer.check(self)
        elif isinstance(self.offer, RemoteEmbedding):
            self._require_server_and_dimensions(self.offer)
        return self

    @property
    def offer(self) -> LocalEmbedding | RemoteEmbedding | None:
        """Return the provider's embedding offer; None for "auto"."""
        return None if self.provider == AUTO else provider_of(self.provider).embedding

    @property
    def model_name(self) -> str:
        """Return the model's name at its provider, configured or default; "" without a default."""
        default = self.offer.default_model if isinstance(self.offer, RemoteEmbedding) else None
        return self.model or default or ""

    def _require_server_and_dimensions(self, offer: RemoteEmbedding) -> None:
        require_one_credential(self.connection, self.api_key)
        if not provider_of(self.provider).own_server and not (self.base_url and self.model):
            raise ValueError(f"an {self.provider} server needs its base_url and a model")
        model = offer.known(self.model_name, self.dimensions)
        if self.dimensions is not None and (problem := model.problem_with(self.dimensions)):
            raise ValueError(f"dimensions do not fit {self.model_name}: {problem}")
