"""Validation of vectors, and the embedding of questions and of probes that detect model changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import cast

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, WrongShape
from rag_assets.models.embedding.protocol import Answer, Embedder, Vectors

MAX_BATCH = 100
"""Maximum number of texts in one call, whatever the embedder allows."""

_HINT = "check the embedder's model, dimensions and base_url: another model may answer there"
_MIN_NORM = 1e-12
_NORM_TOLERANCE = 1e-5  # rounding of float32 over thousands of dimensions


def validate_vectors(answer: npt.ArrayLike, *, count: int, dimensions: int, source: str) -> Vectors:
    """Validate an embedder's response as unit vectors, before any vector is stored.

    Finite vectors with a norm other than 1 are normalised; vectors of norm 1 are not changed in any
    bit.

    Raises:
        WrongShape: the number of vectors or their length is wrong.
        BadVectors: values are not numbers or not finite, or a vector is all zeros; the error
            has the valid vectors of the response.
    """
    vectors = _convert_to_array(answer)
    error = None
    if vectors is not None and vectors.size:
        error = _find_problem(vectors, count, dimensions, source)
        if error is None:
            return _normalize(vectors)
    usable, reasons = _validate_each_vector(answer, count, dimensions, source)
    error = error or _build_row_error(answer, count, source, reasons)
    error.usable, error.reasons = usable, reasons
    raise error


def validate_answer(answer: npt.ArrayLike, count: int, embedder: Embedder) -> Vectors:
    """Validate an embedder's response for a number of texts; see validate_vectors."""
    return validate_vectors(
        answer, count=count, dimensions=embedder.dimensions, source=embedder.embedder_id
    )


def _build_row_error(
    answer: npt.ArrayLike, count: int, source: str, reasons: Mapping[int, str]
) -> BadVectors:
    """Return the error for a response whose vectors differ in length or are missing."""
    returned = len(answer) if isinstance(answer, list | tuple) else 0
    if returned != count:
        return BadVectors(f"{source} returned {returned} vectors for {count} texts", hint=_HINT)
    position, reason = next(
        iter(reasons.items()), (0, f"{source} returned no numbers for this text")
    )
    more = "" if len(reasons) < 2 else f", and {len(reasons) - 1} more are not usable"  # noqa: PLR2004
    return BadVectors(f"vector {position + 1} of {count}: {reason}{more}", hint=_HINT)


def _convert_to_array(answer: npt.ArrayLike) -> Vectors | None:
    """Return the response as an array; None if it is not numeric or vectors differ in length."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):  # these errors may quote the response
        return None


def _find_problem(vectors: Vectors, count: int, dimensions: int, source: str) -> BadVectors | None:
    """Return the error that forbids storing the vectors; None if they are valid."""
    if vectors.shape != (count, dimensions):
        return WrongShape(_describe_shape(vectors.shape, count, dimensions, source), hint=_HINT)
    if not np.isfinite(vectors).all():
        return BadVectors(f"{source} returned a vector that is not finite")
    if (_compute_norms(vectors) < _MIN_NORM).any():
        return BadVectors(f"{source} returned a vector of zeros")
    return None


def _describe_shape(shape: tuple[int, ...], count: int, dimensions: int, source: str) -> str:
    """Return a message that says how a response's shape differs from (count, dimensions)."""
    if len(shape) != 2:  # noqa: PLR2004 - texts and dimensions
        return f"{source} did not return a list of {count} vectors"
    if shape[0] != count:
        return f"{source} returned {shape[0]} vectors for {count} texts"
    return f"{source} returned vectors of {shape[1]} instead of {dimensions} dimensions"


def _validate_each_vector(
    answer: npt.ArrayLike, count: int, dimensions: int, source: str
) -> tuple[dict[int, Vectors], dict[int, str]]:
    """Return a response's valid vectors, and why each other vector is invalid, both by position.

    Both are empty if the response does not have `count` vectors.
    """
    usable: dict[int, Vectors] = {}
    reasons: dict[int, str] = {}
    is_list = isinstance(answer, list | tuple) or (isinstance(answer, np.ndarray) and answer.ndim)
    rows = list(cast("Sequence[npt.ArrayLike]", answer)) if is_list else []
    if len(rows) != count:
        return usable, reasons
    for position, row in enumerate(rows):
        vector = _convert_to_array(row)
        if vector is None or vector.ndim != 1 or not vector.size:
            reasons[position] = f"{source} returned no vector for this text"
        elif vector.size != dimensions:
            reasons[position] = (
                f"{source} returned a vector of {vector.size} instead of {dimensions} dimensions"
            )
        elif (error := _find_problem(vector[None], 1, dimensions, source)) is not None:
            reasons[position] = error.message
        else:
            usable[position] = _normalize(vector[None])[0]
    return usable, reasons


def _normalize(vectors: Vectors) -> Vectors:
    norms = _compute_norms(vectors)
    off = np.abs(norms - 1.0) > _NORM_TOLERANCE
    if off.any():
        vectors = vectors.copy()  # the response may be read-only memory of the embedder
        vectors[off] = (vectors[off] / norms[off, None]).astype(np.float32)
    return vectors


def _compute_norms(vectors: Vectors) -> npt.NDArray[np.float64]:
    # Sum in double precision without a converted copy, which would take ten times as long.
    norms: npt.NDArray[np.float64] = np.sqrt(
        np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    )
    return norms


def normalize_vector(vector: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return a vector scaled to norm 1, in double precision; a zero vector stays unchanged."""
    wide = vector.astype(np.float64)
    norm = float(np.sqrt(np.sum(wide * wide)))
    return wide / norm if norm > 0.0 else wide


async def embed_query(embedder: Embedder, question: str) -> Answer:
    """Embed one question as a vector of shape (1, dimensions); connections stay open."""
    answer = await embedder.embed([question], purpose="query")
    return replace(answer, vectors=validate_answer(answer.vectors, 1, embedder))


PROBES = (
    "Every morning the night shift writes down what it leaves to the day shift.",
    "How do we restore the database from yesterday's backup?",
    "def area(radius): return 3.14159 * radius ** 2",
    "Die Rechnung ist innerhalb von vierzehn Tagen ohne Abzug zu zahlen.",
    (
        "The committee met for the third time this year. It approved the minutes, heard the"
        " treasurer's report, and put off the vote on a new roof until two more quotes are in."
        " Members who cannot attend the next meeting may send their votes by letter."
    ),
)
"""A statement, a question, code, another language, a paragraph: about 130 tokens together."""

PROBES_KEY = sha256("\0".join(PROBES).encode()).hexdigest()[:16]
"""Identifies these probes, whose vectors cannot be compared with the vectors of other probes."""


async def embed_probes(embedder: Embedder) -> Answer:
    """Embed the probes as vectors of shape (len(PROBES), dimensions), and close the embedder."""
    try:
        answer = await embedder.embed(PROBES)
    finally:
        await embedder.close()
    vectors = validate_answer(answer.vectors, len(PROBES), embedder)
    return Answer(vectors, answer.tokens, answer.requests)


def compute_distances(before: Vectors, now: Vectors) -> tuple[float, ...]:
    """Return the cosine distance between each probe's two vectors, from 0 (same direction) to 2."""
    cosines = np.sum(before.astype(np.float64) * now.astype(np.float64), axis=1)
    return tuple(float(distance) for distance in np.clip(1.0 - cosines, 0.0, 2.0))
