"""Validation of vectors: their length, values and norm."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, WrongShape
from rag_assets.models.embedding.protocol import Vectors

MAX_BATCH = 100
"""The limit of texts in one call, whatever the embedder allows."""

_SMALLEST_NORM = 1e-12
_NORM_TOLERANCE = 1e-5  # rounding of float32 over thousands of dimensions


def checked_vectors(answer: npt.ArrayLike, *, count: int, dimensions: int, source: str) -> Vectors:
    """Validate an embedder's response as unit vectors, before any of it is stored.

    Finite vectors of another norm than 1 are normalised; those of norm 1 stay unchanged bit for
    bit.

    Args:
        answer: the vectors returned for count texts.
        count: number of texts requested.
        dimensions: required length of every vector.
        source: the embedder's id, for the message.

    Raises:
        WrongShape: wrong count or wrong dimension.
        BadVectors: not numbers, not finite, or zeros.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):  # they may quote the response
        raise BadVectors(f"{source} did not return {count} vectors") from None
    if vectors.shape != (count, dimensions):
        raise WrongShape(
            f"{source} returned an array of shape {vectors.shape} for {count} texts"
            f" of {dimensions} dimensions",
            hint="the server runs another model than the configured one: check the embedder's"
            " model, dimensions and base_url",
        )
    if not np.isfinite(vectors).all():
        raise BadVectors(f"{source} returned a vector that is not finite")
    # Summed in double precision without a converted copy, which would take ten times as long.
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if (norms < _SMALLEST_NORM).any():
        raise BadVectors(f"{source} returned a vector of zeros")
    off = np.abs(norms - 1.0) > _NORM_TOLERANCE
    if off.any():
        vectors = vectors.copy()  # the response may be the embedder's own, read-only memory
        vectors[off] = (vectors[off] / norms[off, None]).astype(np.float32)
    return vectors


def unit(vector: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Scale a vector to norm 1, in double precision; zeros stay zeros."""
    wide = vector.astype(np.float64)
    norm = float(np.sqrt(np.sum(wide * wide)))
    return wide / norm if norm > 0.0 else wide
