"""Servers that implement OpenAI's API: Ollama, vLLM, and any other by its base_url.

The tables list the models that these servers run most often, by their names there. Dimensions,
limits and prefixes come from the models' own cards. All of these models are free; the
operator of the server sets the price of a request.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from rag_assets.models.embedding.remote import KnownModel
from rag_assets.models.providers.base import ChatOffer, Provider, RemoteEmbedding
from rag_assets.models.providers.openai import EMBEDDING, MODULE, OpenAIChat, OpenAIEndpoint

_INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)
_BGE_QUERY = "Represent this sentence for searching relevant passages: "


class CompatibleEndpoint(OpenAIEndpoint):
    """An embedding model of a server that implements OpenAI's API; see SdkEndpoint."""

    encoding: Literal["base64", "float"] = "float"
    """Every server of this kind returns lists of numbers."""


class CompatibleChat(OpenAIChat):
    """A chat model of a server that implements OpenAI's API."""

    length_option = "max_tokens"
    """OpenAI has deprecated this option, but every server of this kind supports it."""


def _describe_model(
    dimensions: int, tokens: int, documents: str = "", queries: str = ""
) -> KnownModel:
    """Return the properties of a self-hosted model whose vectors have a fixed length."""
    return KnownModel(
        dimensions,
        shortens=False,
        input_tokens=tokens,
        document_prefix=documents,
        query_prefix=queries,
    )


_NOMIC = _describe_model(768, 2048, "search_document: ", "search_query: ")
_GEMMA = _describe_model(768, 2048, "title: none | text: ", "task: search result | query: ")
_BGE_M3 = _describe_model(1024, 8192)
_MXBAI = _describe_model(1024, 512, queries=_BGE_QUERY)
_ARCTIC_2 = _describe_model(1024, 8192, queries="query: ")

_OLLAMA_MODELS = {
    "nomic-embed-text": _NOMIC,
    "embeddinggemma": _GEMMA,
    "bge-m3": _BGE_M3,
    "mxbai-embed-large": _MXBAI,
    "snowflake-arctic-embed2": _ARCTIC_2,
    "all-minilm": _describe_model(384, 256),
    "qwen3-embedding:0.6b": _describe_model(1024, 32_768, queries=_INSTRUCTION),
    "qwen3-embedding:4b": _describe_model(2560, 32_768, queries=_INSTRUCTION),
    "qwen3-embedding:8b": _describe_model(4096, 32_768, queries=_INSTRUCTION),
}
_VLLM_MODELS = {
    "nomic-ai/nomic-embed-text-v1.5": _NOMIC,
    "google/embeddinggemma-300m": _GEMMA,
    "BAAI/bge-m3": _BGE_M3,
    "BAAI/bge-base-en-v1.5": _describe_model(768, 512, queries=_BGE_QUERY),
    "mixedbread-ai/mxbai-embed-large-v1": _MXBAI,
    "Snowflake/snowflake-arctic-embed-l-v2.0": _ARCTIC_2,
    "intfloat/multilingual-e5-large": _describe_model(1024, 512, "passage: ", "query: "),
    "intfloat/multilingual-e5-large-instruct": _describe_model(
        1024, 512, queries=_INSTRUCTION + " "
    ),
    "intfloat/e5-mistral-7b-instruct": _describe_model(4096, 4096, queries=_INSTRUCTION + " "),
    "Qwen/Qwen3-Embedding-0.6B": _describe_model(1024, 32_768, queries=_INSTRUCTION),
    "Qwen/Qwen3-Embedding-4B": _describe_model(2560, 32_768, queries=_INSTRUCTION),
    "Qwen/Qwen3-Embedding-8B": _describe_model(4096, 32_768, queries=_INSTRUCTION),
}


def _build_provider(name: str, models: dict[str, KnownModel]) -> Provider:
    return Provider(
        name,
        key="optional",
        own_server=False,
        embedding=RemoteEmbedding(
            endpoint=CompatibleEndpoint,
            models=MappingProxyType(models),
            unlisted=KnownModel(shortens=False),
            module=MODULE,
        ),
        chat=ChatOffer(endpoint=CompatibleChat, module=MODULE),
    )


OLLAMA = _build_provider("ollama", _OLLAMA_MODELS)
VLLM = _build_provider("vllm", _VLLM_MODELS)
# A server may offer models under OpenAI's names, but their price there is unknown.
OPENAI_COMPATIBLE = _build_provider(
    "openai-compatible",
    {name: replace(model, price=None) for name, model in EMBEDDING.models.items()},
)
