"""Synthetic vectors with the geometry of text embeddings: passages, in documents, in topics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

PASSAGES = 8
"""Passages of each document."""

_TOPICS = 1_000
_BATCH = 4_000
_DECAY = 0.35
"""Decay of the spectrum: 384 dimensions vary in about a hundred directions."""
_MEAN, _TOPIC, _DOCUMENT, _PASSAGE, _QUESTION = 0.5, 0.8, 0.6, 0.7, 0.9
"""Cosines of about 0.15 between any two, 0.5 within a topic, 0.7 within a document."""
_VECTORS, _QUESTIONS = 1, 2


@dataclass(frozen=True)
class Clusters:
    """Unit vectors by number, reproducible from a seed.

    Attributes:
        dimensions: length of each vector.
        seed: another seed gives other vectors.
    """

    dimensions: int = 384
    seed: int = 4
    _rotation: Vectors = field(init=False, repr=False)
    _topics: Vectors = field(init=False, repr=False)
    _mean: Vectors = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        square = rng.standard_normal((self.dimensions, self.dimensions))
        scale = np.arange(1, self.dimensions + 1) ** -_DECAY
        scale /= np.sqrt((scale**2).sum())
        # Rotated, so that all coordinates matter alike, as in a model's output.
        rotation = (np.linalg.qr(square)[0] * scale[:, None]).astype(np.float32)
        object.__setattr__(self, "_rotation", rotation)
        object.__setattr__(self, "_topics", self._draw_normal(rng, _TOPICS))
        object.__setattr__(self, "_mean", self._draw_normal(rng, 1))

    def split_batches(self, count: int) -> list[range]:
        """Split the numbers of `count` vectors into the batches that `vectors` accepts."""
        return [range(n, min(n + _BATCH, count)) for n in range(0, count, _BATCH)]

    def vectors(self, numbers: range) -> Vectors:
        """Return the vectors of one batch; each run of eight belongs to one document."""
        rng = np.random.default_rng((self.seed, _VECTORS, numbers.start))
        documents = self._draw_documents(rng, -(-len(numbers) // PASSAGES))
        centers = np.repeat(documents, PASSAGES, axis=0)[: len(numbers)]
        return _normalize(centers + _PASSAGE * self._draw_normal(rng, len(numbers)))

    def draw_questions(self, count: int, entries: int) -> Vectors:
        """Return vectors near documents of the first `entries` vectors; none equals a passage."""
        rng = np.random.default_rng((self.seed, _QUESTIONS))
        batches = self.split_batches(entries)
        near_documents = []
        for number in rng.integers(len(batches), size=count):
            numbers = batches[number]
            batch_rng = np.random.default_rng((self.seed, _VECTORS, numbers.start))
            documents = self._draw_documents(batch_rng, -(-len(numbers) // PASSAGES))
            near_documents.append(documents[rng.integers(len(documents))])
        return _normalize(np.array(near_documents) + _QUESTION * self._draw_normal(rng, count))

    def _draw_documents(self, rng: np.random.Generator, count: int) -> Vectors:
        topics = self._topics[rng.integers(_TOPICS, size=count)]
        noise = _DOCUMENT * self._draw_normal(rng, count)
        documents: Vectors = _MEAN * self._mean + _TOPIC * topics + noise
        return documents

    def _draw_normal(self, rng: np.random.Generator, count: int) -> Vectors:
        samples = rng.standard_normal((count, self.dimensions), dtype=np.float32)
        vectors: Vectors = samples @ self._rotation
        return vectors


def _normalize(vectors: Vectors) -> Vectors:
    units: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units
