"""Score fusion: combine the rankings of one search into a single order.

Each ranking is normalized: its best candidate scores 1, its 30th scores 0. The fused score of a
candidate is the weighted sum over all rankings. Unlike reciprocal ranks, this keeps near ties near.
Word rankings count more than vectors if their best candidate stands out further.

Source: Bruch, Gai and Ingber, An Analysis of Fusion Functions for Hybrid Retrieval (ACM
Transactions on Information Systems, 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_REFERENCE_RANK: Final = 30
"""Rank whose score maps to 0. Every search fetches at least this many candidates, so that the limit
of a search does not change scores."""
_FLOOR: Final = -0.1
"""Lower bound of a normalized score; also the score of a candidate that is not in a ranking."""
_RRF_K: Final = 10
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""
_MAX_ROUNDING_VARIANCE: Final = 1e-12
"""Scores whose variance is at most this differ only by rounding."""
_MAX_WORD_WEIGHT: Final = 3.0
"""Upper limit of the weight of words relative to vectors, and the inverse of the lower limit. It
keeps both kinds of rankings effective."""
FOREIGN_WORD_FACTOR: Final = 2.0
"""Factor for the weight of words if the vectors were not trained for the question's language."""


@dataclass(frozen=True, slots=True)
class NormalizedRanking:
    """The scores of a ranking, normalized so that scores of several rankings can be added.

    Attributes:
        scores: normalized scores by id, best first; the best score is 1.
        missing_score: score of candidates that are not in the ranking.
    """

    scores: Mapping[str, float]
    missing_score: float
    weight: float = 1.0


def normalize_cosines(scores: Mapping[str, float], *, weight: float = 1.0) -> NormalizedRanking:
    """Return normalized cosines. With fewer than thirty cosines, the last one maps to 0."""
    return _normalize(scores, min(scores.values(), default=0.0), weight)


def normalize_word_scores(scores: Mapping[str, float], *, weight: float = 1.0) -> NormalizedRanking:
    """Return normalized word scores. With fewer than thirty scores, a raw score of 0 maps to 0."""
    return _normalize(scores, 0.0, weight)


def score_by_rank(ids: Sequence[str], *, weight: float = 1.0) -> NormalizedRanking:
    """Return reciprocal ranks, for a ranking that has an order but no scores."""
    return NormalizedRanking(
        {id_: (_RRF_K + 1) / (_RRF_K + at) for at, id_ in enumerate(ids, 1)}, 0.0, weight
    )


def compare_peaks(words: Mapping[str, float], cosines: Mapping[str, float]) -> float:
    """Return how much further the best word match stands out than the best vector match.

    A ranking is reliable if its best candidate scores far above the others. It is not if all score
    alike, as with vectors in a language that the model barely covers, or words that occur in any
    passage. A candidate stands out by the number of standard deviations that its score lies above
    the mean of the first 30. The result is the weight of words if vectors have weight 1; 1 if
    either ranking cannot be measured.
    """
    count = min(_REFERENCE_RANK, max(len(words), len(cosines)))
    # Passages that are not among the word matches score 0.
    lacking = [0.0] * (count - len(words))
    word_peak = _measure_peak([*words.values(), *lacking][:count])
    vector_peak = _measure_peak([*cosines.values()][:count])
    if not word_peak or not vector_peak:
        return 1.0
    return min(_MAX_WORD_WEIGHT, max(1 / _MAX_WORD_WEIGHT, word_peak / vector_peak))


def fuse(rankings: Sequence[NormalizedRanking]) -> dict[str, float]:
    """Return each id's weighted sum of scores, best first; ties are broken by the best rank."""
    ranks: dict[str, int] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking.scores):
            ranks[id_] = min(rank, ranks.get(id_, rank))
    scores = {
        id_: sum(
            ranking.weight * ranking.scores.get(id_, ranking.missing_score) for ranking in rankings
        )
        for id_ in ranks
    }
    return dict(sorted(scores.items(), key=lambda item: (-item[1], ranks[item[0]], item[0])))


def _measure_peak(scores: Sequence[float]) -> float:
    """Return how many standard deviations the first score is above the mean; 0 if all are equal."""
    if not scores:
        return 0.0
    mean = sum(scores) / len(scores)
    variance = sum((score - mean) ** 2 for score in scores) / len(scores)
    return (scores[0] - mean) / math.sqrt(variance) if variance > _MAX_ROUNDING_VARIANCE else 0.0


def _normalize(scores: Mapping[str, float], floor: float, weight: float) -> NormalizedRanking:
    """Map the best score to 1, and the 30th (else `floor`) to 0; lower scores approach _FLOOR."""
    values = [*scores.values()]
    zero = values[_REFERENCE_RANK - 1] if len(values) >= _REFERENCE_RANK else floor
    range_ = (values[0] - zero if values else 0.0) or 1.0
    return NormalizedRanking(
        {id_: _compress_score((score - zero) / range_) for id_, score in scores.items()},
        _FLOOR,
        weight,
    )


def _compress_score(share: float) -> float:
    """Compress scores below 0 towards _FLOOR; this keeps their order and limits outliers."""
    return share if share >= 0 else _FLOOR * share / (share - 1)
