"""ONNX models on this machine: a shipped model, or an operator's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypedDict

from rag_assets.models.embedding.e5 import E5_DIMENSIONS, E5_MODEL, E5Embedder, e5_id
from rag_assets.models.embedding.model_folder import (
    DEFAULT_MODEL,
    MODELS,
    Pooling,
    describe_folder,
)
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.providers.base import EmbedderOptions, LocalEmbedding, Provider


def _check(options: EmbedderOptions) -> None:
    if options.model is not None and options.path is not None:
        raise ValueError("set either model (a shipped one) or path (your own), not both")
    if options.path is not None and not options.path.is_absolute():
        raise ValueError(f"path must be absolute: {options.path}")
    if options.model == E5_MODEL:
        _require_own_settings(options)
    elif options.model is not None and options.model not in _shipped():
        raise ValueError(
            f"no model {options.model!r} is shipped (shipped are: {', '.join(_shipped())};"
            f" installed with the extra multilingual: {E5_MODEL}); set the path of its folder"
        )


def _require_own_settings(options: EmbedderOptions) -> None:
    if options.dimensions not in {None, E5_DIMENSIONS}:
        raise ValueError(f"{E5_MODEL} has {E5_DIMENSIONS} dimensions, not {options.dimensions}")
    names = ("pooling", "document_prefix", "query_prefix")
    if foreign := [name for name in names if getattr(options, name) is not None]:
        raise ValueError(f"{E5_MODEL} has its own settings and takes no {', '.join(foreign)}")


def _identify(options: EmbedderOptions) -> str:
    if options.model == E5_MODEL:
        return e5_id()
    return describe_folder(_folder(options), **_settings(options)).embedder_id


def _build(options: EmbedderOptions) -> Embedder:
    from rag_assets.models.embedding.local import OnnxEmbedder

    if options.model == E5_MODEL:
        return E5Embedder(options.threads)
    return OnnxEmbedder(_folder(options), options.threads, **_settings(options))


class _Settings(TypedDict):
    """The settings that a configuration may state in place of those in the model's folder."""

    dimensions: int | None
    pooling: Pooling | None
    document_prefix: str | None
    query_prefix: str | None


def _settings(options: EmbedderOptions) -> _Settings:
    return {
        "dimensions": options.dimensions,
        "pooling": options.pooling,
        "document_prefix": options.document_prefix,
        "query_prefix": options.query_prefix,
    }


@cache
def shipped_model() -> Embedder:
    """Return the shipped model, which is free and available in every installation."""
    from rag_assets.models.embedding.local import OnnxEmbedder

    return OnnxEmbedder()


def _folder(options: EmbedderOptions) -> Path:
    return options.path or MODELS / (options.model or DEFAULT_MODEL)


def _shipped() -> list[str]:
    return sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir())


LOCAL = Provider(
    "local",
    key="none",
    embedding=LocalEmbedding(
        frozenset(
            {
                *("model", "path", "dimensions", "pooling", "threads"),
                *("document_prefix", "query_prefix"),
            }
        ),
        _check,
        _identify,
        _build,
    ),
)
