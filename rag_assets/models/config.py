"""The configuration of a tenant's embedder, chat model and reranker in tenants.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    StringConstraints,
    field_validator,
    model_validator,
)

from rag_assets.models.chat import MAX_ANSWER_TOKENS
from rag_assets.models.embedding.model_folder import Pooling
from rag_assets.models.prices import ChatPrice, Price
from rag_assets.models.providers.base import (
    TRAFFIC_OPTIONS,
    LocalEmbedding,
    RemoteEmbedding,
    require_one_credential,
)
from rag_assets.models.providers.registry import (
    CHAT,
    EMBEDDING,
    PROVIDERS,
    RERANKING,
    get_provider,
    list_auto_embeddings,
)
from rag_assets.models.reranking.rerankers import MODELS, MS_MARCO
from rag_assets.models.transport.settings import (
    MAX_URL,
    BaseUrl,
    ConnectionSettings,
    ModelName,
    normalize_base_url,
    require_key_reference,
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
    ChatProviderName: TypeAlias = str
    RerankProviderName: TypeAlias = str
else:
    ProviderName = Literal[(*EMBEDDING, AUTO)]
    AutoProviderName = Literal[tuple(list_auto_embeddings())]
    ChatProviderName = Literal[CHAT]
    RerankProviderName = Literal[RERANKING]


class ProviderOptions(BaseModel):
    """The options of a provider that "auto" may choose.

    Attributes:
        base_url: address of a server other than the provider's own, such as a gateway.
        price: price in dollars, if it differs from the listed price or is not listed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: AutoProviderName
    model: ModelName | None = None
    base_url: BaseUrl | None = None
    price: Price | None = None


class _ProviderModelConfig(BaseModel):
    """A model whose `connection` has the settings of its provider."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _read_connection(cls, values: Any) -> Any:
        provider = (
            PROVIDERS.get(str(values.get("provider"))) if isinstance(values, Mapping) else None
        )
        if provider is None:
            return values
        settings = provider.read_settings(values.get("connection"))
        return {**values, "connection": settings} if settings is not None else values


class EmbedderConfig(_ProviderModelConfig):
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
        path: local: the absolute folder of your own model, instead of a shipped model.
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
        document_prefix, query_prefix: text in front of each text or question, if a model
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

    provider: ProviderName = "local"
    model: ModelName | None = None
    path: Path | None = None
    dimensions: int | None = Field(default=None, ge=1, le=MAX_DIMENSIONS)
    pooling: Pooling | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    seconds_per_text: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    base_url: BaseUrl | None = None
    api_key: Annotated[str, require_key_reference("embedder.api_key")] | None = None
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

    @model_validator(mode="after")
    def _require_options_of_the_provider(self) -> Self:
        supported = _ANY | (self.offer.options if self.offer else _AUTO_OPTIONS)
        foreign = [name for name, value in self if value is not None and name not in supported]
        if foreign:
            raise ValueError(
                f"the provider {self.provider!r} does not support {', '.join(foreign)}"
            )
        return self

    @model_validator(mode="after")
    def _require_distinct_providers(self) -> Self:
        names = [options.provider for options in self.providers or ()]
        if len(set(names)) < len(names):
            raise ValueError("providers lists the same provider twice")
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
        """Return the embedding models of the configured provider; None for the provider "auto"."""
        return None if self.provider == AUTO else get_provider(self.provider).embedding

    @property
    def model_name(self) -> str:
        """Return the model's name at its provider, configured or default; "" without a default."""
        default = self.offer.default_model if isinstance(self.offer, RemoteEmbedding) else None
        return self.model or default or ""

    def _require_server_and_dimensions(self, offer: RemoteEmbedding) -> None:
        require_one_credential(self.connection, self.api_key)
        if not get_provider(self.provider).own_server and not (self.base_url and self.model):
            raise ValueError(f"the provider {self.provider!r} needs a base_url and a model")
        model = offer.get_model(self.model_name, self.dimensions)
        if self.dimensions is not None and (
            problem := model.find_dimensions_problem(self.dimensions)
        ):
            raise ValueError(f"dimensions does not fit {self.model_name}: {problem}")


MAX_SECONDS = 60.0
"""Maximum time limit of an answer; a connection that is idle for this long is closed."""
MAX_OWN_MODEL_SECONDS = 1_800.0
"""Maximum time limit of an answer by a model whose speed is configured."""


