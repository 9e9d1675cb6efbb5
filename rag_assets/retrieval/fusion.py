"""Score fusion: combine the rankings of one search into a single order.

Each ranking is normalized: its best candidate scores 1, its 30th scores 0. The fused score of a
candidate is the weighted sum over all rankings. Unlike reciprocal ranks, this keeps near ties near.
A ranking by words counts more than vectors where its best candidate stands out further.

Source: Bruch, Gai and Ingber, An Analysis of Fusion Functions for Hybrid Retrieval (ACM
Transactions on Information Systems, 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_REFERENCE: Final = 30
"""The rank whose score counts 0. Every search fetches as many, so that no limit moves it."""
_LEAST: Final = -0.1
"""What a passage counts at least, and what one counts that a ranking does not have."""
_K: Final = 10
"""Of reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009)."""
_EQUAL: Final = 1e-12
"""Variance of scores that differ by rounding alone."""
_MAX_RELATIVE_PEAK: Final = 3.0
"""Limits of the weight of words: neither of two rankings silences the other."""
FOREIGN_WORDS: Final = 2.0
"""Factor of words where vectors were not trained for the question's language."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What a ranking says of passages, in a form that can be added up.

    Attributes:
        of: what each counts, by id, best first; 1 is the best one's.
        absent: what those count that the ranking does not have.
        weight: what the ranking counts among others.
    """

    of: Mapping[str, float]
    absent: float
    weight: float = 1.0


def by_cosine(found: Mapping[str, float], *, weight: float = 1.0) -> Votes:
    """Return normalized cosines; where there are fewer than thirty, the last one counts 0.

    Args:
        found: cosines by id, best first.
        weight: what the ranking counts among others.
    """
    return _normalised(found, min(found.values(), default=0.0), weight)


def by_words(found: Mapping[str, float], *, weight: float = 1.0) -> Votes:
    """Normalised scores by words, where 0 is the score of what has none of them.

    Args:
        found: scores by id, best first.
        weight: what the ranking counts among others.
    """
    return _normalised(found, 0.0, weight)


def by_rank(ids: Sequence[str], *, weight: float = 1.0) -> Votes:
    """Reciprocal ranks, of an order without scores.

    Args:
        ids: best first, without repeats.
        weight: what the ranking counts among others.
    """
    return Votes({id_: (_K + 1) / (_K + at) for at, id_ in enumerate(ids, 1)}, 0.0, weight)


def relative_peak(words: Mapping[str, float], cosines: Mapping[str, float]) -> float:
    """Return how much further the best match by words stands out than the best by vectors.

    A ranking whose best candidate lies far above the others is sure of it; one whose candidates
    score alike is not: vectors of a language that their model hardly knows, or words that stand in
    any passage. A candidate stands out by its standard deviations above the mean of the first 30.

    Args:
        words: scores by words, best first.
        cosines: best first.

    Returns:
        the weight of words where vectors count 1; 1 if either ranking cannot be measured.
    """
    count = min(_REFERENCE, max(len(words), len(cosines)))
    # Passages without any of the words score 0.
    lacking = [0.0] * (count - len(words))
    by_words = _peak([*words.values(), *lacking][:count])
    by_vectors = _peak([*cosines.values()][:count])
    if not by_words or not by_vectors:
        return 1.0
    return min(_MAX_RELATIVE_PEAK, max(1 / _MAX_RELATIVE_PEAK, by_words / by_vectors))


def fuse(rankings: Sequence[Votes]) -> dict[str, float]:
    """Fuse rankings into one: each id scores the weighted sum of what it counts in each.

    Returns:
        the score of every id, best first; of equal ones that with the best rank anywhere is first,
        then by id.
    """
    ranks: dict[str, int] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking.of):
            ranks[id_] = min(rank, ranks.get(id_, rank))
    scores = {
        id_: sum(one.weight * one.of.get(id_, one.absent) for one in rankings) for id_ in ranks
    }
    return dict(sorted(scores.items(), key=lambda one: (-one[1], ranks[one[0]], one[0])))


def _peak(scores: Sequence[float]) -> float:
    """Return the standard deviations of the first score above the mean; 0 if all are equal."""
    if not scores:
        return 0.0
    mean = sum(scores) / len(scores)
    variance = sum((score - mean) ** 2 for score in scores) / len(scores)
    return (scores[0] - mean) / math.sqrt(variance) if variance > _EQUAL else 0.0


def _normalised(found: Mapping[str, float], least: float, weight: float) -> Votes:
    """Scores from 1 for the best to 0 for the thirtieth, and to _LEAST for all others.

    Args:
        found: scores by id, best first.
        least: the score of what counts 0 where there is no thirtieth.
        weight: what the ranking counts among others.
    """
    values = [*found.values()]
    zero = values[_REFERENCE - 1] if len(values) >= _REFERENCE else least
    range_ = (values[0] - zero if values else 0.0) or 1.0
    return Votes({id_: _bent((of - zero) / range_) for id_, of in found.items()}, _LEAST, weight)


def _bent(share: float) -> float:
    """A share of the range, which falls ever less below 0: the order stays, far off is far off."""
    return share if share >= 0 else _LEAST * share / (share - 1)
