"""The progress and the outcome of embedding many texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.common.errors import RequestsStopped


@dataclass(frozen=True, slots=True)
class EmbedProgress:
    """The progress of embed_all.

    Attributes:
        done: texts that have a vector.
        rejected: texts the embedder refuses.
        total: texts requested.
        requests, tokens: attempts made, and tokens charged.
        seconds: since the start.
    """

    done: int
    rejected: int
    total: int
    requests: int
    tokens: int
    seconds: float

    @property
    def rate(self) -> float:
        """Texts a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_seconds(self) -> float | None:
        """Seconds until all is done at the rate so far; None while there is no rate."""
        left = self.total - self.done - self.rejected
        return left / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class EmbedOutcome:
    """The outcome of embed_all; embedded + len(rejected) + remaining is the number of texts.

    Attributes:
        embedded: vectors stored.
        rejected: reasons by key, for texts that the embedder permanently rejects.
        remaining: texts not embedded because of the deadline or an outage.
        requests: attempts made, failed ones included.
        retries: those of them that repeated a failed one.
        tokens: of the calls that succeeded, as the provider counts them.
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
