"""The outcome of embedding many texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.common.errors import RequestsStopped


@dataclass(frozen=True, slots=True)
class EmbedOutcome:
    """The outcome of embed_all; embedded + len(rejected) + remaining is the number of texts.

    Attributes:
        embedded: vectors stored.
        rejected: reasons by key, for texts that the embedder permanently rejects.
        remaining: texts not embedded because of the deadline or an outage.
        requests: attempts made, failed attempts included.
        retries: attempts that repeated a failed attempt.
        tokens: of the successful calls, as the provider counts them.
        outage: why embedding stopped early; None if it did not.
        seconds: duration.
    """

    embedded: int
    rejected: Mapping[str, str]
    remaining: int
    requests: int
    retries: int
    tokens: int
    outage: RequestsStopped | None
    seconds: float
