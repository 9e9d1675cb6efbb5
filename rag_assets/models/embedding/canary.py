"""Probe texts that never change. If their vectors change, the model has changed."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from rag_assets.models.embedding.protocol import Answer, Embedder, Vectors
from rag_assets.models.embedding.vectors import checked_vectors

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


async def probe(embedder: Embedder) -> Answer:
    """Embed the probes and close the embedder; vectors have shape (len(PROBES), dimensions).

    Raises:
        ProviderError: see Embedder.embed.
    """
    try:
        answer = await embedder.embed(PROBES)
    finally:
        await embedder.close()
    vectors = checked_vectors(
        answer.vectors,
        count=len(PROBES),
        dimensions=embedder.dimensions,
        source=embedder.embedder_id,
    )
    return Answer(vectors, answer.tokens, answer.requests)


def distances(before: Vectors, now: Vectors) -> tuple[float, ...]:
    """Return each probe's cosine distance between two answers, from 0 (same direction) to 2.

    Args:
        before, now: unit vectors of equal shape.
    """
    cosines = np.sum(before.astype(np.float64) * now.astype(np.float64), axis=1)
    return tuple(float(distance) for distance in np.clip(1.0 - cosines, 0.0, 2.0))
