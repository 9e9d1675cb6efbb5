"""Exact search: cosine similarity to every vector of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_assets.systems.agent_docs.stores import Vectors

_DIGITS = 6
"""Of a score: beyond them, sums of float32 differ between libraries."""

_UNIT_ERROR = 1e-5
"""By which the length of a float32 vector that was brought to length one may differ."""

MARGIN = 1e-4
"""By which a first score in float32 may be wrong."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A row that was found, and its score."""

    row: int
    score: float


def unit_rows(vectors: npt.ArrayLike) -> Vectors:
    """Vectors of length one; those of length zero stay as they are.

    Args:
        vectors: of shape (rows, dimensions).
    """
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    # A vector of length one stays bit for bit as it is, so that all stores score it alike.
    other = (lengths > 0) & (np.abs(lengths - 1) > _UNIT_ERROR)
    units: Vectors = np.divide(rows, lengths, out=rows.copy(), where=other)
    return units


def nearest(rows: Vectors, query: npt.ArrayLike, ids: Sequence[str], top_k: int) -> list[Nearest]:
    """The rows nearest to a vector, best first, ties by id.

    What float32 brings near the top is scored again, row by row in float64, and rounded: so the
    order depends neither on the library that multiplies nor on the other rows.

    Args:
        rows: of length one; shape (rows, dimensions).
        query: of any length.
        ids: of the rows.
        top_k: how many are wanted.
    """
    if not len(rows) or top_k < 1:
        return []
    wanted = unit_rows(query)[0]
    scores = rows @ wanted
    candidates = np.arange(len(rows))
    if len(rows) > top_k:
        least = np.partition(scores, len(rows) - top_k)[len(rows) - top_k]
        candidates = np.flatnonzero(scores >= least - MARGIN)
    exact = wanted.astype(np.float64)
    found = [
        Nearest(int(row), round(float(np.dot(rows[row].astype(np.float64), exact)), _DIGITS))
        for row in candidates
    ]
    found.sort(key=lambda one: (-one.score, ids[one.row]))
    return found[:top_k]
