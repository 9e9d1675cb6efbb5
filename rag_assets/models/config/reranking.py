"""The configuration of a tenant's reranker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from rag_assets.models.providers.base import require_one_credential, with_settings
from rag_assets.models.providers.registry import PROVIDERS, RERANKING
from rag_assets.models.reranking.protocol import MODELS, MS_MARCO
from rag_assets.models.transport.addresses import normal_base_url
from rag_assets.models.transport.settings import (
    MAX_URL,
    BaseUrl,
    ConnectionSettings,
    ModelName,
    key_reference,
)

if TYPE_CHECKING:
    RerankProviderName: TypeAlias = str
else:
    RerankProviderName = Literal[RERANKING]

MAX_FIRST = 100
"""Maximum number of passages that one search may rerank."""

_SHIPPED_DEFAULTS: Final = MappingProxyType({"first": 20, "blend": 0.3, "languages": "english"})
"""Defaults of the shipped model, measured on six sets:
docs/decisions/13-local-models-and-rerankers.md."""
_ALLOWED: Final = MappingProxyType(
    {
        "provider": frozenset({"provider", "model", "base_url", "connection", "api_key"}),
        "url": frozenset({"url", "model", "takes", "api_key"}),
        "folder": frozenset({"folder", "threads"}),
        "shipped model": frozenset({"model", "threads"}),
    }
)
"""For each kind of reranker, its settings in addition to those that all kinds share."""


def _normal_url(url: str) -> str:
    try:
        return normal_base_url(url)
    except ValueError as error:
        raise ValueError(str(error).replace("base_url", "url")) from None


class RerankConfig(BaseModel):
    """The reranking of top hits with a cross-encoder.

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

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: ModelName | None = None
    provider: RerankProviderName | None = None
    base_url: BaseUrl | None = None
    connection: SerializeAsAny[ConnectionSettings] | None = None
    folder: Path | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    url: Annotated[str, Field(max_length=MAX_URL), AfterValidator(_normal_url)] | None = None
    takes: Literal["documents", "texts"] | None = None
    api_key: Annotated[str, key_reference("retrieval.rerank.api_key")] | None = None
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
        values = with_settings(values, PROVIDERS.get(str(values.get("provider"))))
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
            raise ValueError("set either the folder of a model or the url of an endpoint")
        kinds = [kind for kind in ("provider", "url", "folder") if getattr(self, kind) is not None]
        if not kinds and self.model != MS_MARCO:
            raise ValueError(
                f"set model: {MS_MARCO} (the shipped model), a provider, the folder of another"
                " model or the url of an endpoint"
            )
        kind = kinds[0] if kinds else "shipped model"
        of_any_kind = frozenset[str]().union(*_ALLOWED.values())
        foreign = [name for name in type(self).model_fields if name in of_any_kind - _ALLOWED[kind]]
        if present := [name for name in foreign if getattr(self, name) is not None]:
            raise ValueError(f"with a {kind}, it takes no {', '.join(present)}")
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
