"""The configuration of a tenant's reranker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from rag_assets.models.transport.addresses import normal_base_url
from rag_assets.models.transport.settings import MAX_URL, ModelName, key_reference

MAX_FIRST = 100
"""The limit of passages that one search may rerank."""

MODELS: Final = Path(__file__).parent / "models"
MS_MARCO: Final = "ms-marco-minilm-l12"
"""The name, and the folder, of the cross-encoder that is shipped."""

_SHIPPED_DEFAULTS: Final = MappingProxyType({"first": 20, "blend": 0.3, "languages": "english"})
"""Measured on six sets: docs/decisions/0149-a-reranker-is-shipped.md."""
_OF_URL = ("model", "takes", "api_key")
_OF_FOLDER = ("threads",)


def _normal_url(url: str) -> str:
    try:
        return normal_base_url(url)
    except ValueError as error:
        raise ValueError(str(error).replace("base_url", "url")) from None


class RerankConfig(BaseModel):
    """Rerank the top hits with a cross-encoder.

    One of `model`, `folder` and `url` is given; or `model` with `url`.

    Attributes:
        model: ms-marco-minilm-l12: the shipped model, for questions and passages in English; a
            tenant that reads source code cannot have it. url: the model's name at the server.
        folder: the absolute folder of a cross-encoder, as ONNX with its tokenizer.json; operators
            only.
        threads: not url: passages scored concurrently; by default the cores of this process.
        url: the whole address of a rerank endpoint, such as https://api.cohere.com/v2/rerank. It
            has to be public and encrypted unless the operator allows it, and receives the question
            and the passages.
        takes: url: the field of a request with the passages: "documents" for Cohere, Jina, Voyage
            and vLLM, "texts" for Hugging Face's text-embeddings-inference.
        api_key: url: the environment variable that holds the key, as $NAME, instead of a key stored
            for the provider "rerank". A self-hosted server may need none.
        first: number of candidates that are reranked; the shipped model: 20 by default.
        blend: share of the model's scores in the order; the others are those of the search. The
            shipped model: 0.3 by default.
        languages: "english": questions in other languages are not reranked; the shipped model's
            default.
        seconds: time limit; after it a search reranks the first passages that were scored by then,
            or returns its hits without reranking.
        by_default: whether searches without the parameter are reranked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: ModelName | None = None
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
        if not isinstance(values, Mapping) or values.get("url") or values.get("folder"):
            return values
        return {**(_SHIPPED_DEFAULTS if values.get("model") == MS_MARCO else {}), **values}

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
        if self.folder is None and self.url is None and self.model != MS_MARCO:
            raise ValueError(
                f"set model: {MS_MARCO} (the shipped model), the folder of another model or the"
                " url of an endpoint"
            )
        kind = "url" if self.url else "folder" if self.folder else "shipped model"
        foreign = {"url": _OF_FOLDER, "folder": _OF_URL}.get(kind, _OF_URL[1:])
        if present := [name for name in foreign if getattr(self, name) is not None]:
            raise ValueError(f"with a {kind}, it takes no {', '.join(present)}")
        return self

    @property
    def local_folder(self) -> Path | None:
        """The folder of a model on this machine; None for an endpoint."""
        return None if self.url else self.folder or MODELS / MS_MARCO

    @property
    def is_shipped(self) -> bool:
        """Whether it is the model that the package carries."""
        return self.local_folder == MODELS / MS_MARCO