class ChatSpeed(BaseModel):
    """The minimum speed of a model on the tenant's own machine.

    Attributes:
        read: prompt tokens that it reads per second.
        write: answer tokens that it writes per second.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: float = Field(default=30.0, ge=1, le=100_000)
    write: float = Field(default=3.0, ge=0.1, le=10_000)


class ChatModelConfig(_ProviderModelConfig):
    """The chat model of a tenant's application, which also writes answers for it.

    The name alone is short for `{model: NAME}`.

    Attributes:
        model: the model's name at the provider. An embedding provider "auto" is derived from
            it.
        provider: "openai", "gemini", "azure", "vertex", "bedrock", "cohere", or, by their
            base_url, "ollama", "vllm" and "openai-compatible" (any server that implements OpenAI's
            API). By default inferred from the name of the model: OpenAI or Gemini.
        base_url: address of a server other than the provider's own; it has to be public and
            encrypted unless the operator allows it.
        api_key: the environment variable that contains the key, as $NAME, instead of a stored
            key.
        connection: settings of the provider, such as the region of a cloud; each provider's
            page lists them.
        prices: prices in dollars, if they differ from the listed prices or are not listed.
        max_tokens: maximum tokens of an answer, including hidden thinking.
        seconds: time limit of an answer; with `tokens_per_second`, the time allowed in addition
            to reading and writing, such as for loading the model.
        tokens_per_second: the minimum speed of a model on the tenant's own machine. The time
            limit then grows with the tokens of the request, up to half an hour, and the answer is
            streamed. A server that sends nothing for a minute while it writes counts as failed.
        context_window: number of tokens that the model reads at once, if it differs from the
            listed number or is not listed. A profile may limit the hits of a search to a share of
            it.
    """

    model: ModelName
    provider: ChatProviderName | None = None
    base_url: BaseUrl | None = None
    api_key: Annotated[str, require_key_reference("chat_model.api_key")] | None = None
    connection: SerializeAsAny[ConnectionSettings] | None = None
    prices: ChatPrice | None = None
    max_tokens: int = Field(default=2_048, ge=16, le=MAX_ANSWER_TOKENS)
    seconds: float = Field(default=45.0, gt=0, le=MAX_SECONDS)
    tokens_per_second: ChatSpeed | None = None
    context_window: int | None = Field(default=None, ge=1_024, le=100_000_000)

    def compute_time_limit(self, prompt_tokens: int, max_tokens: int) -> float:
        """Return the time limit in seconds of an answer of at most `max_tokens` tokens."""
        speed = self.tokens_per_second
        if speed is None:
            return self.seconds
        tokens_seconds = prompt_tokens / speed.read + max_tokens / speed.write
        return min(MAX_OWN_MODEL_SECONDS, self.seconds + tokens_seconds)

    @model_validator(mode="after")
    def _require_server(self) -> Self:
        require_one_credential(self.connection, self.api_key)
        if self.provider is None and self.base_url is not None:
            raise ValueError(
                "base_url is set without a provider: set the provider whose API it implements"
            )
        if self.tokens_per_second is not None and self.base_url is None:
            raise ValueError(
                "tokens_per_second needs a base_url, because it is only for your own server"
            )
        if self.provider is None:
            return self
        if self.base_url is None and not get_provider(self.provider).own_server:
            raise ValueError(f"the provider {self.provider!r} needs a base_url")
        return self


def expand_chat_model(value: Any) -> Any:
    """Return the configuration of a chat model; a plain name becomes `{"model": NAME}`."""
    return {"model": value} if isinstance(value, str) else value


MAX_FIRST = 100
"""Maximum number of passages that one search may rerank."""

_SHIPPED_DEFAULTS: Final = {"first": 20, "blend": 0.3, "languages": "english"}
"""Defaults of the shipped model, measured on six sets:
docs/decisions/13-local-models-and-rerankers.md."""
_ALLOWED: Final = {
    "provider": frozenset({"provider", "model", "base_url", "connection", "api_key"}),
    "url": frozenset({"url", "model", "takes", "api_key"}),
    "folder": frozenset({"folder", "threads"}),
    "shipped model": frozenset({"model", "threads"}),
}
"""For each kind of reranker, its settings in addition to those that all kinds share."""


def _normalize_url(url: str) -> str:
    try:
        return normalize_base_url(url)
    except ValueError as error:
        raise ValueError(str(error).replace("base_url", "url")) from None


class RerankConfig(_ProviderModelConfig):
    """The configuration of a tenant's reranker, a cross-encoder for the top hits.

    One of `model`, `provider`, `folder` and `url` is given; `provider` and `url` may be combined
    with `model`.

    Attributes:
        model: ms-marco-minilm-l12: the shipped model, for questions and passages in English; a
            tenant that reads source code cannot have it. provider, url: the model's name at that
            provider or server.
        provider: "voyage" or "cohere", through its SDK, with the tenant's key for that
            provider.
        base_url: provider: address of a server other than the provider's own.
        connection: provider: settings of the provider, as for the embedder.
        folder: the absolute folder of a cross-encoder, as ONNX with its tokenizer.json;
            operators only.
        threads: not url: passages scored concurrently; by default the cores of this process.
        url: the whole address of a rerank endpoint, such as https://api.cohere.com/v2/rerank.
            It has to be public and encrypted unless the operator allows it, and receives the
            question and the passages.
        takes: url: the request field with the passages: "documents" for Cohere, Jina, Voyage
            and vLLM, "texts" for Hugging Face's text-embeddings-inference.
        api_key: provider, url: the environment variable that contains the key, as $NAME,
            instead of a key stored for the provider, or, with a url, for "rerank". A self-hosted
            server may not need a key.
        first: number of candidates that are reranked; the shipped model: 20 by default.
        blend: share of the model's scores in the order; the search's scores have the remaining
            share. The shipped model: 0.3 by default.
        languages: "english": questions in other languages are not reranked; this is the default
            of the shipped model.
        seconds: time limit; after it a search reranks the first passages that were scored by
            then, or returns its hits without reranking.
        by_default: whether searches are reranked if the request does not say.
    """

    model: ModelName | None = None
    provider: RerankProviderName | None = None
    base_url: BaseUrl | None = None
    connection: SerializeAsAny[ConnectionSettings] | None = None
    folder: Path | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    url: Annotated[str, Field(max_length=MAX_URL), AfterValidator(_normalize_url)] | None = None
    takes: Literal["documents", "texts"] | None = None
    api_key: Annotated[str, require_key_reference("retrieval.rerank.api_key")] | None = None
    first: int = Field(default=50, ge=2, le=MAX_FIRST)
    blend: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    languages: Literal["any", "english"] = "any"
    seconds: float = Field(default=2.0, gt=0, le=30, allow_inf_nan=False)
    by_default: bool = True

    @model_validator(mode="before")
    @classmethod
    def _use_defaults_of_the_shipped_model(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        is_elsewhere = any(values.get(name) for name in ("url", "folder", "provider"))
        is_shipped = values.get("model") == MS_MARCO and not is_elsewhere
        return {**_SHIPPED_DEFAULTS, **values} if is_shipped else values

    @field_validator("folder")
    @classmethod
    def _require_absolute_folder(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_absolute():
            raise ValueError(f"folder must be absolute: {folder}")
        return folder

    @model_validator(mode="after")
    def _require_one_reranker(self) -> Self:
        if self.folder is not None and self.url is not None:
            raise ValueError("folder and url cannot be combined: set only one of them")
        kinds = [kind for kind in ("provider", "url", "folder") if getattr(self, kind) is not None]
        if not kinds and self.model != MS_MARCO:
            raise ValueError(
                f"the reranker is not chosen: set model: {MS_MARCO} (the shipped model), a"
                " provider, the folder of a different model, or the url of an endpoint"
            )
        kind = kinds[0] if kinds else "shipped model"
        of_any_kind = frozenset[str]().union(*_ALLOWED.values())
        foreign = [name for name in type(self).model_fields if name in of_any_kind - _ALLOWED[kind]]
        if foreign_settings := [name for name in foreign if getattr(self, name) is not None]:
            raise ValueError(
                f"a reranker with a {kind} does not support {', '.join(foreign_settings)}"
            )
        require_one_credential(self.connection, self.api_key)
        return self

    @property
    def local_folder(self) -> Path | None:
        """Return the folder of a model on this machine; None for an endpoint."""
        return None if self.url or self.provider else self.folder or MODELS / MS_MARCO

    @property
    def is_shipped(self) -> bool:
        """Return whether the reranker is the model shipped with the package."""
        return self.local_folder == MODELS / MS_MARCO
