"""What holds for every vector that is kept: its length, its values, its norm."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, WrongShape
from rag_assets.models.embedding.protocol import Vectors

MAX_BATCH = 100
"""Texts that one call to an embedder takes at most, whatever the embedder allows."""

_SMALLEST_NORM = 1e-12
_NORM_TOLERANCE = 1e-5  # what float32 leaves of a norm of 1 after thousands of dimensions


def checked_vectors(answer: npt.ArrayLike, *, count: int, dimensions: int, source: str) -> Vectors:
    """Take an embedder's answer as unit vectors, or fail before anything of it is kept.

    Vectors that are finite but not of norm 1 are normalised; those that are stay bit for bit
    what the embedder returned.

    Args:
        answer: what the embedder returned for count texts.
        count: number of texts asked for.
        dimensions: length every vector must have.
        source: the embedder's id, for the message.

    Raises:
        WrongShape: wrong count or wrong dimension.
        BadVectors: not numbers, not finite, or without a direction.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):  # which may quote the answer
        raise BadVectors(f"{source} returned something that is not {count} vectors") from None
    if vectors.shape != (count, dimensions):
        raise WrongShape(
            f"{source} returned an array of shape {vectors.shape} for {count} texts"
            f" of {dimensions} dimensions",
            hint="the model behind it is not the one that is configured: check the embedder's"
            " model, dimensions and base_url",
        )
    if not np.isfinite(vectors).all():
        raise BadVectors(f"{source} returned a vector that is not finite")
    # Summed in double precision without a copy in it, which takes ten times as long.
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if (norms < _SMALLEST_NORM).any():
        raise BadVectors(f"{source} returned a vector of zeros")
    off = np.abs(norms - 1.0) > _NORM_TOLERANCE
    if off.any():
        vectors = vectors.copy()  # the answer may be the embedder's own, read-only memory
        vectors[off] = (vectors[off] / norms[off, None]).astype(np.float32)
    return vectors


def unit(vector: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Scale a vector to norm 1, in double precision; zeros stay zeros."""
    wide = vector.astype(np.float64)
    norm = float(np.sqrt(np.sum(wide * wide)))
    return wide / norm if norm > 0.0 else wide
