"""ONNX models on this machine: the shipped one, or an operator's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rag_assets.models.embedding.model_folder import DEFAULT_MODEL, MODELS, describe_folder
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.providers.base import EmbedderOptions, LocalEmbedding, Provider


def _check(options: EmbedderOptions) -> None:
    if options.model is not None and options.path is not None:
        raise ValueError("set either model (a shipped one) or path (your own), not both")
    if options.path is not None and not options.path.is_absolute():
        raise ValueError(f"path must be absolute: {options.path}")
    if options.model is not None and options.model not in _shipped():
        raise ValueError(
            f"no model {options.model!r} is shipped (shipped are: {', '.join(_shipped())});"
            " set the path of its folder"
        )


def _identify(options: EmbedderOptions) -> str:
    return describe_folder(
        _folder(options), dimensions=options.dimensions, pooling=options.pooling
    ).embedder_id


def _build(options: EmbedderOptions) -> Embedder:
    from rag_assets.models.embedding.local import OnnxEmbedder

    return OnnxEmbedder(
        _folder(options), options.threads, dimensions=options.dimensions, pooling=options.pooling
    )


@cache
def shipped_model() -> Embedder:
    """The shipped model, which costs nothing and is there wherever this runs."""
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
        frozenset({"model", "path", "dimensions", "pooling", "threads"}), _check, _identify, _build
    ),
)
