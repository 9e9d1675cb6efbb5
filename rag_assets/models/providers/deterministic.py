"""Vectors from a hash of the text, for tests and benchmarks."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import numpy as np

from rag_assets.common.errors import InputRejected
from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose, Vectors
from rag_assets.models.embedding.vectors import MAX_BATCH, normalize_vector
from rag_assets.models.providers.base import EmbedderOptions, LocalEmbedding, Provider

DEFAULT_DIMENSIONS = 384


def identify_deterministic(dimensions: int = DEFAULT_DIMENSIONS) -> str:
    """Return the embedder_id of a DeterministicEmbedder with these dimensions."""
    return f"deterministic/hash@{dimensions}"


class DeterministicEmbedder(Embedder):
    """An embedder with vectors from a hash of the text; for tests and benchmarks only.

    Equal texts have equal vectors on every machine and with every version of numpy. The vectors of
    two different texts are nearly orthogonal, however similar their meaning is. So searches cannot
    find texts by meaning, but an index of any dimension can be filled at a known speed.

    Args:
        seconds_per_text: time that a call takes for each of its texts, to imitate a provider.
    """

    def __init__(self, dimensions: int = DEFAULT_DIMENSIONS, seconds_per_text: float = 0.0) -> None:
        self._dimensions = dimensions
        self._seconds_per_text = seconds_per_text

    @property
    def embedder_id(self) -> str:
        """Return the id under which vectors are stored; seconds_per_text does not change it."""
        return identify_deterministic(self._dimensions)

    @property
    def dimensions(self) -> int:
        """Return the length of every vector."""
        return self._dimensions

    @property
    def limits(self) -> CallLimits:
        """Return the limits of a call, and of concurrent calls."""
        return CallLimits(texts=MAX_BATCH, concurrency=4)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        """Return one unit vector for each text, for any purpose; see Embedder.embed."""
        for position, text in enumerate(texts, start=1):
            if not text.strip():
                raise InputRejected(f"text {position} of {len(texts)} is empty")
        await asyncio.sleep(self._seconds_per_text * len(texts))
        vectors = np.empty((len(texts), self._dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._compute_vector(text)
        return Answer(vectors, sum(self.count_tokens(texts)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return about one token for every four characters of each text; nothing is charged."""
        return [len(text) // 4 + 1 for text in texts]

    async def close(self) -> None:
        """Do nothing: this embedder opens no connections."""

    def _compute_vector(self, text: str) -> Vectors:
        # With surrogatepass, every str has a vector, even one that is not valid Unicode.
        seed = text.encode("utf-8", "surrogatepass")
        stream = hashlib.shake_256(seed).digest(4 * self._dimensions)
        return normalize_vector(np.frombuffer(stream, dtype="<i4").astype(np.float64)).astype(
            np.float32
        )


def _check(options: EmbedderOptions) -> None:
    """Accept any combination of options: none of them contradict each other."""


def _identify(options: EmbedderOptions) -> str:
    return identify_deterministic(options.dimensions or DEFAULT_DIMENSIONS)


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
