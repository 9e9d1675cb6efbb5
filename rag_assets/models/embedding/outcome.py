"""How far a drive over many texts has come, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.common.errors import EmbeddingStopped


@dataclass(frozen=True, slots=True)
class EmbedProgress:
    """How far a drive has come.

    Attributes:
        done: texts that have a vector.
        rejected: texts the embedder refuses.
        total: texts asked for.
        requests, tokens: attempts made, and tokens that were charged.
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
    """What came of a drive; embedded + len(rejected) + remaining are the texts asked for.

    Attributes:
        embedded: vectors kept.
        rejected: reason by key, for texts the embedder will never take.
        remaining: texts not embedded because of the deadline or an outage.
        requests: attempts made, failed ones included.
        retries: those of them that repeated one that had failed.
        tokens: of the calls that succeeded, as the provider counts them.
        outage: why nothing more could be embedded, if that was so.
        seconds: time it all took.
    """

    embedded: int
    rejected: Mapping[str, str]
    remaining: int
    requests: int
    retries: int
    tokens: int
    outage: EmbeddingStopped | None
    seconds: float
