"""Vectors from a hash of the text, for tests and benchmarks."""

from __future__ import annotations

from rag_assets.models.embedding.deterministic import (
    DEFAULT_DIMENSIONS,
    DeterministicEmbedder,
    deterministic_embedder_id,
)
from rag_assets.models.providers.base import EmbedderOptions, LocalEmbedding, Provider


def _check(options: EmbedderOptions) -> None:
    """Accept any combination of options."""


def _identify(options: EmbedderOptions) -> str:
    return deterministic_embedder_id(options.dimensions or DEFAULT_DIMENSIONS)


def _build(options: EmbedderOptions) -> DeterministicEmbedder:
    return DeterministicEmbedder(
        options.dimensions or DEFAULT_DIMENSIONS, options.seconds_per_text or 0.0
    )


DETERMINISTIC = Provider(
    "deterministic",
    key="none",
    embedding=LocalEmbedding(
        frozenset({"dimensions", "seconds_per_text"}), _check, _identify, _build
    ),
)
