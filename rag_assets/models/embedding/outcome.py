"""The outcome of embedding many texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.common.errors import RequestsStopped


@dataclass(frozen=True, slots=True)
class EmbedOutcome:
    """The outcome of embed_all; embedded + len(rejected) + remaining = number of texts.

    Attributes:
        embedded: number of vectors stored.
        rejected: reasons by key, for texts that the embedder permanently rejects.
        remaining: number of texts not embedded because of the deadline or an outage.
        requests: number of attempts, failed attempts included.
        retries: number of attempts that repeated a failed attempt.
        tokens: number of tokens in the successful calls, as the provider counts them.
        outage: why embedding stopped early; None if it did not.
        seconds: duration in seconds.
    """

    embedded: int
    rejected: Mapping[str, str]
    remaining: int
    requests: int
    retries: int
    tokens: int
    outage: RequestsStopped | None
    seconds: float
