"""The configuration of a tenant's reranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

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

_OF_URL = ("model", "takes", "api_key")
_OF_FOLDER = ("threads",)


def _normal_url(url: str) -> str:
    try:
        return normal_base_url(url)
    except ValueError as error:
        raise ValueError(str(error).replace("base_url", "url")) from None


class RerankConfig(BaseModel):
    """Rerank the top hits with a cross-encoder.

    Either `folder` or `url` is given.

    Attributes:
        folder: the absolute folder of a cross-encoder, as ONNX with its tokenizer.json; operators
            only.
        threads: folder: passages scored concurrently; by default the cores of this process.
        url: the whole address of a rerank endpoint, such as https://api.cohere.com/v2/rerank. It
            has to be public and encrypted unless the operator allows it, and receives the question
            and the passages.
        model: url: the model's name at the server.
        takes: url: the field of a request with the passages: "documents" for Cohere, Jina, Voyage
            and vLLM, "texts" for Hugging Face's text-embeddings-inference.
        api_key: url: the environment variable that holds the key, as $NAME, instead of a key stored
            for the provider "rerank". A self-hosted server may need none.
        first: number of candidates that are reranked.
        seconds: time limit; after it a search returns its hits without reranking.
        by_default: whether searches without the parameter are reranked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    url: Annotated[str, Field(max_length=MAX_URL), AfterValidator(_normal_url)] | None = None
    model: ModelName | None = None
    takes: Literal["documents", "texts"] | None = None
    api_key: Annotated[str, key_reference("retrieval.rerank.api_key")] | None = None
    first: int = Field(default=50, ge=2, le=MAX_FIRST)
    seconds: float = Field(default=2.0, gt=0, le=30, allow_inf_nan=False)
    by_default: bool = True

    @field_validator("folder")
    @classmethod
    def _absolute(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_absolute():
            raise ValueError(f"folder must be absolute: {folder}")
        return folder

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.folder is None) == (self.url is None):
            raise ValueError("set either the folder of a model or the url of an endpoint")
        foreign = _OF_URL if self.url is None else _OF_FOLDER
        given = [name for name in foreign if getattr(self, name) is not None]
        if given:
            kind = "folder" if self.url is None else "url"
            raise ValueError(f"with a {kind}, it takes no {', '.join(given)}")
        return self
